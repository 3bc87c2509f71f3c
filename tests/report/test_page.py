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
        """No element that runs or loads, and every link stays in the page."""
        page = Page(html(any_content))
        assert not {"script", "img", "link", "iframe", "object", "embed", "base", "form"} & {
            tag for tag, _ in page.elements
        }
        for tag, attributes in page.elements:
            assert not any(name.startswith("on") for name in attributes)
            assert "src" not in attributes and "style" not in attributes
            assert (attributes.get("href") or "#").startswith("#"), tag
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
