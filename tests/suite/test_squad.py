"""Questions about paragraphs: which answers they have, where these stand, and what is refused at which line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Misconfigured, NotFound
from harness.suite.case import Gold, GoldAnswer
from harness.suite.definition import Source
from harness.suite.formats.example import CaseTask, ExampleRow
from harness.suite.formats.squad import locate, read

CONTEXT = "Marie was born in Warsaw in 1867."
WARSAW = {"text": "Warsaw", "answer_start": 18}

Write = Callable[..., Path]


def cases(path: Path, task: CaseTask = "answer") -> tuple[ExampleRow, ...]:
    source = Source(format="squad")
    return read(locate(path, source, ()), source, task).rows


def refused(path: Path, task: CaseTask = "answer") -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        cases(path, task)
    return caught.value


def question(**keys: Any) -> dict[str, Any]:
    return {"id": "q1", "question": "Where?", "answers": [WARSAW], **keys}


@pytest.fixture
def squad(tmp_path: Path) -> Write:
    """A file with these questions about one paragraph, of an article with a title."""

    def write(*questions: Any, indent: int | None = 1, **article: Any) -> Path:
        paragraphs = [{"context": CONTEXT, "qas": list(questions)}]
        data = {"version": "2.0", "data": [{"title": "Marie", "paragraphs": paragraphs, **article}]}
        (tmp_path / "dev.json").write_text(json.dumps(data, indent=indent), encoding="utf-8")
        return tmp_path / "dev.json"

    return write


class TestQuestions:
    def test_what_a_case_is(self, squad: Write) -> None:
        """Question and context are read, title, paragraph and further keys are attributes."""
        (row,) = cases(squad(question(kind="place")))
        assert (row.id, row.inputs) == ("q1", {"question": "Where?", "context": CONTEXT})
        assert row.gold == Gold(answers=(GoldAnswer("Warsaw", 18),))
        assert row.further == {"title": "Marie", "paragraph": "dev.json:1", "kind": "place"}

    def test_paragraphs_are_counted_through_the_file(self, squad: Write) -> None:
        """Over articles; XQuAD has no titles."""
        path = squad(question())
        data = json.loads(path.read_text(encoding="utf-8"))
        del data["data"][0]["title"]
        data["data"].append(
            {"paragraphs": [{"context": "", "qas": []}, {"context": CONTEXT, "qas": [question(id="q2")]}]}
        )
        path.write_text(json.dumps(data), encoding="utf-8")
        assert [row.further for row in cases(path)] == [{"paragraph": "dev.json:1"}, {"paragraph": "dev.json:3"}]

    def test_answers_stay_as_often_as_they_are_written(self, squad: Write) -> None:
        """Annotators who agree are no mistake."""
        (row,) = cases(squad(question(answers=[WARSAW, {"text": "Warsaw in 1867", "answer_start": 18}, WARSAW])))
        assert row.gold == Gold(
            answers=(GoldAnswer("Warsaw", 18), GoldAnswer("Warsaw in 1867", 18), GoldAnswer("Warsaw", 18))
        )

    def test_a_question_without_an_answer(self, squad: Write) -> None:
        """It says so itself; what is plausible is no answer."""
        plausible = {"is_impossible": True, "plausible_answers": [WARSAW]}
        first, second, third = cases(
            squad(question(answers=[], **plausible), {**question(id="q2"), "is_impossible": False},
                  {"id": "q3", "question": "?", "is_impossible": True})
        )  # fmt: skip
        assert first.gold == third.gold == Gold(answers=())
        assert first.further == {"title": "Marie", "paragraph": "dev.json:1"}
        assert second.gold == Gold(answers=(GoldAnswer("Warsaw", 18),))

    def test_without_the_key_nothing_is_said_of_gold(self, squad: Write) -> None:
        """As of a test set whose answers are withheld; null says that nobody knows them."""
        first, second = cases(squad({"id": "q1", "question": "Where?"}, question(id="q2", answers=None)))
        assert (first.gold, second.gold) == (None, Gold())

    def test_an_answer_without_its_place(self, squad: Write) -> None:
        """The place is None, not 0."""
        (row,) = cases(squad(question(answers=[{"text": "Poland"}])))
        assert row.gold == Gold(answers=(GoldAnswer("Poland"),))


class TestRefusals:
    @pytest.mark.parametrize(
        ("keys", "said"),
        [
            ({"answers": []}, "0 answers"),
            ({"is_impossible": True}, "1 answers"),
            ({"answers": [], "is_impossible": False}, "0 answers"),
            ({"is_impossible": "yes"}, "`is_impossible` is 'yes'"),
            ({"answers": [{"text": "Warsaw", "answer_start": 17}]}, "at character 17"),
            ({"answers": [{"text": "Warsaw", "answer_start": -1}]}, "at character -1"),
            ({"answers": [{"text": "Warsaw", "answer_start": "18"}]}, "an answer"),
            ({"answers": [{"answer_start": 18}]}, "an answer"),
            ({"answers": ["Warsaw"]}, "an answer 'Warsaw'"),
            ({"answers": {"text": ["Warsaw"]}}, "no list"),
            ({"question": None}, "`question`"),
            ({"id": 7}, "`id` is a number"),
            ({"id": " "}, "blank ID"),
            ({"id": "q0"}, "appears twice"),
        ],
    )
    def test_each_fault_has_the_line_of_its_question(self, squad: Write, keys: dict[str, Any], said: str) -> None:
        """Of the second question here, though another text looks like an ID; line 1 where it has none as text."""
        path = squad(question(id="q0", note='\n"id": "q1"'), question(**keys))
        error = refused(path)
        assert said in error.found
        written = path.read_text(encoding="utf-8").split("\n")
        ids = [number for number, line in enumerate(written, 1) if line.strip().startswith('"id"')]
        assert error.subject == f"{path} line {1 if keys.get('id') == 7 else ids[1]}"

    def test_characters_beyond_the_basic_plane_count_once(self, squad: Write) -> None:
        """Offsets are characters, neither bytes nor UTF-16 units."""
        path = squad()
        data = {"data": [{"paragraphs": [{"context": "é😀 Warsaw", "qas": [question()]}]}]}
        for start, stands in ((3, True), (4, False), (7, False)):
            data["data"][0]["paragraphs"][0]["qas"] = [question(answers=[{"text": "Warsaw", "answer_start": start}])]
            path.write_text(json.dumps(data), encoding="utf-8")
            if stands:
                assert len(cases(path)) == 1
            else:
                assert "Warsaw" in refused(path).found

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            ([], "no list `data`"),
            ({"data": {}}, "no list `data`"),
            ({"data": [1]}, "data[0] is no object"),
            ({"data": [{}]}, "no list `data[0].paragraphs`"),
            ({"data": [{"paragraphs": [{"qas": []}]}]}, "no `context` in data[0].paragraphs[0]"),
            ({"data": [{"paragraphs": [{"context": "c"}]}]}, "no list `data[0].paragraphs[0].qas`"),
        ],
    )
    def test_another_shape_is_refused_with_its_place(self, squad: Write, data: object, said: str) -> None:
        """What is lacking is named by its path in the file."""
        path = squad()
        path.write_text(json.dumps(data), encoding="utf-8")
        assert refused(path).found == said

    def test_broken_json_has_its_line(self, squad: Write) -> None:
        """Also a key that stands twice, and half a character."""
        path = squad(question())
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"qas": [', '"qas": [,'), encoding="utf-8")
        assert refused(path).subject.endswith("dev.json line 9")
        path.write_text(text.replace('"id": "q1"', '"id": "q1", "id": "q2"'), encoding="utf-8")
        assert "stands twice" in refused(path).found
        path.write_text(text.replace("Where?", r"\ud800"), encoding="utf-8")
        assert "surrogate" in refused(path).found
        with pytest.raises(NotFound):
            cases(path.with_name("other.json"))

    def test_other_tasks_are_refused(self, squad: Write) -> None:
        """A question about a paragraph is a case of `answer`."""
        assert "multiple-choice" in refused(squad(question()), "multiple-choice").found


class TestPublicFiles:
    def test_xquad(self, shared_data: Callable[[str], Path]) -> None:
        """1,190 questions about 240 paragraphs, every answer where it is said to stand."""
        rows = cases(shared_data("xquad_en") / "xquad.en.json")
        assert len(rows) == 1190
        assert len({row.further["paragraph"] for row in rows}) == 240
        for row in rows:
            assert row.gold is not None
            for answer in row.gold.answers or ():
                assert str(row.inputs["context"])[answer.start :].startswith(answer.text)
        expected = json.loads((shared_data("xquad_en") / "qa_xquad_en_expected.json").read_text(encoding="utf-8"))
        assert {row.id for row in rows} == expected["per_question"].keys()
