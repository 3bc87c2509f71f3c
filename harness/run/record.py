"""What a run puts into the store: the suite once, a run's row, and every output of a side in one transaction."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from harness.output.case import CaseOutput
from harness.output.task import Number, Scores, Span, Tags
from harness.release.field import sides_of
from harness.release.open import Release
from harness.release.prompts import prompt_of
from harness.run.output import Executed
from harness.run.record_candidates import record_candidates
from harness.run.record_windows import record_windows
from harness.store.connection import Connection
from harness.store.write import Column, append, finish, remove, replace, update
from harness.suite.case import Attribute, Gold, GoldAnswer
from harness.suite.freeze import FrozenSuite
from harness.suite.lock import Lock
from harness.suite.trained import Trained

HEAD = 200
# Cases whose rankings are written together: of all of them they would stand in memory twice.
TOGETHER = 8192
TYPES = {bool: "boolean", int: "integer", float: "number", str: "text"}


def record_suite(connection: Connection, frozen: FrozenSuite) -> None:
    """The frozen suite, by the digest of its lock; one that is there already is left as it is."""
    lock, suite = frozen.lock, frozen.suite
    key = {"suite_digest": lock.digest}
    if connection.execute("SELECT 1 FROM suites WHERE suite_digest = ?", [lock.digest]).fetchall():
        return
    cases = suite.cases
    replace(connection, "cases", key, {
        "position": np.arange(len(cases)),
        "case_id": [case.id for case in cases],
        "role": [case.role for case in cases],
        "case_group": [case.group for case in cases],
        "answerable": [case.answerable for case in cases],
        "text": [case.text for case in cases],
    })  # fmt: skip
    attributes = [(case.id, name, value) for case in cases for name, value in case.attributes.items()]
    replace(connection, "case_attributes", key, {
        "case_id": pa.array([row[0] for row in attributes], pa.string()),
        "name": pa.array([row[1] for row in attributes], pa.string()),
        "type": pa.array([TYPES[type(row[2])] for row in attributes], pa.string()),
        "value": pa.array([_text(row[2]) for row in attributes], pa.string()),
    })  # fmt: skip
    replace(connection, "judgements", key, {
        "case_id": pa.array([row.case_id for row in suite.judgements], pa.string()),
        "document_id": pa.array([row.document_id for row in suite.judgements], pa.string()),
        "grade": pa.array([row.grade for row in suite.judgements], pa.int32()),
    })  # fmt: skip
    golds = [(case, case.gold or Gold()) for case in cases if case.inputs]
    replace(connection, "golds", key, {
        "case_id": pa.array([case.id for case, _ in golds], pa.string()),
        "inputs": pa.array([json.dumps(case.inputs, ensure_ascii=False) for case, _ in golds], pa.string()),
        "label": pa.array([gold.label for _, gold in golds], pa.string()),
        "labels": pa.array([gold.labels for _, gold in golds], pa.list_(pa.string())),
        "value": pa.array([gold.value for _, gold in golds], pa.float64()),
        "tags": pa.array([gold.tags for _, gold in golds], pa.list_(pa.string())),
        "answers": pa.array([_each(gold.answers, "text") for _, gold in golds], pa.list_(pa.string())),
        "starts": pa.array([_each(gold.answers, "start") for _, gold in golds], pa.list_(pa.int64())),
        "choice": pa.array([gold.choice for _, gold in golds], pa.int64()),
    })  # fmt: skip
    _record_lock(connection, key, lock)


def record_policy(connection: Connection, run: str, lock: Lock) -> None:
    """Makes this lock the one that a run is decided under: the same data, perhaps other rules and slices."""
    then = connection.execute("SELECT suite_digest FROM runs WHERE run = ?", [run]).fetchall()[0][0]
    if then == lock.digest:
        return
    key = {"suite_digest": lock.digest}
    if not connection.execute("SELECT 1 FROM suites WHERE suite_digest = ?", [lock.digest]).fetchall():
        for table in ("cases", "case_attributes", "judgements", "golds", "documents"):
            connection.execute(
                f"INSERT INTO {table} BY NAME SELECT * REPLACE (? AS suite_digest) FROM {table} WHERE suite_digest = ?",
                [lock.digest, then],
            )
        _record_lock(connection, key, lock)
    update(connection, "runs", {"run": run}, {"suite_digest": lock.digest})


def _record_lock(connection: Connection, key: dict[str, str], lock: Lock) -> None:
    declared = lock.declared
    replace(connection, "slices", key, {
        "slice": pa.array([each.name for each in declared], pa.string()),
        "definition": pa.array([each.definition for each in declared], pa.string()),
        "critical": pa.array([each.critical for each in declared], pa.bool_()),
        "min_support": pa.array([each.min_support for each in declared], pa.int64()),
    })  # fmt: skip
    replace(connection, "slice_members", key, {
        "slice": pa.array([name for name, ids in lock.slices.items() for _ in ids], pa.string()),
        "case_id": pa.array([case_id for ids in lock.slices.values() for case_id in ids], pa.string()),
    })  # fmt: skip
    replace(connection, "suites", key, {
        "suite": [lock.definition.name],
        "data_digest": [lock.data_digest],
        "policy_digest": [lock.policy_digest],
        "lock": [lock.to_json().decode("utf-8")],
    })  # fmt: skip


def record_prompts(connection: Connection, run: str, side: str, release: Release, suite_name: str) -> None:
    """What stands before texts on one suite, by the parts that read them."""
    every = list(_prompts(release, suite_name))
    replace(connection, "prompts", {"run": run, "side": side}, {
        "part": pa.array([each.part for each in every], pa.string()),
        "texts": pa.array([each.texts for each in every], pa.string()),
        "prompt": pa.array([each.prompt for each in every], pa.string()),
    })  # fmt: skip


class _Prompt(NamedTuple):
    part: str
    texts: str
    prompt: str


def _prompts(release: Release, suite_name: str, part: str = "") -> Iterator[_Prompt]:
    """A release's own encoders', also where two releases bring them; else those of what it is made of."""
    meaning = release.manifest.meaning
    for texts, tower in sides_of(meaning).items():
        yield _Prompt(part, texts, prompt_of(tower, texts, suite_name))
    if not meaning.towers:
        for role, member in release.members.items():
            yield from _prompts(member, suite_name, f"{part}/{role}".lstrip("/"))


def record_outputs(
    connection: Connection, run: str, side: str, release: str, executed: Executed, seconds: float
) -> None:
    """Everything one side did, and the mark that it is all there."""
    outputs = executed.outputs
    key = {"run": run, "side": side, "release": release}
    replace(connection, "outputs", key, {
        "case_id": [each.case_id for each in outputs],
        "status": [str(each.status) for each in outputs],
        "reason": [each.reason for each in outputs],
        "non_finite": [each.non_finite for each in outputs],
        "input_digest": pa.array([each.input_digest for each in outputs], pa.string()),
        "tokens_kept": pa.array([each.tokens_kept for each in outputs], pa.int64()),
        "tokens_lost": pa.array([each.tokens_lost for each in outputs], pa.int64()),
        "norm": pa.array([each.norm for each in outputs], pa.float64()),
        "retrieved": [0 if each.ranking is None else len(each.ranking.scores) for each in outputs],
        "crossing": [0 if each.ranking is None else each.ranking.crossing for each in outputs],
    })  # fmt: skip
    remove(connection, "rankings", key)
    for start in range(0, len(outputs), TOGETHER):
        append(connection, "rankings", key, _ranking_columns(outputs[start : start + TOGETHER]))
    replace(connection, "task_outputs", key, _task_columns(outputs))
    side_key = {"run": run, "side": side}
    replace(connection, "output_labels", side_key, {
        "position": np.arange(1, len(executed.labels) + 1),
        "label": pa.array([executed.named.get(own, own) for own in executed.labels], pa.string()),
        "own_name": pa.array(executed.labels, pa.string()),
    })  # fmt: skip
    record_candidates(connection, side_key, outputs)
    replace(connection, "remarks", side_key, {
        "kind": pa.array([each.kind for each in executed.remarks], pa.string()),
        "count": pa.array([each.count for each in executed.remarks], pa.int64()),
        "detail": pa.array([each.detail for each in executed.remarks], pa.string()),
    })  # fmt: skip
    replace(connection, "cut_documents", side_key, {
        "document_id": pa.array([each.document_id for each in executed.cut_documents], pa.string()),
        "tokens_kept": pa.array([each.tokens_kept for each in executed.cut_documents], pa.int64()),
        "tokens_lost": pa.array([each.tokens_lost for each in executed.cut_documents], pa.int64()),
    })  # fmt: skip
    record_windows(connection, key, executed.windowed)
    finish(connection, run, f"outputs:{side}", seconds)


def copy_outputs(connection: Connection, run: str, side: str, release: str, output_key: str) -> bool:
    """Takes a side's outputs from any earlier run with the same key; False where there is none."""
    rows = connection.execute(
        """SELECT e.run, e.side FROM releases e JOIN steps s ON s.run = e.run AND s.step = 'outputs:' || e.side
           WHERE e.output_key = ? AND NOT (e.run = ? AND e.side = ?) ORDER BY e.run, e.side LIMIT 1""",
        [output_key, run, side],
    ).fetchall()
    if not rows:
        return False
    for table, own in (
        ("outputs", 3), ("rankings", 3), ("task_outputs", 3), ("remarks", 2), ("cut_documents", 2), ("candidates", 2),
        ("candidate_sets", 2), ("output_labels", 2), ("vector_diagnostics", 3), ("texts_in_windows", 3),
    ):  # fmt: skip
        mine = {"run": run, "side": side, "release": release}
        names = list(mine)[:own]
        remove(connection, table, {"run": run, "side": side})
        connection.execute(
            f"INSERT INTO {table} BY NAME SELECT * REPLACE ({', '.join(f'? AS {name}' for name in names)}) "
            f"FROM {table} WHERE run = ? AND side = ?",
            [*(mine[name] for name in names), *rows[0]],
        )
    finish(connection, run, f"outputs:{side}", 0.0)
    return True


def record_heads(connection: Connection, frozen: FrozenSuite, run: str) -> None:
    """How the documents begin that a reader will meet: judged ones, and those among a side's first ten."""
    wanted = {
        row[0]
        for row in connection.execute(
            """SELECT document_id FROM judgements WHERE suite_digest = $suite
               UNION SELECT document_id FROM rankings WHERE run = $run AND position <= 10
               EXCEPT SELECT document_id FROM documents WHERE suite_digest = $suite""",
            {"suite": frozen.lock.digest, "run": run},
        ).fetchall()
    }
    heads = [each for each in frozen.suite.documents if each.id in wanted]
    append(connection, "documents", {"suite_digest": frozen.lock.digest}, {
        "document_id": pa.array([each.id for each in heads], pa.string()),
        "head": pa.array([_head(each.text) for each in heads], pa.string()),
    })  # fmt: skip


def record_trained(connection: Connection, run: str, side: str, found: Sequence[Trained]) -> None:
    """Cases that a side was trained on."""
    replace(connection, "training_leaks", {"run": run, "side": side}, {
        "case_id": pa.array([each.case_id for each in found], pa.string()),
        "role": pa.array([each.role for each in found], pa.string()),
        "file": pa.array([each.file for each in found], pa.string()),
        "line": pa.array([each.line for each in found], pa.int64()),
        "how": pa.array([each.how for each in found], pa.string()),
        "similarity": pa.array([each.similarity for each in found], pa.float64()),
        "finding": pa.array([each.finding for each in found], pa.string()),
        "waived": pa.array([each.waived for each in found], pa.string()),
    })  # fmt: skip


def _head(text: str) -> str:
    return text if len(text) <= HEAD else f"{text[: HEAD - 1].rstrip()}…"


def _ranking_columns(outputs: Sequence[CaseOutput]) -> dict[str, Column]:
    ranked = [(each.case_id, each.ranking) for each in outputs if each.ranking is not None]
    sizes = np.array([len(ranking.scores) for _, ranking in ranked], dtype=np.int64)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    ids = pa.DictionaryArray.from_arrays(
        np.repeat(np.arange(len(ranked), dtype=np.int32), sizes),
        pa.array([case_id for case_id, _ in ranked], pa.string()),
    )
    documents = [pa.array(ranking.documents, pa.string()) for _, ranking in ranked]
    return {
        "case_id": ids,
        "position": np.arange(sizes.sum()) - starts + 1,
        "document_id": pa.concat_arrays(documents) if documents else pa.array([], pa.string()),
        "score": np.concatenate([np.empty(0), *(ranking.scores for _, ranking in ranked)]),
    }


def _task_columns(outputs: Sequence[CaseOutput]) -> dict[str, Column]:
    said = [(each.case_id, each.output) for each in outputs if each.output is not None]
    spans = [output if isinstance(output, Span) else None for _, output in said]
    return {
        "case_id": pa.array([case_id for case_id, _ in said], pa.string()),
        "scores": pa.array([o.values if isinstance(o, Scores) else None for _, o in said], pa.list_(pa.float64())),
        "value": pa.array([o.value if isinstance(o, Number) else None for _, o in said], pa.float64()),
        "tags": pa.array([o.tags if isinstance(o, Tags) else None for _, o in said], pa.list_(pa.string())),
        "answer": pa.array([span and span.text for span in spans], pa.string()),
        "span_start": pa.array([span and span.start for span in spans], pa.int64()),
        "span_end": pa.array([span and span.end for span in spans], pa.int64()),
        "score": pa.array([span and span.score for span in spans], pa.float64()),
        "null_score": pa.array([span and span.null_score for span in spans], pa.float64()),
        **{
            f"read_{end}": pa.array(
                [
                    None if span is None or span.read is None else [getattr(each, end) for each in span.read]
                    for span in spans
                ],
                pa.list_(pa.int64()),
            )
            for end in ("start", "end")
        },
    }


def _each(answers: Sequence[GoldAnswer] | None, name: str) -> list[object] | None:
    return None if answers is None else [getattr(answer, name) for answer in answers]


def _text(value: Attribute) -> str:
    return value if isinstance(value, str) else json.dumps(value)
