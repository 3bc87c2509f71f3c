"""`harness export`: a stored run in the forms that other tools read."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from harness.errors import Misconfigured
from harness.file.whole import write_bytes
from harness.identity import Json
from harness.metric.name import MetricName, parse
from harness.output.answer import Answer
from harness.store import read
from harness.store.account import judgements, ranked_rows
from harness.store.connection import Connection
from harness.suite.definition import RANKED, SuiteDefinition
from harness.suite.lock import Lock
from harness.verb.answer import answer, stored_lock
from harness.verb.place import Place, find_place, shown

Form: TypeAlias = Literal["trec", "beir", "mteb"]

MTEB = {"nDCG": "ndcg", "AP": "map", "RR": "mrr", "R": "recall", "P": "precision", "Success": "hit_rate"}
"""MTEB's names of what it measures too; all else keeps its own."""
UNDETERMINED = "und-Zyyy"
"""ISO 639-2's and 15924's codes: a suite does not say its language, and MTEB counts no score that has none."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The files that were written."""

    files: tuple[str, ...]

    def as_record(self) -> dict[str, Json]:
        return {"files": list(self.files)}


def export(run: str, *, format: Form, to: str | Path | None = None, store: str | None = None) -> Exported:
    """Writes a decided run's rankings (`trec`, `beir`) or its promotion metrics (`mteb`), one file a side. Other files
    in the folder stay.

    `trec`: runs of six columns, and the judgements. `beir`: `{query: {document: score}}`. `mteb`: one result of a task,
    whose name and revision are the suite's. By default they go to exports/RUN/FORMAT.
    Raises NotFound for a run that isn't there, Misconfigured for rankings of a task that has none.
    """
    place = find_place(store=store)
    found = answer(place, run)
    with place.store.reading() as connection:
        record = read.find_run(connection, found.run)
        lock = stored_lock(connection, record.suite_digest)
        if format != "mteb" and lock.definition.task not in RANKED:
            raise Misconfigured(
                f"run {found.run[:12]}", found=f"a suite of {lock.definition.task}, which ranks nothing",
                expected="rankings to be written", mend="Write --format mteb for its metrics.",
            )  # fmt: skip
        files = dict(WRITERS[format](connection, place, found, lock))
    target = place.root / "exports" / found.run / format if to is None else Path(to)
    for name, text in files.items():
        write_bytes(target / name, text.encode("utf-8"))
    return Exported(tuple(shown(target / name) for name in files))


Named: TypeAlias = Iterator[tuple[str, str]]


def _trec(connection: Connection, place: Place, found: Answer, lock: Lock) -> Named:
    for side, release in _sides(found).items():
        _refuse_blank([release], "a release's name")
        rows = list(ranked_rows(connection, found.run, side))
        _refuse_blank([name for row in rows for name in (row.case_id, row.document_id)], "an ID")
        yield (
            f"{side}.trec",
            "".join(f"{row.case_id} Q0 {row.document_id} {row.position} {row.score!r} {release}\n" for row in rows),
        )
    judged = list(judgements(connection, found.run))
    _refuse_blank([name for row in judged for name in (row.case_id, row.document_id)], "an ID")
    yield "qrels.trec", "".join(f"{row.case_id} 0 {row.document_id} {row.grade}\n" for row in judged)


def _beir(connection: Connection, place: Place, found: Answer, lock: Lock) -> Named:
    for side in _sides(found):
        by_case: dict[str, dict[str, float]] = {}
        for row in ranked_rows(connection, found.run, side):
            by_case.setdefault(row.case_id, {})[row.document_id] = row.score
        yield f"{side}.json", json.dumps(by_case, ensure_ascii=False, indent=1) + "\n"


def _mteb(connection: Connection, place: Place, found: Answer, lock: Lock) -> Named:
    primary = lock.definition.metrics.primary
    for side in _sides(found):
        values = {name: each.value for name, each in found.metrics[side]["all"].items()}
        scores: dict[str, Json] = {_mteb_name(parse(name)): value for name, value in values.items()}
        result: dict[str, Json] = {
            "task_name": lock.definition.source.task or found.suite,
            "dataset_revision": lock.revision or lock.definition.revision or found.suite_digest,
            "mteb_version": None,
            "scores": {split_of(lock.definition): [{
                "hf_subset": lock.definition.source.subset or "default", "languages": [UNDETERMINED],
                "main_score": values[primary], **scores,
            }]},
            "evaluation_time": None,
            "kg_co2_emissions": None,
        }  # fmt: skip
        yield f"{side}.json", json.dumps(result, ensure_ascii=False, indent=2) + "\n"


def split_of(definition: SuiteDefinition) -> str:
    """MTEB's name of the split that was measured, where the data are MTEB's and suite.toml says it; else `test`."""
    source, role = definition.source, definition.cases.role
    if source.format != "mteb":
        return "test"
    named = [split for split, each in role.items() if each == "promotion"] if isinstance(role, dict) else []
    return "+".join(named) or source.qrels or "test"


WRITERS: Mapping[str, Callable[[Connection, Place, Answer, Lock], Named]] = {
    "trec": _trec,
    "beir": _beir,
    "mteb": _mteb,
}


def _sides(found: Answer) -> dict[str, str]:
    parent = {} if found.parent is None else {"parent": found.parent.name}
    return {"candidate": found.candidate.name, **parent}


def _mteb_name(metric: MetricName) -> str:
    if metric.base in MTEB and not metric.params and metric.cutoff:
        return f"{MTEB[metric.base]}_at_{metric.cutoff}"
    return str(metric)


def _refuse_blank(names: list[str], what: str) -> None:
    for name in names:
        if not name or any(letter.isspace() for letter in name):
            raise Misconfigured(
                f"{what}, {name!r}", found="a blank in it", expected="no blanks, for they stand between columns",
                mend="Write --format beir, which can say it.",
            )  # fmt: skip
