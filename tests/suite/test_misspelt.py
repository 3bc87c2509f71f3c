"""A policy with a slip in it is refused with file, line and mend: it never weakens the gate."""

from pathlib import Path

import pytest

import harness
from harness.errors import Misconfigured

from ..verb.conftest import Project

POLICY = {
    "cases": 'missing = "undecided"',
    "metrics": 'primary = "RR@10"\nreport = ["RR@10", "nDCG@10"]',
    "[slices]": 'name = "typo"\nwhere = "kind = \'typo\'"\ncritical = true\nmin_support = 20',
    "uncertainty": 'method = "bca"\ndraws = 1000\nlevel = 0.95\nseed = 1\nfamily = "holm"',
    "[rules]": 'id = "headline"\nkind = "no-worse"\nmetric = "RR@10"\nslice = "typo"\nmargin = 0.02\ncritical = true',
    "guards": 'metrics = ["RR@10"]\nslices = "every"\nmargin = 0.01',
}
HEAD = 'schema = "harness.suite.v1"\nname = "s"\ntask = "retrieval"\nsource = { format = "beir", path = "." }\n'
KEYS = [(table, line.partition(" = ")[0]) for table, lines in POLICY.items() for line in lines.split("\n")]
WRONG = {
    "bool": "true", "text": '"x"', "nan": "nan", "inf": "inf", "minus": "-1", "none": "[]", "table": "{}",
    "list": "[[1]]",
}  # fmt: skip
FITS = {("critical", "bool"), ("id", "text"), ("report", "none")}
"""What is no mistake: a rule may be called so, and nothing but the primary metric be reported."""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path).suite()


def write(folder: Path, policy: dict[str, str], more: str = "") -> None:
    tables = "".join(f"[{table}]\n{lines}\n" for table, lines in policy.items())
    (folder / "suite.toml").write_text(HEAD + tables + more)


def changed(table: str, key: str, line: str) -> dict[str, str]:
    lines = [line if each.startswith(f"{key} = ") else each for each in POLICY[table].split("\n")]
    return {**POLICY, table: "\n".join(lines)}


def refused(folder: Path) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        harness.freeze("s")
    assert "suite.toml line " in caught.value.subject
    return caught.value


class TestEveryKey:
    def test_the_policy_as_it_is(self, suite: Path) -> None:
        """It can be frozen, so whatever is refused below is refused for its slip."""
        write(suite, POLICY)
        assert harness.freeze("s").slices["typo"].groups == 30

    @pytest.mark.parametrize(("table", "key"), KEYS, ids=lambda each: each)
    def test_a_misspelt_key(self, suite: Path, table: str, key: str) -> None:
        """Its line, and the key that was meant."""
        value = next(line for line in POLICY[table].split("\n") if line.startswith(f"{key} = ")).partition(" = ")[2]
        wrong = f"{key}x"
        write(suite, changed(table, key, f"{wrong} = {value}"))
        found = refused(suite)
        assert wrong in found.found and f"`{key}`" in found.mend
        line = int(found.subject.rpartition(" ")[2])
        assert (suite / "suite.toml").read_text().split("\n")[line - 1].startswith(wrong)

    @pytest.mark.parametrize(("table", "key"), KEYS, ids=lambda each: each)
    @pytest.mark.parametrize("wrong", WRONG)
    def test_a_wrong_value(self, suite: Path, table: str, key: str, wrong: str) -> None:
        """A type or a number that is none; never a traceback, and never the default instead."""
        write(suite, changed(table, key, f"{key} = {WRONG[wrong]}"))
        if (key, wrong) in FITS:
            harness.freeze("s")
        else:
            refused(suite)

    @pytest.mark.parametrize("table", POLICY)
    def test_a_misspelt_table(self, suite: Path, table: str) -> None:
        """Its name with a letter more; and one instead of many, or many instead of one, at its own line."""
        plain = table.strip("[]")
        names = (table.replace(plain, f"{plain}x"), plain if table != plain else f"[{plain}]")
        for name in names:
            write(suite, {name if each == table else each: lines for each, lines in POLICY.items()})
            line = int(refused(suite).subject.rpartition(" ")[2])
            assert (suite / "suite.toml").read_text().split("\n")[line - 1] == f"[{name}]"


class TestSlips:
    @pytest.mark.parametrize(
        ("table", "line", "found"),
        [
            ("[rules]", "margin = 2", "a margin of 2, and RR@10 can lose no more than 1"),
            ("[rules]", "margin = -0.02", "-0.02"),
            ("[rules]", 'slice = "tpyo"', "slice 'tpyo'"),
            ("[rules]", 'kind = "no-wrose"', "'no-wrose'"),
            ("[rules]", 'kind = "at-least"', "needs `value`"),
            ("[rules]", 'metric = "RR@1O"', "RR@1O"),
            ("[rules]", "value = 0.5", "has no `value`"),
            ("guards", "margin = 95", "a margin of 95"),
            ("guards", 'slices = ["tpyo"]', "slice 'tpyo'"),
            ("guards", "slices = []", "guards over no slice"),
            ("guards", 'slices = ["typo", "typo"]', "stands twice"),
            ("guards", 'metrics = ["RR@10", "mrr@10"]', "stands twice"),
            ("guards", 'metrics = ["nDGC@10"]', "nDGC@10"),
            ("[slices]", "where = \"kind = 'tpyo'\"", "holds no case"),
            ("[slices]", "where = \"knd = 'typo'\"", "knd"),
            ("[slices]", 'name = "all"', "a slice called 'all'"),
            ("uncertainty", "level = 95", "95"),
            ("uncertainty", "level = 0.05", "0.05"),
            ("uncertainty", "draws = 50", "50"),
            ("uncertainty", 'family = "Holm"', "'Holm'"),
        ],
    )
    def test_a_slip_is_named(self, suite: Path, table: str, line: str, found: str) -> None:
        """What stands there, with its line."""
        key = line.partition(" = ")[0]
        there = f"\n{key} = " in f"\n{POLICY[table]}"
        write(suite, changed(table, key, line) if there else {**POLICY, table: f"{POLICY[table]}\n{line}"})
        assert found in refused(suite).found

    @pytest.mark.parametrize(
        ("kind", "value", "found"),
        [
            ("at-least", "-1", "every candidate is"),
            ("at-least", "95", "no candidate can be"),
            ("at-most", "1.1", "every candidate is"),
            ("at-most", "-0.1", "no candidate can be"),
            ("invariant", "60", "60 cases tied, and 'all' has 60"),
            ("invariant", "-1", "a count of -1"),
            ("invariant", "0.5", "a count of 0.5"),
        ],
    )  # fmt: skip
    def test_a_bound_that_decides_nothing(self, suite: Path, kind: str, value: str, found: str) -> None:
        """One that every candidate meets is no demand; one that none can meet is a slip too."""
        metric = "tied" if kind == "invariant" else "RR@10"
        write(suite, POLICY, f'[[rules]]\nid = "b"\nkind = "{kind}"\nmetric = "{metric}"\nvalue = {value}\n')
        assert found in refused(suite).found

    @pytest.mark.parametrize(
        ("kind", "bound", "said"),
        [
            ("no-worse", "margin = 1", "has a margin of 1, all that RR@10 can lose: no candidate fails it"),
            ("at-least", "value = 0", "wants RR@10 at least 0, which it always is: no candidate fails it"),
            ("at-most", "value = 1", "wants RR@10 at most 1, which it always is: no candidate fails it"),
        ],
    )
    def test_a_bound_that_is_always_met_is_warned_of(self, suite: Path, kind: str, bound: str, said: str) -> None:
        """It may stand, for a rule can be kept for its numbers alone; one step inside, nothing is said."""
        rule = f'[[rules]]\nid = "b"\nkind = "{kind}"\nmetric = "RR@10"\n'
        write(suite, POLICY, f"{rule}{bound}\n")
        assert f"rule 'b' {said}" in harness.freeze(str(suite)).warnings
        write(suite, POLICY, f"{rule}{bound[: bound.index('=')]}= 0.5\n")
        assert not [each for each in harness.freeze(str(suite)).warnings if "no candidate fails" in each]

    def test_two_of_one_name(self, suite: Path) -> None:
        """Rules and slices: the second would hide the first."""
        for table in ("[rules]", "[slices]"):
            write(suite, POLICY, f"[{table}]\n{POLICY[table]}\n")
            assert "stands twice" in refused(suite).found

    def test_capitals(self, suite: Path) -> None:
        """A word in the wrong case is told the right one."""
        write(suite, changed("uncertainty", "family", 'family = "HOLM"'))
        assert refused(suite).mend == "Did you mean 'holm'?"
