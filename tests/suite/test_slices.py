"""What `[[slices]]` comes to: names that rules can say, and the cases of each, fixed by ID."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.errors import HarnessError, Misconfigured, Tampered
from harness.output.parent import ParentCase
from harness.suite.case import Case
from harness.suite.freeze import check_members, freeze, open_frozen, report
from harness.suite.load import load
from harness.suite.lock import Lock, write_lock
from harness.suite.mechanism import of_parent

from .conftest import METRICS, RULE, Write

Members = Callable[[Sequence[Case], str], list[str]]
ROWS = [
    {"_id": "q1", "text": "refund", "kind": "plain", "lang": "en", "n": 1},
    {"_id": "q2", "text": "where is my parcel now please", "kind": "typo", "lang": "en", "n": 2},
    {"_id": "q3", "text": "wo ist mein paket", "kind": "plain", "lang": "de", "n": 2},
    {"_id": "q4", "text": "geld", "kind": "typo", "n": 1},
    {"_id": "q5", "text": "old", "kind": "rare", "lang": "fr", "n": 1, "split": "development"},
]


def suite(write: Write, slices: str, rules: str = RULE) -> Path:
    rows = [{"split": "promotion", **row} for row in ROWS]
    qrels = "query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\td1\t1\n" for i in range(1, 6)) + "q2\td2\t1\n"
    return write(queries=rows, qrels=qrels, cases='[cases]\nrole = "split"\n', rest=METRICS + rules + slices)


def entry(*lines: str) -> str:
    return "[[slices]]\n" + "".join(f"{line}\n" for line in lines)


def frozen(folder: Path, members: Members) -> Lock:
    return freeze(load(folder), members)


def refused(folder: Path, members: Members) -> HarnessError:
    with pytest.raises(Misconfigured) as caught:
        frozen(folder, members)
    return caught.value


class TestLists:
    def test_cases_and_the_lines_of_a_file(self, write: Write, members: Members) -> None:
        """In suite order, however they are listed; a file counts from the suite's folder."""
        folder = suite(
            write, entry('name = "a"', 'cases = ["q3", "q1"]') + entry('name = "b"', 'file = "hard.txt"')
        )  # fmt: skip
        (folder / "hard.txt").write_text("q2\n\nq1 \n")
        assert frozen(folder, members).slices == {"a": ("q1", "q3"), "b": ("q1", "q2")}

    @pytest.mark.parametrize(
        ("line", "told"),
        [('cases = ["q1", "q11"]', "'q11', which no case has"), ('cases = ["q1", "q1"]', "'q1' twice")],
    )
    def test_ids_are_those_of_cases_each_once(self, write: Write, members: Members, line: str, told: str) -> None:
        """With the line of the list, and the nearest ID."""
        error = refused(suite(write, entry('name = "a"', line)), members)
        assert told in error.found and error.subject.endswith("suite.toml line 17")
        assert "'q1'" in error.mend or "twice" in told

    def test_a_files_fault_is_told_with_its_line(self, write: Write, members: Members) -> None:
        """And a file that isn't there by its name."""
        folder = suite(write, entry('name = "a"', 'file = "hard.txt"'))
        with pytest.raises(HarnessError, match=r"hard\.txt"):
            frozen(folder, members)
        (folder / "hard.txt").write_text("q1\nq9\n")
        assert refused(folder, members).subject.endswith("hard.txt line 2")
        absolute = suite(write, entry('name = "a"', f'file = "{folder / "hard.txt"}"'))
        assert "relative" in refused(absolute, members).mend

    def test_a_file_that_changed_is_seen(self, write: Write, members: Members) -> None:
        """Members are frozen by ID, and held against what the file says now."""
        folder = suite(write, entry('name = "a"', 'file = "hard.txt"'))
        (folder / "hard.txt").write_text("q1\n")
        write_lock(frozen(folder, members), folder)
        check_members(open_frozen(folder), members)
        (folder / "hard.txt").write_text("q1\nq2\n")
        with pytest.raises(Tampered, match="'q2'"):
            check_members(open_frozen(folder), members)


class TestByValue:
    def test_one_slice_a_value_of_promotion_cases(self, write: Write, members: Members) -> None:
        """Named by attribute and value; what only other roles have is none, and who lacks it is told."""
        folder = suite(write, entry('by = "lang"') + entry('by = "n"'))
        lock = frozen(folder, members)
        assert [each.name for each in lock.declared] == ["lang=de", "lang=en", "n=1", "n=2"]
        assert lock.slices["lang=en"] == ("q1", "q2") and lock.slices["n=1"] == ("q1", "q4", "q5")
        warnings = report(load(folder), lock).warnings
        assert any("1 promotion cases lack lang" in warning and "'q4'" in warning for warning in warnings)

    def test_a_crossing_has_one_name_in_either_order(self, write: Write, members: Members) -> None:
        """Attributes by name; only pairs that there are."""
        one = frozen(suite(write, entry('by = ["lang", "kind"]')), members)
        other = frozen(suite(write, entry('by = ["kind", "lang"]')), members)
        assert one.slices == other.slices
        assert set(one.slices) == {"kind=plain & lang=en", "kind=typo & lang=en", "kind=plain & lang=de"}

    def test_a_name_that_hides_something_is_quoted(self, write: Write, members: Members) -> None:
        """Else two crossings could have one name."""
        kinds = ["a & b=c", "x ", "", "=", "k"]
        rows = [{**row, "split": "promotion", "kind": kind} for row, kind in zip(ROWS, kinds, strict=True)]
        folder = suite(write, entry('by = "kind"'))
        (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert set(frozen(folder, members).slices) == {'kind="a & b=c"', 'kind="x "', 'kind=""', 'kind="="', "kind=k"}

    def test_an_attribute_that_no_case_has_is_refused(self, write: Write, members: Members) -> None:
        """With its line and the nearest."""
        error = refused(suite(write, entry('by = ["kind", "langs"]')), members)
        assert error.subject.endswith("suite.toml line 16") and "'lang'" in error.mend

    def test_a_name_for_each_case_is_no_kind(self, write: Write, members: Members) -> None:
        """Too many values are refused."""
        folder = suite(write, entry('by = "n"'))
        rows = [{"_id": f"q{i}", "text": f"t{i}", "n": i, "split": "promotion"} for i in range(201)]
        (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "qrels" / "test.tsv").write_text("".join(f"q{i}\td1\t1\n" for i in range(201)))
        assert "201 slices" in refused(folder, members).found


class TestRules:
    def test_a_rule_may_name_what_the_data_hold(self, write: Write, members: Members) -> None:
        """And one that names what they don't is an error with the nearest name."""
        rule = RULE + 'slice = "lang=de"\n'
        frozen(suite(write, entry('by = "lang"'), rule), members)
        error = refused(suite(write, entry('by = "lang"'), rule.replace("=de", "=dee")), members)
        assert error.subject.endswith("suite.toml line 15") and "'lang=de'" in error.mend

    def test_a_crossing_in_the_other_order_is_told_its_name(self, write: Write, members: Members) -> None:
        """The key is one."""
        rule = RULE + 'slice = "lang=en & kind=plain"\n'
        error = refused(suite(write, entry('by = ["lang", "kind"]'), rule), members)
        assert "'kind=plain & lang=en'" in error.mend

    def test_guards_and_critical_count_every_slice(self, write: Write, members: Members) -> None:
        """`every` is each value, and each critical one needs its own rule."""
        guards = '[guards]\nmetrics = ["RR@10"]\n'
        assert frozen(suite(write, entry('by = "kind"') + guards), members).guarded == ("kind=plain", "kind=typo")
        error = refused(suite(write, entry('by = "kind"', "critical = true"), RULE + 'slice = "kind=typo"\n'), members)
        assert "'kind=plain' has no rule" in error.found
        listed = guards + 'slices = ["kind=typo", "kind=typ"]\n'
        assert "'kind=typo'" in refused(suite(write, entry('by = "kind"') + listed), members).mend

    def test_names_stand_once(self, write: Write, members: Members) -> None:
        """Also where one entry's value is what another is called."""
        twice = entry('by = ["kind", "lang"]') + entry('by = ["lang", "kind"]')
        assert "another entry declares" in refused(suite(write, twice), members).found


class TestSyntax:
    @pytest.mark.parametrize(
        ("lines", "told"),
        [
            (['name = "a"'], "there is none"),
            (['name = "a"', "where = \"kind = 'typo'\"", 'cases = ["q1"]'], "where and cases"),
            (['cases = ["q1"]'], "needs a `name`"),
            (['name = "a"', 'by = "kind"'], "take `name` out"),
            (['by = ["kind", "kind"]'], "twice"),
            (['mechanism = "lenght"'], "mechanism"),
            (['by = ["a", "b", "c"]'], "by"),
        ],
    )
    def test_an_entry_says_one_thing(self, write: Write, members: Members, lines: list[str], told: str) -> None:
        """Refused with its line."""
        error = refused(suite(write, entry(*lines)), members)
        assert told in error.found and "suite.toml line" in error.subject


class TestMechanisms:
    def test_length_language_and_support(self, write: Write, members: Members) -> None:
        """Words of the text, the attribute that says the language, relevant documents."""
        lock = frozen(
            suite(write, "".join(entry(f'mechanism = "{m}"') for m in ("length", "language", "support"))), members
        )
        assert {name: ids for name, ids in lock.slices.items() if "q5" not in ids} == {
            "length=5-8": ("q2",), "language=de": ("q3",), "language=en": ("q1", "q2"), "support=2-4": ("q2",),
        }  # fmt: skip
        assert lock.slices["length=1-4"] == ("q1", "q3", "q4", "q5")
        assert [each.name for each in lock.declared][:2] == ["length=1-4", "length=5-8"]

    def test_without_an_attribute_the_script_is_told(self, write: Write, members: Members) -> None:
        """By most letters."""
        folder = suite(write, entry('mechanism = "language"'))
        rows = [
            {"_id": f"q{i}", "text": text, "split": "promotion"}
            for i, text in enumerate(["Hallo", "Привет x", "你好", "12"])
        ]
        (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "qrels" / "test.tsv").write_text("".join(f"q{i}\td1\t1\n" for i in range(4)))
        assert frozen(folder, members).slices == {
            "language=script-latin": ("q0",), "language=script-cyrillic": ("q1",), "language=script-cjk": ("q2",),
            "language=script-none": ("q3",),
        }  # fmt: skip

    def test_one_of_another_task_is_refused(self, write: Write, members: Members) -> None:
        """With its line."""
        error = refused(suite(write, entry('mechanism = "entity-type"')), members)
        assert "suite of entity" in error.expected and error.subject.endswith("suite.toml line 16")

    def test_entities_by_type_and_length(self, tmp_path: Path, members: Members) -> None:
        """A case stands in the slice of every type that it has, and of its longest entity."""
        rows = [
            {"id": "a", "tokens": ["Ann", "Lee", "in", "Rome"], "tags": ["B-PER", "I-PER", "O", "B-LOC"]},
            {"id": "b", "tokens": ["in", "Rome"], "tags": ["O", "B-LOC"]},
            {"id": "c", "tokens": ["no", "one"], "tags": ["O", "O"]},
        ]
        lock = self.of_task(tmp_path, "entity", "entity_f1", rows, members, "entity-type", "entity-length")
        assert lock.slices == {
            "entity-type=PER": ("a",), "entity-type=LOC": ("a", "b"), "entity-type=none": ("c",),
            "entity-length=2": ("a",), "entity-length=1": ("b",), "entity-length=0": ("c",),
        }  # fmt: skip

    def test_answers_by_their_place(self, tmp_path: Path, members: Members) -> None:
        """The quarter of the context in which the first gold answer begins."""
        context = "one two three four five six seven eight"
        rows = [
            {"id": "a", "question": "q", "context": context, "answers": [{"text": "one", "start": 0}]},
            {"id": "b", "question": "q", "context": context, "answers": [{"text": "eight", "start": 34}]},
            {"id": "c", "question": "q", "context": context, "answers": []},
        ]
        lock = self.of_task(tmp_path, "answer", "answer_f1", rows, members, "answer-position")
        assert lock.slices == {
            "answer-position=first-quarter": ("a",), "answer-position=last-quarter": ("b",),
            "answer-position=none": ("c",),
        }  # fmt: skip

    def of_task(
        self, folder: Path, task: str, metric: str, rows: list[dict[str, object]], members: Members, *mechanisms: str
    ) -> Lock:
        (folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        slices = "".join(entry(f'mechanism = "{each}"') for each in mechanisms)
        (folder / "suite.toml").write_text(
            f'schema = "harness.suite.v1"\nname = "x"\ntask = "{task}"\n'
            f'source = {{ format = "jsonl", path = "cases.jsonl" }}\n[metrics]\nprimary = "{metric}"\n'
            f'[[rules]]\nid = "r"\nkind = "at-least"\nmetric = "{metric}"\nvalue = 0.5\n{slices}'
        )
        return frozen(folder, members)


class TestOfTheParent:
    def test_only_their_names_are_frozen(self, write: Write, members: Members) -> None:
        """A rule can name them before any run; how many cases they have, freeze does not know."""
        rule = RULE + 'slice = "candidate-rank=2-3"\n'
        folder = suite(write, entry('mechanism = "candidate-rank"'), rule)
        lock = frozen(folder, members)
        assert lock.slices["candidate-rank=2-3"] == () and lock.declared[1].from_parent
        told = report(load(folder), lock)
        assert "candidate-rank=2-3" not in told.slices
        assert any("fixed by a run" in warning for warning in told.warnings)

    def test_the_lock_reads_back_in_the_same_order(self, write: Write, members: Members) -> None:
        """Its file sorts names; the order of suite.toml is kept beside them."""
        folder = suite(write, entry('mechanism = "padding"') + entry('by = "kind"'))
        lock = frozen(folder, members)
        write_lock(lock, folder)
        assert open_frozen(folder).lock.declared == lock.declared
        assert [each.name for each in lock.declared][:3] == ["padding=1-16", "padding=17-32", "padding=33-64"]

    def test_norms_fall_into_quarters_and_equal_ones_together(self) -> None:
        """Of 1 2 2 2 3 4 4 9 the edges are 2, 2.5 and 4: a quarter may be larger where norms are equal."""
        norms = dict(zip("abcdefgh", (1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 4.0, 9.0), strict=True))
        cases = {name: ParentCase(norm=norm) for name, norm in norms.items()} | {"none": ParentCase()}
        found = of_parent("embedding-norm", cases)
        assert found == {
            **dict.fromkeys("abcd", ("lowest-quarter",)), **dict.fromkeys("efg", ("third-quarter",)),
            "h": ("highest-quarter",), "none": ("unknown",),
        }  # fmt: skip

    def test_unit_vectors_are_alike_whatever_their_rounding(self) -> None:
        cases = {"a": ParentCase(norm=1.0), "b": ParentCase(norm=1.0000001), "none": ParentCase()}
        assert of_parent("embedding-norm", cases) == {"a": ("alike",), "b": ("alike",), "none": ("unknown",)}

    def test_what_the_parent_did_picks_the_bin(self) -> None:
        """By hand: tokens, cuts, ranks."""
        cases = {
            "a": ParentCase(tokens=16, cut=False, rank=1),
            "b": ParentCase(tokens=17, cut=True, rank=10),
            "c": ParentCase(tokens=600, cut=None, rank=None),
            "d": ParentCase(rank=51),
        }
        assert of_parent("padding", cases) == {
            "a": ("1-16",), "b": ("17-32",), "c": ("513+",), "d": ("unknown",),
        }  # fmt: skip
        assert of_parent("truncation", cases) == {
            "a": ("whole",), "b": ("cut",), "c": ("unknown",), "d": ("unknown",),
        }  # fmt: skip
        assert of_parent("embedding-norm", cases) == dict.fromkeys("abcd", ("unknown",))
        assert of_parent("candidate-rank", cases) == {"a": ("1",), "b": ("4-10",), "c": ("none",), "d": ("51+",)}
