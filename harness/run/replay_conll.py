"""Tags that were made elsewhere, in columns beside the tokens they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.file.lines import Place, refuse, shown
from harness.suite.formats.conll import ColumnFile, Sentence, sentences


@dataclass(frozen=True, slots=True)
class Tagged:
    """One sentence's tags, as many as its tokens, empty where a row has none; `place`: the line of its first token."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    place: Place


def read_conll_tags(file: ColumnFile, cases: Mapping[str, tuple[str, ...]]) -> dict[str, Tagged]:
    """The tags of every sentence of a file, by case.

    `cases` are the tokens of the suite's cases, in their order: columns have no IDs, so the file's sentences are theirs
    one by one, which the tokens must bear out. A file may end early, and so may a sentence; what the file lacks has no
    entry.

    Raises Misconfigured for a sentence whose tokens are another case's or nobody's, and as `sentences`.
    """
    if file.tags is None:
        raise TypeError("a file of outputs has a column of tags")
    tagged: dict[str, Tagged] = {}
    remaining = iter(cases.items())
    for sentence in sentences(file):
        case_id, tokens = next(remaining, (None, ()))
        if case_id is None:
            refuse(
                sentence.place, f"a sentence {sentence.number}, and {len(cases)} cases", "one sentence a case",
                "Record the outputs of this suite's own files, in their order.",
            )  # fmt: skip
        _check_tokens(sentence, case_id, tokens)
        tagged[case_id] = Tagged(sentence.tokens, sentence.tags or (), sentence.place)
    return tagged


def _check_tokens(sentence: Sentence, case_id: str, tokens: tuple[str, ...]) -> None:
    if sentence.tokens == tokens[: len(sentence.tokens)]:
        return
    pairs = list(zip(sentence.tokens, tokens, strict=False))
    at = next((i for i, (here, there) in enumerate(pairs) if here != there), None)
    found = (
        f"{len(sentence.tokens)} tokens, and {len(tokens)} of case {shown(case_id)}"
        if at is None
        else f"token {at + 1} is {shown(sentence.tokens[at])}, and {shown(tokens[at])} in case {shown(case_id)}"
    )
    refuse(
        sentence.place, found, "the tokens of the suite's cases, in their order",
        "Record the outputs of this suite's own files, with no sentence or token left out.",
    )  # fmt: skip
