"""The comment on a pull request."""

import re
from dataclasses import replace

from harness.output.change import TransitionCount
from harness.output.companion import Companion
from harness.report.markdown import markdown


class TestOrder:
    def test_decision_rules_slices_cases(self, contents):
        """The decision is the title; then what did not pass, the primary metric by slice, five cases at most."""
        said = markdown(contents.failing())
        assert said.startswith("# ✕ FAIL: `minilm-256` against `minilm-128`\n")
        places = [
            said.index(part) for part in ("2 of 22 rules failed", "## Rules", "## `nDCG@10` by slice", "## Cases")
        ]
        assert places == sorted(places)
        assert len(re.findall(r"^\| `q\d+`", said, re.M)) == 5

    def test_rules_that_hold_are_counted(self, contents):
        """Only open rules are written out."""
        said = markdown(contents.failing())
        assert "17 rules passed." in said and "late-answers-hold" not in said

    def test_declared_rules_stand_before_guards(self, contents):
        """A guard that failed comes after a declared rule that is merely waived."""
        said = markdown(contents.failing()).partition("## Rules")[2]
        assert said.index("`german-floor`") < said.index("`guard:typing-mistakes:RR@10`")


class TestBesideTheMetrics:
    def test_both_sides_in_one_table(self, contents):
        """`parent → candidate` where they differ, once where they don't; single rows stand upright."""
        said = markdown(contents.labelled())
        assert "| `REFUND` | 1,200 | 0.5000 → 0.5100 |" in said
        assert "| `login` | 1,204 | 0.5000 → 0.5100 |" in said
        assert "| `high` | 5954.2 | 5953.2 |" in said

    def test_what_is_said_of_a_table_stands_with_it(self, contents):
        """Once where both sides say the same, by side where they don't, and nothing where nothing is said."""
        content = contents.labelled()

        def said(*notes: str) -> str:
            tables = [(Companion("t", "Tags", note, ("n",), ((1,),)),) for note in notes]
            return markdown(replace(content, companions=dict(zip(("candidate", "parent"), tables, strict=False))))

        assert "**Tags**\n\n3 in 2 outputs.\n\n|" in said("3 in 2 outputs.", "3 in 2 outputs.")
        assert "Candidate: 3 in 2 outputs.\n\nParent: none.\n\n|" in said("3 in 2 outputs.", "none.")
        assert "**Tags**\n\n|" in said("", "")

    def test_what_is_too_large_is_named(self, contents):
        """Twelve rows and twelve columns at most."""
        content = contents.labelled()
        long = Companion("labels", "Labels", "", ("label", "n"), tuple((f"l{at}", at) for at in range(15)))
        wide = Companion(
            "wide", "Wide", "", tuple(f"c{at}" for at in range(13)), (("x", *range(12)), ("y", *range(12)))
        )
        said = markdown(replace(content, companions={"candidate": (long, wide)}))
        assert "`l11`" in said and "`l12`" not in said and "And 3 more rows." in said
        assert "13 columns are more than fit here; the page has them." in said


class TestTransitions:
    def test_as_the_page_has_them(self, contents):
        """Each slice with its five counts and p, under the criterion; nothing where there are none."""
        content = contents.failing()
        counts = (
            TransitionCount("all", 1200, 40, 30, 7, 5, 22, 9, 0.029),
            TransitionCount("typos", 3, 9, 0, 0, 0, 9, 0, 1e-9),
        )  # fmt: skip
        said = markdown(replace(content, transitions=counts))
        assert "a side is right where `RR@10 = 1` is 1" in said
        assert "| `all` | 1,200 | 40 | 30 | 7 | 5 | 0.0290 |" in said
        assert "| `typos` | 3 | 9 | 0 | 0 | 0 | &lt;0.0001 |" in said
        assert said.index("by slice") < said.index("## Who was right") < said.index("## Cases")
        assert "Who was right" not in markdown(replace(content, transitions=()))


class TestCases:
    def test_without_a_corpus(self, contents):
        """What holds beside what either predicted, and by which metric the case got worse."""
        said = markdown(contents.labelled())
        assert "By `accuracy`." in said
        assert said.count("| `REFUND` | `REFUND` | `login` |") == 5
        assert "put first" not in said

    def test_without_values_by_case(self, contents):
        said = markdown(contents.unfollowed())
        assert "No metric of this run has values by case" in said and "got worse\n" not in said

    def test_a_loss_says_so(self, contents):
        content = contents.failing()
        said = markdown(replace(content, answer=replace(content.answer, losses=(content.primary,))))
        assert "## `nDCG@10` by slice (lower is better)" in said and "By `nDCG@10` (lower is better)." in said


class TestHostileText:
    def test_keeps_to_its_cell(self, contents, hostile):
        """Every row of a table has as many cells as with harmless texts, and no line is added."""
        shape = [
            [
                re.sub(r"[^|\n]", "", line)
                for line in markdown(contents.everywhere(contents.failing(), said)).partition("## Next")[0].split("\n")
            ]
            for said in (hostile, "harmless")
        ]
        assert shape[0] == shape[1]

    def test_is_no_markdown_and_no_html(self, contents, hostile):
        """Outside the commands no mark of a user's is left that could become an element, a link or a mention."""
        said = markdown(contents.everywhere(contents.failing(), hostile)).partition("## Next")[0]
        said = re.sub(r"</?code>", "", said)
        assert "<" not in said and "`" not in re.sub("`[0-9a-f]{12,64}`", "", said)
        assert "**bold**" not in said and "](" not in said and "://" not in said and "@someone" not in said

    def test_commands_stay_in_their_block(self, contents):
        """A name of backticks and line ends neither closes the block nor starts a command of its own."""
        said = markdown(contents.everywhere(contents.failing(), "x\n```\n$(rm)`"))
        block = said.partition("```sh\n")[2]
        assert all(line.startswith("harness ") for line in block.split("\n```\n")[0].split("\n"))
        assert "--rule 'x ``` $(rm)`2'" in block


class TestOddRuns:
    def test_all_can_be_written(self, any_content):
        """Whatever is missing; and no missing number is a word of Python's."""
        said = markdown(any_content)
        assert said.endswith("```\n") and "None" not in said

    def test_same_text_twice(self, contents):
        """The text depends on the content alone."""
        assert markdown(contents.failing()) == markdown(contents.failing())
