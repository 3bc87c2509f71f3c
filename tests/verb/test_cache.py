"""`harness cache`, and what a run takes from the cache and from earlier runs."""

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.candidate.side import Piece
from harness.errors import Misconfigured, NotAdmitted, Stopped
from harness.release.admit import Check
from harness.run import retrieve
from harness.run.cache import Cache
from harness.verb.cache import LIMIT, bytes_of
from tests.candidate.conftest import save_tiny

from .test_live import suite

KEY, OTHER = "a" * 64, "b" * 64
DOCUMENTS = {
    f"d{at}": text for at, text in enumerate(("the flow", "wing heat", "shock layer " * 12, "lift drag", "jet"))
}
QUERIES = {f"q{at}": text for at, text in enumerate(("flow", "heat", "layer layer shock", "drag of the wing"))}


def put(root: Path, key: str, count: int, seconds_ago: float = 0.0) -> None:
    pieces = {f"{key}{at}": Piece(np.full((1, 8), at, dtype=np.float32)) for at in range(count)}
    Cache(root / ".harness" / "cache").put(key, pieces)
    then = datetime.now(UTC).timestamp() - seconds_ago
    for path in (root / ".harness" / "cache" / key).iterdir():
        os.utime(path, (then, then))


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two entries of three and of five pieces, the first used last."""
    monkeypatch.chdir(tmp_path)
    put(tmp_path, OTHER, 5, 1000)
    put(tmp_path, KEY, 3)
    return tmp_path


class TestListing:
    def test_entries_are_listed_the_last_used_first(self, filled: Path) -> None:
        mine, other = harness.cache()
        assert (mine.key, mine.pieces, mine.files, mine.used_by) == (KEY, 3, 1, ())
        assert (other.key, other.pieces) == (OTHER, 5)
        assert mine.bytes == sum(path.stat().st_size for path in (filled / ".harness/cache" / KEY).iterdir())
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", mine.last_used) and mine.last_used > other.last_used

    def test_no_cache_is_an_empty_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert harness.cache() == harness.cache(prune=True) == harness.cache(clear=True) == ()

    def test_it_lies_beside_the_store(self, filled: Path) -> None:
        assert harness.cache(store="elsewhere/store.duckdb") == ()
        (filled / "elsewhere").mkdir()
        shutil.copytree(filled / ".harness" / "cache", filled / "elsewhere" / "cache")
        assert len(harness.cache(store="elsewhere/store.duckdb")) == 2

    def test_a_store_that_cannot_be_read_hides_no_entry(self, filled: Path) -> None:
        (filled / ".harness/store.duckdb").write_text("no store")
        assert len(harness.cache()) == 2


class TestPruning:
    def test_pruning_removes_the_least_recently_used(self, filled: Path) -> None:
        size = harness.cache()[0].bytes
        assert [entry.key for entry in harness.cache(prune=True, limit=size)] == [KEY]

    def test_the_limit_of_runs_is_the_default(self, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert len(harness.cache(prune=True)) == 2
        monkeypatch.setenv(LIMIT, str(harness.cache()[0].bytes))
        assert [entry.key for entry in harness.cache(prune=True)] == [KEY]

    def test_clearing_removes_all(self, filled: Path) -> None:
        assert harness.cache(clear=True) == ()
        assert list((filled / ".harness/cache").iterdir()) == []

    def test_what_says_two_things_is_refused(self, filled: Path) -> None:
        for asked in ({"limit": "1GB"}, {"prune": True, "clear": True}, {"prune": True, "limit": "much"}):
            with pytest.raises(Misconfigured):
                harness.cache(**asked)
        assert len(harness.cache()) == 2

    def test_what_cannot_be_removed_is_said(self, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "unlink", refused)
        with pytest.raises(Stopped, match="Permission denied") as stopped:
            harness.cache(clear=True)
        assert stopped.value.exit_code == 5

    @pytest.mark.parametrize(
        ("said", "bytes"),
        [("0", 0), ("1000", 1000), ("2GB", 2e9), ("1.5 kB", 1500), ("2GiB", 2**31), ("3m", 3e6), ("1TiB", 2**40)],
    )
    def test_sizes(self, said: str, bytes: float) -> None:
        assert bytes_of(said, "--limit") == bytes

    @pytest.mark.parametrize("said", ["", "-1", "GB", "2XB", "1e9", "2 GB free", "nan"])
    def test_what_is_no_size(self, said: str) -> None:
        with pytest.raises(Misconfigured):
            bytes_of(said, "--limit")


def release(root: Path, name: str, more: str) -> None:
    folder = root / "releases" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "release.toml").write_text(
        f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "bi"\n'
        f'[model]\nsource = "path:../../model"\n{more}'
    )


MEAN, CLS = "[input]\nmax_length = 16\n", '[input]\nmax_length = 16\n[override.readout]\npooling = "cls"\n'


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder under two poolings, proven and run against one another once."""
    root = tmp_path_factory.mktemp("origin")
    save_tiny(root / "saved")
    shutil.move(root / "saved" / "model", root / "model")
    for name, more in (("mean", MEAN), ("cls", CLS)):
        release(root, name, more)
    suite(root, DOCUMENTS, QUERIES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr("harness.verb.report.html", lambda content: content.answer.run)
        harness.freeze("live")
        harness.run("live", candidate="mean", parent="cls")
    return root


@pytest.fixture
def ran(tmp_path: Path, origin: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, with the current folder in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(origin, tmp_path, dirs_exist_ok=True)
    return tmp_path


def forget(root: Path) -> None:
    """Of all runs, only the cache is left."""
    (root / ".harness/store.duckdb").unlink()


def ranked(run: str = "%") -> list[tuple[object, ...]]:
    """Every place of both sides of a run."""
    where = f"FROM rankings WHERE run LIKE '{run}'"
    return list(harness.sql(f"SELECT side, case_id, position, document_id, score {where} ORDER BY ALL").rows)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of every text of which rows are computed."""
    from harness.candidate.side import SideEncoder

    seen: list[int] = []
    whole = SideEncoder.rows

    def rows(self, tokens, *more):
        seen.extend(len(each) for each in tokens)
        return whole(self, tokens, *more)

    monkeypatch.setattr(SideEncoder, "rows", rows)
    return seen


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From when it is called, a model that is loaded fails the test."""

    def forbid() -> None:
        for room in ("harness.candidate.bi", "harness.candidate.open"):
            monkeypatch.setattr(f"{room}.loaded", lambda *_: pytest.fail("a model was loaded"))

    return forbid


def change_rules(root: Path, margin: float = 0.9) -> None:
    toml = root / "suites/live/suite.toml"
    toml.write_text(toml.read_text().replace("margin = 0.5", f"margin = {margin}"))
    harness.freeze("live")


EVERY = len(DOCUMENTS) + len(QUERIES)


@pytest.mark.usefixtures("plain_page")
class TestRun:
    def test_another_suite_computes_only_what_is_new(self, ran: Path, computed: list[int]) -> None:
        """One more document: all others come from the cache, on both sides."""
        suite(ran, {**DOCUMENTS, "new": "a plate in the wave"}, QUERIES)
        harness.freeze("live")
        harness.run("live", candidate="mean", parent="cls")
        assert len(computed) == 1

    def test_a_run_from_the_cache_is_the_run_that_filled_it(self, ran: Path, computed: list[int]) -> None:
        """Every score to the bit, on both sides."""
        before = ranked()
        forget(ran)
        harness.run("live", candidate="mean", parent="cls")
        assert ranked() == before and computed == []

    def test_without_the_cache_nothing_is_taken_or_kept(self, ran: Path, computed: list[int]) -> None:
        """And every score is the same."""
        before, kept = ranked(), harness.cache()
        forget(ran)
        harness.run("live", candidate="mean", parent="cls", cache=False)
        assert ranked() == before and len(computed) == EVERY
        assert [entry.last_used for entry in harness.cache()] == [entry.last_used for entry in kept]

    def test_the_store_knows_whose_entries_they_are(self, ran: Path) -> None:
        users = {user for entry in harness.cache() for user in entry.used_by}
        assert {(user.release, user.side) for user in users} == {
            (name, side) for name in ("mean", "cls") for side in ("query", "document")
        }  # fmt: skip
        assert [entry.pieces for entry in harness.cache()] == [EVERY, EVERY]

    def test_a_cache_that_cannot_be_written_stops_no_run(
        self, ran: Path, caplog: pytest.LogCaptureFixture, computed: list[int]
    ) -> None:
        before = ranked()
        forget(ran)
        shutil.rmtree(ran / ".harness/cache")
        (ran / ".harness/cache").write_text("no folder")
        harness.run("live", candidate="mean", parent="cls")
        assert ranked() == before and len(computed) == EVERY
        assert len([each for each in caplog.records if each.name == "harness.run.cache"]) == 1

    def test_a_limit_that_is_no_size_is_refused_before_anything_else(
        self, filled: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(LIMIT, "plenty")
        with pytest.raises(Misconfigured, match=LIMIT):
            harness.run("nowhere", candidate="mean", parent="cls")

    def test_a_limit_of_nothing_keeps_nothing(self, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(LIMIT, "0")
        harness.cache(clear=True)
        forget(ran)
        harness.run("live", candidate="mean", parent="none")
        assert harness.cache() == ()


@pytest.mark.usefixtures("plain_page")
class TestNoModel:
    """What changes no ranking loads no model."""

    def test_changed_rules(self, ran: Path, no_model: Callable[[], None]) -> None:
        before = ranked()
        no_model()
        toml = ran / "suites/live/suite.toml"
        toml.write_text(toml.read_text().replace("margin = 0.5", "margin = 0.9"))
        harness.freeze("live")
        again = harness.run("live", candidate="mean", parent="cls")
        assert ranked(again.run) == before and len(harness.runs()) == 2

    @pytest.mark.parametrize("more", ["[score]\nthreshold = 0.5\n", "[training]\nseed = 7\n"])
    def test_a_changed_threshold_of_the_release(self, ran: Path, no_model: Callable[[], None], more: str) -> None:
        """Another content, another run, the same rankings; its proofs are those of the same scores."""
        before, [first] = ranked(), harness.runs()
        no_model()
        release(ran, "mean", MEAN + more)
        again = harness.run("live", candidate="mean", parent="cls")
        assert again.run != first.run and ranked(again.run) == before
        lines = [json.loads(line) for line in (ran / "releases/mean/lifecycle.jsonl").open()]
        proofs = {line["content_id"]: line["evidence"] for line in lines if line["state"] == "RECONCILED"}
        assert proofs[again.candidate.content_id]["checks"] == {"scores": True} and len(proofs) == 2

    def test_other_scores_are_proven_anew(self, ran: Path, no_model: Callable[[], None]) -> None:
        """Another length may be another model: its proofs are its own."""
        no_model()
        release(ran, "mean", "[input]\nmax_length = 20\n")
        with pytest.raises(pytest.fail.Exception, match="a model was loaded"):
            harness.run("live", candidate="mean", parent="cls")

    def test_a_failed_proof_is_no_proof(self, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A content whose scores were refused lends its successor nothing."""
        refused = Check("parity", False, "off by 1", "nothing", "Mend it.")
        monkeypatch.setattr("harness.verb.admit.proofs_of", lambda opened: iter([refused]))
        for more in ("", "[score]\nthreshold = 0.5\n"):
            release(ran, "mean", f"[input]\nmax_length = 20\n{more}")
            with pytest.raises(NotAdmitted, match="off by 1"):
                harness.run("live", candidate="mean", parent="cls")

    def test_what_is_all_in_the_cache_reads_no_weights(self, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without a store both sides have to be ranked again, from vectors that are all there."""
        from transformers import PreTrainedModel

        before = ranked()
        forget(ran)
        monkeypatch.setattr(PreTrainedModel, "from_pretrained", lambda *_, **__: pytest.fail("weights were read"))
        harness.run("live", candidate="mean", parent="cls")
        assert ranked() == before

    def test_one_text_that_is_not_there_has_the_weights_read(self, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """And the refusal is the model's: nothing of it is passed over as a text that failed."""
        from transformers import PreTrainedModel

        suite(ran, {**DOCUMENTS, "more": "the plate"}, QUERIES)
        harness.freeze("live")

        def fail(*_: object, **__: object) -> None:
            raise OSError("weights were read")

        monkeypatch.setattr(PreTrainedModel, "from_pretrained", fail)
        with pytest.raises(Stopped, match="weights were read"):
            harness.run("live", candidate="mean", parent="cls")

    def test_a_parent_that_ran_is_not_run_again(self, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only the candidate is loaded when only it changed."""
        loaded, whole = [], retrieve.load_to_run
        monkeypatch.setattr(
            retrieve, "load_to_run", lambda release, prompts: loaded.append(release.name) or whole(release, prompts)
        )
        release(ran, "mean", "[input]\nmax_length = 20\n")
        harness.run("live", candidate="mean", parent="cls")
        assert loaded == ["mean"]
