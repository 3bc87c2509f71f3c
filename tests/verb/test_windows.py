"""The main job with a model that reads long documents in windows, against itself as it cuts them."""

import json
from pathlib import Path

import pytest

import harness
from harness.store.connection import Store
from harness.store.evidence import evidence

from ..candidate.conftest import WORDS, save_tiny

TOPICS = ("jet", "lift", "drag", "shock")
# Each says its own word behind a hundred that all of them say.
DOCUMENTS = {f"d{at}": " ".join([*WORDS[:6] * 17, *[topic] * 12]) for at, topic in enumerate(TOPICS)}


def write(root: Path, folder: Path) -> None:
    place = root / "suites" / "long"
    (place / "qrels").mkdir(parents=True)
    queries = {f"q{at}": " ".join([topic] * 10) for at, topic in enumerate(TOPICS)}
    for name, texts in (("corpus", DOCUMENTS), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()]
        (place / f"{name}.jsonl").write_text("".join(lines))
    (place / "qrels" / "test.tsv").write_text("".join(f"q{at}\td{at}\t1\n" for at in range(len(TOPICS))))
    (place / "suite.toml").write_text(
        'schema = "harness.suite.v1"\nname = "long"\ntask = "retrieval"\nsource = { format = "beir" }\n'
        '[metrics]\nprimary = "RR@10"\n[uncertainty]\ndraws = 200\n'
        '[[rules]]\nid = "h"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 0.5\n'
    )
    window = '[input.window]\nsize = 12\nstride = 5\naggregation = "{}"\n'
    mean = window.format("mean") + 'normalise = "after"\n'
    lines = {"cut": "", "best": window.format("best"), "mean": mean, "rows": window.format("rows")}
    for name, text in lines.items():
        (root / "releases" / name).mkdir(parents=True)
        (root / "releases" / name / "release.toml").write_text(
            f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "bi"\n'
            f'[model]\nsource = "path:{folder}"\n{text}'
        )


def first() -> dict[str, str]:
    rows = harness.sql("SELECT case_id, document_id FROM rankings WHERE side = 'candidate' AND position = 1").rows
    return {str(case): str(document) for case, document in rows}


@pytest.mark.usefixtures("plain_page")
def test_what_only_the_end_says_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the best window; the mean of vectors or of rows, too, tells documents apart that are one text where they are
    cut, and tie.
    """
    monkeypatch.chdir(tmp_path)
    write(tmp_path, save_tiny(tmp_path / "model"))
    harness.freeze("long")
    found = {name: harness.run("long", candidate=name, parent="cut") for name in ("best", "mean", "rows")}
    for name, result in found.items():
        record = result.as_record()
        metrics = {side: record["metrics"][side]["all"]["RR@10"]["value"] for side in ("candidate", "parent")}
        assert metrics["parent"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
        assert metrics["candidate"] != metrics["parent"], name
        assert name != "best" or metrics["candidate"] == 1.0
        assert record["counts"]["truncated"] == 0
    for name in ("mean", "rows"):
        assert "parity: windows" in {check.name for check in harness.admit(name).checks}


@pytest.mark.usefixtures("plain_page")
class TestRecords:
    """Four documents of 114 tokens in windows of ten, every five: 22 each, and the fourth of a query is one."""

    ASKED = """SELECT * EXCLUDE (run, side, release, content_id) FROM windows WHERE run = '{}' AND side = '{}'"""

    @pytest.fixture
    def ran(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.chdir(tmp_path)
        write(tmp_path, save_tiny(tmp_path / "model"))
        harness.freeze("long")
        return harness.run("long", candidate="best", parent="cut").run

    def test_every_window_can_be_asked_for(self, ran: str) -> None:
        """Of the release that reads in windows; the one that cuts has none."""
        rows = harness.sql(
            "SELECT document_id, position, token_start, token_end, left_tokens, right_tokens, multiplicity, windows, "
            f"around, aggregation FROM windows WHERE run = '{ran}' AND document_id = 'd1' AND position IN (1, 2, 22)"
        ).rows
        assert rows == (
            ("d1", 1, 0, 10, 0, 5, 2, 22, 2, "best"), ("d1", 2, 5, 15, 5, 5, 2, 22, 2, "best"),
            ("d1", 22, 105, 114, 5, 0, 2, 22, 2, "best"),
        )  # fmt: skip
        counted = harness.sql(
            "SELECT side, reads, count(*), count(DISTINCT document_id) FROM windows GROUP BY ALL"
        ).rows
        assert counted == (("candidate", "document", 88, 4),)

    def test_their_characters_are_those_of_the_text(self, ran: str) -> None:
        """Each shows whole words of it, from the first to the last."""
        rows = harness.sql("SELECT document_id, character_start, character_end, tokens FROM windows").rows
        for name, start, end, tokens in rows:
            text = DOCUMENTS[str(name)]
            assert len(text[start:end].split()) == tokens and text[start:end] == text[start:end].strip()
        mine = [(start, end) for name, start, end, _ in rows if name == "d0"]
        assert mine[0][0] == 0 and mine[-1][1] == len(DOCUMENTS["d0"])

    def test_the_report_counts_them(self, ran: str) -> None:
        assert (
            "Candidate: 4 documents read in 88 windows, the first 'd0'." in harness.decide(ran).as_record()["remarks"]
        )

    def test_outputs_that_are_taken_over_bring_them(self, ran: str) -> None:
        """Another candidate under which the old one is the parent."""
        again = harness.run("long", candidate="mean", parent="best").run
        first, second = (harness.sql(self.ASKED.format(*each)).rows for each in ((ran, "candidate"), (again, "parent")))
        assert first == second and len(first) == 88

    def test_they_are_evidence(self, ran: str) -> None:
        """A text a row, the same in another store."""
        harness.run("long", candidate="best", parent="cut", store="again.duckdb", cache=False)
        found = []
        for file in (".harness/store.duckdb", "again.duckdb"):
            with Store(Path(file)).reading() as connection:
                tables = {each.name: each.rows.read_all() for each in evidence(connection, ran)}
            found.append(tables["texts_in_windows"])
        assert found[0] == found[1] and found[0]["document_id"].to_pylist() == ["d0", "d1", "d2", "d3"]
        assert found[0]["token_start"].to_pylist()[0] == list(range(0, 110, 5))
