"""What is better, in words and by an interval."""

from dataclasses import replace

import pytest

from harness.output.answer import DeltaSummary
from harness.output.decision import Outcome
from harness.report.markdown import markdown
from harness.report.page import html
from harness.report.verdict import clear, direction, why


class TestOfARightValue:
    """A slope of 1 is right, and neither side of it is better."""

    @pytest.fixture
    def answer(self, contents):
        return replace(contents.failing().answer, losses=("mae",), targets={"calibration_slope": 1.0})

    def test_in_words(self, answer):
        told = [direction(answer, name) for name in ("calibration_slope", "mae", "accuracy")]
        assert told == ["nearer to 1 is better", "lower is better", ""]

    @pytest.mark.parametrize(
        ("before", "low", "high", "side"),
        [
            (0.5, 0.2, 0.4, "up"),  # to between 0.7 and 0.9
            (1.6, -0.5, -0.3, "up"),  # to between 1.1 and 1.3
            (0.9, 0.3, 0.5, "down"),  # to between 1.2 and 1.4: higher, and further off
            (0.9, -0.3, -0.1, "down"),
            (0.7, 0.1, 0.7, None),  # to between 0.8 and 1.4: nearer, or further off
            (0.9, 0.05, 0.15, "up"),  # across 1, and nearer at both ends
            (0.9, -0.1, 0.1, None),
        ],
    )
    def test_nearer_with_its_whole_interval(self, answer, before, low, high, side):
        moved = DeltaSummary((low + high) / 2, low, high, 0.1, 40, 40, 40)
        assert clear(answer, "calibration_slope", before, moved) == side

    def test_page_and_note_say_so(self, contents):
        content = contents.failing()
        name = content.primary
        turned = replace(content, answer=replace(content.answer, targets={name: 1.0}))
        assert "nearer to 1 is better" in html(turned) and "nearer to 1 is better" in markdown(turned)
        assert "nearer to 1" not in html(content)


class TestWhatHolds:
    """Of a PASS it is said that all rules hold only where they do."""

    @pytest.mark.parametrize(
        ("outcomes", "said"),
        [
            ((), "All 19 rules hold: "),
            ((Outcome.UNDECIDED,), "18 of 19 rules hold, 1 undecided and not critical: "),
            ((Outcome.WAIVED,), "18 of 19 rules hold, 1 failed and waived: "),
            (
                (Outcome.WAIVED, Outcome.UNDECIDED, Outcome.UNDECIDED),
                "16 of 19 rules hold, 1 failed and waived, 2 undecided and not critical: ",
            ),
        ],
    )
    def test_of_a_pass(self, contents, outcomes, said):
        answer = contents.passing().answer
        rules = list(answer.decision.rules)
        for at, outcome in enumerate(outcomes, start=1):
            rules[-at] = replace(rules[-at], outcome=outcome, critical=False)
        turned = replace(answer, decision=replace(answer.decision, rules=tuple(rules)))
        assert why(turned, str).startswith(said)
