"""What stands in two roles is named with its pair, refused where it was fitted on, and may stand for a reason only."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from harness.errors import Leaked, Misconfigured, Tampered
from harness.suite.case import Case
from harness.suite.freeze import check_leaks, freeze, open_frozen, report
from harness.suite.leak import Leak, leaks
from harness.suite.load import load
from harness.suite.lock import write_lock

from .conftest import METRICS, RULE, Write

Members = Callable[[Sequence[Case], str], list[str]]
LONG = "how do I get my money back for an order that never arrived"
CASES = '[cases]\nrole = "split"\n'


def suite(
    write: Write, rows: list[tuple[str, str, str]], *, more: str = "", cases: str = CASES, **further: list[str]
) -> Path:
    """Cases by ID, role and text; `further` attributes by name, one value a case."""
    queries = [
        {"_id": name, "split": role, "text": text, **{key: values[i] for key, values in further.items() if values[i]}}
        for i, (name, role, text) in enumerate(rows)
    ]
    qrels = "query-id\tcorpus-id\tscore\n" + "".join(f"{name}\td1\t1\n" for name, _, _ in rows)
    return write(queries=queries, qrels=qrels, cases=cases, rest=METRICS + RULE + more)


def refused(folder: Path, members: Members) -> Leaked:
    with pytest.raises(Leaked) as caught:
        freeze(load(folder), members)
    assert caught.value.exit_code == 4
    return caught.value


def found(folder: Path) -> list[tuple[str, tuple[str, ...], str]]:
    return [(each.kind, each.cases, each.severity) for each in leaks(load(folder))]


class TestDuplicates:
    def test_the_pair_is_named(self, write: Write, members: Members) -> None:
        """IDs, roles, file and line of both, and the digest that a waiver names."""
        folder = suite(write, [("p", "promotion", "Money back?"), ("c", "calibration", "money   BACK")])
        error = refused(folder, members)
        assert "cases 'c' (calibration, queries.jsonl line 2) and 'p' (promotion, queries.jsonl line 1)" in error.found
        assert leaks(load(folder))[0].finding in error.found

    @pytest.mark.parametrize(
        ("roles", "severity"),
        [
            (("promotion", "calibration"), "error"),
            (("promotion", "train"), "error"),
            (("promotion", "development"), "warning"),
            (("calibration", "train"), "warning"),
        ],
    )
    def test_severity_goes_by_the_roles(self, write: Write, roles: tuple[str, str], severity: str) -> None:
        """An error is promotion beside what fits something; the rest is told."""
        folder = suite(write, [("a", roles[0], "Money back"), ("b", roles[1], "money back!")])
        assert [each[2] for each in found(folder)] == [severity]

    def test_within_a_role_nothing_leaks(self, write: Write) -> None:
        """Two promotion cases of one text are no leak."""
        assert found(suite(write, [("a", "promotion", "Money back"), ("b", "promotion", "money back")])) == []

    def test_every_case_of_a_crowd_is_named_once_or_more(self, write: Write) -> None:
        """Three and two of one text: four pairs, in which all five stand."""
        rows = [(f"p{i}", "promotion", "Money back") for i in range(3)] + [
            (f"c{i}", "calibration", "Money back") for i in range(2)
        ]
        pairs = [each[1] for each in found(suite(write, rows))]
        assert len(pairs) == 4
        assert {name for pair in pairs for name in pair} == {"p0", "p1", "p2", "c0", "c1"}

    def test_blank_texts_are_like_nothing(self, write: Write) -> None:
        """Two cases of punctuation alone say nothing."""
        assert found(suite(write, [("a", "promotion", "???"), ("b", "calibration", "!")])) == []


class TestNearDuplicates:
    def test_a_word_more_is_found_with_its_likeness(self, write: Write) -> None:
        """Thirteen words and a fourteenth: 11 of 12 shingles."""
        folder = suite(write, [("p", "promotion", LONG), ("c", "calibration", f"{LONG}, please")])
        (leak,) = leaks(load(folder))
        assert (leak.kind, leak.similarity) == ("near-duplicate", round(11 / 12, 6))

    def test_the_threshold_is_the_suite_s(self, write: Write) -> None:
        """Below it nothing is said."""
        rows = [("p", "promotion", LONG), ("c", "calibration", f"{LONG}, please")]
        assert found(suite(write, rows, more="[leakage]\nthreshold = 0.95\n")) == []
        other = [("p", "promotion", LONG), ("c", "calibration", LONG.replace("order", "parcel"))]
        assert found(suite(write, other)) == []
        assert len(found(suite(write, other, more="[leakage]\nthreshold = 0.5\n"))) == 1

    def test_each_case_is_told_its_nearest(self, write: Write) -> None:
        """Of two near ones the nearer, and the other by its own."""
        rows = [("p", "promotion", LONG), ("c", "calibration", f"{LONG} now please"), ("d", "calibration", f"{LONG} x")]
        pairs = [each[1] for each in found(suite(write, rows))]
        assert sorted(pairs) == [("c", "p"), ("d", "p")]


class TestPairs:
    def test_a_pair_may_stand_the_other_way(self, tmp_path: Path) -> None:
        """The texts of a pair have no order."""
        rows = [
            {"id": "a", "role": "promotion", "text_a": "money back", "text_b": "refund of an order", "value": 1},
            {"id": "b", "role": "calibration", "text_a": "Refund of an order", "text_b": "Money back", "value": 1},
            {"id": "c", "role": "calibration", "text_a": "money back", "text_b": "another one", "value": 0},
        ]
        (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "suite.toml").write_text(
            'schema = "harness.suite.v1"\nname = "pairs"\ntask = "similarity"\n'
            'source = { format = "jsonl", path = "cases.jsonl" }\n[cases]\nrole = "role"\n[metrics]\n'
            'primary = "spearman"\n'
        )
        assert found(tmp_path) == [("duplicate", ("b", "a"), "error")]


class TestWindows:
    ROWS: ClassVar = [("p", "promotion", "one"), ("c", "calibration", "another"), ("t", "train", "a third")]

    def test_windows_of_one_source_are_found(self, write: Write, members: Members) -> None:
        """Also where the source is written in another way; the lock keeps whose window a case is."""
        cases = f'{CASES}window_parent = "document"\n'
        folder = suite(write, self.ROWS, cases=cases, document=["Doc-1", "doc-1 ", "doc-2"])
        assert found(folder) == [("window", ("c", "p"), "error")]
        assert "are windows of one source" in refused(folder, members).found
        apart = suite(write, self.ROWS, cases=cases, document=["doc-1", "", "doc-2"])
        assert freeze(load(apart), members).window_parents == {"p": "doc-1", "t": "doc-2"}

    def test_an_attribute_that_no_case_has_is_refused(self, write: Write) -> None:
        """With the nearest name."""
        folder = suite(write, self.ROWS, cases=f'{CASES}window_parent = "documnt"\n', document=["a", "b", "c"])
        with pytest.raises(Misconfigured, match='Did you mean window_parent = "document"') as caught:
            load(folder)
        assert "queries.jsonl line 1" in caught.value.subject


class TestWaivers:
    ROWS: ClassVar = [("p", "promotion", "Money back"), ("c", "calibration", "money back")]

    def waived(self, write: Write, finding: str, reason: str = "asked so by every customer") -> Path:
        return suite(
            write, self.ROWS, more=f'[[leakage.waivers]]\nfinding = "{finding}"\nreason = "{reason}"\n'
        )  # fmt: skip

    def test_a_waived_pair_is_frozen_and_stays_in_the_lock(self, write: Write, members: Members) -> None:
        """With its reason, which `freeze` and `check` tell."""
        finding = leaks(load(suite(write, self.ROWS)))[0].finding
        folder = self.waived(write, finding)
        lock = freeze(load(folder), members)
        assert [each.waived for each in lock.leaks] == ["asked so by every customer"]
        write_lock(lock, folder)
        frozen = open_frozen(folder)
        check_leaks(frozen)
        assert frozen.lock.leaks == lock.leaks
        assert any("waived leak" in warning and "every customer" in warning for warning in
                   report(frozen.suite, frozen.lock).warnings)  # fmt: skip

    def test_one_that_meets_no_pair_is_refused_with_its_line(self, write: Write) -> None:
        """It would stand there and be forgotten."""
        with pytest.raises(Misconfigured) as caught:
            leaks(load(self.waived(write, "0" * 64)))
        assert "suite.toml line 16" in caught.value.subject

    def test_a_reason_is_a_must(self, write: Write) -> None:
        """A blank is none, whether it is a space or not."""
        for blank in (" ", "\u200b", "\u3164"):
            with pytest.raises(Misconfigured):
                load(self.waived(write, "0" * 64, reason=blank))

    def test_another_text_is_another_finding(self, write: Write) -> None:
        """A waiver is of this pair with these words."""
        before = leaks(load(suite(write, self.ROWS)))[0].finding
        rows = [("p", "promotion", "Money now"), ("c", "calibration", "money now")]
        assert leaks(load(suite(write, rows)))[0].finding != before

    def test_a_lock_with_other_findings_is_tampered(self, write: Write, members: Members) -> None:
        """What the lock says of leaks is held against the cases."""
        finding = leaks(load(suite(write, self.ROWS)))[0].finding
        folder = self.waived(write, finding)
        lock = freeze(load(folder), members)
        changed: tuple[Leak, ...] = (lock.leaks[0].model_copy(update={"severity": "warning"}),)
        write_lock(lock.model_copy(update={"leaks": changed}), folder)
        with pytest.raises(Tampered, match="other pairs"):
            check_leaks(open_frozen(folder))
