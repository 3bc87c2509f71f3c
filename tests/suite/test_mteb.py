"""MTEB's tasks: read as the package defines them, from a folder, at the revision that is pinned."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from harness.errors import Misconfigured
from harness.suite.case import Document, Gold
from harness.suite.definition import Source
from harness.suite.formats import mteb, mteb_collection
from harness.suite.formats.example import CaseTask, Examples
from harness.suite.formats.mteb_task import written_revision
from harness.suite.load import load

PINNED = "b0fddb56ed78048fa8b90373c8a3cfc37b684831"
OTHER = "0" * 40


class Rows(list[dict[str, Any]]):
    """Rows with the features that a data set has."""

    def __init__(self, rows: list[dict[str, Any]], **features: Any) -> None:
        super().__init__(rows)
        self.features = {**dict.fromkeys(name for row in rows for name in row), **features}


@dataclass(frozen=True)
class Metadata:
    """What of a task's metadata is read."""

    dataset: dict[str, str]
    type: str
    eval_splits: tuple[str, ...] = ("test",)
    modalities: tuple[str, ...] = ("text",)
    hf_subsets: tuple[str, ...] = ("default",)

    def model_copy(self, *, update: dict[str, Any]) -> "Metadata":
        return replace(self, **update)


@dataclass
class Task:
    """A task whose data come from `FOLDER/SPLIT.json`, as MTEB's own come from a data set's files."""

    metadata: Metadata
    own: dict[str, Any] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    dataset: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.own.items():
            setattr(self, name, value)

    def load_data(self) -> None:
        import datasets

        assert datasets.config.HF_HUB_OFFLINE
        paths = sorted(Path(self.metadata.dataset["path"]).glob("*.json"))
        splits = {path.stem: Rows(json.loads(path.read_text()), **self.features) for path in paths}
        self.dataset = splits if self.metadata.hf_subsets == ("default",) else {self.hf_subsets[0]: splits}


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts a package `mteb` in place that knows one task, and the parts of `datasets` that are touched."""
    package, datasets = ModuleType("mteb"), ModuleType("datasets")
    known: dict[str, Task] = {}

    def get_task(name: str) -> Task:
        if name not in known:
            raise KeyError(f"KeyError: {name!r} not found. Did you mean: {next(iter(known))!r}?")
        return known[name]

    package.get_task = get_task
    config = SimpleNamespace(HF_HUB_OFFLINE=False, HF_DATASETS_CACHE=Path("cache"))
    bars = {"disabled": False}
    datasets.config = config
    datasets.are_progress_bars_disabled = lambda: bars["disabled"]
    datasets.disable_progress_bars = lambda: bars.update(disabled=True)
    datasets.enable_progress_bars = lambda: bars.update(disabled=False)
    monkeypatch.setitem(sys.modules, "mteb", package)
    monkeypatch.setitem(sys.modules, "datasets", datasets)

    def make(
        kind: str, *, features: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **own: Any
    ) -> None:
        about = Metadata({"path": "mteb/small", "revision": PINNED}, kind, **(metadata or {}))
        known["Small"] = Task(about, own, features or {})

    yield make
    # Whatever was refused, others find these as they were.
    assert (config.HF_HUB_OFFLINE, config.HF_DATASETS_CACHE, bars["disabled"]) == (False, Path("cache"), False)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder of splits, as the hub's cache keeps one: its name is the revision."""

    def write(revision: str = PINNED, **splits: Any) -> Path:
        path = tmp_path / "datasets--mteb--small" / "snapshots" / revision
        path.mkdir(parents=True, exist_ok=True)
        for split, rows in splits.items():
            (path / f"{split}.json").write_text(json.dumps(rows), encoding="utf-8")
        return path

    return write


def examples(path: Path, kind: CaseTask, *mapped: str, **keys: Any) -> Examples:
    source = Source.model_validate({"format": "mteb", "task": "Small", **keys})
    return mteb.read(mteb.locate(path, source, mapped), source, kind)


def refused(path: Path, kind: CaseTask, *mapped: str, **keys: Any) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        examples(path, kind, *mapped, **keys)
    return caught.value


PAIRS = [{"sentence1": "a", "sentence2": "b", "score": 4.5, "genre": "news"}]
TEXTS = [{"text": "a", "label": 1, "label_text": "pos"}, {"text": "b", "label": -1, "label_text": ""}]
STS = {"column_names": ("sentence1", "sentence2")}
CLASSES = {"input_column_name": "text", "label_column_name": "label"}
NAMES = SimpleNamespace(names=["neg", "pos"])


class TestKinds:
    def test_pairs_with_a_number(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """Of the split that is judged; further columns are attributes; the revision is told."""
        task("STS", **STS)
        read = examples(folder(test=PAIRS, train=PAIRS * 2), "similarity")
        (row,) = read.rows
        assert (row.id, row.inputs, row.gold) == ("test:1", {"text_a": "a", "text_b": "b"}, Gold(value=4.5))
        assert row.further == {"genre": "news"}
        assert (read.revision, read.labels) == (PINNED, None)

    def test_classes(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """By name where the data have names, and then -1 is unknown; by number else."""
        task("Classification", features={"label": NAMES}, **CLASSES)
        read = examples(folder(test=TEXTS), "classification")
        assert ([row.gold for row in read.rows], read.labels) == ([Gold(label="pos"), Gold()], ("neg", "pos"))
        assert read.rows[0].further == {"label_text": "pos"}
        task("Classification", **CLASSES)
        read = examples(folder(test=TEXTS), "classification")
        assert ([row.gold for row in read.rows], read.labels) == ([Gold(label="1"), Gold(label="-1")], None)

    def test_splits_must_share_their_classes(
        self, task: Callable[..., None], folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The number 0 would mean two labels. Bytes are no attribute."""
        rows = [{"text": "a", "label": 0, "image": b"1"}]
        names = {"dev": ["neg", "pos"], "test": ["neg", "pos"], "other": ["pos", "neg"]}
        data = {split: Rows(rows, label=SimpleNamespace(names=each)) for split, each in names.items()}
        monkeypatch.setattr(Task, "load_data", lambda self: setattr(self, "dataset", data))
        task("Classification", **CLASSES)
        read = examples(folder(test=[]), "classification", "dev", "test")
        assert [(row.gold, row.further) for row in read.rows] == [(Gold(label="neg"), {})] * 2
        assert "different classes" in refused(folder(test=[]), "classification", "dev", "other").found

    def test_sets_of_labels(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """A list of classes, which may be empty."""
        task("MultilabelClassification", features={"label": SimpleNamespace(feature=NAMES)}, **CLASSES)
        read = examples(folder(test=[{"text": "a", "label": [1, 0]}, {"text": "b", "label": []}]), "multilabel")
        assert [row.gold for row in read.rows] == [Gold(labels=("pos", "neg")), Gold(labels=())]
        assert read.labels == ("neg", "pos")

    def test_pairs_with_a_class(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """As classes or as numbers, a row each; also where one row holds all of them as lists."""
        own = {"input1_column_name": "s1", "input2_column_name": "s2", "label_column_name": "labels"}
        rows = [{"s1": "a", "s2": "b", "labels": 1}, {"s1": "c", "s2": "d", "labels": 0}]
        for data in (rows, [{"s1": ["a", "c"], "s2": ["b", "d"], "labels": [1, 0]}]):
            task("PairClassification", **own)
            read = examples(folder(test=data), "classification")
            assert [row.gold for row in read.rows] == [Gold(label="1"), Gold(label="0")]
            assert [row.inputs["text_b"] for row in read.rows] == ["b", "d"]
        task("PairClassification", **own)
        assert examples(folder(test=rows[:1]), "similarity").rows[0].gold == Gold(value=1)

    def test_a_task_of_another_kind_is_refused(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """Both words are said."""
        task("STS", **STS)
        error = refused(folder(test=PAIRS), "classification")
        assert "kind STS, for a suite of classification" in error.found
        assert error.expected == "a suite of similarity"
        task("Clustering")
        assert "kind Clustering" in refused(folder(test=PAIRS), "classification").found
        task("STS", metadata={"modalities": ("image", "text")}, **STS)
        assert "image and text" in refused(folder(test=PAIRS), "similarity").found
        task("STS", column_names=({"a": "text"}, {"b": "text"}))
        assert "several columns" in refused(folder(test=PAIRS), "similarity").found


class TestSplitsAndSubsets:
    def test_splits_are_named_by_role(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """Several need a name each, under which their cases stand."""
        task("STS", metadata={"eval_splits": ("dev", "test")}, **STS)
        path = folder(dev=PAIRS, test=PAIRS)
        assert "2 splits" in refused(path, "similarity").found
        rows = examples(path, "similarity", "test", "dev").rows
        assert [(row.id, row.place.path) for row in rows] == [("test:1", path / "test"), ("dev:1", path / "dev")]
        assert "no split 'train'" in refused(path, "similarity", "train").found

    def test_a_subset_is_never_guessed(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """Of several it must be named, and only it is read."""
        path = folder(test=PAIRS)
        for subset, said in ((None, "2 subsets"), ("fr", "subset 'fr'")):
            task("STS", metadata={"hf_subsets": ("en", "de")}, **STS)
            assert said in refused(path, "similarity", subset=subset).found
        assert len(examples(path, "similarity", subset="de").rows) == 1

    def test_columns_that_are_not_there(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """Those that are there are told."""
        task("STS", column_names=("sent1", "sent2"))
        assert "'sentence1'" in refused(folder(test=PAIRS), "similarity").found


class TestRevisions:
    def test_another_revision_is_refused(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """Whether the folder says it, or suite.toml."""
        task("STS", **STS)
        error = refused(folder(OTHER, test=PAIRS), "similarity")
        assert (OTHER in error.found, PINNED in error.expected) == (True, True)
        assert OTHER in refused(folder(test=PAIRS), "similarity", revision=OTHER).found

    def test_data_that_do_not_say_theirs(
        self, task: Callable[..., None], folder: Callable[..., Path], tmp_path: Path
    ) -> None:
        """Are refused, unless suite.toml says it for them, or they are a link to a folder that does."""
        task("STS", **STS)
        path = folder(test=PAIRS)
        (tmp_path / "link").symlink_to(path)
        assert examples(tmp_path / "link", "similarity").revision == PINNED
        plain = path.rename(tmp_path / "plain")
        assert f'revision = "{PINNED}"' in refused(plain, "similarity").mend
        assert examples(plain, "similarity", revision=PINNED).revision == PINNED

    def test_a_download_says_its_revision(self, tmp_path: Path) -> None:
        """In the records that the hub's client leaves beside the files, which are no data; mixed ones are refused."""
        assert written_revision(tmp_path) is None
        records = tmp_path / ".cache" / "huggingface" / "download"
        (records / "data").mkdir(parents=True)
        (records / "README.md.metadata").write_text(f"{PINNED}\netag\n1.0\n")
        (records / "data" / "test.parquet.metadata").write_text(f"{PINNED}\netag\n2.0\n")
        assert written_revision(tmp_path) == PINNED
        (tmp_path / "test.json").write_text("[]")
        (tmp_path / ".gitattributes").write_text("")
        assert mteb.locate(tmp_path, Source(format="mteb", task="Small"), ()).all == (tmp_path / "test.json",)
        (records / "data" / "test.parquet.metadata").write_text(f"{OTHER}\netag\n2.0\n")
        with pytest.raises(Misconfigured, match="2 revisions"):
            written_revision(tmp_path)


class TestRefusals:
    def test_without_the_package(self, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
        """It is optional, and the message says how to get it."""
        monkeypatch.setitem(sys.modules, "mteb", None)
        assert "[mteb]" in refused(folder(test=PAIRS), "similarity").mend

    def test_an_unknown_task_is_told_the_nearest(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """In MTEB's own words; no name at all is refused too."""
        task("STS", **STS)
        assert "Did you mean: 'Small'" in refused(folder(test=PAIRS), "similarity", task="Smal").mend
        with pytest.raises(Misconfigured, match="no `task`"):
            mteb.locate(folder(), Source(format="mteb"), ())

    def test_data_that_the_task_cannot_read(self, task: Callable[..., None], folder: Callable[..., Path]) -> None:
        """Whatever its own code raises; a folder without a file is refused before."""
        task("STS", **STS)
        path = folder(test=PAIRS)
        (path / "test.json").write_text("[")
        assert "JSONDecodeError" in refused(path, "similarity").found
        assert "no such folder" in refused(path / "none", "similarity").found

    def test_keys_of_other_formats(self, folder: Callable[..., Path]) -> None:
        """They would not be honoured."""
        assert "`columns`" in refused(folder(test=PAIRS), "similarity", columns={"text_a": "x"}).found
        assert "`header`" in refused(folder(test=PAIRS), "similarity", header=True).found


CORPUS = [{"id": "d1", "title": "T", "text": "x"}, {"id": "d2", "text": " y"}]
QUERIES = [{"id": "q2", "text": "y?", "kind": "plain"}, {"id": "q1", "text": "x?"}]
RELEVANT = {"q2": {"d2": 0, "d1": 1}, "q1": {"d1": 2}}


class TestCollections:
    @pytest.fixture
    def collection(
        self, task: Callable[..., None], folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
    ) -> Any:
        """Reads a collection of these parts."""
        path = folder(test=[])

        def read(*mapped: str, kind: str = "Retrieval", splits: tuple[str, ...] = ("test",), **parts: Any) -> Any:
            data = {"corpus": CORPUS, "queries": QUERIES, "relevant_docs": RELEVANT, **parts}
            data |= {name: Rows(data[name]) for name in ("corpus", "queries")}
            monkeypatch.setattr(Task, "load_data", lambda self: setattr(
                self, "dataset", {"default": dict.fromkeys(splits, data)}
            ))  # fmt: skip
            task(kind, metadata={"eval_splits": splits})
            source = Source(format="mteb", task="Small")
            return mteb_collection.read(mteb_collection.locate(path, source, mapped))

        return read

    def test_what_a_collection_is(self, collection: Any) -> None:
        """Documents as of BEIR, queries in their order, judgements by ID, for MTEB has no order of them."""
        read = collection()
        assert read.documents == (Document("d1", "T x"), Document("d2", "y"))
        assert [(query.id, query.text, query.further) for query in read.queries] == [
            ("q2", "y?", {"kind": "plain"}), ("q1", "x?", {})
        ]  # fmt: skip
        assert [(row.case_id, row.document_id, row.grade) for row in read.judgements] == [
            ("q1", "d1", 2), ("q2", "d1", 1), ("q2", "d2", 0)
        ]  # fmt: skip
        assert read.revision == PINNED

    def test_one_split_is_named(self, collection: Any) -> None:
        """By `[cases] role` where there are several; two bring two corpora."""
        assert collection("dev", splits=("dev", "test")).queries[0].place.path.name == "dev"
        for mapped in ((), ("dev", "test")):
            with pytest.raises(Misconfigured, match="2 splits"):
                collection(*mapped, splits=("dev", "test"))

    @pytest.mark.parametrize(
        ("parts", "said"),
        [
            ({"kind": "STS"}, "kind STS"),
            ({"corpus": [*CORPUS, CORPUS[0]]}, "document ID 'd1' appears twice"),
            ({"queries": [*QUERIES, QUERIES[0]]}, "case ID 'q2' appears twice"),
            ({"queries": [{"id": "q1", "text": "x", "instruction": 3}]}, "`instruction` is a number"),
            ({"top_ranked": {"q1": [" "], "q2": ["d1"]}}, "' '"),
            ({"queries": [{"id": "q1", "text": [{"role": "user"}]}]}, "`text` is a list"),
            ({"relevant_docs": {"q1": {"d1": 0.5}}}, "grade '0.5'"),
        ],
    )
    def test_what_a_collection_is_not(self, collection: Any, parts: dict[str, Any], said: str) -> None:
        """Other kinds of task, IDs that stand twice, and queries that are more than a text."""
        with pytest.raises(Misconfigured) as caught:
            collection(**parts)
        assert said in caught.value.found

    def test_an_instruction_stands_behind_its_query(self, collection: Any) -> None:
        """As MTEB's own loader has it, and as an attribute; a query without one is its text."""
        queries = [
            {"id": "q1", "text": "x?", "instruction": "no news"},
            {"id": "q2", "text": "y?", "instruction": None},
        ]
        for kind in ("InstructionRetrieval", "InstructionReranking"):
            read = collection(kind=kind, queries=queries)
            assert [query.text for query in read.queries] == ["x? no news", "y?"]
            assert [query.further.get("instruction") for query in read.queries] == ["no news", None]

    def test_lists_to_rank_are_each_querys_own(self, collection: Any) -> None:
        """A document that stands twice is there once, and what belongs to a query that is left out goes with it."""
        lists = {"q1": ["d2", "d1", "d2"], "q2": ["d1"], "q9": ["d1"]}
        read = collection(kind="Reranking", top_ranked=lists)
        assert [(row.case_id, row.document_id) for row in read.candidates] == [("q2", "d1"), ("q1", "d2"), ("q1", "d1")]
        assert collection(kind="Reranking", top_ranked=None).candidates is None
        assert collection().candidates is None


def hub_folder(path: Path, **configs: list[dict[str, Any]]) -> None:
    """A data set with several configurations, each a file of one split `test`."""
    path.mkdir()
    told = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: test\n    path: {name}.jsonl\n" for name in configs
    )
    (path / "README.md").write_text(f"---\nconfigs:\n{told}---\n")
    for name, each in configs.items():
        (path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))


def known_task(package: Any, kind: str) -> Any:
    """The first of a kind with one subset, one split, and no code of its own that reads or changes the data."""
    plain = package.abstasks.AbsTaskRetrieval
    return next(
        task for task in package.get_tasks(task_types=[kind], languages=["eng"], modalities=["text"])
        if type(task).load_data is plain.load_data and type(task).dataset_transform is plain.dataset_transform
        and not task.metadata.is_multilingual and list(task.metadata.eval_splits) == ["test"]
    )  # fmt: skip


class TestThePackage:
    """With MTEB itself, where it is installed."""

    @pytest.mark.parametrize("kind", ["Reranking", "InstructionReranking", "InstructionRetrieval"])
    def test_tasks_with_lists_and_instructions(self, tmp_path: Path, kind: str) -> None:
        """The first task of the kind that has one subset and one split, from files made here."""
        package = pytest.importorskip("mteb")
        known = known_task(package, kind)
        parts: dict[str, list[dict[str, Any]]] = {
            "default": [{"query-id": "q1", "corpus-id": "d1", "score": 1}],
            "corpus": [{"_id": "d1", "title": "T", "text": "x"}, {"_id": "d2", "title": "", "text": "y"}],
            "queries": [{"_id": "q1", "text": "x?"}, {"_id": "q2", "text": "unjudged"}],
            "top_ranked": [{"query-id": "q1", "corpus-ids": ["d2", "d1"]}],
        }
        if kind != "Reranking":
            parts["instruction"] = [{"query-id": "q1", "instruction": "be short"}]
        hub_folder(tmp_path / "data", **parts)
        source = Source(format="mteb", task=known.metadata.name, revision=known.metadata.revision)
        read = mteb_collection.read(mteb_collection.locate(tmp_path / "data", source, ()))
        assert [query.text for query in read.queries] == ["x?" if kind == "Reranking" else "x? be short"]
        assert read.candidates is not None
        assert [(row.case_id, row.document_id) for row in read.candidates] == [("q1", "d2"), ("q1", "d1")]
        if kind != "InstructionRetrieval":
            self.ranks_its_own_lists(tmp_path, known)

    def ranks_its_own_lists(self, root: Path, known: Any) -> None:
        """A reranking suite needs no [candidates] then, and keeps what `dangling` says of lists."""
        said = (
            'schema = "harness.suite.v1"\nname = "own"\ntask = "reranking"\n'
            f'source = {{ format = "mteb", path = "data", task = "{known.metadata.name}", '
            f'revision = "{known.metadata.revision}" }}\n[metrics]\nprimary = "RR@10"\n'
            '[[rules]]\nid = "h"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 0.5\n'
        )
        (root / "suite.toml").write_text(said)
        given = load(root).candidates
        assert given is not None and [each.document_id for each in given["q1"]] == ["d2", "d1"]
        lists = root / "data" / "top_ranked.jsonl"
        lists.write_text(json.dumps({"query-id": "q1", "corpus-ids": ["d2", "d9"]}) + "\n")
        with pytest.raises(Misconfigured, match="document 'd9'"):
            load(root)
        (root / "suite.toml").write_text(said.replace("[metrics]", '[cases]\ndangling = "drop"\n[metrics]'))
        suite = load(root)
        assert suite.candidates is not None and [each.document_id for each in suite.candidates["q1"]] == ["d2"]
        assert suite.counts.candidates_dropped == 1

    def test_a_task_and_a_collection(self, tmp_path: Path) -> None:
        """STSBenchmark and SciFact from files made here, and not from what was made of others before."""
        package = pytest.importorskip("mteb")
        (tmp_path / "sts").mkdir()
        for score in (1.5, 2.5):
            row = json.dumps({"sentence1": "a", "sentence2": "b", "score": score})
            (tmp_path / "sts" / "test.jsonl").write_text(row + "\n")
            revision = package.get_task("STSBenchmark").metadata.revision
            read = examples(tmp_path / "sts", "similarity", task="STSBenchmark", revision=revision)
            assert [(row.id, row.gold) for row in read.rows] == [("test:1", Gold(value=score))]
        names = {"default": "qrels", "corpus": "corpus", "queries": "queries"}
        configs = "".join(
            f"- config_name: {name}\n  data_files:\n  - split: {'test' if name == 'default' else file}\n"
            f"    path: {file}.jsonl\n"
            for name, file in names.items()
        )
        rows = {
            "qrels": [{"query-id": "q1", "corpus-id": "d1", "score": 1}],
            "corpus": [{"_id": "d1", "title": "T", "text": "x"}],
            "queries": [{"_id": "q1", "text": "x?"}, {"_id": "q2", "text": "unjudged"}],
        }
        (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
        for name, each in rows.items():
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))
        revision = package.get_task("SciFact").metadata.revision
        source = Source(format="mteb", task="SciFact", revision=revision)
        collection = mteb_collection.read(mteb_collection.locate(tmp_path, source, ()))
        assert collection.documents == (Document("d1", "T x"),)
        assert [query.id for query in collection.queries] == ["q1"]
        assert [(row.case_id, row.document_id, row.grade) for row in collection.judgements] == [("q1", "d1", 1)]
