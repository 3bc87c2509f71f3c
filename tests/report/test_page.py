"""What the page of a run shows, and what it never does."""

import base64
import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from harness.output.change import Predicted, Prediction
from harness.output.companion import Companion
from harness.output.decision import Outcome
from harness.report.content import MeaningChange
from harness.report.page import html

VOID = {"meta", "br", "img", "link", "input", "hr"}
HERE = Path(__file__).parent


class Page(HTMLParser):
    """The page as a tree that must be well nested: its elements in order, and the text without marks."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), f"an attribute of <{tag}> stands twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def section(page: str, name: str) -> str:
    """The words of one section, apart where elements are."""
    inside = page.partition(f'id="{name}"')[2].partition(">")[2].partition("</section>")[0]
    return " ".join(re.sub("<[^>]*>", " ", inside).split())


class TestDecision:
    @pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.FAIL, Outcome.UNDECIDED])
    def test_stands_first(self, contents, outcome):
        """The body begins with the heading, and the heading with the outcome, in words as well as a symbol."""
        content = contents.failing()
        decision = replace(content.answer.decision, outcome=outcome)
        page = html(replace(content, answer=replace(content.answer, decision=decision)))
        tags = [tag for tag, _ in Page(page).elements]
        assert tags[tags.index("body") + 1 :][:2] == ["header", "h1"]
        heading = re.sub("<[^>]*>", "", page.partition("<h1>")[2].partition("</h1>")[0])
        assert heading.split()[1] == outcome

    def test_exploratory_is_said_in_words(self, contents):
        """An exploratory run is called so in the heading and in the sentence."""
        content = contents.passing()
        decision = replace(content.answer.decision, exploratory=True)
        page = html(replace(content, answer=replace(content.answer, decision=decision)))
        assert "EXPLORATORY</span>" in page and "nothing is bundled" in page
        assert "EXPLORATORY" not in html(content)

    def test_sentence_names_rule_slice_and_numbers(self, contents):
        """A FAIL says which rule broke on which slice, from what to what, with interval and margin."""
        said = Page(html(contents.failing())).text
        assert "typos-hold, nDCG@10 on typing-mistakes, 0.6005 → 0.5134" in said
        assert "(−0.0871, interval [−0.1303, −0.0482], margin 0.0200)" in said


class TestRules:
    def test_each_stands_once_with_its_reason(self, any_content):
        """No rule is left out, and no reason is said twice."""
        rules = [
            replace(rule, reason=f"reason-{at}-of-it") for at, rule in enumerate(any_content.answer.decision.rules)
        ]
        decision = replace(any_content.answer.decision, rules=tuple(rules))
        text = Page(html(replace(any_content, answer=replace(any_content.answer, decision=decision)))).text
        assert [text.count(rule.reason) for rule in rules] == [1] * len(rules)
        assert all(rule.id in text for rule in rules)

    def test_open_ones_stand_before_those_that_hold(self, contents):
        """FAIL, UNDECIDED, WAIVED, PASS, whatever the suite's order."""
        page = html(contents.failing())
        names = ("typos-hold", "headline", "german-floor", "late-answers-hold")
        places = [page.index(f"<bdi>{name}</bdi>", page.index('id="rules"')) for name in names]
        assert places == sorted(places)

    def test_a_fail_shows_the_finding_that_a_waiver_needs(self, contents):
        """The digest stands whole, for the rule and for the guard."""
        content = contents.failing()
        text = Page(html(content)).text
        findings = [rule.finding for rule in content.answer.decision.rules if rule.outcome is Outcome.FAIL]
        assert len(findings) == 2 and all(finding in text for finding in findings)

    def test_guards_are_a_grid(self, contents):
        """Sixty slices by eight metrics take sixty rows, not 480."""
        grid = re.search(r'<table class="grid">.*?</table>', html(contents.large()), re.S)
        assert grid and grid.group().count("<tr>") == 61


class TestWhatChanged:
    def test_a_part_that_only_one_release_has_is_folded(self, contents):
        """Its many fields are no news; a few are told among the others."""
        content = contents.failing()
        changed = MeaningChange("score.type", "cosine", "logit")
        for many, folded in ((12, 0), (13, 1)):
            gone = tuple(MeaningChange(f"towers.both.{at}", "x", None) for at in range(many))
            page = html(replace(content, changes=(changed, *gone)))
            section = page[page.index('id="changes"') : page.index('id="method"')]
            assert section.count("<details>") == folded
            assert section.count('<th scope="row">') == 1 + many
            assert "score.type" in section.partition("<details>")[0]


class TestBesideTheMetrics:
    def test_both_sides_of_every_table(self, contents):
        """The candidate's before the parent's, with counts and decimals; a cell that says nothing is a dash."""
        page = html(contents.labelled())
        section = page.partition('id="beside"')[2].partition("</section>")[0]
        captions = re.findall(r"<b>(Candidate|Parent)\.</b> (?:<bdi>)?([^<]*)", section)
        assert captions == [
            (side, note)
            for notes in (
                ("0/0: zero.",) * 2, ("Gold in rows, predicted in columns.",) * 2,
                ("In hours, 1 apart.", "In hours, 0 apart."),
            )
            for side, note in zip(("Candidate", "Parent"), notes, strict=True)
        ]  # fmt: skip
        assert '<td class="n  ">1,200</td>' in section and '<abbr title="no value">–</abbr>' in section
        assert "0.5100" in section and "0.5000" in section

    def test_the_diagonal_is_marked_to_eyes_and_ears(self, contents):
        """Five classes on two sides: ten cells, each called right; no other table has one."""
        page = html(contents.labelled())
        assert len(re.findall(r'<td class="n diagonal ?"><span class="sr">right: </span>40</td>', page)) == 10
        assert page.count("diagonal") - page.partition("</style>")[0].count("diagonal") == 10

    def test_single_rows_stand_upright(self, contents):
        """One line a column, one column a side, decimals by line."""
        page = html(contents.labelled())
        [found] = re.findall(r'<table class="companion upright">.*?</table>', page, re.S)
        assert re.findall(r'<td class="n">([^<]*)</td>', found) == [
            "412", "412", "5954.2", "5953.2", "0.000120", "0.000120",
        ]  # fmt: skip

    def test_every_table_can_be_scrolled_by_keyboard(self, contents):
        """Each stands in a region of its own name that takes the focus."""
        page = html(contents.labelled()).partition('id="beside"')[2].partition("</section>")[0]
        regions = re.findall(r'<div class="card scroll[^"]*" tabindex="0" role="region" aria-label="([^"]*)">', page)
        assert regions == [
            "Classes, candidate", "Classes, parent", "Confusion, candidate", "Confusion, parent", "Targets",
        ]  # fmt: skip
        assert page.count("<table") == len(regions)

    def test_what_is_too_long_is_counted(self, contents):
        """Two hundred rows stand in the page."""
        content = contents.labelled()
        rows = tuple((f"label-{at}", at) for at in range(203))
        table = Companion("labels", "Labels", "", ("label", "support"), rows)
        page = html(replace(content, companions={"candidate": (table,)}))
        assert "And 3 more rows, which the store has." in Page(page).text
        assert "label-199" in page and "label-200" not in page

    def test_a_run_without_any_has_no_such_section(self, contents):
        assert 'id="beside"' not in html(contents.failing())


class TestCases:
    def test_without_a_corpus_show_what_holds_and_what_was_predicted(self, contents):
        """With probabilities and flags, and no word of documents."""
        text = section(html(contents.labelled()), "worse")
        assert "Gold REFUND Parent, probability 0.7500 REFUND Candidate, probability 0.6250 login tied" in text
        assert "put first" not in text and "document" not in text
        assert "By accuracy : f1_macro has no values by case." in text

    def test_an_empty_set_and_nothing_at_all_are_told_apart(self, contents):
        content = contents.labelled()
        [case, *_] = content.regressions
        sides = Predicted(None, Prediction("", None, ()), Prediction(None, None, ()))
        text = section(html(replace(content, regressions=(replace(case, predicted=sides),))), "worse")
        assert "Gold not known Parent none of the labels Candidate nothing" in text

    def test_without_values_by_case_there_are_none(self, contents):
        """One sentence instead of two sections."""
        page = html(contents.unfollowed())
        assert "No metric of this run has values by case" in Page(page).text
        assert 'id="better"' not in page and 'href="#better"' not in page and "Cases that got worse</h2>" not in page


class TestDirection:
    def test_a_loss_that_rose_is_marked_as_worse(self, contents):
        """Its interval lies above zero, and that is the bad side; its column says that lower is better."""
        page = html(contents.labelled())
        board = page.partition('<table class="board">')[2].partition("</table>")[0]
        [cell] = re.findall(
            r'<td class="n ([a-z]*)"><span[^>]*>[^<]*</span><span class="delta"[^>]*>(?:(?!</td>).)*\+0\.2000', board
        )
        assert cell == "down"
        assert re.findall(r'<bdi>(\w+)</bdi> <span class="lower">lower is better', board) == ["log_loss"]

    def test_a_case_whose_loss_rose_is_red(self, contents):
        content = contents.failing()
        loss = replace(content, answer=replace(content.answer, losses=(content.primary,)))
        hues = [re.findall(r'<b class="(up|down)">', html(each)) for each in (content, loss)]
        assert set(hues[0]) == {"up", "down"}
        assert hues[1] == [{"up": "down", "down": "up"}[hue] for hue in hues[0]]


class TestHostileText:
    def test_never_leaves_its_element(self, contents, hostile):
        """Elements and the names of their attributes are those of a harmless text in the same places."""
        shape = [
            [
                (tag, sorted(attributes))
                for tag, attributes in Page(html(contents.everywhere(contents.failing(), said))).elements
            ]
            for said in (hostile, "harmless")
        ]
        assert shape[0] == shape[1]

    def test_is_neither_template_nor_mathematics(self, contents, hostile):
        """Braces and dollars are shown as they are."""
        text = Page(html(contents.everywhere(contents.failing(), hostile))).text
        assert "{{ 7*7 }}" in text and "$x^2$" in text

    def test_control_characters_are_replaced(self, contents, hostile):
        """No control character, direction override or lone surrogate is left."""
        page = html(contents.everywhere(contents.failing(), hostile))
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\uffff]", page)
        assert "\ufffd" in page
        page.encode("utf-8")

    def test_huge_words_are_clipped(self, contents):
        """Of a hundred thousand letters without a blank at most 300 stand in one place."""
        content = contents.failing()
        content = replace(content, regressions=tuple(replace(each, text="W" * 100_000) for each in content.regressions))
        assert max(map(len, re.findall("W+", html(content)))) == 299

    def test_right_to_left_text_keeps_to_itself(self, contents):
        """Case texts find their own direction, and every ID is isolated."""
        page = html(contents.failing())
        assert '<p class="text" dir="auto">كيف' in page and '<p class="words" dir="auto">Helmets' in page
        assert "<code><bdi>q020</bdi></code>" in page


class TestSelfContained:
    def test_no_script_and_nothing_from_elsewhere(self, any_content):
        """No element that runs or loads, and every link stays in the page, or names the file beside it by its name."""
        page = Page(html(any_content))
        assert not {"script", "img", "link", "iframe", "object", "embed", "base", "form"} & {
            tag for tag, _ in page.elements
        }
        for tag, attributes in page.elements:
            assert not any(name.startswith("on") for name in attributes)
            assert "src" not in attributes and "style" not in attributes
            link = attributes.get("href") or "#"
            assert link.startswith("#") or link == "time.md", tag
            assert "url(" not in (attributes.get("fill") or "")
        assert not re.findall(r'https?://(?!www\.w3\.org/2000/svg")', html(any_content))

    def test_policy_admits_this_style_sheet_alone(self, any_content):
        """The policy's hash is that of the style sheet in the page."""
        page = html(any_content)
        style = re.search(r"<style>(.*?)</style>", page, re.S)
        assert style and page.count("<style") == 1
        pin = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
        policy = next(each["content"] for each in Page(page).all("meta") if "http-equiv" in each)
        assert policy == f"default-src 'none'; style-src 'sha256-{pin}'; base-uri 'none'; form-action 'none'"


class TestAccessible:
    def test_headings_are_in_order(self, any_content):
        """One h1, and no level is skipped."""
        levels = [int(tag[1]) for tag, _ in Page(html(any_content)).elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))

    def test_tables_and_figures_say_what_they_are(self, any_content):
        """Every table has a caption and scoped heads, every figure a title and a description; IDs are unique."""
        page = Page(html(any_content))
        assert len(page.all("caption")) == len(page.all("table"))
        assert all(each.get("scope") in ("col", "row") for each in page.all("th"))
        figures = [each for each in page.all("svg") if each.get("role") == "img"]
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        named = {name for _, attributes in page.elements for name in (attributes.get("aria-labelledby") or "").split()}
        assert named <= set(ids)
        assert len(page.all("desc")) == len(figures)
        assert page.all("html") == [{"lang": "en"}]


class TestSameBytes:
    def test_twice_and_in_a_fresh_process(self, contents):
        """Neither an earlier call nor the process's hash seed changes a byte."""
        script = (
            f"import runpy, sys; made = runpy.run_path({str(HERE / 'conftest.py')!r})\n"
            "from harness.report.page import html; sys.stdout.buffer.write(html(made['failing']()).encode())"
        )
        here = html(contents.failing()).encode()
        assert html(contents.failing()).encode() == here
        fresh = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, check=True, cwd=HERE.parents[1],
            env={"PYTHONHASHSEED": "4711", "PYTHONPATH": str(HERE.parents[1]), "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"},
        )  # fmt: skip
        assert fresh.stdout == here


class TestOddRuns:
    def test_without_a_parent(self, contents):
        """Nothing is compared, and the page says so."""
        text = Page(html(contents.alone())).text
        assert "without a parent" in text and "There is no parent to compare with." in text
        assert "worst_regressions" not in text

    def test_missing_figures_are_dashes(self, contents):
        """None is shown as a dash that explains itself, never as a word of Python's."""
        page = html(contents.bare())
        assert '<abbr title="not applicable">–</abbr>' in page
        assert "None" not in page and "nan" not in Page(page).text

    def test_settings_show_their_blanks(self, contents):
        """A prompt that ends in a blank is told from one that doesn't."""
        assert "query:␣" in Page(html(contents.failing())).text
