"""`harness.mteb_model`: an admitted release as a model that MTEB evaluates."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.candidate.cross import Pair
from harness.candidate.encoder import Encoded, Encoder
from harness.candidate.load import load_cross_to_run, load_to_run
from harness.candidate.side import Side
from harness.errors import Misconfigured, Stopped
from harness.readout.normalisation import l2
from harness.release.open import Release, open_release
from harness.release.prompts import Prompts
from harness.release.window import best_of_windows
from harness.run.compose import Task, carry_out, node_of
from harness.run.fit import require_fit
from harness.run.given import Given
from harness.run.ranking import Cut
from harness.suite.case import Case, Counts, Document, Suite
from harness.suite.definition import RankingPolicy, SuiteDefinition
from harness.suite.formats.mteb_collection import with_instruction
from harness.verb.admit import require_admitted
from harness.verb.place import find_place

GRID: float = RankingPolicy().grid
TYPES = {
    "bi": "dense", "cross": "cross-encoder", "late": "late-interaction", "sparse": "sparse", "two-stage": "hybrid",
    "fusion": "hybrid",
}  # fmt: skip
"""MTEB's word for each interaction that it can be handed."""
SIMILARITIES = {"cosine": "cosine", "dot": "dot", "maxsim": "MaxSim"}
FRAMEWORKS = {"onnx": "ONNX", "openvino": "OpenVINO"}
# Lengths below are taken as this, so that a vector without a direction is similar to nothing.
SHORTEST = 1e-12

Batches: TypeAlias = Iterable[Mapping[str, Any]]
Vectors: TypeAlias = NDArray[np.float32]


class TextModel:
    """A bi-encoder, as MTEB's `EncoderProtocol` has it. MTEB searches with its vectors and its similarity."""

    def __init__(self, release: Release, metadata: Any) -> None:
        self.mteb_model_meta = metadata
        self._release = release
        self._encoders: dict[Prompts, Encoder] = {}

    def encode(
        self,
        inputs: Batches,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: str | None = None,
        precision: str | None = None,
        **options: Any,
    ) -> Vectors:
        """[n, d], the vectors of all texts in their order, whatever batches MTEB would have made of them.

        The prompt is that of the text's side on a suite of the task's name; a text without a side is taken for a query.
        Raises Misconfigured for such a text where each side has its own encoder, and for another `precision` than
        float32; Stopped for a text without a finite vector.
        """
        if precision not in (None, "float32"):
            _refuse(self._release, f"precision {precision!r}", "float32", "Make a release that stores vectors so.")
        encoded = self._encoder(task_metadata.name).encode(_texts(inputs), self._side(prompt_type))
        return _finite(self._release, encoded)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Vectors:
        """[n, m], by the release's score type; higher is nearer."""
        first, second = self._directed(embeddings1), self._directed(embeddings2)
        return first @ second.T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Vectors:
        """[n], of the first with the first, the second with the second, and so on."""
        product: Vectors = np.einsum("nd,nd->n", self._directed(embeddings1), self._directed(embeddings2))
        return product

    def _directed(self, vectors: Any) -> Vectors:
        found: Vectors = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        return found if self._release.score_type == "dot" else l2(found, SHORTEST).astype(np.float32)

    def _side(self, prompt_type: str | None) -> Side:
        if prompt_type is None and not self._release.manifest.meaning.interaction.tied:
            _refuse(
                self._release, "an encoder for each side, and texts that are neither queries nor documents",
                "a task of queries and documents", "Evaluate retrieval and reranking alone.",
            )  # fmt: skip
        return "document" if prompt_type == "document" else "query"

    def _encoder(self, task: str) -> Encoder:
        prompts = self._release.prompts_for(task)
        if prompts is None:
            _refuse(self._release, "texts without sides", "a bi-encoder", "Evaluate another release.")
        if prompts not in self._encoders:
            self._encoders[prompts] = load_to_run(self._release, prompts)
        return self._encoders[prompts]


class PairModel:
    """A cross-encoder, as MTEB's `CrossEncoderProtocol` has it."""

    def __init__(self, release: Release, metadata: Any) -> None:
        self.mteb_model_meta = metadata
        self._release, self._encoder = release, load_cross_to_run(release)

    def predict(
        self,
        inputs1: Batches,
        inputs2: Batches,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: str | None = None,
        **options: Any,
    ) -> NDArray[np.float64]:
        """[n], what ranks: of each first text, as the query, with the second. Higher is better.

        Raises Stopped for a pair without a finite number.
        """
        pairs = [Pair(*each) for each in zip(_texts(inputs1), _texts(inputs2), strict=True)]
        return self._encoder.scores(_finite(self._release, self._encoder.encode(pairs)), GRID)


class SearchModel:
    """Late interaction, sparse vectors, the best of several windows, two stages or a fusion, as MTEB's `SearchProtocol`
    has them: the rankings are those of a run, empty documents left out, cut at `top_k` where the total order says.
    """

    def __init__(self, release: Release, metadata: Any) -> None:
        self.mteb_model_meta = metadata
        self._release = release
        self._documents: tuple[Document, ...] = ()

    def index(
        self,
        corpus: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        encode_kwargs: Any,
        num_proc: int | None = None,
        **options: Any,
    ) -> None:
        """Keeps the corpus as texts, as a suite of BEIR's form has them."""
        self._documents = tuple(
            Document(str(row["id"]), f"{row.get('title') or ''} {row['text']}".strip()) for row in corpus
        )

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        top_k: int,
        encode_kwargs: Any,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        num_proc: int | None = None,
        **options: Any,
    ) -> dict[str, dict[str, float]]:
        """By query, the scores of the first `top_k` documents: of the whole corpus, or of those in `top_ranked`.

        An instruction stands behind its query, as MTEB puts it for encoders. Raises Misconfigured for queries that
        aren't plain text, and for a release that cannot rank given documents;
        Stopped for a query that has no ranking.
        """
        suite = self._suite(task_metadata.name, [self._case(row) for row in queries], top_ranked is not None)
        require_fit({"candidate": self._release}, suite.definition)
        task = Task(suite, {}, GRID, None if top_ranked is None else _given(top_ranked))
        cut = Cut(top_k, "expected", drop_self=False, exact=True)
        outputs = carry_out({"release": node_of(self._release, cut)}, task)["release"].outputs
        found: dict[str, dict[str, float]] = {case.id: {} for case in suite.cases}
        for output in outputs:
            if output.ranking is None:
                _stop(self._release, f"query {output.case_id!r}: {output.reason}")
            found[output.case_id] = dict(
                zip(map(str, output.ranking.documents), output.ranking.scores.tolist(), strict=True)
            )
        return found

    def _case(self, row: Mapping[str, Any]) -> Case:
        text = row["text"]
        if not isinstance(text, str):
            _refuse(
                self._release, f"query {row['id']!r}, which is a conversation", "queries of text alone",
                "Evaluate another task.",
            )  # fmt: skip
        whole = with_instruction(text, row.get("instruction"))
        return Case(str(row["id"]), whole, "promotion", str(row["id"]), True, {})

    def _suite(self, name: str, cases: Sequence[Case], reranking: bool) -> Suite:
        """Without judgements, which no release sees. Its name decides which prompts are meant."""
        definition = SuiteDefinition.model_validate({
            "schema": "harness.suite.v1", "name": name, "task": "reranking" if reranking else "retrieval",
            "source": {"format": "mteb"}, "metrics": {"primary": "nDCG@10"},
        })  # fmt: skip
        return Suite(
            definition, Path(), tuple(cases), self._documents, judgements=(), files={},
            counts=Counts(0, 0, 0, 0, 0, 0), warnings=(),
        )  # fmt: skip


MtebModel: TypeAlias = TextModel | PairModel | SearchModel


def mteb_model(release: str | Path) -> MtebModel:
    """A release as `mteb.evaluate` takes a model; its revision there is the content ID, its name `releases/NAME`.

    A bi-encoder of one vector a text encodes, a cross-encoder scores pairs, any other live release searches. Rankings
    by query are kept by MTEB itself: `mteb.evaluate(model, tasks, prediction_folder=…)`. What is still DRAFT is
    admitted.
    Raises NotFound for a release that isn't there, Misconfigured without the package `mteb` and for a release that
    answers no texts of others, NotAdmitted where a check fails, Stopped where its model does not load.
    """
    opened = open_release(find_place().release(str(release)))
    _require_evaluable(opened)
    metadata = _metadata(opened)
    require_admitted(opened)
    if opened.definition.interaction == "bi" and not best_of_windows(opened.manifest.meaning):
        return TextModel(opened, metadata)
    if opened.definition.interaction == "cross":
        return PairModel(opened, metadata)
    return SearchModel(opened, metadata)


def _require_evaluable(release: Release) -> None:
    """It, and every one that it is made of."""
    kind = release.definition.interaction
    if kind not in TYPES:
        _refuse(
            release, f"a {kind} release", f"one of {', '.join(TYPES)}",
            "What was recorded answers no other texts; a head is judged in a suite of its task.",
        )  # fmt: skip
    if reason := release.cannot_run or release.unranked:
        _refuse(release, reason, "a release that ranks documents here", "Evaluate another release.")
    for member in release.members.values():
        _require_evaluable(member)


def _metadata(release: Release) -> Any:
    """MTEB's `ModelMeta`. A backend is no part of the content ID, and so is named apart: MTEB keeps results by both."""
    try:
        from mteb.models import ModelMeta
    except ImportError as error:
        raise Misconfigured(
            f"release {release.name!r} as a model of MTEB", found="the package mteb is not installed",
            expected="it, for it says what its models are", mend="Install it: pip install 'retrieval-harness[mteb]'.",
        ) from error  # fmt: skip
    meaning, kind = release.manifest.meaning, release.definition.interaction
    inputs = [tower.input for tower in meaning.towers.values()]
    return ModelMeta(
        loader=None,
        name=f"releases/{release.name}",
        revision=release.content_id,
        release_date=None,
        languages=None,
        n_parameters=None,
        memory_usage_mb=None,
        max_tokens=min((each.max_length for each in inputs), default=None),
        embed_dim=meaning.output.dimension if kind == "bi" else None,
        license=None,
        open_weights=None,
        public_training_code=None,
        public_training_data=None,
        framework=["Sentence Transformers", FRAMEWORKS.get(release.backend or "", "PyTorch")],
        similarity_fn_name=SIMILARITIES.get(release.score_type),
        use_instructions=any(any(each.prompts.values()) or bool(each.suite_prompts) for each in inputs),
        training_datasets=None,
        model_type=[TYPES[kind]],
        experiment_kwargs=None if release.backend is None else {"backend": release.backend},
    )


def _texts(batches: Batches) -> list[str]:
    return [str(text) for batch in batches for text in batch["text"]]


def _given(lists: Mapping[str, Sequence[str]]) -> dict[str, Given]:
    """Documents to rank by query, each once."""
    documents = {query: np.array(list(dict.fromkeys(some)), dtype=object) for query, some in lists.items()}
    return {query: Given(some, np.full(len(some), np.nan)) for query, some in documents.items()}


def _finite(release: Release, encoded: Encoded) -> Vectors:
    """One row a text. Raises Stopped for the first that has none."""
    bad = np.flatnonzero(~np.isfinite(encoded.values).all(axis=1))
    if len(bad):
        first = int(bad[0])
        _stop(release, f"text {first + 1} of {len(encoded.values)}: {encoded.failed.get(first, 'no finite number')}")
    return encoded.values


def _stop(release: Release, found: str) -> NoReturn:
    raise Stopped(
        f"release {release.name!r}", found=found, expected="finite numbers for every text",
        mend="MTEB has no word for a case that failed; `harness run` keeps it as one.",
    )  # fmt: skip


def _refuse(release: Release, found: str, expected: str, mend: str) -> NoReturn:
    raise Misconfigured(f"release {release.name!r} as a model of MTEB", found=found, expected=expected, mend=mend)
