"""The invariants of a long text that is read in windows: what one of them is, and how what they give becomes one."""

from collections.abc import Iterator, Mapping

from harness.release.admit.check import Check, listed
from harness.release.manifest import Meaning, Tower

# How the windows of a readout can be joined. Those of one choice lie otherwise than another's, so none has chances of
# them all.
JOINED = {
    "pooled": ("rows", "mean", "best"),
    "rows": ("rows", "best"),
    "sparse": ("rows", "mean", "max", "best"),
    "cls-head": ("best", "mean-of-logits", "mean-of-probabilities"),
    "choice-head": ("best", "mean-of-logits"),
    "token-head": ("rows",),
    "span-head": ("best",),
}
# Which of two texts is long, where the readout says it.
LONG: Mapping[str, str] = {"pair": "second", "choices": "first"}
READ: Mapping[str, str] = {
    "single": "what is read alone", "pair": "a query and its document or context",
    "choices": "a context and a choice",
}  # fmt: skip


def window_findings(meaning: Meaning) -> tuple[Check, ...]:
    """Whether windows fit the length, the text that is split and what joins them."""
    return (
        listed(
            "window-fits", _sizes(meaning), sound="holds",
            expected="a stride within the window, and it within the length",
            mend="Correct `window` in [input] of release.toml.",
        ),
        listed(
            "aggregation-fits", _aggregation(meaning), sound="holds",
            expected="a way to join what the windows give that there is for it, and what this way has to say",
            mend="Correct [input.window] of release.toml.",
        ),
        listed(
            "window-of-one-text", _texts(meaning), sound="holds",
            expected="windows of a document, a context, or of that text which a head of labels is told",
            mend="Correct `text` in [input.window] of release.toml, or leave it out.",
        ),
        listed(
            "temperature-of-whole", _tempered(meaning), sound="holds",
            expected="no temperature of single windows, which calibrates no text that is read in several",
            mend="Take `temperature` out of [score], and fit a calibrator to the joined scores.",
        ),
    )  # fmt: skip


def _sizes(meaning: Meaning) -> Iterator[str]:
    for name, tower in meaning.towers.items():
        window = tower.input.window
        if window is not None and not window.stride <= window.size <= tower.input.max_length:
            yield f"{name}: windows of {window.size} every {window.stride}, of {tower.input.max_length} tokens"


def _aggregation(meaning: Meaning) -> Iterator[str]:
    for name, tower in meaning.towers.items():
        window, family = tower.input.window, tower.readout.family
        if window is None:
            continue
        how = window.aggregation
        if how not in JOINED[family]:
            yield f"{name}: {how} of the windows of a {family}, which are joined by {' or '.join(JOINED[family])}"
        if how == "rows" and family == "pooled" and tower.readout.modes != ["mean"]:
            modes = " and ".join(tower.readout.modes)
            yield f"{name}: rows of windows that are pooled by {modes}, of which only a mean is that of the whole text"
        if how == "mean-of-probabilities" and not meaning.score.probability:
            kind = meaning.interaction.kind
            yield f"{name}: a mean of probabilities of a {kind} whose score is a {meaning.score.type}"
        if (window.owner is not None) != (how == "rows"):
            yield f"{name}: `owner` {window.owner or 'not said'}, of windows that are joined by {how}"
        yield from _normalise(name, tower)


def _texts(meaning: Meaning) -> Iterator[str]:
    for name, tower in meaning.towers.items():
        window, template = tower.input.window, tower.input.template
        if window is None:
            continue
        labels = template == "single" and tower.readout.family == "cls-head"
        if not labels and window.text != LONG.get(template):
            yield f"{name}: windows of the {window.text or 'one'} text of {READ[template]}"


def _normalise(name: str, tower: Tower) -> Iterator[str]:
    """Whether a mean stands before or after the normalisation must be said where there is one, and nowhere else."""
    window, norm = tower.input.window, tower.readout.normalisation
    if window is None:
        return
    normalised = window.aggregation == "mean" and norm.kind != "none"
    if normalised != (window.normalise is not None):
        vectors = "normalised vectors" if normalised else "vectors that are not normalised"
        of = f"a mean of {vectors}" if window.aggregation == "mean" else f"windows joined by {window.aggregation}"
        yield f"{name}: `normalise` {window.normalise or 'not said'}, of {of}"
    if window.normalise == "after" and norm.stage == "after-pooling" and tower.readout.projections:
        yield f"{name}: a normalisation before the last projection, which cannot stand after a mean"


def _tempered(meaning: Meaning) -> Iterator[str]:
    towers = [name for name, tower in meaning.towers.items() if tower.input.window is not None]
    if meaning.score.temperature is not None and towers:
        yield f"temperature {meaning.score.temperature:g} beside windows of {' and '.join(towers)}"
