"""Live releases over cases without a corpus: which fit which task, and what becomes of every case."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.cases import draw
from harness.candidate.head import HeadModel, Sample
from harness.errors import Misconfigured
from harness.output.case import OutputStatus
from harness.output.task import Number, Scores, Span, Tags
from harness.release.open import Release, open_release
from harness.run.alike import run_alike
from harness.run.fit import require_fit
from harness.run.heads import run_heads, samples_of
from harness.suite.case import Case, Counts, Suite
from harness.suite.definition import SuiteDefinition

MODELS = Path(__file__).parents[2] / "fixtures" / "models"
INPUTS = ("text", "text_a", "text_b", "tokens", "question", "context", "choices")
EXTRA = {
    "multilabel": "[score]\nthreshold = 0.5\n",
    "regression": '[output.regression]\nunits = "stars"\nscale = 1.0\nshift = 3.0\n',
}
TASKS = {
    "classification": "classification", "multilabel": "multilabel", "regression": "regression", "entity": "entity",
    "answer": "answer", "choice": "multiple-choice",
}  # fmt: skip


def definition(task: str) -> SuiteDefinition:
    return SuiteDefinition.model_validate({
        "schema": "harness.suite.v1", "name": "small", "task": task, "source": {"format": "jsonl"},
        "metrics": {"primary": "RR@10"},
    })  # fmt: skip


def suite(task: str, cases: Sequence[dict[str, Any]]) -> Suite:
    """Cases as a suite of JSON Lines has them; of gold nothing."""
    made = (
        Case(f"c{at}", "", "promotion", f"c{at}", True, {}, {
            key: tuple(value) if isinstance(value, list) else value for key, value in case.items() if key in INPUTS
        })
        for at, case in enumerate(cases)
    )  # fmt: skip
    return Suite(definition(task), Path(), tuple(made), (), (), {}, Counts(0, 0, 0, 0, 0, 0), ())


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Release]:
    """A release of one of the committed models."""

    def make(model: str, extra: str = "", name: str = "one") -> Release:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        kind = "bi" if model == "causal" else model if model in ("bi", "cross", "late") else "head"
        source = json.dumps(f"path:{MODELS / model}")
        (folder / "release.toml").write_text(
            f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "{kind}"\n[model]\nsource = {source}\n'
            f"{EXTRA.get(model, '')}{extra}"
        )
        return open_release(folder)

    return make


class TestFit:
    def test_a_head_fits_the_task_of_its_kind_alone(self, opened) -> None:
        """Of six heads and seven tasks; values are also how much two texts are alike."""
        fitting = set(TASKS.items()) | {("regression", "similarity")}
        for model in TASKS:
            release = opened(model)
            for task in (*TASKS.values(), "similarity"):
                if (model, task) in fitting:
                    require_fit({"candidate": release}, definition(task))
                    continue
                with pytest.raises(Misconfigured, match=f"in a suite of {task}") as refused:
                    require_fit({"candidate": release}, definition(task))
                assert refused.value.mend.startswith("Judge it in a suite of ")

    @pytest.mark.parametrize("task", ["retrieval", "reranking"])
    def test_a_head_ranks_nothing(self, opened, task: str) -> None:
        with pytest.raises(Misconfigured, match="a head release of span, which ranks no documents") as refused:
            require_fit({"candidate": opened("answer")}, definition(task))
        assert "suite of answer" in refused.value.mend

    def test_encoders_of_texts_fit_pairs_alone(self, opened) -> None:
        """Two texts are alike by a bi-encoder or a cross-encoder, and labelled by neither."""
        for model, tasks in {"bi": ["similarity"], "cross": ["similarity", "regression"], "late": []}.items():
            for task in ("similarity", "regression", "classification", "answer"):
                if task in tasks:
                    require_fit({"candidate": opened(model)}, definition(task))
                else:
                    with pytest.raises(Misconfigured, match=f"a {model} release in a suite of {task}"):
                        require_fit({"candidate": opened(model)}, definition(task))

    def test_two_encoders_are_not_one_likeness(self, opened, tmp_path: Path) -> None:
        """Which text stands first would decide."""
        for name, model in {"one": "bi", "two": "causal"}.items():
            opened(model, name=name)
        (tmp_path / "pair").mkdir()
        (tmp_path / "pair" / "release.toml").write_text(
            'schema = "harness.release.v1"\nname = "pair"\ninteraction = "bi"\n'
            '[pair]\nquery = "one"\ndocument = "two"\n'
        )
        with pytest.raises(Misconfigured, match="an encoder for each side"):
            require_fit({"candidate": open_release(tmp_path / "pair")}, definition("similarity"))

    @pytest.mark.parametrize(
        ("model", "extra", "found"),
        [("entity", '[output]\ndecoder = "crf"\ntransitions = "crf.json"\n', "a CRF"),
         ("entity", "[score]\ntemperature = 2.0\n", "temperature"),
         ("classification", '[input.window]\nsize = 32\nstride = 16\naggregation = "best"\n', "windows by best")],
    )  # fmt: skip
    def test_what_cannot_be_run_is_named(self, opened, tmp_path: Path, model: str, extra: str, found: str) -> None:
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "crf.json").write_text("[[0.0]]")
        with pytest.raises(Misconfigured, match=found):
            require_fit({"candidate": opened(model, extra)}, definition(TASKS[model]))


class TestInputs:
    def test_a_case_is_read_as_its_task_has_it(self) -> None:
        """Of choices each by itself, behind the question; a context stands before both."""
        assert samples_of({"text": "a"}) == [Sample("a")]
        assert samples_of({"text_a": "a", "text_b": "b"}) == [Sample("a", "b")]
        assert samples_of({"tokens": ("a", "b")}) == [Sample(("a", "b"))]
        assert samples_of({"question": "q", "context": "c"}) == [Sample("q", "c")]
        assert samples_of({"question": "q", "choices": ("a", "b")}) == [Sample("q", "a"), Sample("q", "b")]
        assert samples_of({"question": "q", "context": "c", "choices": ("a",)}) == [Sample("c", "q a")]


class TestHeads:
    @pytest.mark.parametrize("model", TASKS)
    def test_they_know_what_they_learned(self, opened, model: str) -> None:
        """Far above chance on cases that they never saw."""
        cases = draw(model, 100, 7)
        executed = run_heads({"one": opened(model)}, suite(TASKS[model], cases))["one"]
        outputs = [each.output for each in executed.outputs]
        assert all(each.status is OutputStatus.OK and each.tokens_lost == 0 for each in executed.outputs)
        right = []
        for output, case in zip(outputs, cases, strict=True):
            match output:
                case Scores(values) if model == "multilabel":
                    given = {executed.labels[at] for at in np.flatnonzero(values >= 0)}
                    right += [(label in given) == (label in case["labels"]) for label in executed.labels]
                case Scores(values):
                    names = executed.labels or range(len(case["choices"]))
                    right.append(names[int(np.argmax(values))] == case["label"])
                case Number(value):
                    right.append(abs(value + 3 - case["value"]) < 0.5)
                case Tags(tags):
                    right += [tag == gold for tag, gold in zip(tags, case["tags"], strict=True)]
                case Span(text):
                    right.append(text in [each["text"] for each in case["answers"]] or not case["answers"])
        assert np.mean(right) > 0.7

    def test_two_sides_are_made_together_and_by_themselves_alike(self, opened) -> None:
        """A side's outputs do not depend on the other."""
        cases = suite("entity", draw("entity", 40, 3))
        sides = {"a": opened("entity", name="a"), "b": opened("entity", '[output]\npieces = "mean"\n', "b")}
        both = run_heads(sides, cases)
        assert both == {name: run_heads({name: release}, cases)[name] for name, release in sides.items()}

    def test_the_order_of_cases_changes_nothing(self, opened) -> None:
        cases = draw("choice", 40, 3)
        one = run_heads({"a": opened("choice")}, suite("multiple-choice", cases))["a"].outputs
        other = run_heads({"a": opened("choice")}, suite("multiple-choice", cases[::-1]))["a"].outputs
        assert [each.output.values.tolist() for each in one] == [each.output.values.tolist() for each in other[::-1]]

    def test_choices_tell_of_the_pair_that_lost_most(self, opened) -> None:
        """Sixteen tokens: the second choice is cut, and the first is not."""
        case = {"question": "where is it ?", "choices": ["Berlin", "it is kept in the office " * 4]}
        [found] = run_heads(
            {"a": opened("choice", "[input]\nmax_length = 16\n")}, suite("multiple-choice", [case])
        )["a"].outputs  # fmt: skip
        assert found.tokens_kept == 16 and found.tokens_lost > 0 and len(found.output.values) == 2

    def test_no_numbers_and_no_choices_fail_their_case_alone(self, opened, monkeypatch) -> None:
        whole = HeadModel.read_out

        def broken(self, features, excluded=0):
            lost = (features["attention_mask"].sum(dim=1) == 6)[:, None, None]
            return whole(self, {**features, "numbers": features["numbers"].masked_fill(lost, float("nan"))})

        monkeypatch.setattr(HeadModel, "read_out", broken)
        lengths = (2, 4, 7)
        cases = [{"tokens": ["the"] * length} for length in lengths]
        outputs = run_heads({"a": opened("entity")}, suite("entity", cases))["a"].outputs
        assert [each.status for each in outputs] == [OutputStatus.OK, OutputStatus.FAILED, OutputStatus.OK]
        assert outputs[1].non_finite and outputs[1].tokens_kept == 6
        case = {"question": "where ?", "choices": []}
        [empty] = run_heads({"a": opened("choice")}, suite("multiple-choice", [case]))["a"].outputs
        assert empty.status is OutputStatus.FAILED and not empty.non_finite


class TestWindows:
    TEXT = "where is my parcel ? " * 12
    LINES = '[input.window]\nsize = 16\nstride = 8\naggregation = "mean-of-logits"\n'

    def test_a_long_case_is_read_to_its_end(self, opened) -> None:
        """And what no token shows of it is told."""
        release = opened("classification", self.LINES)
        found = run_heads({"a": release}, suite("classification", [{"text": f"{self.TEXT}\x07"}, {"text": "hello"}]))[
            "a"
        ]
        assert [each.status for each in found.outputs] == [OutputStatus.OK] * 2
        assert found.outputs[0].tokens_lost == 0 and found.outputs[0].tokens_kept > 50
        hidden, several = found.remarks
        assert (hidden.kind, hidden.count) == ("uncovered-character", 1) and "'c0'" in hidden.detail
        assert (several.kind, several.count) == ("windowed-case", 1) and "'c0'" in several.detail

    def test_of_two_texts_nobody_says_which_is_long(self, opened) -> None:
        case = {"text_a": "hello", "text_b": self.TEXT}
        with pytest.raises(Misconfigured, match="cases of two texts, the first 'c0'") as caught:
            run_heads({"a": opened("classification", self.LINES)}, suite("classification", [case]))
        assert 'text = "first"' in caught.value.expected

    def test_unless_release_toml_says_it(self, opened) -> None:
        """The second is read to its end, behind the whole of the first; a lone text is refused then."""
        cases = suite("classification", [{"text_a": "hello", "text_b": f"{self.TEXT}\x07"}])
        release = opened("classification", self.LINES + 'text = "second"\n')
        found = run_heads({"a": release}, cases)["a"]
        [output], [hidden, _] = found.outputs, found.remarks
        assert output.status is OutputStatus.OK and output.tokens_lost == 0 and output.tokens_kept > 50
        assert hidden.count == 1
        with pytest.raises(Misconfigured, match="of one text, where the second of two is long"):
            run_heads({"a": release}, suite("classification", [{"text": "hello"}]))

    def test_the_context_of_choices_is_read_to_its_end(self, opened) -> None:
        """Without one nobody says what is long: question and choices are read whole."""
        release = opened("choice", self.LINES.replace("mean-of-logits", "best"))
        case = {"context": self.TEXT, "question": "where ?", "choices": ["Berlin", "it is in the office"]}
        other = {"context": "hello", "question": "where ?", "choices": ["Berlin"]}
        found = run_heads({"a": release}, suite("multiple-choice", [other, case]))["a"]
        output = found.outputs[1]
        assert output.status is OutputStatus.OK and output.tokens_lost == 0 and len(output.output.values) == 2
        [told] = found.windowed
        assert (told.case_ids.tolist(), told.readings.tolist()) == (["c1", "c1"], [1, 2])
        assert told.laid.around[0] < told.laid.around[1]
        del case["context"]
        with pytest.raises(Misconfigured, match="cases without a context"):
            run_heads({"a": release}, suite("multiple-choice", [case]))

    def test_words_are_told_as_one_text(self, opened) -> None:
        """One blank apart: each window shows the characters of its words, and owns them by whole words."""
        words = self.TEXT.split()
        release = opened("entity", self.LINES.replace("mean-of-logits", "rows"))
        [told] = run_heads({"a": release}, suite("entity", [{"tokens": words}]))["a"].windowed
        text, laid = " ".join(words), told.laid
        shown = [text[start:end] for start, end in laid.characters.tolist()]
        assert shown[0].startswith("where is my") and shown[-1].endswith("parcel ?")
        assert all(part in text for part in shown) and laid.owned[0, 0] == 0
        assert laid.owned[1:, 0].tolist() == laid.owned[:-1, 1].tolist() and laid.owned[-1, 1] == laid.tokens[-1, 1]

    def test_of_two_texts_that_are_read_apart_each_is_told(self, opened) -> None:
        cases = suite(
            "similarity", [{"text_a": "hello", "text_b": self.TEXT}, {"text_a": self.TEXT, "text_b": self.TEXT}]
        )
        found = run_alike({"a": opened("bi", self.LINES.replace("mean-of-logits", "best"))}, cases)["a"]
        told = [(each.case_ids.tolist(), each.readings.tolist()) for each in found.windowed]
        assert told == [(["c1"], [1]), (["c0", "c1"], [2, 2])]
        assert [each.detail.partition(" windows")[0].split()[:2] for each in found.remarks] == [["3", "cases"]]


class TestAlike:
    PAIRS = (("the parcel is late", "where is my parcel"), ("the parcel is late", "how do i get a refund"))

    def cases(self) -> Suite:
        return suite("similarity", [{"text_a": a, "text_b": b} for a, b in self.PAIRS])

    def test_a_bi_encoder_gives_the_librarys_similarity(self, opened) -> None:
        """On the suite's grid of a millionth."""
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(MODELS / "bi"), device="cpu", local_files_only=True)
        first, second = (model.encode(list(texts)) for texts in zip(*self.PAIRS, strict=True))
        found = run_alike({"one": opened("bi")}, self.cases())["one"].outputs
        assert [each.output.value for each in found] == pytest.approx(np.sum(first * second, axis=1).tolist(), abs=2e-6)
        assert all(each.tokens_lost == 0 and each.tokens_kept > 8 for each in found)

    def test_a_cross_encoder_gives_the_librarys_number(self, opened) -> None:
        from sentence_transformers import CrossEncoder

        model = CrossEncoder(str(MODELS / "cross"), device="cpu", local_files_only=True)
        found = run_alike({"one": opened("cross")}, self.cases())["one"].outputs
        assert [each.output.value for each in found] == pytest.approx(
            model.predict(list(self.PAIRS)).tolist(), abs=1e-5
        )

    def test_which_text_is_first_changes_nothing_for_a_bi_encoder(self, opened) -> None:
        turned = suite("similarity", [{"text_a": b, "text_b": a} for a, b in self.PAIRS])
        values = [
            [each.output.value for each in run_alike({"one": opened("bi")}, cases)["one"].outputs]
            for cases in (self.cases(), turned)
        ]
        assert values[0] == values[1]

    def test_some_of_its_vectors_are_told_of_each_text_once(self, opened) -> None:
        """Both pairs have one first text: it stands under the lower ID. Nothing says that two texts belong together."""
        found = run_alike({"one": opened("bi")}, self.cases())["one"].sample
        assert found is not None
        ids = sorted(each.id for each in self.cases().cases)
        assert (found.query_ids.tolist(), found.document_ids.tolist()) == (ids[:1], ids)
        assert len(found.queries) == 1 and len(found.documents) == 2 and not found.relevant
        turned = replace(self.cases(), cases=self.cases().cases[::-1])
        again = run_alike({"one": opened("bi")}, turned)["one"].sample
        assert again is not None and np.array_equal(again.documents, found.documents)
        assert run_alike({"one": opened("cross")}, self.cases())["one"].sample is None

    def test_a_single_text_is_refused(self, opened) -> None:
        with pytest.raises(Misconfigured, match="one text"):
            run_alike({"one": opened("cross")}, suite("regression", [{"text": "a"}]))
