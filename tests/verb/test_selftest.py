"""A decided run's gate under trial, from the store alone."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.errors import Misconfigured, NotFound
from harness.verb.selftest import SPOILED

from .conftest import HEADLINE, Project
from .test_task import Bench, bench  # noqa: F401  # a fixture

pytestmark = pytest.mark.usefixtures("plain_page")


@pytest.fixture
def decided(project: Project) -> str:
    """A run in which a fifth of the questions moved, either way."""
    project.recorded("moved", lambda i: (1 + i % 2) if i % 5 else 2 - i % 2)
    harness.freeze("s")
    return harness.run("s", candidate="moved", parent="old").run


class TestAnswer:
    def test_three_shares(self, decided: str) -> None:
        """No more keys than the contract has; each from 0 to 1."""
        found = harness.selftest(decided, trials=30)
        record = found.as_record()
        assert list(record) == ["false_fail", "undecided", "power"]
        assert all(isinstance(each, float) and 0 <= each <= 1 for each in record.values())
        assert record["false_fail"] <= 0.1
        assert record["power"] > 0.5

    def test_a_stated_drop(self, decided: str) -> None:
        """All that can be lost is found; a loss within the margin is not."""
        assert harness.selftest("latest", trials=30, drop=0.7).found.power == 1.0
        assert harness.selftest("latest", trials=30, drop=0.01).found.power <= 0.2

    def test_the_text_says_what_was_planted(self, decided: str) -> None:
        """How large, in what metric, by what fault, and how often it was found."""
        told = harness.selftest(decided, trials=30, drop=0.3).text
        assert "RR@10 on all worse by 0.3" in told
        assert SPOILED["retrieval"] in told
        assert "the decision made again 30 times" in told and "in each of 60 groups" in told

    def test_the_same_seed_the_same_text(self, decided: str) -> None:
        """And nothing is written: the store is the same, byte for byte."""
        store = Path(".harness/store.duckdb")
        before = hashlib.sha256(store.read_bytes()).digest()
        assert harness.selftest(decided, trials=20).text == harness.selftest(decided, trials=20).text
        assert harness.selftest(decided, trials=20).text != harness.selftest(decided, trials=20, seed=2).text
        assert hashlib.sha256(store.read_bytes()).digest() == before

    def test_the_command_loads_no_model(self, decided: str) -> None:
        """One object on stdout; without suites or releases, and without torch."""
        for folder in ("releases", "suites"):
            Path(folder).rename(f"away-{folder}")
        Path("suites").mkdir()
        code = (
            "import sys; sys.argv = ['harness', 'selftest', 'latest', '--trials', '10', '--json']\n"
            "from harness.cli import main\n"
            "try: main()\nexcept SystemExit as end: assert not end.code, end.code\n"
            "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert set(json.loads(done.stdout)) == {"false_fail", "undecided", "power"}


class TestRefusals:
    def test_a_run_without_a_parent(self, project: Project) -> None:
        """There is nothing to exchange the candidate with."""
        harness.freeze("s")
        run = harness.run("s", candidate="old", parent="none").run
        with pytest.raises(Misconfigured, match="no parent"):
            harness.selftest(run)

    def test_a_policy_that_no_loss_can_fail(self, project: Project) -> None:
        """Invariants alone count what happened."""
        project.suite(rules='[[rules]]\nid = "n"\nkind = "invariant"\nmetric = "tied"\nvalue = 59\n')
        harness.freeze("s")
        run = harness.run("s", candidate="better", parent="old").run
        with pytest.raises(Misconfigured, match="invariants alone"):
            harness.selftest(run)

    def test_no_such_run(self, decided: str) -> None:
        with pytest.raises(NotFound, match="no such run"):
            harness.selftest("ffffffff")

    @pytest.mark.parametrize(
        "asked",
        [{"trials": 0}, {"drop": 0.0}, {"drop": -0.1}, {"drop": float("nan")}, {"drop": float("inf")}, {"seed": -1}],
    )  # fmt: skip
    def test_numbers_out_of_range(self, decided: str, asked: dict[str, float]) -> None:
        """Named by the option."""
        with pytest.raises(Misconfigured, match=f"--{next(iter(asked))}"):
            harness.selftest(decided, **asked)


class TestTasks:
    def test_ranks_of_two_scales(self, bench: Bench) -> None:  # noqa: F811
        """Cosines against logits, by Spearman and AUROC: equal orders are equal sides, and a large drop is found."""
        rng = np.random.default_rng(1)
        gold = rng.integers(0, 2, 80)
        cases = [
            {"id": f"p{i}", "text_a": f"a{i}", "text_b": f"b{i}", "value": float(each)} for i, each in enumerate(gold)
        ]
        bench.suite("similarity", cases, ["spearman", "pair_roc_auc"], more='[guards]\nmetrics = ["pair_roc_auc"]\n'
                    'slices = ["all"]\n')  # fmt: skip
        scores = gold + rng.normal(size=80) * 0.3
        bench.release("one", "value", "cosine", {f"p{i}": float(each) / 10 for i, each in enumerate(scores)})
        bench.release("other", "value", "logit", {f"p{i}": float(each) * 50 for i, each in enumerate(scores)})
        run = harness.run("s", candidate="other", parent="one").run
        found = harness.selftest(run, trials=15, drop=0.7).found
        assert found.false_fail == 0.0
        assert found.power == 1.0

    def test_a_missing_case(self, project: Project) -> None:
        """What cannot be paired is UNDECIDED in every trial, on whichever side it is missing."""
        project.recorded("lacks", lambda i: 0 if i == 7 else 1 + i % 2)
        project.suite(rules=HEADLINE)
        harness.freeze("s")
        run = harness.run("s", candidate="lacks", parent="old").run
        found = harness.selftest(run, trials=20).found
        assert (found.false_fail, found.undecided) == (0.0, 1.0)
