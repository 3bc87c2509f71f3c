"""What leaves on PASS is what was judged, by the lock that judged it."""

import json
from pathlib import Path

import pytest

import harness
from harness.errors import Tampered

from .conftest import Project

pytestmark = pytest.mark.usefixtures("plain_page")


@pytest.fixture
def passed(project: Project) -> tuple[Project, str, Path]:
    """The project, a run that passed, and its bundle."""
    harness.freeze("s")
    found = harness.run("s", candidate="better", parent="old")
    assert found.bundle
    return project, found.run, Path(found.bundle)


class TestLock:
    def test_it_is_the_suites_file(self, passed: tuple[Project, str, Path]) -> None:
        """Byte for byte, so that one `cmp` tells which suite a candidate passed."""
        project, _, bundle = passed
        assert (bundle / "suite.lock.json").read_bytes() == (project.root / "suites/s/suite.lock.json").read_bytes()

    def test_it_is_the_lock_that_decided(self, passed: tuple[Project, str, Path]) -> None:
        """Whatever the suite's folder holds by the time of bundling."""
        project, run, bundle = passed
        before = {path.name: path.read_bytes() for path in bundle.iterdir() if path.is_file()}
        project.suite(rules='[[rules]]\nid = "other"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 0.9\n')
        harness.freeze("s")
        harness.bundle(run)
        assert {path.name: path.read_bytes() for path in bundle.iterdir() if path.is_file()} == before
        assert json.loads(before["decision.json"])["suite"]["digest"] == json.loads(before["suite.lock.json"])["digest"]


class TestEvidence:
    def test_no_diagnostic_is_among_it(self, passed: tuple[Project, str, Path]) -> None:
        """The store has them; no table of the bundle does, and no record but the report for people names one."""
        _, _, bundle = passed
        assert harness.sql("SELECT count(*) FROM ranking_diagnostics").rows[0][0]
        assert not [each.name for each in (bundle / "evidence").iterdir() if "diagnostic" in each.name]
        records = [each.read_text() for each in bundle.glob("*.json")]
        assert len(records) > 5 and not any(
            name in each for each in records for name in ("hubness", "rbo(", "anisotropy")
        )


class TestChangedFiles:
    @pytest.mark.parametrize("release", ["better", "old"])
    @pytest.mark.parametrize("file", ["run.trec", "release.toml"])
    def test_a_release_that_is_no_longer_what_was_run(
        self, passed: tuple[Project, str, Path], release: str, file: str
    ) -> None:
        """Exit 4, of the candidate as of the parent to roll back to, and the bundle that is there stays."""
        project, run, bundle = passed
        sums = (bundle / "SHA256SUMS").read_bytes()
        path = project.root / "releases" / release / file
        text = path.read_text()
        path.write_text(text.replace("q0 Q0 d0", "q0 Q0 d7") if file == "run.trec" else text + 'revision = "2"\n')
        states = project.states("better")
        with pytest.raises(Tampered, match=str(path.parent)) as refused:
            harness.bundle(run)
        assert refused.value.exit_code == 4
        assert (bundle / "SHA256SUMS").read_bytes() == sums
        assert project.states("better") == states

    def test_restored_it_is_bundled_again(self, passed: tuple[Project, str, Path]) -> None:
        """The same bytes."""
        project, run, bundle = passed
        sums = (bundle / "SHA256SUMS").read_bytes()
        path = project.root / "releases/better/run.trec"
        text = path.read_text()
        path.write_text(text.replace("q0 Q0 d0", "q0 Q0 d7"))
        with pytest.raises(Tampered):
            harness.bundle(run)
        path.write_text(text)
        harness.bundle(run)
        assert (bundle / "SHA256SUMS").read_bytes() == sums
