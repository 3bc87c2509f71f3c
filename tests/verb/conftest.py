"""A small project on disk: one suite of 60 questions and recorded releases whose quality is known by construction."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

HEADLINE = '[[rules]]\nid = "headline"\nkind = "no-worse"\nmetric = "RR@10"\nslice = "all"\nmargin = 0.02\n'
GUARDS = '[guards]\nmetrics = ["RR@10", "nDCG@10"]\nslices = "every"\n'


@dataclass(frozen=True)
class Project:
    """`root` holds suites/s, 60 questions of which every other one is a typo, and whatever releases are recorded."""

    root: Path

    def suite(self, name: str = "s", *, rules: str = HEADLINE + GUARDS, cases: str = "", more: str = "") -> Path:
        folder = self.root / "suites" / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        _lines(folder / "corpus.jsonl", [{"_id": f"d{i}", "title": "", "text": f"article {i}"} for i in range(8)])
        kinds = ("plain", "typo")
        _lines(
            folder / "queries.jsonl",
            [{"_id": f"q{i}", "text": f"question {i}", "kind": kinds[i % 2]} for i in range(60)],
        )
        judged = "".join(f"q{i}\td0\t1\n" for i in range(60))
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
        (folder / "suite.toml").write_text(
            f'schema = "harness.suite.v1"\nname = "{name}"\ntask = "retrieval"\n'
            f'source = {{ format = "beir", path = "." }}\n[cases]\n{cases}\n'
            '[metrics]\nprimary = "RR@10"\nreport = ["RR@10", "nDCG@10"]\n'
            '[[slices]]\nname = "typo"\nwhere = "kind = \'typo\'"\nmin_support = 20\n'
            f"[uncertainty]\ndraws = 1000\n{more}{rules}"
        )
        return folder

    def recorded(
        self,
        name: str,
        rank: Callable[[int], int],
        *,
        parent: str | None = None,
        others: tuple[str, str, str] = ("d1", "d2", "d3"),
    ) -> Path:
        """A TREC run with the relevant document of question i at rank(i), from 1 to 4; 0 leaves the question out."""
        folder = self.root / "releases" / name
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for i in range(60):
            if rank(i):
                order = list(others)
                order.insert(rank(i) - 1, "d0")
                rows += [f"q{i} Q0 {document} {at} {10 - at} tag\n" for at, document in enumerate(order, start=1)]
        (folder / "run.trec").write_text("".join(rows))
        (folder / "release.toml").write_text(
            f'schema = "harness.release.v1"\nname = "{name}"\n{f"parent = {json.dumps(parent)}" if parent else ""}\n'
            'interaction = "recorded"\n[recorded]\nformat = "trec-run"\npath = "run.trec"\nscore_type = "dot"\n'
        )
        return folder

    def judge(self, *rows: str, suite: str = "s") -> None:
        """Adds judgements, each `query document grade`."""
        with (self.root / "suites" / suite / "qrels" / "test.tsv").open("a") as stream:
            stream.writelines("\t".join(row.split()) + "\n" for row in rows)

    def states(self, release: str) -> list[str]:
        """What a release's ledger says it reached, in order."""
        path = self.root / "releases" / release / "lifecycle.jsonl"
        return [json.loads(line)["state"] for line in path.read_text().splitlines()]


@pytest.fixture
def plain_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page with its figures costs most of a run's time, and how it is put in place is the same whatever it says."""
    monkeypatch.setattr("harness.verb.report.html", lambda content: content.answer.run)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project, with the current folder in it."""
    monkeypatch.chdir(tmp_path)
    made = Project(tmp_path)
    made.suite()
    made.recorded("old", lambda i: 1 + i % 2)
    made.recorded("better", lambda i: 1)
    made.recorded("worse", lambda i: 3 if i % 3 else 1)
    return made


def _lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
