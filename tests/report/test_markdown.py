"""The comment on a pull request."""

import re

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
