"""A small store, written by hand: four cases of one suite, two runs, and rankings of both sides of the first."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from harness.store import write
from harness.store.connection import Connection, Store

RUN, OTHER, SUITE = "ab12", "cd34", "s-digest"


def rows(connection: Connection, table: str, key: Mapping[str, str], names: str, *values: Sequence[object]) -> None:
    columns = zip(names.split(), zip(*values, strict=True), strict=True)
    write.append(connection, table, key, {name: pa.array(column) for name, column in columns})


def write_suite(connection: Connection) -> None:
    """Suite order is q-b, q-a, q-c, q-d: neither that of the IDs nor that of writing."""
    key = {"suite_digest": SUITE}
    rows(connection, "suites", key, "suite data_digest policy_digest lock", ("small", "data", "policy", '{"lock": 1}'))
    rows(connection, "cases", key, "position case_id role case_group answerable text",
         (3, "q-d", "development", "g3", True, "chosen on"),
         (1, "q-a", "promotion", "g1", True, "refund"),
         (0, "q-b", "promotion", "g1", True, "reset pasword"),
         (2, "q-c", "promotion", "g2", True, "login"))  # fmt: skip
    rows(connection, "judgements", key, "case_id document_id grade",
         ("q-b", "d2", 1), ("q-d", "d1", 1), ("q-a", "d9", -1), ("q-b", "d1", 2), ("q-a", "d3", 1))  # fmt: skip
    rows(connection, "documents", key, "document_id head", ("d1", "one"), ("d4", "four"), ("d9", "nine"))
    rows(connection, "slices", key, "slice definition critical min_support", ("typos", "kind = 'typo'", True, 20))
    rows(connection, "slice_members", key, "slice case_id", ("typos", "q-c"), ("typos", "q-b"))
    rows(connection, "case_attributes", key, "case_id name type value", ("q-b", "kind", "text", "typo"))


def write_run(connection: Connection, run: str, updated_at: int) -> None:
    key = {"run": run, "suite": "small", "suite_digest": SUITE, "suite_place": "suites/small", "version": "1"}
    at = pa.array([updated_at], pa.timestamp("us"))
    write.append(connection, "runs", key, {"candidate": ["new"], "parent": ["old"], "updated_at": at})


def write_outputs(connection: Connection) -> None:
    names = "case_id status reason non_finite tokens_kept tokens_lost retrieved crossing"
    candidate = {"run": RUN, "side": "candidate", "release": "new"}
    rows(connection, "outputs", candidate, names,
         ("q-d", "ok", "", False, 5, None, 1, 0), ("q-c", "missing", "", False, None, None, 0, 0),
         ("q-a", "ok", "", False, 8, 2, 2, 0), ("q-b", "ok", "", False, 8, 0, 2, 7))  # fmt: skip
    rows(connection, "rankings", candidate, "case_id position document_id score",
         ("q-d", 1, "d1", 0.5), ("q-b", 2, "d4", 0.8), ("q-b", 1, "d1", 0.9),
         ("q-a", 2, "d3", 0.6), ("q-a", 1, "d9", 0.7))  # fmt: skip
    parent = {"run": RUN, "side": "parent", "release": "old"}
    rows(connection, "outputs", parent, names,
         ("q-a", "ok", "", False, 8, 9, 1, 0), ("q-b", "ok", "", False, 8, 0, 1, 0),
         ("q-c", "ok", "", False, 8, 3, 1, 0), ("q-d", "failed", "no number", True, 8, 0, 0, 0))  # fmt: skip
    rows(connection, "rankings", parent, "case_id position document_id score",
         ("q-a", 1, "d3", 0.8), ("q-b", 1, "d2", 0.9), ("q-c", 1, "d5", 0.4))  # fmt: skip


def write_windows(connection: Connection) -> None:
    """Ten tokens of d2 in windows of four, every two, and a query in two that share nothing."""
    key = {"run": RUN, "side": "candidate", "release": "new"}
    for row in (
        {"member": None, "reads": "document", "case_id": None, "document_id": "d2", "reading": 1, "size": 6,
         "aggregation": "rows", "owner": "first", "around": 2, "uncovered": 3, "token_start": [0, 2, 4, 6],
         "token_end": [4, 6, 8, 10], "character_start": [0, 10, 20, 30], "character_end": [19, 29, 39, 48],
         "owned_start": [0, 4, 6, 8], "owned_end": [4, 6, 8, 10]},
        {"member": "first", "reads": "query", "case_id": "q-a", "document_id": None, "reading": 1, "size": 5,
         "aggregation": "best", "owner": None, "around": 2, "uncovered": 0, "token_start": [0, 3], "token_end": [3, 5],
         "character_start": [0, 12], "character_end": [11, 20], "owned_start": None, "owned_end": None},
    ):  # fmt: skip
        write.append(connection, "texts_in_windows", key, {name: [value] for name, value in row.items()})


def write_candidates(connection: Connection) -> None:
    """The candidate's last stage was given three pairs of two cases; the parent has none."""
    names = "case_id position document_id first_score score logits query_tokens_kept query_tokens_lost"
    names += " document_tokens_kept document_tokens_lost"
    rows(connection, "candidates", {"run": RUN, "side": "candidate"}, names,
         ("q-a", 1, "d9", 0.5, 0.7, [0.85], 3, 0, 40, 12), ("q-b", 1, "d1", None, 0.9, [2.2], 4, 0, 9, 0),
         ("q-b", 2, "d4", None, 0.8, [1.4], 4, 1, 9, 20))  # fmt: skip
    rows(connection, "candidate_sets", {"run": RUN, "side": "candidate"}, "digest cases pairs", ("c" * 64, 2, 3))


def write_values(connection: Connection) -> None:
    rows(connection, "case_metrics", {"run": RUN, "side": "candidate", "release": "new"}, "metric case_id value status",
         ("RR@10", "q-b", 1.0, "scored"), ("RR@10", "q-a", 0.5, "scored"), ("RR@10", "q-c", None, "missing"),
         ("RR@10", "q-d", 0.0, "scored"), ("P@5", "q-d", 0.2, "scored"), ("P@5", "q-c", None, "missing"),
         ("P@5", "q-a", 0.25, "scored"), ("P@5", "q-b", 0.25, "scored"))  # fmt: skip
    rows(connection, "case_metrics", {"run": RUN, "side": "parent", "release": "old"}, "metric case_id value status",
         ("RR@10", "q-b", 0.5, "scored"), ("RR@10", "q-a", 1.0, "scored"), ("RR@10", "q-c", 0.0, "scored"),
         ("RR@10", "q-d", None, "failed"), ("P@5", "q-a", 0.5, "scored"), ("P@5", "q-b", 1.0, "scored"),
         ("P@5", "q-d", 0.75, "scored"))  # fmt: skip
    rows(connection, "metrics", {"run": RUN}, "position metric form higher_is_better followed",
         (1, "RR@10", "mean", True, True), (2, "P@5", "mean", True, False))  # fmt: skip
    summary = "slice metric value low high n_scored n_total n_groups"
    rows(connection, "summaries", {"run": RUN, "side": "candidate"}, summary,
         ("typos", "RR@10", 1.0, 0.5, 1.0, 1, 2, 1), ("all", "RR@10", 0.75, 0.5, 1.0, 2, 3, 1),
         ("all", "P@5", 0.25, None, None, 2, 3, 1))  # fmt: skip
    rows(connection, "summaries", {"run": RUN, "side": "parent"}, summary,
         ("all", "RR@10", 0.5, 0.0, 1.0, 3, 3, 2))  # fmt: skip
    rows(connection, "deltas", {"run": RUN}, "slice metric delta low high mde n_cases n_groups n_changed_groups",
         ("all", "RR@10", 0.0, -0.5, 0.5, 0.4, 2, 1, 1))  # fmt: skip


def write_predictions(connection: Connection) -> None:
    """What two classifiers made of the same four cases: nobody knows the gold of q-c, and the candidate lacks it."""
    names = "case_id gold prediction probability flags"
    rows(connection, "predictions", {"run": RUN, "side": "candidate", "release": "new"}, names,
         ("q-a", "REFUND", "LOGIN", 0.5, ["tied"]), ("q-b", "LOGIN", "LOGIN", 0.75, []),
         ("q-c", None, None, None, []), ("q-d", "REFUND", "LOGIN", 0.75, []))  # fmt: skip
    rows(connection, "predictions", {"run": RUN, "side": "parent", "release": "old"}, names,
         ("q-b", "LOGIN", "REFUND", 0.625, []), ("q-a", "REFUND", "LOGIN", 0.875, []),
         ("q-c", None, "LOGIN", 0.25, []))  # fmt: skip


def write_decision(connection: Connection) -> None:
    rows(connection, "transitions", {"run": RUN, "criterion": "Success@1"}, "case_id transition",
         ("q-b", "both-right"), ("q-a", "parent-only"), ("q-c", "both-wrong-different"))  # fmt: skip
    rows(connection, "transition_tests", {"run": RUN}, "slice lost_groups won_groups p", ("all", 1, 0, 1.0))
    names = "position id kind metric slice outcome reason critical delta margin n_cases n_groups p_adjusted finding"
    names += " awaits_judging"
    rows(connection, "rules", {"run": RUN}, names,
         (4, "always:failed", "invariant", "failed", "all", "PASS", "none", True, None, 0.0, 3, 2, None, None, False),
         (1, "first", "no-worse", "RR@10", "all", "WAIVED", "known", True, -0.5, 0.02, 3, 2, None, "f" * 64, False),
         (3, "guard:typos:RR@10", "guard", "RR@10", "typos", "FAIL", "worse", True, -0.2, 0.0, 2, 2, 0.01, "e" * 64,
          False),
         (2, "second", "no-worse", "P@5", "all", "UNDECIDED", "few", True, None, 0.02, 2, 1, None, None, True),
         )  # fmt: skip
    rows(connection, "counts", {"run": RUN, "side": "candidate"}, "name count",
         ("cases", 3), ("missing", 1), ("failed", 0), ("non-finite", 0), ("truncated", 1), ("tied", 0),
         ("not-applicable", 0))  # fmt: skip


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    """A store in which nothing was written yet."""
    return Store(tmp_path / "folder" / "store.duckdb")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The store of this module's first line; tests only read it."""
    store = Store(tmp_path_factory.mktemp("small") / "store.duckdb")
    with store.writing() as connection:
        write_suite(connection)
        write_run(connection, RUN, 1)
        write_outputs(connection)
        write_candidates(connection)
        write_windows(connection)
        write_values(connection)
        write_predictions(connection)
        write_decision(connection)
        write.finish(connection, RUN, "decided", 0.5)
    with store.writing() as connection:
        write_run(connection, OTHER, 2)
        rows(connection, "outputs", {"run": OTHER, "side": "candidate", "release": "new"},
             "case_id status reason non_finite retrieved crossing", ("q-b", "ok", "", False, 1, 0))  # fmt: skip
        rows(connection, "rankings", {"run": OTHER, "side": "candidate", "release": "new"},
             "case_id position document_id score", ("q-b", 1, "d2", 0.25))  # fmt: skip
    return store


@pytest.fixture
def losses(empty: Store) -> Store:
    """The suite's promotion cases under a loss, which rose by 1 on q-a and by 2 on q-c and fell by 2 on q-b, and under
    a metric that has no values by case.
    """
    with empty.writing() as connection:
        write_suite(connection)
        write_run(connection, RUN, 1)
        rows(connection, "metrics", {"run": RUN}, "position metric form higher_is_better followed",
             (1, "f1_macro", "finish", True, False), (2, "log_loss", "mean", False, True))  # fmt: skip
        for side, values in (("candidate", (1.5, 0.0, 3.0)), ("parent", (0.5, 2.0, 1.0))):
            key = {"run": RUN, "side": side, "release": side}
            for case_id, value in zip(("q-a", "q-b", "q-c"), values, strict=True):
                rows(connection, "case_metrics", key, "metric case_id value status",
                     ("f1_macro", case_id, None, "scored"), ("log_loss", case_id, value, "scored"))  # fmt: skip
    return empty
