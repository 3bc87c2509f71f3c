"""Cases whose text stands in a file that a release was trained on: what it saw cannot show what it knows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from harness.errors import Leaked, Misconfigured
from harness.file.lines import shown
from harness.file.toml import place
from harness.identity import digest
from harness.suite.case import Case, Suite
from harness.suite.definition import Role
from harness.suite.leak import NAMED
from harness.suite.nearness import near
from harness.suite.training_file import training_lines
from harness.suite.words import words

RUN = 5
"""Words from which on a text counts as standing within a longer one; a shorter one would stand in many by chance."""
MOST_NEAR = 200_000
"""Texts of training up to which nearly equal ones are looked for."""
ROLES: tuple[Role, ...] = ("development", "calibration", "promotion")

Words: TypeAlias = tuple[str, ...]
How: TypeAlias = Literal["equal", "within", "near"]
HOW: Mapping[How, str] = {"equal": "stands", "within": "stands within a text", "near": "nearly stands"}


@dataclass(frozen=True, slots=True)
class Trained:
    """A case of which a line of a training file holds the text. `finding`: what a waiver names, the digest of the case,
    its text and how it stands there, whatever the file is called.
    """

    case_id: str
    role: Role
    file: str
    line: int
    how: How
    similarity: float
    finding: str
    waived: str | None = None

    def told(self) -> str:
        likeness = f" (likeness {self.similarity:.2f})" if self.how == "near" else ""
        return f"case {shown(self.case_id)} ({self.role}) {HOW[self.how]} in {self.file} line {self.line}{likeness}"


@dataclass(frozen=True, slots=True)
class _Row:
    """The texts of one line of a training file, as words."""

    file: str
    line: int
    texts: tuple[Words, ...]


def trained(suite: Suite, release: str, files: Mapping[str, Path]) -> tuple[Trained, ...]:
    """Every case but those of train that stands in a training file of this release, waivers applied, in suite order.

    A question stands there whatever its context or choices are; of a pair both texts, in one line. Raises NotFound and
    Misconfigured for a file that cannot be read, and for a waiver of this release that meets nothing.
    """
    asked = {case.id: _asked(case) for case in suite.cases if case.role in ROLES}
    asked = {name: texts for name, texts in asked.items() if texts}
    found: dict[str, tuple[How, float, str, int]] = {}
    singles: dict[Words, tuple[str, int]] = {}
    if files and asked:
        index = _Index.of(asked)
        for row in _rows(files):
            for case_id, how in index.standing(row):
                if case_id not in found or (how == "equal" and found[case_id][0] != "equal"):
                    found[case_id] = (how, 1.0, row.file, row.line)
            for text in row.texts if len(singles) <= MOST_NEAR else ():
                singles.setdefault(text, (row.file, row.line))
    if len(singles) <= MOST_NEAR:
        found |= _near(suite, {name: texts for name, texts in asked.items() if name not in found}, singles)
    return _waived(suite, release, asked, found)


def refuse_trained(suite: Suite, release: str, found: Sequence[Trained]) -> None:
    """Raises Leaked for promotion cases that nobody waived."""
    left = [each for each in found if each.role == "promotion" and each.waived is None]
    if left:
        named = "; ".join(f"{each.told()} [{each.finding}]" for each in left[:NAMED])
        more = f"; and {len(left) - NAMED} more" if len(left) > NAMED else ""
        raise Leaked(
            f"release {release!r} on suite {suite.definition.name!r}",
            found=f"it was trained on {len(left)} promotion cases: {named}{more}",
            expected="promotion cases that its training files do not hold",
            mend="Train without them, take them out of promotion, or add [[leakage.waivers]] to suite.toml with "
            f'release = "{release}", the finding\'s digest and a reason.',
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Index:
    """Where a text of a case can begin: the cases by a whole text, and by the first words of a longer one."""

    texts: Mapping[str, tuple[Words, ...]]
    whole: Mapping[Words, Sequence[str]]
    begun: Mapping[Words, Sequence[str]]

    @classmethod
    def of(cls, asked: Mapping[str, tuple[Words, ...]]) -> "_Index":
        whole: dict[Words, list[str]] = {}
        begun: dict[Words, list[str]] = {}
        for name, texts in asked.items():
            for text in texts:
                whole.setdefault(text, []).append(name)
                if len(text) >= RUN:
                    begun.setdefault(text[:RUN], []).append(name)
        return cls(asked, whole, begun)

    def standing(self, row: _Row) -> Iterator[tuple[str, How]]:
        """The cases all of whose texts stand in a row."""
        here = set(row.texts)
        maybe: dict[str, None] = {}
        for text in row.texts:
            maybe |= dict.fromkeys(self.whole.get(text, ()))
            for start in range(len(text) - RUN + 1):
                if (names := self.begun.get(text[start : start + RUN])) is not None:
                    maybe |= dict.fromkeys(names)
        for name in maybe:
            own = self.texts[name]
            if here.issuperset(own):
                yield name, "equal"
            elif all(text in here or _within(text, row.texts) for text in own):
                yield name, "within"


def _within(text: Words, longer: Sequence[Words]) -> bool:
    size = len(text)
    return size >= RUN and any(
        each[start : start + size] == text for each in longer for start in range(len(each) - size + 1)
    )


def _near(
    suite: Suite, asked: Mapping[str, tuple[Words, ...]], singles: Mapping[Words, tuple[str, int]]
) -> dict[str, tuple[How, float, str, int]]:
    """Of cases of one text, the training text that is nearest to each."""
    names = [name for name, texts in asked.items() if len(texts) == 1]
    texts = [asked[name] for name in names] + [(text,) for text in singles]
    at = list(singles.values())
    policy = suite.definition.leakage
    found: dict[str, tuple[How, float, str, int]] = {}
    sides = [0] * len(names) + [1] * len(singles)
    for pair in near(texts, sides, size=policy.shingle, threshold=policy.threshold):
        name = names[pair.first]
        if name not in found or pair.similarity > found[name][1]:
            found[name] = ("near", pair.similarity, *at[pair.second - len(names)])
    return found


def _waived(
    suite: Suite,
    release: str,
    asked: Mapping[str, tuple[Words, ...]],
    found: Mapping[str, tuple[How, float, str, int]],
) -> tuple[Trained, ...]:
    own = [(i, each) for i, each in enumerate(suite.definition.leakage.waivers) if each.release == release]
    reasons = {each.finding: each.reason for _, each in own}
    told = []
    for case in suite.cases:
        if case.id in found:
            how, similarity, file, line = found[case.id]
            finding = digest({"kind": "trained", "how": how, "case": [case.id, case.role, asked[case.id]]})
            told.append(
                Trained(case.id, case.role, file, line, how, round(similarity, 6), finding, reasons.get(finding))
            )
    known = {each.finding for each in told}
    for position, waiver in own:
        if waiver.finding not in known:
            raise Misconfigured(
                place(suite.folder / "suite.toml", "leakage", "waivers", position, "finding"),
                found=f"a waiver of {waiver.finding[:16]}, which is no finding of release {release!r}",
                expected="a waiver for each finding it names", mend="Take it out, or copy the digest from the refusal.",
            )  # fmt: skip
    return tuple(told)


def _asked(case: Case) -> tuple[Words, ...]:
    if not case.inputs:
        texts = [case.text]
    elif "question" in case.inputs:
        texts = [str(case.inputs["question"])]
    else:
        texts = [value if isinstance(value, str) else " ".join(value) for value in case.inputs.values()]
    return tuple(dict.fromkeys(each for each in map(words, texts) if each))


def _rows(files: Mapping[str, Path]) -> Iterator[_Row]:
    for name, path in files.items():
        for line in training_lines(path):
            yield _Row(name, line.line, tuple(found for each in line.texts if (found := words(each))))
