"""How numbers and texts are shown."""

import shlex
from dataclasses import replace

import pytest

from harness.report import number, text, verdict


class TestNumbers:
    @pytest.mark.parametrize(
        ("found", "shown"),
        [(0.61234, "+0.6123"), (-0.0252, "−0.0252"), (0.0, "0.0000"), (-0.00004, "0.0000"), (None, "–"),
         (float("nan"), "–"), (float("-inf"), "−∞")],
    )  # fmt: skip
    def test_differences_have_a_sign(self, found, shown):
        """Four decimals, a proper minus, no sign on what rounds to zero."""
        assert number.signed(found) == shown

    @pytest.mark.parametrize(
        ("found", "shown"),
        [(1.0, "1.00"), (0.01234, "0.0123"), (0.0001, "0.000100"), (0.00009, "<0.0001"), (None, "–")],
    )
    def test_p_values_have_three_digits(self, found, shown):
        """And the very small ones are bounded."""
        assert number.probability(found) == shown

    def test_intervals(self):
        """Signed where they bound a difference; an end may be missing."""
        assert number.interval(-0.1, 0.2, of_delta=True) == "[−0.1000, +0.2000]"
        assert number.interval(0.1, None, of_delta=False) == "[0.1000, –]"
        assert number.interval(None, None, of_delta=True) == "–"


class TestText:
    def test_white_space_is_single_blanks(self):
        """A line end never leaves its line."""
        assert text.clean(" a\r\n b\tc\u2028d ") == "a b c d"

    def test_cut_before_no_combining_mark(self):
        """A letter keeps its accents or goes with them."""
        assert text.clipped("abcde\u0301\u0301fgh", 7) == "abcd…"
        assert text.clipped("abc", 3) == "abc" and text.clipped("abcd", 3) == "ab…"

    def test_settings_are_exact(self):
        """Blanks that mean something are drawn; an empty setting is two quotes."""
        assert text.exact("query: ") == "query:␣" and text.exact("a  b\n") == "a␣␣b⏎"
        assert text.exact("a b") == "a b" and text.exact("") == '""'


class TestCommands:
    def test_survive_a_shell(self, contents):
        """What is shown can be pasted: names with quotes and dollars arrive as they are."""
        answer = contents.failing().answer
        rules = tuple(replace(rule, id=f"a $b \"c\" 'd' `e`{at}") for at, rule in enumerate(answer.decision.rules))
        answer = replace(answer, decision=replace(answer.decision, rules=rules), followed="nDCG(dcg='exp-log2')@10")
        explain, worst, *_ = (shlex.split(command) for command, _ in verdict.commands(answer))
        assert explain[-1] == "a $b \"c\" 'd' `e`2"
        assert "metric = 'nDCG(dcg=''exp-log2'')@10'" in worst[-1]

    def test_of_labels_ask_for_predictions(self, contents):
        """Nobody judges documents there; what was given for what is asked where cases share their labels."""
        said = " ".join(command for command, _ in verdict.commands(contents.labelled().answer))
        assert "judging_queue" not in said and "document" not in said
        assert "parent IS DISTINCT FROM candidate" in said and "FROM confusions" in said
        assert "metric = 'accuracy'" in said
        numbers = replace(contents.labelled().answer, task="regression")
        assert "confusions" not in " ".join(command for command, _ in verdict.commands(numbers))

    def test_without_values_by_case_no_case_lost_most(self, contents):
        """The view has none of such a metric."""
        said = " ".join(command for command, _ in verdict.commands(contents.unfollowed().answer))
        assert "worst_regressions" not in said and "case_predictions" in said


class TestDecimals:
    @pytest.mark.parametrize(
        ("numbers", "decimals"),
        [((), 4), ((0.0,), 4), ((0.5, -1.0), 4), ((9.99,), 4), ((10.0, 0.5), 3), ((-1234.5,), 1), ((1e7,), 0),
         ((0.0004,), 6), ((float("inf"), 2.0), 4)],
    )  # fmt: skip
    def test_follow_the_largest(self, numbers, decimals):
        """Five figures of it, and four decimals at least where it is not large."""
        assert number.decimals(numbers) == decimals
