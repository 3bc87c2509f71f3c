"""How long a plan takes: arithmetic that one can do by hand, and what is not known said so."""

from dataclasses import replace
from datetime import datetime

import pytest

from harness.output.duration import Encoding, Pace
from harness.report.duration import Durations, Timed, clock, duration

RUN, AT = "ab" * 32, datetime(2026, 12, 2, 10, 0)
# A thousand tokens a second, fifty tokens a text.
PACE = Pace(RUN, "key", "document", AT, 200, 10_000, 10.0, 2, "torch 2, float32, cpu (AVX2)", "a machine")
WHOLE = Timed(Encoding(1, "re-encode", "docs", None, "key", "document", 3000, 3000, None), PACE)
UNMEASURED = replace(WHOLE, pace=None)


def asking(timed: Timed, **changes: object) -> Timed:
    return replace(timed, encoding=replace(timed.encoding, **changes))


CUT = asking(WHOLE, namespace="cut", items=10, tokens=2500)
OF_ROWS = asking(UNMEASURED, namespace="vectors", made_from="docs", pass_key=None)


def told(*encodings: Timed, parent: str | None = "old", planned: bool = True) -> str:
    return duration(Durations(RUN, "new", parent, encodings if planned else None))


def row(said: str, namespace: str) -> list[str]:
    [line] = [each for each in said.splitlines() if each.startswith("|") and f"`{namespace}`" in each.split("|")[2]]
    return [cell.strip() for cell in line.strip("|").split("|")]


class TestEstimate:
    def test_the_plans_own_tokens_over_the_rate(self) -> None:
        """2,500 tokens at 1,000 a second."""
        assert row(told(CUT), "cut")[2:] == ["10 of 3,000", "2,500", "1,000 (1)", "2.5 s"]

    def test_where_it_knows_none_each_item_is_as_long_as_one_that_was_measured(self) -> None:
        """3,000 × 50 = 150,000 tokens, 150 seconds, and marked as a guess."""
        said = told(WHOLE)
        assert row(said, "docs")[2:] == ["3,000 of 3,000", "≈ 150,000", "1,000 (1)", "2.5 min"]
        assert "- ≈: the plan does not know these tokens" in said
        assert "≈" not in told(CUT)

    def test_what_is_made_of_rows_has_no_pass_of_its_own(self) -> None:
        said = told(WHOLE, OF_ROWS)
        assert row(said, "vectors")[-1] == "no pass of its own: from the rows of `docs`"
        assert "Together about 2.5 min.\n" in said

    def test_what_was_not_measured_is_no_zero(self) -> None:
        said = told(CUT, UNMEASURED)
        assert row(said, "docs")[-2:] == ["–", "nothing was measured"]
        assert "Together about 2.5 s, without 1 action of which that is not known." in said
        assert "How long they take is not known." in told(UNMEASURED)

    def test_what_no_model_reads_here_says_so(self) -> None:
        assert row(told(asking(UNMEASURED, pass_key=None)), "docs")[-1] == "no model reads it here"

    def test_items_that_nobody_counted_are_no_zero_either(self) -> None:
        assert row(told(asking(WHOLE, items=None, of_items=None)), "docs")[2:] == ["–", "–", "1,000 (1)", "–"]

    def test_nothing_to_read_takes_no_time(self) -> None:
        assert row(told(asking(WHOLE, items=0)), "docs")[-1] == "0 s"

    def test_another_sides_texts_stand_in_and_that_is_said(self) -> None:
        assert "other side's stand in" in told(replace(WHOLE, pace=replace(PACE, side="query")))
        assert "other side's stand in" not in told(WHOLE)


class TestMeasured:
    def test_each_measurement_stands_once_with_all_that_bears_on_it(self) -> None:
        said = told(WHOLE, CUT)
        [line] = [each for each in said.splitlines() if each.startswith("1. ")]
        for what in ("10,000 tokens of 200 texts", "50 tokens each", "10 s", "in this run", "2 threads", "a machine"):
            assert what in line
        assert "order of magnitude" not in line and "\n2. " not in said

    def test_an_earlier_run_is_named(self) -> None:
        assert "in run `cdcdcdcdcdcd`, the latest" in told(replace(WHOLE, pace=replace(PACE, run="cd" * 32)))

    def test_few_texts_tell_little(self) -> None:
        assert "order of magnitude" in told(replace(WHOLE, pace=replace(PACE, texts=99)))


class TestWithoutActions:
    def test_no_parent_no_plan(self) -> None:
        assert "without a parent" in told(parent=None, planned=False)

    def test_no_plan_is_not_an_empty_one(self) -> None:
        assert "`harness diff old new` tells it" in told(planned=False)
        assert "encodes nothing" in told()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (0.04, "less than 0.1 s"), (0.84, "0.8 s"), (42, "42 s"), (89, "89 s"), (90, "1.5 min"),
     (5400, "1.5 h"), (172_800, "2.0 days"), (86_400 * 12, "12 days")],
)  # fmt: skip
def test_a_clock_to_two_figures(seconds: float, said: str) -> None:
    assert clock(seconds) == said
