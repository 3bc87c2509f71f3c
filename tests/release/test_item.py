"""A single text's vector depends on all that can change it once its tokens are known, and on nothing else."""

import pytest

from harness.candidate.open import keys_on
from harness.candidate.side import Keys
from harness.release.field import HEAD_STEPS, STEPS, Kind, sides_of
from harness.release.item import item_keys
from harness.release.manifest import Meaning
from tests.lifecycle.example import FIXED, changed, complete, meaning, sha, single_changes

RUNTIME = {"device": "cpu", "unit": "AVX512", "torch": "2.9", "graphs": {"both.onnx": sha("graph")}}
# Of what makes tokens of a text, this alone changes rows that the tokens don't show.
PADDING_SIDE = "towers.*.input.padding_side"
VOCABULARY = "towers.*.input.tokenizer.*"
JOINED = "towers.*.input.window.aggregation"
# Whether windows are joined as rows changes what is read out; how their numbers are joined, nothing that is kept.
JOINING = {"towers.*.input.window.normalise", "towers.*.input.window.owner"}
AFTER_NUMBERS = ("score.", "output.labels", "output.null", "output.transitions", "output.regression.")
BY_KIND = ("tied", "untied", "late", "cross", "head", "span")


def keys(meant: dict) -> dict[str, Keys]:
    of = Meaning.model_validate(meant)
    return {side: keys_on(RUNTIME, of, side, "") for side in sides_of(of)}


def moved(kind: str, what: str, meant: dict | None = None) -> set[str]:
    """The fields that change a key of any side, each changed alone."""
    whole = meant or complete(kind)
    before = {side: getattr(each, what) for side, each in keys(whole).items()}
    found = {}
    for pattern, other in single_changes(whole):
        after = {side: getattr(each, what) for side, each in keys(other).items()}
        found[pattern] = found.get(pattern, False) or after != before
    assert found.keys() == STEPS.keys() - FIXED
    return {pattern for pattern, changed_it in found.items() if changed_it}


def entering(kind: str, *steps: Kind) -> set[str]:
    """The fields whose node is of these kinds."""
    of = HEAD_STEPS if meaning(kind)["interaction"]["kind"] == "head" else STEPS
    return {pattern for pattern, step in of.items() if step in steps} - FIXED - {"interaction.releases.*"}


class TestEveryField:
    """All fields of the schema, one by one, against the map that says which node each enters."""

    @pytest.mark.parametrize("kind", BY_KIND)
    def test_a_vectors_key_holds_all_that_tokens_do_not_show(self, kind: str) -> None:
        """Rows and readout, the side of padding, for words left out the vocabulary that finds them, and whether windows
        are joined as rows. No prompt, no length, no special token: they make the tokens. No index, threshold,
        calibrator, tie rule or training.

        What has no vector has a head's raw numbers for it, and all that makes them: not the activation, the labels or
        the class that ranks, which come after.
        """
        readout = (Kind.VECTOR,) if kind in ("tied", "untied", "late") else (Kind.VECTOR, Kind.RAW_SCORE)
        made = {each for each in entering(kind, Kind.CONTEXTUAL, *readout) if not each.startswith(AFTER_NUMBERS)}
        wanted = (made - JOINING) | {PADDING_SIDE, VOCABULARY, JOINED}
        assert moved(kind, "vector") == wanted

    @pytest.mark.parametrize("kind", BY_KIND)
    def test_a_rows_key_holds_what_is_before_the_readout(self, kind: str) -> None:
        assert moved(kind, "rows") == entering(kind, Kind.CONTEXTUAL) | {PADDING_SIDE}

    @pytest.mark.parametrize("kind", BY_KIND)
    def test_a_sources_key_holds_what_makes_the_tokens(self, kind: str) -> None:
        assert moved(kind, "source") == entering(kind, Kind.SOURCE)


class TestVocabulary:
    def test_where_no_word_is_left_out_another_vocabulary_gives_the_same_vector_of_the_same_tokens(self) -> None:
        other = {"tokenizer.json": sha("other")}
        before, after = meaning("tied"), changed(meaning("tied"), towers__both__input__tokenizer=other)
        assert keys(before)["document"].vector == keys(after)["document"].vector

    def test_where_words_are_left_out_it_does_not(self) -> None:
        """The full stop may have another token's number. Queries leave nothing out."""
        other = {"tokenizer.json": sha("other")}
        before, after = keys(meaning("late")), keys(changed(meaning("late"), towers__both__input__tokenizer=other))
        assert before["document"].vector != after["document"].vector
        assert before["query"].vector == after["query"].vector


class TestSides:
    def test_both_sides_of_one_encoder_share_what_they_read_alike(self) -> None:
        """A text that stands in the corpus and among the queries is encoded once."""
        found = keys(meaning("tied"))
        assert found["query"].vector == found["document"].vector

    def test_two_encoders_share_nothing(self) -> None:
        found = keys(meaning("untied"))
        assert found["query"].vector != found["document"].vector

    def test_heads_of_two_sides_do_not_hide_one_another(self) -> None:
        """Both enter the one raw score."""
        one, two = (changed(meaning("head")["towers"]["text"], artifact__head=sha(name)) for name in "ab")
        pairs = [changed(meaning("head"), towers={"query": one, "document": each}) for each in (one, two)]
        found = [item_keys(Meaning.model_validate(each), "query").vector for each in pairs]
        assert found[0] != found[1]


class TestRuntime:
    @pytest.mark.parametrize("name", RUNTIME)
    def test_whatever_computes_changes_rows_and_vectors_but_no_tokens(self, name: str) -> None:
        """The graph of another backend among it."""
        of = Meaning.model_validate(meaning("tied"))
        before, after = (keys_on(on, of, "query", "") for on in (RUNTIME, {**RUNTIME, name: "other"}))
        assert before.rows != after.rows and before.vector != after.vector and before.source == after.source

    def test_how_texts_are_batched_changes_them_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = keys(meaning("tied"))["query"]
        monkeypatch.setattr("harness.candidate.open.BATCHES", "next")
        after = keys(meaning("tied"))["query"]
        assert before.rows != after.rows and before.vector != after.vector

    def test_a_suites_prompt_changes_the_source(self) -> None:
        of = Meaning.model_validate(meaning("tied"))
        assert keys_on(RUNTIME, of, "query", "").source != keys_on(RUNTIME, of, "query", "ask: ").source
