"""Which releases can be run on texts that are read in windows."""

from collections.abc import Iterator

from harness.release.manifest import Meaning, Tower

MEANS = ("mean-of-logits", "mean-of-probabilities")
# By interaction, or by the output of a head: how windows are joined here.
RUN_HERE = {
    "bi": ("rows", "mean", "best"),
    "late": ("rows",),
    "sparse": ("max", "mean", "best"),
    "cross": ("best", *MEANS),
    "classes": MEANS,
    "multilabel": MEANS,
    "value": ("mean-of-logits",),
    "tags": ("rows",),
    "span": ("best",),
    "choice": ("best", "mean-of-logits"),
}


def unjoined(meaning: Meaning) -> str | None:
    """Why this version cannot run a release in windows; None where it can, or where it has none."""
    return next((reason for tower in meaning.towers.values() for reason in _reasons(meaning, tower)), None)


def best_of_windows(meaning: Meaning) -> bool:
    """Whether a text of it may have several vectors, of which the best is its score."""
    windows = [tower.input.window for tower in meaning.towers.values()]
    return meaning.interaction.kind == "bi" and any(each is not None and each.aggregation == "best" for each in windows)


def _reasons(meaning: Meaning, tower: Tower) -> Iterator[str]:
    window = tower.input.window
    if window is None:
        return
    kind = meaning.output.kind if meaning.interaction.kind == "head" else meaning.interaction.kind
    if kind not in RUN_HERE:
        yield f"a {kind} release that reads texts in windows"
    elif window.aggregation not in RUN_HERE[kind]:
        yield f"a {kind} release that joins its windows by {window.aggregation}"
    if not tower.rows.offsets:
        yield "a release that reads texts in windows, and whose tokens do not tell their characters"
