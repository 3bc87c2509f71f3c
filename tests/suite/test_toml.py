"""Strict reading of the files that people write."""

from pathlib import Path

import pytest

from harness.errors import Misconfigured, NotFound
from harness.file.toml import place, read_toml
from harness.suite.definition import SuiteDefinition

GOOD = """schema = "harness.suite.v1"
name = "help"
task = "retrieval"
source = { format = "beir", path = "." }

[metrics]
primary = "nDCG@10"
report = [
  "nDCG@10",  # a bracket [ in a comment
  "RR@10",
]

[[slices]]
name = "typo"
where = '''
kind = 'typo'
[[slices]]
'''

[[slices]]
name = "long"
where = "words > 9"

[[rules]]
id = "headline"
kind = "no-worse"
metric = "nDCG@10"
margin = 0.02
"""


def refusal(tmp_path: Path, text: str | bytes) -> Misconfigured:
    path = tmp_path / "suite.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Misconfigured) as caught:
        read_toml(path, SuiteDefinition)
    return caught.value


class TestUnknownKey:
    def test_it_is_named_with_file_line_and_the_right_spelling(self, tmp_path: Path) -> None:
        """A misspelt key of a rule is found on its own line, though other rules and slices stand before."""
        error = refusal(tmp_path, GOOD.replace("margin", "margn"))
        line = GOOD[: GOOD.index("margin")].count("\n") + 1
        assert error.subject.endswith(f"suite.toml line {line}")
        assert "`rules[1].margn`" in error.found
        assert "`margin`" in error.mend
        assert error.exit_code == 2

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [("[metrics]", "[metricss]"), ("report", "reprt"), ("[[slices]]", "[[slicess]]"), ("metric =", "metrc =")],
    )
    def test_the_unknown_spelling_comes_before_the_missing_key(self, tmp_path: Path, right: str, wrong: str) -> None:
        """A misspelt required key is reported as misspelt, not as missing."""
        error = refusal(tmp_path, GOOD.replace(right, wrong))
        assert "unknown key" in error.found
        assert right.strip("[] =") in error.mend

    def test_in_an_inline_table_it_has_the_tables_line(self, tmp_path: Path) -> None:
        """A key that has no line of its own is reported at the nearest one that has."""
        error = refusal(tmp_path, GOOD.replace("path =", "pth ="))
        assert error.subject.endswith("line 4")
        assert "`path`" in error.mend

    def test_a_word_like_no_other_is_to_be_taken_out(self, tmp_path: Path) -> None:
        """Without a near spelling the known keys are listed."""
        error = refusal(tmp_path, GOOD.replace("margin", "zzz = 1\nmargin"))
        assert "Take the key out" in error.mend
        assert "`margin`" in error.expected


class TestWrongValue:
    def test_a_wrong_type_shows_value_and_type(self, tmp_path: Path) -> None:
        """Text where a number belongs is refused, not converted."""
        error = refusal(tmp_path, GOOD.replace("0.02", '"0.02"'))
        assert "'0.02'" in error.found
        assert "number" in error.expected

    def test_true_is_no_number(self, tmp_path: Path) -> None:
        """A boolean is not taken as 1."""
        assert "true" in refusal(tmp_path, GOOD.replace("0.02", "true")).found.lower()

    def test_a_misspelt_word_gets_the_right_one(self, tmp_path: Path) -> None:
        """A value from a fixed set is answered with the nearest."""
        assert "'no-worse'" in refusal(tmp_path, GOOD.replace("no-worse", "no-wors")).mend

    def test_both_branches_of_a_choice_are_expected(self, tmp_path: Path) -> None:
        """`role` may be text or a table, and both are said."""
        error = refusal(tmp_path, GOOD.replace("[metrics]", "[cases]\nrole = 3\n[metrics]"))
        assert "`cases.role`" in error.found
        assert " or " in error.expected

    def test_infinity_is_no_margin(self, tmp_path: Path) -> None:
        """TOML's inf and nan are refused where a number is meant."""
        for value in ("inf", "nan"):
            assert "margin" in refusal(tmp_path, GOOD.replace("0.02", value)).found

    def test_keys_that_contradict_each_other_are_explained(self, tmp_path: Path) -> None:
        """A no-worse rule with `value` says which key it lacks, at the rule's own line."""
        error = refusal(tmp_path, GOOD.replace("margin", "value"))
        assert "needs `margin`" in error.found
        assert error.subject.endswith(f"line {GOOD[: GOOD.index('[[rules]]')].count(chr(10)) + 1}")

    def test_a_missing_key_is_named(self, tmp_path: Path) -> None:
        """What must be there is asked for by name."""
        error = refusal(tmp_path, GOOD.replace('primary = "nDCG@10"\n', ""))
        assert "no `metrics.primary`" in error.found
        assert error.subject.endswith("line 6")

    def test_others_are_counted(self, tmp_path: Path) -> None:
        """One refusal at a time, and how many more there are."""
        assert "1 more" in refusal(tmp_path, GOOD.replace("margin", "a = 1\nb = 2\nmargin")).found


class TestNotToml:
    def test_a_key_given_twice_has_its_line(self, tmp_path: Path) -> None:
        """The second of two equal keys is a syntax error with its line."""
        assert refusal(tmp_path, GOOD.replace("margin", "margin = 1\nmargin")).subject.endswith("line 29")

    @pytest.mark.parametrize("text", [b"a = [", b"\xff = 1", b"[" * 5000, b"x", b'a = "\0"'])
    def test_no_bytes_break_it(self, tmp_path: Path, text: bytes) -> None:
        """Whatever the file holds, the answer is a refusal with a line."""
        assert "line" in refusal(tmp_path, text).subject

    def test_a_number_of_too_many_digits(self, tmp_path: Path) -> None:
        """Python would not even read it."""
        assert "digits" in refusal(tmp_path, GOOD.replace("0.02", "9" * 5000)).found

    def test_a_file_that_is_not_there_is_not_found(self, tmp_path: Path) -> None:
        """Missing is another kind than misconfigured."""
        with pytest.raises(NotFound):
            read_toml(tmp_path / "suite.toml", SuiteDefinition)

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        """A folder by that name is refused without a traceback."""
        with pytest.raises(Misconfigured):
            read_toml(tmp_path, SuiteDefinition)

    def test_windows_line_ends_and_a_byte_order_mark_change_nothing(self, tmp_path: Path) -> None:
        """An editor's habits are no part of what is said, and lines are still counted right."""
        path = tmp_path / "suite.toml"
        path.write_bytes(GOOD.encode())
        plain = read_toml(path, SuiteDefinition)
        path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
        assert read_toml(path, SuiteDefinition) == plain
        assert place(path, "rules", 0, "margin").endswith("line 28")


class TestPlace:
    @pytest.mark.parametrize(
        ("keys", "line"),
        [
            (("name",), 2),
            (("source", "format"), 4),
            (("metrics", "primary"), 7),
            (("metrics", "report"), 8),
            (("slices", 0, "where"), 15),
            (("slices", 1, "name"), 21),
            (("rules", 0, "slice"), 24),
            (("guards",), 1),
        ],
    )
    def test_a_key_has_the_line_it_is_written_on(self, tmp_path: Path, keys: tuple[str | int, ...], line: int) -> None:
        """Lists over several lines, texts over several lines and repeated tables don't confuse the count."""
        path = tmp_path / "suite.toml"
        path.write_text(GOOD)
        assert place(path, *keys) == f"{path} line {line}"
