"""Every run that reads promotion outcomes is entered once, before it reads them."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import harness
from harness.errors import Tampered
from harness.file import ledger
from harness.gate.exposure import LEDGER, Reading, record
from harness.output.exposure import Exposure

FIRST = Exposure(run="r1", data="d", policy="p", candidate="c", parent="a", outcomes="o")
PROJECT = Path(harness.__file__).parents[1]


def entries(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / LEDGER).read_text().splitlines()]


class TestOrdinal:
    def test_the_first_reading_is_the_first(self, tmp_path: Path) -> None:
        """And is written down with all it says."""
        assert record(tmp_path, FIRST) == Reading(ordinal=1, changed_policy=False)
        [entry] = entries(tmp_path)
        assert {name: value for name, value in entry.items() if name not in ("previous", "own_digest")} == {
            "run": "r1", "data": "d", "policy": "p", "candidate": "c", "parent": "a", "outcomes": "o",
        }  # fmt: skip

    def test_runs_are_counted_in_their_order(self, tmp_path: Path) -> None:
        """A run that is decided again keeps its place and is entered once."""
        runs = [replace(FIRST, run=name, candidate=name, outcomes=name) for name in ("r1", "r2", "r3")]
        assert [record(tmp_path, each).ordinal for each in runs] == [1, 2, 3]
        assert [record(tmp_path, each).ordinal for each in (runs[1], runs[0], runs[2])] == [2, 1, 3]
        assert len(entries(tmp_path)) == 3

    def test_other_data_are_no_new_start(self, tmp_path: Path) -> None:
        """Else one changed judgement would make every reading the first again."""
        record(tmp_path, FIRST)
        assert record(tmp_path, replace(FIRST, run="r2", data="e")).ordinal == 2
        assert record(tmp_path, replace(FIRST, run="r3")).ordinal == 3

    def test_a_run_without_a_parent(self, tmp_path: Path) -> None:
        """It has read them as well."""
        assert record(tmp_path, replace(FIRST, parent=None)).ordinal == 1
        assert record(tmp_path, replace(FIRST, parent=None)).ordinal == 1
        assert len(entries(tmp_path)) == 1

    def test_runs_at_once_get_places_of_their_own(self, tmp_path: Path) -> None:
        """Two that start together are not both the first: a budget would be overdrawn."""
        code = (
            "import sys; from pathlib import Path\n"
            "from harness.gate.exposure import record; from harness.output.exposure import Exposure\n"
            "for n in range(10):\n"
            "    run = f'{sys.argv[2]}{n}'\n"
            "    print(record(Path(sys.argv[1]), Exposure(run, 'd', 'p', run, None, run)).ordinal)"
        )
        processes = [
            subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], cwd=PROJECT, stdout=subprocess.PIPE)
            for name in "ab"
        ]
        ordinals = [int(number) for process in processes for number in process.communicate()[0].split()]
        assert sorted(ordinals) == list(range(1, 21))


class TestChangedPolicy:
    def test_other_rules_after_the_outcomes_were_read(self, tmp_path: Path) -> None:
        """The same run under another policy, or a new run of the same contents."""
        record(tmp_path, FIRST)
        assert record(tmp_path, replace(FIRST, policy="q")) == Reading(ordinal=1, changed_policy=True)
        assert record(tmp_path, replace(FIRST, run="r2", policy="q")) == Reading(ordinal=2, changed_policy=True)

    def test_back_to_the_first_policy(self, tmp_path: Path) -> None:
        """Those rules were fixed before the outcomes were seen, whatever was tried in between."""
        for policy in ("p", "q"):
            record(tmp_path, replace(FIRST, policy=policy))
        assert not record(tmp_path, FIRST).changed_policy
        assert record(tmp_path, replace(FIRST, policy="q")).changed_policy

    def test_another_candidate_under_new_rules(self, tmp_path: Path) -> None:
        """Its own outcomes were not yet seen."""
        record(tmp_path, FIRST)
        new = replace(FIRST, run="r2", candidate="new", policy="q", outcomes="n")
        assert not record(tmp_path, new).changed_policy

    def test_another_candidate_that_answers_alike(self, tmp_path: Path) -> None:
        """Renamed or padded, it has the outcomes that were seen; so has the same one that now answers otherwise."""
        record(tmp_path, FIRST)
        assert record(tmp_path, replace(FIRST, run="r2", candidate="new", policy="q")).changed_policy
        assert record(tmp_path, replace(FIRST, run="r3", outcomes="n", policy="q")).changed_policy

    def test_another_parent_is_no_new_start(self, tmp_path: Path) -> None:
        """This candidate's outcomes were seen under the first rules, against whomever."""
        record(tmp_path, FIRST)
        assert record(tmp_path, replace(FIRST, run="r2", parent="b", policy="q")).changed_policy

    def test_on_other_data(self, tmp_path: Path) -> None:
        """Changing the data together with the rules is still changing the rules; changing them alone is not."""
        record(tmp_path, FIRST)
        assert record(tmp_path, replace(FIRST, run="r2", data="e", policy="q")).changed_policy
        assert not record(tmp_path, replace(FIRST, run="r3", data="e")).changed_policy


class TestRemembered:
    def test_what_the_ledger_lost_is_written_again(self, tmp_path: Path) -> None:
        """Taking the ledger away makes no reading the first and no rules the first ones."""
        known = [FIRST, replace(FIRST, run="r2", candidate="new", outcomes="n")]
        found = record(tmp_path, replace(FIRST, run="r3", policy="q"), known)
        assert found == Reading(ordinal=3, changed_policy=True)
        assert [each["run"] for each in entries(tmp_path)] == ["r1", "r2", "r3"]

    def test_what_both_know_counts_once(self, tmp_path: Path) -> None:
        """As after every run that was not disturbed."""
        record(tmp_path, FIRST)
        assert record(tmp_path, FIRST, [FIRST]) == Reading(ordinal=1, changed_policy=False)
        assert len(entries(tmp_path)) == 1

    def test_a_ledger_that_was_begun_anew(self, tmp_path: Path) -> None:
        """What the store knows came first, wherever it stands in the file now."""
        record(tmp_path, replace(FIRST, run="r2", policy="q"))
        assert record(tmp_path, replace(FIRST, run="r2", policy="q"), [FIRST]) == Reading(2, changed_policy=True)


class TestTampering:
    @pytest.mark.parametrize("gone", [0, 1])
    def test_an_entry_that_was_taken_out(self, tmp_path: Path, gone: int) -> None:
        """Refused before anything is read or written."""
        for run in ("r1", "r2", "r3"):
            record(tmp_path, replace(FIRST, run=run))
        lines = (tmp_path / LEDGER).read_text().splitlines(keepends=True)
        left = "".join(lines[:gone] + lines[gone + 1 :])
        (tmp_path / LEDGER).write_text(left)
        with pytest.raises(Tampered, match=rf"exposures.jsonl line {gone + 1}"):
            record(tmp_path, replace(FIRST, run="r4"))
        assert (tmp_path / LEDGER).read_text() == left

    @pytest.mark.parametrize("entry", [{}, {"run": "r1"}, {**asdict(FIRST), "more": "x"}, {**asdict(FIRST), "run": 7}])
    def test_a_line_that_is_no_exposure(self, tmp_path: Path, entry: dict[str, object]) -> None:
        """Chained as it should be, and still not what was written here."""
        ledger.append(tmp_path / LEDGER, entry)
        with pytest.raises(Tampered, match=r"line 1.*no exposure"):
            record(tmp_path, FIRST)
