"""Outputs in the files of the shared tasks: whose they are is checked, never assumed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import Misconfigured
from harness.output.task import Span
from harness.run.replay_conll import read_conll_tags
from harness.run.replay_squad import read_squad_predictions
from harness.suite.definition import Source
from harness.suite.formats import conll, squad
from harness.suite.formats.conll import ColumnFile

CASES = {"s:1": ("a", "b"), "s:2": ("c",), "s:3": ("d",)}


@pytest.fixture
def columns(tmp_path: Path) -> Callable[[str], ColumnFile]:
    """A file of token, gold and tag."""

    def write(text: str) -> ColumnFile:
        (tmp_path / "out.tsv").write_text(text, encoding="utf-8")
        return ColumnFile(tmp_path / "out.tsv", 1, -1)

    return write


class TestTags:
    def test_sentences_are_the_cases_in_their_order(self, columns: Callable[[str], ColumnFile]) -> None:
        """What a file lacks at its end has no entry."""
        tagged = read_conll_tags(columns("a O B-X\nb O I-X\n\nc O O\n"), CASES)
        assert {case: each.tags for case, each in tagged.items()} == {"s:1": ("B-X", "I-X"), "s:2": ("O",)}
        assert tagged["s:2"].place.line == 4

    @pytest.mark.parametrize(
        ("text", "line", "said"),
        [
            ("a O\nb O\n\nd O\n", 4, "token 1 is 'd', and 'c' in case 's:2'"),
            ("a O\nx O\n", 1, "token 2 is 'x'"),
            ("a O\n\nb O\n", 3, "token 1 is 'b', and 'c' in case 's:2'"),
            ("a O\nb O\nc O\n", 1, "3 tokens, and 2"),
            ("a O\nb O\n\nc O\n\nd O\n\ne O\n", 8, "a sentence 4, and 3 cases"),
        ],
    )
    def test_tokens_must_bear_it_out(
        self, columns: Callable[[str], ColumnFile], text: str, line: int, said: str
    ) -> None:
        """A sentence left out, a token changed or split, and one too many are refused with their line."""
        with pytest.raises(Misconfigured) as caught:
            read_conll_tags(columns(text), CASES)
        assert caught.value.subject.endswith(f"out.tsv line {line}")
        assert said in caught.value.found

    def test_a_sentence_may_end_early_and_a_row_lack_its_tag(self, tmp_path: Path) -> None:
        """Where it is plain that it is the tag: an empty cell between tabs, or a token alone that should have one."""
        path = tmp_path / "out.tsv"
        for text, tab in (("a\n\nc\t\n\nd\tO\n", True), ("a O\n\nc\n\nd O\n", False)):
            path.write_text("z\tO\n\n" + text if tab else "z O\n\n" + text, encoding="utf-8")
            tagged = read_conll_tags(ColumnFile(path, 1, -1, tab=tab, gaps=True), {"s:0": ("z",), **CASES})
            assert {case: each.tags for case, each in tagged.items()} == {
                "s:0": ("O",), "s:1": ("",) if tab else ("O",), "s:2": ("",), "s:3": ("O",)
            }  # fmt: skip
        path.write_text("a N O\nb O\n", encoding="utf-8")
        with pytest.raises(Misconfigured, match="2 columns"):
            read_conll_tags(ColumnFile(path, 1, -1, gaps=True), CASES)

    def test_wnut17(self, shared_data: Callable[[str], Path]) -> None:
        """A system's tags, of which 891 entities begin, as conlleval counts with 13 that have no beginning."""
        path = shared_data("wnut17") / "mic-cis.gold_pred.tsv"
        source = Source.model_validate({"format": "conll", "columns": {"tokens": 1, "tags": 2}})
        rows = conll.read(conll.locate(path, source, ()), source, "entity").rows
        tagged = read_conll_tags(ColumnFile(path, 1, 3), {row.id: tuple(row.inputs["tokens"]) for row in rows})
        assert list(tagged) == [row.id for row in rows]
        assert 891 - 13 <= sum(tag.startswith("B-") for each in tagged.values() for tag in each.tags) <= 891


class TestAnswers:
    def test_an_empty_text_is_no_answer(self, tmp_path: Path) -> None:
        """As the script of SQuAD 2.0 reads it; null too."""
        path = tmp_path / "p.json"
        path.write_text('{"q1": "Warsaw", "q2": "", "q3": null, "q4": " "}', encoding="utf-8")
        answers = read_squad_predictions(path)
        assert answers == {"q1": Span("Warsaw"), "q2": Span(None), "q3": Span(None), "q4": Span(" ")}

    def test_null_odds_are_a_difference(self, tmp_path: Path) -> None:
        """Null score less score, as the file has it."""
        (tmp_path / "p.json").write_text('{"q1": "Warsaw", "q2": ""}', encoding="utf-8")
        (tmp_path / "n.json").write_text('{"q2": 3, "q1": -1.5}', encoding="utf-8")
        answers = read_squad_predictions(tmp_path / "p.json", tmp_path / "n.json")
        assert answers == {"q1": Span("Warsaw", score=0, null_score=-1.5), "q2": Span(None, score=0, null_score=3)}

    @pytest.mark.parametrize(
        ("answers", "odds", "said"),
        [
            ([], None, "no JSON object"),
            ({"q1": ["Warsaw"]}, None, "the answer of 'q1'"),
            ({"q1": 1867}, None, "the answer of 'q1'"),
            ({"q1": "a", "q2": "b"}, {"q1": 1}, "1 answered questions lacking and 0 others: 'q2'"),
            ({"q1": "a"}, {"q1": 1, "q2": 2}, "0 answered questions lacking and 1 others: 'q2'"),
            ({"q1": "a"}, {"q1": "1"}, "null odds of 'q1'"),
            ({"q1": "a"}, {"q1": True}, "null odds of 'q1'"),
            ({"q1": "a"}, {"q1": 10**400}, "null odds of 'q1'"),
            ({"q1": "a"}, [], "no JSON object"),
        ],
    )
    def test_anything_else_is_refused(self, tmp_path: Path, answers: object, odds: object, said: str) -> None:
        """With the file that is wrong."""
        (tmp_path / "p.json").write_text(json.dumps(answers), encoding="utf-8")
        (tmp_path / "n.json").write_text(json.dumps(odds), encoding="utf-8")
        with pytest.raises(Misconfigured) as caught:
            read_squad_predictions(tmp_path / "p.json", None if odds is None else tmp_path / "n.json")
        assert caught.value.subject.split(" line")[0].endswith("p.json" if odds is None else "n.json")
        assert said in caught.value.found

    def test_xquad(self, shared_data: Callable[[str], Path]) -> None:
        """The predictions of a system, one for each question."""
        source = Source(format="squad")
        rows = squad.read(squad.locate(shared_data("xquad_en") / "xquad.en.json", source, ()), source, "answer").rows
        answers = read_squad_predictions(shared_data("xquad_en") / "qa_xquad_en_predictions.json")
        assert answers.keys() == {row.id for row in rows}
        assert answers["56beb4343aeaaa14008c925b"] == Span("308")
