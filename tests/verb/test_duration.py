"""What a run tells of how long its plan takes: in a file of its own, and in nothing that is digested."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import harness
from harness.store.connection import Store

from .test_stages import Project, models, proven  # noqa: F401  # fixtures

HEADLINE = '[[rules]]\nid = "h"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 1.0\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, proven: Path, models: Mapping[str, Path]) -> Path:  # noqa: F811
    """The tiny encoder with a shorter text, run against itself, and so admitted."""
    root = tmp_path_factory.mktemp("made")
    shutil.copytree(proven / "releases", root / "releases")
    project = Project(root, models)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        project.suite()
        harness.freeze("s")
        source = f'interaction = "bi"\n[model]\nsource = "path:{models["bi"]}"\n'
        project.release("short", source, extra="[input]\nmax_length = 8\n")
        project.two("one"), project.two("two", reranker="third")
        harness.run("s", candidate="bi", parent="short")
    return root


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def time_of(run: str) -> str:
    return Path("reports", run, "time.md").read_text()


def slower(here: Path) -> None:
    with Store(here / ".harness" / "store.duckdb").writing() as connection:
        connection.execute("UPDATE passes SET seconds = seconds * 1000")


def bytes_of(*folders: Path) -> dict[str, bytes]:
    every = (path for folder in folders for path in folder.rglob("*") if path.is_file() and path.name != "time.md")
    return {str(path): path.read_bytes() for path in every}


class TestRun:
    def test_the_cut_texts_are_read_again_as_fast_as_they_were(self, here: Path) -> None:
        run = harness.sql("SELECT run FROM runs").rows[0][0]
        rows = harness.sql("SELECT side, texts, tokens, seconds > 0 FROM passes ORDER BY side").rows
        assert [(side, ok) for side, _, _, ok in rows] == [("document", True), ("query", True)]
        cut = {row["namespace"]: row for row in harness.diff("short", "bi").prepared.plan.as_record()["actions"]
               if row["action"] == "re-encode"}  # fmt: skip
        [line] = [each for each in time_of(run).splitlines() if each.startswith("| re-encode | `contextual:document`")]
        assert f"| {cut['contextual:document']['items']} of 30 | {cut['contextual:document']['tokens']} |" in line
        assert "(1) |" in line
        [line] = [each for each in time_of(run).splitlines() if each.startswith("| re-encode | `vector:document`")]
        assert "no pass of its own: from the rows of `contextual:document`" in line

    def test_nothing_that_is_digested_follows_the_clock(self, here: Path) -> None:
        """Also not the page that names the file: a thousand times as slow, and only it tells."""
        run = harness.sql("SELECT run FROM runs").rows[0][0]
        folders = here / "reports", here / "releases" / "bi"
        before, told = bytes_of(*folders), time_of(run)
        assert (here / "releases/bi/bundles" / run).is_dir()
        slower(here)
        harness.report(run), harness.bundle(run)
        assert bytes_of(*folders) == before
        assert time_of(run) != told
        assert 'href="time.md"' in Path("reports", run, "index.html").read_text()

    def test_the_report_makes_it_again_from_the_store(self, here: Path) -> None:
        run = harness.sql("SELECT run FROM runs").rows[0][0]
        told = time_of(run)
        shutil.rmtree(here / "reports")
        shutil.rmtree(here / "releases" / "short")
        harness.report(run)
        assert time_of(run) == told

    @pytest.mark.usefixtures("plain_page")
    def test_what_came_from_cache_and_store_is_told_by_the_latest_that_computed_it(self, here: Path) -> None:
        first = harness.sql("SELECT run FROM runs").rows[0][0]
        toml = here / "suites/s/suite.toml"
        toml.write_text(toml.read_text().replace("margin = 1.0", "margin = 0.9"))
        harness.freeze("s")
        second = harness.run("s", candidate="bi", parent="short").run
        assert second != first and harness.sql("SELECT DISTINCT run FROM passes").rows == ((first,),)
        assert f"in run `{first[:12]}`" in time_of(second)

    @pytest.mark.usefixtures("plain_page")
    def test_without_any_measurement_it_says_so(self, here: Path) -> None:
        run = harness.sql("SELECT run FROM runs").rows[0][0]
        with Store(here / ".harness" / "store.duckdb").writing() as connection:
            connection.execute("DELETE FROM passes")
        harness.report(run)
        assert "nothing was measured" in time_of(run) and "How long they take is not known." in time_of(run)

    @pytest.mark.usefixtures("plain_page")
    def test_of_two_stages_it_is_the_members_pass(self, here: Path) -> None:
        """Another reranker leaves the retriever's namespaces alone; another retriever's are read by its own model."""
        toml = here / "suites/s/suite.toml"
        toml.write_text(toml.read_text().replace("[ranking]\n", '[ranking]\ncandidates = "own"\n'))
        harness.freeze("s")
        project = Project(here, {})
        project.two("three", retriever="short")
        assert "encodes nothing" in time_of(harness.run("s", candidate="two", parent="one").run)
        told = time_of(harness.run("s", candidate="one", parent="three").run)
        line = next(
            each for each in told.splitlines() if each.startswith("| re-encode | `contextual:retriever/document`")
        )
        assert "(1) |" in line

    @pytest.mark.usefixtures("plain_page")
    def test_what_a_candidate_keeps_anew_is_encoded_too(self, here: Path) -> None:
        """From an encoder to a fusion of it with another: that one's vectors are nobody's successors."""
        made = "[fusion]\nweights = { short = 1.0, bi = 1.0 }\nscales = { short = 'none', bi = 'none' }\n"
        Project(here, {}).release("more", f'interaction = "fusion"\n{made}')
        told = time_of(harness.run("s", candidate="more", parent="short").run)
        assert "| build | `vector:bi/document`" in told and "encodes nothing" not in told

    @pytest.mark.usefixtures("plain_page")
    def test_without_a_parent_there_is_nothing_to_plan(self, here: Path) -> None:
        toml = here / "suites/s/suite.toml"
        toml.write_text(
            toml.read_text().replace(HEADLINE, HEADLINE.replace("no-worse", "at-least").replace("margin", "value"))
        )
        harness.freeze("s")
        assert "without a parent" in time_of(harness.run("s", candidate="bi", parent="none").run)
