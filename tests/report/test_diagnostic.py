"""Diagnostics side by side, apart from all evidence."""

from dataclasses import replace

from harness.output.diagnostic import PAIR, Diagnostic
from harness.report.diagnostic import TITLE, lines, silences
from harness.report.markdown import markdown
from harness.report.page import html

from .test_page import Page

NOTHING = "recorded outputs have no vectors"
TOLD = (
    Diagnostic("candidate", "uniformity", "documents", None, -2.5, 90),
    Diagnostic("candidate", "norm", "queries", 0.5, 7.0, 40),
    Diagnostic("candidate", "norm", "queries", 0.05, 6.0, 40),
    Diagnostic("parent", "norm", "queries", 0.5, 8.0, 41),
    Diagnostic(PAIR, "rbo(p=0.9)", "queries", None, 0.75, 40),
    Diagnostic("parent", "uniformity", "texts", None, None, 0, NOTHING),
    Diagnostic("parent", "alignment", "texts", None, None, 0, NOTHING),
)


class TestLines:
    def test_both_sides_of_one_number_stand_in_one_line(self):
        found = {(each.name, each.at): each for each in lines(TOLD)}
        half = found["norm", "0.5"]
        assert (half.parent, half.candidate, half.pair, half.counted) == (8.0, 7.0, None, "41 → 40")
        assert (found["rbo(p=0.9)", ""].pair, found["rbo(p=0.9)", ""].candidate) == (0.75, None)

    def test_they_stand_in_the_order_of_their_meanings_and_quantiles_rise(self):
        labels = [("norm", "0.05"), ("norm", "0.5"), ("uniformity", ""), ("rbo(p=0.9)", "")]
        assert [(each.name, each.at) for each in lines(TOLD)] == labels
        assert lines(TOLD[::-1]) == lines(TOLD)

    def test_each_meaning_is_said_once(self):
        assert [bool(each.meaning) for each in lines(TOLD)] == [True, False, True, True]

    def test_what_is_absent_is_no_line_and_says_why_once(self):
        assert silences(TOLD) == (f"Of the parent no uniformity, alignment: {NOTHING}.",)


class TestPlaces:
    def test_page_and_note_have_a_section_of_their_own(self, contents):
        told = replace(contents.failing(), diagnostics=TOLD)
        page, note = Page(html(told)), markdown(told)
        assert TITLE in page.text and f"## {TITLE}\n" in note
        assert "Of the parent no uniformity, alignment: recorded outputs have no vectors." in page.text
        assert "| `uniformity` | documents |  | – | −2.5000 | – | 90 |" in note
        assert {"href": "#diagnostics"} in page.all("a")

    def test_without_any_there_is_no_section(self, contents):
        assert TITLE not in html(contents.failing()) and TITLE not in markdown(contents.failing())

    def test_what_nothing_could_be_told_of_has_no_empty_table(self, contents):
        told = replace(contents.failing(), diagnostics=TOLD[-2:])
        assert '<th scope="col">Diagnostic</th>' not in html(told) and "| | of |" not in markdown(told)
