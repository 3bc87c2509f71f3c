"""A refusal is a sentence, a record and an exit code; none of the three is lost on its way."""

import copy
import pickle

import pytest

from harness.errors import (
    EmptySlice,
    HarnessError,
    Interrupted,
    Leaked,
    Misconfigured,
    NotAdmitted,
    NotFound,
    Stopped,
    Tampered,
    Unpairable,
)

CODES = {
    HarnessError: ("internal", 70), Misconfigured: ("misconfigured", 2), NotFound: ("not-found", 2),
    Unpairable: ("unpairable", 2), EmptySlice: ("empty-slice", 2), Tampered: ("tampered", 4), Leaked: ("leaked", 4),
    NotAdmitted: ("not-admitted", 4), Stopped: ("stopped", 5), Interrupted: ("interrupted", 130),
}  # fmt: skip


def refusal(kind: type[HarnessError] = Tampered) -> HarnessError:
    return kind("suites/a line 3", found="two", expected="one", mend="Take one out.")


class TestKinds:
    @pytest.mark.parametrize("kind", CODES)
    def test_each_has_the_exit_code_of_the_design(self, kind: type[HarnessError]) -> None:
        """2 a request, 4 integrity, 5 stopped, 70 ourselves."""
        assert (kind.kind, kind.exit_code) == CODES[kind]

    def test_no_kind_is_left_out_here(self) -> None:
        """A new kind must be given its exit code in this table."""
        assert set(HarnessError.__subclasses__()) | {HarnessError} == set(CODES)

    def test_no_code_is_that_of_a_decision(self) -> None:
        """1 says FAIL and 3 UNDECIDED, and no refusal says either."""
        assert not {0, 1, 3} & {code for _, code in CODES.values()}


class TestWhatItSays:
    def test_the_sentence_names_all_four(self) -> None:
        """Subject, found, expected; the mend on a line of its own."""
        assert str(refusal()) == "suites/a line 3: two. Expected: one.\nTake one out."

    @pytest.mark.parametrize(
        ("found", "said"),
        [
            ("two.", "two. Expected: "),
            ("two, or one?", "two, or one? Expected: "),
            ("two\n^^^", "two\n^^^\nExpected: "),
        ],
    )
    def test_what_others_worded_keeps_its_end(self, found: str, said: str) -> None:
        """No second full stop, and none behind a marker that stands below a line."""
        error = Tampered("a", found=found, expected="one", mend="Mend it.")
        assert str(error) == f"a: {said}one.\nMend it."

    def test_the_record_has_exactly_the_printed_keys(self) -> None:
        """What `--json` prints under `error`."""
        assert refusal().as_record() == {
            "kind": "tampered", "subject": "suites/a line 3",
            "found": "two", "expected": "one", "mend": "Take one out.",
        }  # fmt: skip

    @pytest.mark.parametrize("travel", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
    @pytest.mark.parametrize("kind", CODES)
    def test_it_goes_from_process_to_process(self, kind: type[HarnessError], travel: object) -> None:
        """A worker's refusal arrives as the same kind with the same words."""
        arrived = travel(refusal(kind))
        assert type(arrived) is kind
        assert arrived.as_record() == refusal(kind).as_record()
