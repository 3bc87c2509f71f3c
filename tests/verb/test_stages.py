"""The main job with last stages: two-stage releases and fusions, cross-encoders over given documents."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.errors import Misconfigured, NotAdmitted
from harness.identity import Json
from harness.output.decision import Outcome

from ..candidate.conftest import WORDS, save_cross, save_tiny

CASES = 24
DEPTH = 3
RERANKING = '[candidates]\npath = "candidates.tsv"\n'


def lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "bi": save_tiny(root / "bi"),
        "cls": save_tiny(root / "cls", pooling="cls"),
        "cross": save_cross(root / "cross"),
        "third": save_cross(root / "third", seed=6),
    }


class Project:
    """One suite of short questions over thirty documents, and releases of tiny models of random weights."""

    def __init__(self, root: Path, models: Mapping[str, Path]) -> None:
        self.root, self.models = root, models
        rng = np.random.default_rng(7)
        self.documents = [" ".join(rng.choice(WORDS, rng.integers(2, 12))) for _ in range(30)]
        self.queries = [" ".join(rng.choice(WORDS, 3)) for _ in range(CASES)]
        self.relevant = [rng.choice(30, 2, replace=False).tolist() for _ in range(CASES)]

    def suite(self, task: str = "retrieval", head: str = "", rules: str = "", ranking: str = "") -> Path:
        folder = self.root / "suites" / "s"
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        lines(folder / "corpus.jsonl", [{"_id": f"d{i}", "text": text} for i, text in enumerate(self.documents)])
        lines(folder / "queries.jsonl", [{"_id": f"q{i}", "text": text} for i, text in enumerate(self.queries)])
        judged = [f"q{i}\td{each}\t1\n" for i, some in enumerate(self.relevant) for each in some]
        (folder / "qrels" / "test.tsv").write_text("".join(judged))
        rules = rules or '[[rules]]\nid = "h"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 1.0\n'
        (folder / "suite.toml").write_text(
            f'schema = "harness.suite.v1"\nname = "s"\ntask = "{task}"\nsource = {{ format = "beir" }}\n{head}'
            f'[ranking]\ndepth = 20\n{ranking}[metrics]\nprimary = "RR@10"\n'
            'report = ["RR@10", "R@10", "nDCG@10", "recall_ceiling"]\n'
            f"[uncertainty]\ndraws = 200\n{rules}"
        )
        return folder

    def release(self, name: str, text: str | None = None, *, extra: str = "") -> Path:
        folder = self.root / "releases" / name
        folder.mkdir(parents=True, exist_ok=True)
        if text is None:
            kind = "cross" if name in ("cross", "third") else "bi"
            text = f'interaction = "{kind}"\n[model]\nsource = {json.dumps(f"path:{self.models[name]}")}\n'
        (folder / "release.toml").write_text(f'schema = "harness.release.v1"\nname = "{name}"\n{text}{extra}')
        return folder

    def two(self, name: str, retriever: str = "bi", reranker: str = "cross", depth: int = DEPTH) -> None:
        self.release(
            name, f'interaction = "two-stage"\nretriever = "{retriever}"\nreranker = "{reranker}"\ndepth = {depth}\n'
        )


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory, models: Mapping[str, Path]) -> Path:
    """Every single model as an admitted release: proving takes longer than running."""
    root = tmp_path_factory.mktemp("proven")
    project = Project(root, models)
    (root / "suites").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name in models:
            project.release(name)
            assert harness.admit(name).ok
    return root


@pytest.fixture
def project(tmp_path: Path, proven: Path, models: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(proven / "releases", tmp_path / "releases")
    return Project(tmp_path, models)


def values(side: str = "candidate") -> dict[str, dict[str, float]]:
    """By metric and case."""
    found: dict[str, dict[str, float]] = {}
    rows = harness.sql(
        f"SELECT metric, case_id, value FROM case_metrics WHERE side = '{side}' AND value IS NOT NULL"
    ).rows
    for metric, case, value in rows:
        found.setdefault(str(metric), {})[str(case)] = float(str(value))
    return found


@pytest.mark.usefixtures("plain_page")
class TestTwoStages:
    def test_every_metric_is_bounded_by_what_the_first_stage_found(self, project: Project) -> None:
        """Three of thirty documents are passed on: the ceiling is the share of relevant ones among them, by hand."""
        project.suite()
        harness.freeze("s")
        project.two("one"), project.two("two", reranker="third")
        found = harness.run("s", candidate="two", parent="one")
        measured = values()
        given = harness.sql(
            "SELECT case_id, list(document_id ORDER BY position) FROM candidates WHERE side = 'candidate' GROUP BY ALL"
        ).rows
        assert len(given) == CASES and all(len(documents) == DEPTH for _, documents in given)
        for case, documents in given:
            relevant = {f"d{i}" for i in project.relevant[int(str(case)[1:])]}
            assert measured["recall_ceiling"][case] == len(relevant & set(documents)) / 2
        ceiling = measured["recall_ceiling"]
        assert 0 < np.mean(list(ceiling.values())) < 1
        assert measured["R@10"] == ceiling
        for metric in ("RR@10", "nDCG@10"):
            assert all(value <= 1 if ceiling[case] else value == 0 for case, value in measured[metric].items())
        assert found.metrics["candidate"]["all"]["recall_ceiling"].value == found.metrics["parent"]["all"]["R@10"].value

    def test_the_ceiling_is_kept_and_told_where_the_suite_does_not_ask_for_it(self, project: Project) -> None:
        """By case in the store, its mean in a remark; a side without a last stage has none."""
        toml = project.suite() / "suite.toml"
        toml.write_text(toml.read_text().replace(', "recall_ceiling"', ""))
        harness.freeze("s")
        project.two("two")
        found = harness.run("s", candidate="two", parent="bi")
        ceiling = list(values()["recall_ceiling"].values())
        assert len(ceiling) == CASES and "recall_ceiling" not in values("parent")
        [told] = [each for each in found.decision.remarks if "recall_ceiling" in each]
        assert f"{np.mean(ceiling):.4f} of the relevant" in told
        assert f"in {ceiling.count(1.0)} of {CASES} cases" in told

    def test_both_rerankers_see_the_same_candidates_and_the_decision_says_so(self, project: Project) -> None:
        project.suite()
        harness.freeze("s")
        project.two("one"), project.two("two", reranker="third")
        found = harness.run("s", candidate="two", parent="one")
        digests = harness.sql("SELECT side, digest, cases, pairs FROM candidate_sets ORDER BY side").rows
        assert [row[0] for row in digests] == ["candidate", "parent"] and digests[0][1:] == digests[1][1:]
        assert any(
            f"the same {CASES * DEPTH} pairs" in remark and digests[0][1][:12] in remark for remark in found.remarks
        )
        again = harness.decide(found.run)
        assert (again.decision, again.metrics) == (found.decision, found.metrics)

    def test_other_candidates_are_compared_only_where_the_suite_says_so(self, project: Project) -> None:
        """And then the decision says that they differ."""
        project.suite()
        harness.freeze("s")
        project.two("one"), project.two("two", retriever="cls")
        with pytest.raises(Misconfigured, match="the same candidates"):
            harness.run("s", candidate="two", parent="one")
        project.suite(ranking='candidates = "own"\n')
        harness.freeze("s")
        found = harness.run("s", candidate="two", parent="one")
        assert any(remark.startswith("The last stages were given other documents") for remark in found.remarks)

    def test_what_a_reranker_adds_is_judged_from_end_to_end(self, project: Project) -> None:
        """Against its own retriever, whose ceiling is how far its ranking goes."""
        project.suite()
        harness.freeze("s")
        project.two("one", depth=20)
        found = harness.run("s", candidate="one", parent="bi")
        sides = found.metrics
        assert sides["candidate"]["all"]["recall_ceiling"].value == sides["parent"]["all"]["recall_ceiling"].value
        assert values("parent")["recall_ceiling"] == values("candidate")["recall_ceiling"]
        assert found.decision.outcome is Outcome.PASS and found.bundle
        assert (Path(found.bundle) / "evidence" / "candidates.parquet").is_file()

    def test_a_floor_on_the_ceiling_gates_the_first_stage(self, project: Project) -> None:
        """No order of the candidates could mend it."""
        rule = '[[rules]]\nid = "reach"\nkind = "at-least"\nmetric = "recall_ceiling"\nvalue = 0.9\n'
        project.suite(rules=rule)
        harness.freeze("s")
        project.two("one")
        found = harness.run("s", candidate="one", parent="none")
        [reach] = [each for each in found.decision.rules if each.id == "reach"]
        assert reach.outcome is Outcome.FAIL
        beyond = harness.sql("SELECT count(*) FROM out_of_reach WHERE side = 'candidate'").rows[0][0]
        assert beyond == sum(round(2 * (1 - value)) for value in values()["recall_ceiling"].values())

    def test_scores_raw_numbers_and_what_was_cut_are_kept_by_pair(self, project: Project) -> None:
        project.suite()
        harness.freeze("s")
        project.release(
            "short",
            (project.release("cross") / "release.toml").read_text().split("\n", 2)[2] + "[input]\nmax_length = 8\n",
        )
        project.two("one", reranker="short")
        harness.run("s", candidate="one", parent="none")
        rows = harness.sql(
            "SELECT score, logits, query_tokens_kept + query_tokens_lost, document_tokens_kept, document_tokens_lost "
            "FROM candidates"
        ).rows
        assert len(rows) == CASES * DEPTH
        for score, logits, query, kept, lost in rows:
            assert score == pytest.approx(1 / (1 + np.exp(-logits[0])), abs=1e-6)
            assert query == 3 and kept + 3 >= 3 and lost >= 0
        assert harness.sql("SELECT count(*) FROM cut_pairs").rows[0][0] > 0

    def test_an_earlier_run_of_the_same_inputs_is_not_done_again(self, project: Project, monkeypatch) -> None:
        """The candidate becomes the parent of the next one; its outputs are taken over, candidates and all."""
        project.suite()
        harness.freeze("s")
        project.two("one"), project.two("two", reranker="third")
        harness.run("s", candidate="one", parent="none")
        before = harness.sql("SELECT * EXCLUDE (run, side) FROM candidates ORDER BY ALL").rows
        found = harness.run("s", candidate="two", parent="one")
        where = f"run = '{found.run}' AND side = 'parent'"
        assert harness.sql(f"SELECT * EXCLUDE (run, side) FROM candidates WHERE {where} ORDER BY ALL").rows == before
        assert harness.sql(f"SELECT count(*) FROM candidate_sets WHERE {where}").rows == ((1,),)


@pytest.mark.usefixtures("plain_page")
@pytest.mark.usefixtures("plain_page")
class TestCache:
    def test_members_are_named_by_their_roles(self, project: Project) -> None:
        """Every entry of a run of two stages against a fusion is somebody's: by release, role and side."""
        project.suite()
        harness.freeze("s")
        project.two("mine")
        text = 'interaction = "fusion"\n[fusion]\nweights = { bi = 1.0, cls = 1.0 }\n'
        project.release("sum", text + 'scales = { bi = "min-max", cls = "reciprocal-rank" }\n')
        harness.run("s", candidate="mine", parent="sum")
        entries = harness.cache()
        assert all(entry.used_by for entry in entries)
        users = {(user.release, user.side) for entry in entries for user in entry.used_by}
        assert {("mine/retriever", "query"), ("mine/retriever", "document"), ("mine/reranker", "pair")} < users
        assert {("sum/bi", "document"), ("sum/cls", "document")} < users


class TestReranking:
    @pytest.fixture
    def given(self, project: Project) -> Project:
        """Ten candidates a query, among them the first of its two relevant documents."""
        folder = project.suite("reranking", RERANKING)
        rows = [
            f"q{i}\td{each}\n"
            for i, (first, second) in enumerate(project.relevant)
            for each in dict.fromkeys([first, *(j % 30 for j in range(i, i + 10) if j % 30 != second)])
        ]
        (folder / "candidates.tsv").write_text("query-id\tdocument-id\n" + "".join(rows))
        harness.freeze("s")
        return project

    def test_a_cross_encoder_ranks_what_the_suite_gives(self, given: Project) -> None:
        """Exactly that, and the ceiling is one of two."""
        found = harness.run("s", candidate="third", parent="cross")
        assert set(values()["recall_ceiling"].values()) == {0.5}
        ranked = harness.sql("SELECT case_id, document_id FROM rankings WHERE side = 'candidate' ORDER BY ALL").rows
        frozen = (given.root / "suites/s/candidates.tsv").read_text().splitlines()[1:]
        assert sorted("\t".join(map(str, row)) for row in ranked) == sorted(frozen)
        assert any("Both last stages were given the same" in remark for remark in found.remarks)

    def test_encoders_of_single_texts_rank_them_too(self, given: Project) -> None:
        """With the scores of their own search."""
        harness.run("s", candidate="bi", parent="cross")
        rows = harness.sql("SELECT case_id, document_id, score FROM candidates WHERE side = 'candidate'").rows
        scores = {(str(case), str(document)): score for case, document, score in rows}
        given.suite()
        harness.freeze("s")
        found = harness.run("s", candidate="bi", parent="none")
        searched = harness.sql(f"SELECT case_id, document_id, score FROM rankings WHERE run = '{found.run}'").rows
        common = [(scores[case, document], score) for case, document, score in searched if (case, document) in scores]
        assert len(common) > CASES and all(mine == other for mine, other in common)

    def test_a_recorded_run_is_held_to_the_candidates(self, given: Project) -> None:
        """What it ranks besides is left out and told."""
        folder = given.release(
            "old", 'interaction = "recorded"\n[recorded]\nformat = "trec-run"\npath = "run.trec"\nscore_type = "dot"\n'
        )
        rows = [f"q{i} Q0 d{j} 1 {30 - j} x\n" for i in range(CASES) for j in range(30)]
        (folder / "run.trec").write_text("".join(rows))
        found = harness.run("s", candidate="old", parent="cross")
        frozen = (given.root / "suites/s/candidates.tsv").read_text().splitlines()[1:]
        beyond = CASES * 30 - len(frozen)
        assert any(f"{beyond} rows with documents that are no candidates" in remark for remark in found.remarks)
        assert values()["recall_ceiling"] == values("parent")["recall_ceiling"]

    def test_a_fusion_of_both_kinds_ranks_them(self, given: Project) -> None:
        text = 'interaction = "fusion"\n[fusion]\ndepth = 5\nweights = { bi = 1.0, cross = 1.0 }\n'
        given.release("fused", text + 'scales = { bi = "reciprocal-rank", cross = "reciprocal-rank" }\n')
        found = harness.run("s", candidate="fused", parent="cross")
        assert found.counts.failed == 0 and set(values()["recall_ceiling"].values()) == {0.5}

    def test_a_cross_encoder_is_refused_where_the_corpus_is_searched(self, given: Project) -> None:
        given.suite()
        harness.freeze("s")
        with pytest.raises(Misconfigured, match="searches no corpus") as refused:
            harness.run("s", candidate="third", parent="cross")
        assert refused.value.exit_code == 2


@pytest.mark.usefixtures("plain_page")
class TestFusion:
    def test_it_is_run_judged_and_kept_like_any_release(self, project: Project) -> None:
        project.suite()
        harness.freeze("s")
        text = 'interaction = "fusion"\n[fusion]\ndepth = 10\nweights = { bi = 1.0, cls = 0.5 }\n'
        project.release("fused", text + 'scales = { bi = "min-max", cls = "reciprocal-rank" }\n')
        found = harness.run("s", candidate="fused", parent="bi")
        assert found.metrics["candidate"]["all"]["RR@10"].n_scored == CASES
        assert harness.sql("SELECT count(*) FROM candidate_sets").rows == ((0,),)


class TestAdmission:
    def test_what_is_made_of_proven_members_is_proven(self, project: Project) -> None:
        """And each is named."""
        project.two("one")
        found = harness.admit("one")
        assert found.ok and str(found.state) == "RECONCILED"
        assert {"member: retriever", "member: reranker", "composition"} <= {check.name for check in found.checks}

    @pytest.mark.parametrize("scale", ["none", "min-max", "z-score", "reciprocal-rank"])
    @pytest.mark.parametrize("other", ["cls", "cross", "one"])
    def test_a_fusion_is_computed_again_by_hand(self, project: Project, scale: str, other: str) -> None:
        """Of two encoders, of one and a cross-encoder over given documents, of one and two stages."""
        project.two("one", depth=5)
        text = f'interaction = "fusion"\n[fusion]\ndepth = 6\nweights = {{ bi = 0.7, {other} = 1.3 }}\n'
        project.release("fused", text + f'scales = {{ bi = "{scale}", {other} = "min-max" }}\n')
        [shown] = [check for check in harness.admit("fused").checks if check.name == "composition"]
        assert shown.ok and "difference" in shown.found

    def test_large_weights_are_no_fault(self, project: Project) -> None:
        """A sum of thousands is told apart from another no finer than its own last digits."""
        text = 'interaction = "fusion"\n[fusion]\nweights = { bi = 12345.6, cls = 1e9 }\n'
        project.release("fused", text + 'scales = { bi = "none", cls = "none" }\n')
        assert harness.admit("fused").ok

    @pytest.mark.parametrize("broken", ["lists_of", "staged"])
    def test_stages_that_are_put_together_otherwise_are_found(self, project: Project, monkeypatch, broken: str) -> None:
        """A depth that is not kept, and an order that is not the reranker's."""
        from harness.run import compose

        lists = compose.lists_of

        def deeper(retrieved, suite):
            return {
                case: replace(given, documents=given.documents[1:], scores=given.scores[1:])
                for case, given in lists(retrieved, suite).items()
            }

        monkeypatch.setattr(compose, broken, deeper if broken == "lists_of" else lambda first, second: first)
        project.two("one")
        found = harness.admit("one")
        assert [check.name for check in found.checks if not check.ok] == ["composition"]
        assert str(found.state) == "DRAFT"

    def test_a_recorded_member_is_said_to_be_one(self, project: Project) -> None:
        """It has no answer to other texts."""
        text = 'interaction = "recorded"\n[recorded]\nformat = "trec-run"\npath = "run.trec"\nscore_type = "dot"\n'
        (project.release("old", text) / "run.trec").write_text("q0 Q0 d0 1 1 x\n")
        project.two("one", retriever="old")
        found = harness.admit("one")
        assert found.ok and "not computed again: old recorded" in {check.found for check in found.checks}

    def test_a_member_that_is_still_a_draft_is_admitted_by_the_way(self, project: Project) -> None:
        shutil.rmtree(project.root / "releases/cross")
        project.release("cross")
        project.two("one")
        assert harness.admit("one").ok
        assert "RECONCILED" in (project.root / "releases/cross/lifecycle.jsonl").read_text()

    def test_a_member_that_cannot_be_proven_leaves_the_whole_a_draft(self, project: Project, monkeypatch) -> None:
        """By name, with its own reason."""
        from harness.candidate import head_parity

        shutil.rmtree(project.root / "releases/cross")
        project.release("cross")
        project.two("one")
        project.suite()
        harness.freeze("s")
        monkeypatch.setattr(head_parity, "PROVEN", ())
        found = harness.admit("one")
        [broken] = [check for check in found.checks if not check.ok]
        assert broken.name == "member: reranker" and "parity" in broken.found and str(found.state) == "DRAFT"
        with pytest.raises(NotAdmitted, match="member: reranker"):
            harness.run("s", candidate="one", parent="none")


Row = tuple[str, str | None, str | None]


def written(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


class TestWhatChanged:
    """The report lists the fields that `diff` does, with the values that it gives, from the store alone."""

    def told(self, candidate: str, parent: str) -> tuple[list[Row], list[Row]]:
        from harness.verb.answer import answer
        from harness.verb.place import find_place
        from harness.verb.report import content

        harness.freeze("s")
        run = harness.run("s", candidate=candidate, parent=parent).run
        shown = content(find_place(), answer(find_place(), run)).changes
        held = harness.diff(parent, candidate).prepared.changes
        return (
            [(each.field, each.parent, each.candidate) for each in shown],
            [(each.field, written(each.old), written(each.new)) for each in held],
        )

    @pytest.mark.usefixtures("plain_page")
    def test_a_late_release_is_held_against_both_sides_of_a_bi_encoder(self, project: Project) -> None:
        """Whose one encoder it shares between them: nothing that is equal stands there twice, once for each."""
        project.suite()
        source = json.dumps(f"path:{project.models['bi']}")
        project.release("rows", f'interaction = "late"\n[model]\nsource = {source}\n[late]\nskip = "punctuation"\n')
        shown, held = self.told("rows", "bi")
        assert shown == held
        fields = [field for field, _, _ in shown]
        assert "towers.query.readout.family" in fields and "towers.query.artifact.backbone" not in fields

    @pytest.mark.usefixtures("plain_page")
    def test_the_fields_of_a_part_stand_under_its_role(self, project: Project) -> None:
        project.suite()
        project.two("one"), project.two("two", reranker="third")
        shown, held = self.told("two", "one")
        assert shown == held
        assert [field for field, _, _ in shown] == [
            "interaction.releases.reranker", "reranker.towers.pair.artifact.backbone",
            "reranker.towers.pair.artifact.head",
        ]  # fmt: skip


@pytest.mark.usefixtures("plain_page")
class TestChangedPrompts:
    """What stands before texts on this suite alone, in a release that the run's is made of, is seen where cases got
    worse, though the last stage reads what it always read.
    """

    FUSION = (
        'interaction = "fusion"\n[fusion]\nweights = { cls = 1.0, NAME = 1.0 }\n'
        'scales = { cls = "z-score", NAME = "z-score" }\n'
    )

    def causes(self, candidate: str, parent: str) -> set[str]:
        harness.run("s", candidate=candidate, parent=parent)
        rows = harness.sql("SELECT case_id, list(cause || ': ' || seen) FROM case_causes GROUP BY case_id").rows
        assert rows
        every = [set(map(str, found)) for _, found in rows if isinstance(found, list)]
        return set.intersection(*every)

    @pytest.fixture
    def said(self, project: Project) -> Project:
        """`said` puts the words of another topic before the queries of suite s, `else` before those of another one."""
        project.suite(ranking='candidates = "own"\n')
        harness.freeze("s")
        model = json.dumps(f"path:{project.models['bi']}")
        for name, suite in (("said", "s"), ("else", "other")):
            source = f'interaction = "bi"\n[model]\nsource = {model}\n'
            project.release(name, source, extra=f'[prompts.{suite}]\nquery = "the heat of a wing: "\n')
        return project

    def test_of_a_first_stage(self, said: Project) -> None:
        said.two("one"), said.two("two", retriever="said")
        assert "prompt-changed: its text is put to retriever with another prompt" in self.causes("two", "one")
        told = harness.sql(
            "SELECT DISTINCT side, part, prompt FROM prompts WHERE part = 'retriever' AND texts = 'query' ORDER BY side"
        ).rows
        assert told == (("candidate", "retriever", "the heat of a wing: "), ("parent", "retriever", ""))

    def test_of_a_member_under_another_name(self, said: Project) -> None:
        for name, member in (("one", "bi"), ("two", "said")):
            said.release(name, self.FUSION.replace("NAME", member))
        assert "prompt-changed: its text is put to the model with another prompt" in self.causes("two", "one")

    def test_not_of_another_suite(self, said: Project) -> None:
        said.two("one"), said.two("three", retriever="else", reranker="third")
        assert not any(each.startswith("prompt-changed") for each in self.causes("three", "one"))
