"""Heads of random weights, held against transformers called directly; what they read and what becomes of it."""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from harness.candidate.encoder import Encoded, encode
from harness.candidate.head import HeadModel, Sample, load_head, open_head
from harness.candidate.head_output import require_decoder, said_of
from harness.errors import Misconfigured, NotAdmitted
from harness.output.task import Span, Tags, TaskOutput
from harness.release.open import Release

from .conftest import WORDS, bare_bert

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
TOPICS = ("BUY", "ASK", "SELL")
REGRESSION = '[output.regression]\nunits = "stars"\nscale = 1.0\nshift = 0.0\n'


def texts(count: int, seed: int = 0) -> list[str]:
    """Some words of the vocabulary, some of several pieces, of many lengths."""
    rng = np.random.default_rng(seed)
    every = [*WORDS, "flowabc", "wingcd", "heatgab", "cadage", "bedface"]
    return [" ".join(rng.choice(every, int(rng.integers(1, 8)))) for _ in range(count)]


def named(labels: Sequence[str]) -> dict[str, Any]:
    return {"num_labels": len(labels), "id2label": dict(enumerate(labels)),
            "label2id": {label: row for row, label in enumerate(labels)}}  # fmt: skip


class Kind(NamedTuple):
    """A head of transformers, its configuration, what release.toml adds, and what it is given."""

    head: str
    config: dict[str, Any]
    extra: str
    samples: list[Sample]


ONE, TWO = texts(24), texts(24, 1)
KINDS = {
    "classes": Kind(
        "SequenceClassification", {**named(TOPICS), "problem_type": "single_label_classification"}, "",
        [Sample(text) for text in ONE],
    ),
    "pairs": Kind(
        "SequenceClassification", {**named(TOPICS), "problem_type": "multi_label_classification"},
        "[score]\nthreshold = 0.5\n", [Sample(*both) for both in zip(ONE, TWO, strict=True)],
    ),
    "value": Kind(
        "SequenceClassification", {**named(["stars"]), "problem_type": "regression"}, REGRESSION,
        [Sample(text) for text in ONE],
    ),
    "tags": Kind("TokenClassification", named(TAGS), "", [Sample(tuple(text.split())) for text in ONE]),
    "span": Kind("QuestionAnswering", {}, "", [Sample(*both) for both in zip(ONE, TWO, strict=True)]),
    "choice": Kind("MultipleChoice", {}, "", [Sample(*both) for both in zip(ONE, TWO, strict=True)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("heads")
    return {name: bare_bert(root / name, seed=4, head=f"For{kind.head}", **kind.config) for name, kind in KINDS.items()}


@pytest.fixture
def opened(folders: dict[str, Path], release: Callable[..., Release]) -> Callable[..., Release]:
    """The release of a kind of head, with further lines of release.toml."""
    return lambda name, extra="": release(f"path:{folders[name]}", KINDS[name].extra + extra, "head")


def direct(release: Release, sample: Sample) -> np.ndarray:
    """transformers' own numbers of one sample alone, without any padding: [c], or [r, c] of every row."""
    import torch

    [tower] = release.manifest.meaning.towers.values()
    model, tokenizer = open_head(release.model_folder, tower)
    words = isinstance(sample.first, tuple)
    given = tokenizer(
        list(sample.first) if words else sample.first, sample.second, is_split_into_words=words, truncation=True,
        max_length=tower.input.max_length, return_tensors="pt",
    )  # fmt: skip
    with torch.inference_mode():
        if tower.readout.family == "choice-head":
            return model(**{key: each[None] for key, each in given.items()}).logits[0].numpy()
        output = model(**given)
    if tower.readout.family == "span-head":
        return torch.stack([output.start_logits[0], output.end_logits[0]], dim=-1).numpy()
    return output.logits[0].numpy()


def said(release: Release, samples: Sequence[Sample], model: HeadModel | None = None) -> list[TaskOutput]:
    """What is said of each sample as a case of its own."""
    model = model or load_head(release)
    encoded = encode([model], samples)[0]
    return [
        said_of(
            release.manifest.meaning, [sample], [encoded.piece(at).values], model.layouts([sample]),
            int(encoded.tokens_lost[at]),
        )
        for at, sample in enumerate(samples)
    ]  # fmt: skip


def pieces(encoded: Encoded, count: int) -> list[bytes]:
    return [encoded.piece(at).values.tobytes() for at in range(count)]


@pytest.mark.parametrize("name", KINDS)
class TestNumbers:
    def test_they_are_those_of_transformers_called_directly(self, opened, name: str) -> None:
        """Within 1e-5, or of numbers above 1 within 1e-5 of the largest, whatever was padded to what."""
        release, samples = opened(name), KINDS[name].samples[:10]
        encoded = encode([load_head(release)], samples)[0]
        assert not encoded.failed
        for at, sample in enumerate(samples):
            expected = direct(release, sample)
            found = encoded.piece(at).values
            assert (found if expected.ndim == 2 else found[0]) == pytest.approx(
                expected, abs=1e-5 * max(1.0, float(np.abs(expected).max()))
            )

    def test_company_and_order_change_no_bit(self, opened, name: str) -> None:
        """Alone, all at once, and backwards among others."""
        model, samples = load_head(opened(name)), KINDS[name].samples
        whole = pieces(encode([model], samples)[0], len(samples))
        alone = [pieces(encode([model], [sample])[0], 1)[0] for sample in samples]
        back = pieces(encode([model], [*samples[::-1], *samples[:3]])[0], len(samples))[::-1]
        assert whole == alone == back

    def test_tokens_that_are_cut_are_counted(self, opened, name: str) -> None:
        """At twelve tokens: what is kept and lost make up the whole."""
        samples = KINDS[name].samples
        whole = encode([load_head(opened(name))], samples)[0]
        assert not whole.tokens_lost.any()
        cut = encode([load_head(opened(name, "[input]\nmax_length = 12\n"))], samples)[0]
        assert (cut.tokens_kept + cut.tokens_lost == whole.tokens_kept).all() and cut.tokens_lost.any()
        assert (cut.tokens_kept <= 12).all()

    def test_one_that_raises_fails_alone(self, opened, name: str, monkeypatch) -> None:
        model, samples = load_head(opened(name)), KINDS[name].samples
        whole, worst = model.rows, model.tokenise(samples[3:4])[0].features

        def rows(tokens, width):
            if any(each.features == worst for each in tokens):
                raise RuntimeError("out of luck")
            return whole(tokens, width)

        monkeypatch.setattr(model, "rows", rows)
        found = encode([model], samples)[0]
        assert found.failed == {3: "RuntimeError: out of luck"}


class TestTags:
    def pipeline(self, release: Release, strategy: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tags]:
        """transformers' own pipeline, before it puts words of one kind together."""
        from transformers import TokenClassificationPipeline

        monkeypatch.setattr(TokenClassificationPipeline, "group_entities", lambda self, entities: entities)
        [tower] = release.manifest.meaning.towers.values()
        model, tokenizer = open_head(release.model_folder, tower)
        run = TokenClassificationPipeline(
            model=model, tokenizer=tokenizer, aggregation_strategy=strategy, ignore_labels=[], device="cpu"
        )
        return lambda words: Tags(tuple(each["entity"] for each in run([list(words)], is_split_into_words=True)[0]))

    @pytest.mark.parametrize(("ours", "theirs"), [("first", "first"), ("mean", "average")])
    def test_a_words_tag_is_that_of_the_pipeline(self, opened, ours: str, theirs: str, monkeypatch) -> None:
        release = opened("tags", f'[output]\npieces = "{ours}"\n')
        expected = self.pipeline(release, theirs, monkeypatch)
        for sample, found in zip(KINDS["tags"].samples, said(release, KINDS["tags"].samples), strict=True):
            assert found == expected(sample.first)

    def test_the_policies_differ_on_words_of_several_pieces(self, opened) -> None:
        """Else the test before would see nothing."""
        first, mean, all_ = (
            said(opened("tags", f'[output]\npieces = "{each}"\n'), KINDS["tags"].samples)
            for each in ("first", "mean", "all-agree")
        )
        assert first != mean and first != all_ and said(opened("tags"), KINDS["tags"].samples) == first

    def test_constrained_tags_are_all_legal(self, opened) -> None:
        """Those of the plain decoder are not."""

        def illegal(outputs: list[TaskOutput]) -> int:
            return sum(
                tag[0] == "I" and before[1:] != tag[1:]
                for each in outputs
                for before, tag in zip(("O", *each.tags), each.tags, strict=False)
            )

        samples = KINDS["tags"].samples
        assert illegal(said(opened("tags"), samples)) > 0
        assert illegal(said(opened("tags", '[output]\ndecoder = "constrained"\n'), samples)) == 0

    def test_words_that_are_cut_have_no_tag_and_words_of_nothing_the_null(self, opened) -> None:
        """Ten tokens hold eight pieces; a word without a sign that the tokenizer knows has none."""
        release = opened("tags", "[input]\nmax_length = 10\n")
        [long, odd] = said(release, [Sample(("flow",) * 30), Sample(("flow", "", "wing", " "))])
        assert len(long.tags) == 8
        assert len(odd.tags) == 4 and (odd.tags[1], odd.tags[3]) == ("O", "O")

    def test_tags_without_a_null_are_refused(self, opened) -> None:
        """No tag is called O, and release.toml names none."""
        labels = '[output]\nlabels = ["none", "B-PER", "I-PER", "B-LOC", "I-LOC"]\n'
        with pytest.raises(Misconfigured, match="none of which is O"):
            require_decoder("x", opened("tags", labels).manifest.meaning.output)
        require_decoder("x", opened("tags", f'{labels}null = "none"\n').manifest.meaning.output)
        with pytest.raises(Misconfigured, match="constrained"):
            output = opened("tags", f'{labels}null = "none"\ndecoder = "constrained"\n').manifest.meaning.output
            require_decoder("x", output)


class TestSpans:
    def brute(self, release: Release, sample: Sample, longest: int) -> Span:
        """Every span of the context's tokens by transformers' own numbers; of the best the shortest, then the first."""
        [tower] = release.manifest.meaning.towers.values()
        tokenizer = open_head(release.model_folder, tower).tokenizer
        given = tokenizer(sample.first, sample.second, return_offsets_mapping=True)
        start, end = direct(release, sample).astype(np.float64).T
        rows = [row for row, text in enumerate(given.sequence_ids(0)) if text == 1]
        spans = [(a, b) for a, b in product(rows, rows) if 0 <= b - a < longest]
        first, last = min(spans, key=lambda each: (-(start[each[0]] + end[each[1]]), each[1] - each[0], each[0]))
        begins, ends = given["offset_mapping"][first][0], given["offset_mapping"][last][1]
        return Span(sample.second[begins:ends], begins, ends, start[first] + end[last], start[0] + end[0])

    @pytest.mark.parametrize("longest", [1, 3, 30])
    def test_the_answer_is_the_best_span_of_the_context(self, opened, longest: int) -> None:
        release = opened("span", f"[output]\nlongest = {longest}\n")
        samples = KINDS["span"].samples[:12]
        for sample, found in zip(samples, said(release, samples), strict=True):
            expected = self.brute(release, sample, longest)
            assert (found.text, found.start, found.end) == (expected.text, expected.start, expected.end)
            assert (found.score, found.null_score) == pytest.approx((expected.score, expected.null_score), abs=1e-4)

    def test_without_a_null_rule_there_is_always_an_answer(self, opened) -> None:
        """With it, the first row's score is one more answer; what the best one was stands by."""
        samples = [Sample(text, word) for text in ONE for word in WORDS[:6]]
        extras = ("[output]\nlongest = 1\n", '[output]\nlongest = 1\nnull = "first row"\n')
        always, rule = (said(opened("span", extra), samples) for extra in extras)
        assert all(each.text is not None for each in always)
        for plain, found in zip(always, rule, strict=True):
            assert (found.text is None) == (found.null_score > found.score)
            assert (found.start, found.end, found.score) == (plain.start, plain.end, plain.score)
        assert {each.text is None for each in rule} == {True, False}

    def test_a_context_without_a_token_has_no_answer(self, opened) -> None:
        assert said(opened("span"), [Sample("flow", "")])[0].text is None

    @pytest.mark.parametrize(
        ("kind", "line"),
        [("span", 'null = "LABEL"'), ("span", 'decoder = "constrained"'), ("tags", "longest = 3"),
         ("classes", 'pieces = "mean"'), ("tags", 'pieces = "all-agree"\ndecoder = "constrained"')],
    )  # fmt: skip
    def test_a_way_of_decoding_that_the_head_does_not_have_is_refused(self, opened, kind: str, line: str) -> None:
        with pytest.raises(Misconfigured, match=r"\[output\]"):
            opened(kind, f"[output]\n{line}\n")


class TestScores:
    def test_probabilities_are_given_where_they_are_declared(self, opened) -> None:
        """The softmax of the logits over the temperature; else the logits over it."""
        samples = KINDS["classes"].samples[:4]
        raw = [each.values for each in said(opened("classes"), samples)]
        warm = [each.values for each in said(opened("classes", "[score]\ntemperature = 2.0\n"), samples)]
        assert np.array(warm) == pytest.approx(np.array(raw) / 2)
        found = said(opened("classes", '[score]\ntype = "probability"\n'), samples)
        for logits, each in zip(raw, found, strict=True):
            assert each.values == pytest.approx(np.exp(logits) / np.exp(logits).sum())


class TestLoad:
    def test_only_a_head_is_loaded_as_one(self, release, tiny) -> None:
        with pytest.raises(Misconfigured, match="a bi release"):
            load_head(release(f"path:{tiny}"))

    def test_no_room_for_text_is_refused(self, opened) -> None:
        """A question and its context have three special tokens."""
        with pytest.raises(Misconfigured, match="special tokens"):
            load_head(opened("span", "[input]\nmax_length = 3\n"))

    def test_what_is_loaded_must_be_what_is_meant(self, opened, monkeypatch) -> None:
        release = opened("classes")
        monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", self.slow)
        with pytest.raises(NotAdmitted, match="none"):
            load_head(release)

    def slow(self, *_: Any, **__: Any) -> Any:
        class Slow:
            is_fast = False

        return Slow()
