"""The suites without a corpus: their cases, and what the gate decides about the recorded pair of each."""

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import harness
from fixtures.outputs.build import HERE, PAIRS, files
from fixtures.outputs.case import SUITES, Row, of_role, read
from harness.output.decision import Outcome

from .verb.conftest import plain_page  # noqa: F401  # a fixture

PASS, FAIL, UNDECIDED = Outcome.PASS, Outcome.FAIL, Outcome.UNDECIDED


@dataclass(frozen=True)
class Held:
    """A decision, the rules besides `headline` that fail, and the primary metric of both sides."""

    outcome: Outcome
    headline: Outcome
    failing: tuple[str, ...]
    parent: float
    candidate: float


HELD = {
    "ticket-intent": Held(PASS, PASS, (), 0.661017, 0.661017),
    "ticket-topics": Held(FAIL, PASS, ("guard:safety:f1_micro",), 0.657658, 0.635071),
    "ticket-urgency": Held(FAIL, PASS, ("guard:said-last:mae",), 1.452352, 1.787953),
    "same-question": Held(PASS, PASS, (), 0.734694, 0.785714),
    "ticket-entities": Held(FAIL, PASS, ("legal",), 0.778689, 0.778689),
    "help-answers": Held(FAIL, PASS, ("guard:answerable:answer_f1",), 0.479119, 0.477144),
    "pick-the-fix": Held(
        FAIL, UNDECIDED, ("guard:right-is-shorter:choice_accuracy", "guard:other-languages:choice_accuracy"),
        0.798507, 0.731343,
    ),
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_page: None) -> Path:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copied(suite: str, root: Path) -> None:
    """The suite as it is committed, and its two releases under the names that they have."""
    wanted = ("cases.jsonl", "suite.toml", "suite.lock.json")
    (root / "suites" / suite).mkdir(parents=True)
    for name in wanted:
        shutil.copy(SUITES / suite / name, root / "suites" / suite / name)
    for side in ("parent", "candidate"):
        (root / "releases" / side).mkdir(parents=True)
        for name in ("release.toml", "outputs.jsonl"):
            shutil.copy(HERE / suite / side / name, root / "releases" / side / name)


def written(value: float) -> str:
    """As the suites' pages write it: `.661`, `1.45`."""
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}".removeprefix("0")


@pytest.mark.parametrize("suite", HELD)
class TestDecision:
    def test_a_change_is_decided_as_the_readme_says(self, suite: str, project: Path) -> None:
        """From the committed lock and outputs: the decision, the rules that made it, the primary metric.

        And the margin is one that the suite can see.
        """
        held = HELD[suite]
        copied(suite, project)
        found = harness.run(suite, candidate="candidate", parent="parent")
        rules = {rule.id: rule for rule in found.decision.rules}
        assert found.decision.outcome is held.outcome
        assert rules["headline"].outcome is held.headline
        assert tuple(rule.id for rule in found.decision.rules if rule.outcome is FAIL) == held.failing
        assert rules["headline"].parent_value == pytest.approx(held.parent, abs=1e-6)
        assert rules["headline"].value == pytest.approx(held.candidate, abs=1e-6)
        assert rules["headline"].mde is not None and rules["headline"].margin is not None
        assert rules["headline"].mde <= rules["headline"].margin

    def test_the_readmes_say_so(self, suite: str) -> None:
        """The suite's own: the decision, a rule that made it, the primary metric of both sides. The project's: whether
        it passes.
        """
        held, told = HELD[suite], (SUITES / suite / "README.md").read_text(encoding="utf-8")
        assert f"**{held.outcome}**" in told
        assert all(f"`{rule}`" in told for rule in held.failing[:1])
        assert written(held.parent) in told and written(held.candidate) in told
        lines = (SUITES.parent / "README.md").read_text(encoding="utf-8").splitlines()
        [row] = [line for line in lines if line.startswith(f"| [{suite}]")]
        assert row.split("|")[4].split()[0] == held.outcome

    def test_freezing_it_again_gives_the_committed_lock(self, suite: str, project: Path) -> None:
        copied(suite, project)
        harness.check(suite)
        committed = (project / "suites" / suite / "suite.lock.json").read_bytes()
        harness.freeze(suite)
        assert (project / "suites" / suite / "suite.lock.json").read_bytes() == committed


@pytest.mark.parametrize("suite", PAIRS)
class TestOutputs:
    def test_they_are_what_the_script_computes(self, suite: str) -> None:
        for path, text in files(suite).items():
            assert (HERE / suite / path).read_text(encoding="utf-8") == text, path

    def test_they_are_small(self, suite: str) -> None:
        assert all(path.stat().st_size < 100_000 for path in (HERE / suite).rglob("outputs.jsonl"))


@pytest.mark.parametrize("suite", HELD)
class TestCases:
    def test_there_are_enough_in_each_role(self, suite: str) -> None:
        rows = read(suite)
        promotion = of_role(rows, "promotion")
        assert 80 <= len(rows) <= 120 and len(promotion) >= 60
        assert 0.25 <= 1 - len(promotion) / len(rows) <= 0.30
        assert {row["role"] for row in rows} == {"calibration", "promotion"}

    def test_no_two_say_the_same(self, suite: str) -> None:
        inputs = [said(row) for row in read(suite)]
        assert len(set(inputs)) == len(inputs)

    def test_there_are_other_languages_and_typing_mistakes(self, suite: str) -> None:
        rows = read(suite)
        assert {row["language"] for row in rows} == {"en", "de", "fr", "es"}
        assert sum(row["typos"] for row in rows) >= 8


def said(row: Row) -> str:
    keys = ("text", "text_a", "text_b", "question", "context")
    return "\n".join([*(row[key] for key in keys if key in row), *row.get("tokens", ())])


class TestWhatASuiteIsFor:
    def test_intents_have_a_rare_one_and_one_of_no_case(self) -> None:
        found = Counter(row["label"] for row in of_role(read("ticket-intent"), "promotion"))
        assert len(found) == 7 and "press" not in found
        assert min(found, key=found.__getitem__) == "accident"

    def test_some_tickets_have_no_topic_and_some_have_three(self) -> None:
        sizes = Counter(len(row["labels"]) for row in read("ticket-topics"))
        assert sizes[0] >= 5 and sizes[3] >= 1

    def test_one_urgency_is_not_known(self) -> None:
        assert [row["value"] for row in read("ticket-urgency")].count(None) == 1

    def test_half_of_the_pairs_ask_the_same(self) -> None:
        values = [row["value"] for row in of_role(read("same-question"), "promotion")]
        assert set(values) == {0, 1} and 0.4 <= sum(values) / len(values) <= 0.6

    def test_every_type_of_entity_is_there_often(self) -> None:
        tags = Counter(tag for row in of_role(read("ticket-entities"), "promotion") for tag in row["tags"])
        assert all(tags[f"B-{kind}"] >= 20 for kind in ("PLACE", "BIKE", "PLAN", "NAME"))

    def test_a_fifth_of_the_questions_has_no_answer(self) -> None:
        rows = read("help-answers")
        assert 0.18 <= sum(not row["answers"] for row in rows) / len(rows) <= 0.25
        assert all("start" in each for row in rows for each in row["answers"])

    def test_neither_place_nor_length_gives_the_right_choice_away(self) -> None:
        """Each place is right about as often as chance, and the longest choice is right less than half of the time."""
        rows = of_role(read("pick-the-fix"), "promotion")
        for many in (3, 4):
            places = Counter(row["label"] for row in rows if len(row["choices"]) == many)
            assert max(places.values()) - min(places[i] for i in range(many)) <= 1
        assert sum(row["longest"] for row in rows) < len(rows) / 2
