"""Labels and the head's rows stand in one order: both may move together, with proof, and neither alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import NotAdmitted
from harness.identity import Json
from harness.release.manifest import Meaning


@dataclass(frozen=True, slots=True)
class HeadRows:
    """What tells whether a head was permuted: the digest of each of its rows, with its bias, in the head's order."""

    parent: tuple[str, ...]
    candidate: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Permutation:
    """Labels in another order. `order[i]` is where the candidate's label i stood in the parent.

    `proven`: the head's rows are the parent's in that very order. Without it a parity run must tell.
    """

    order: tuple[int, ...]
    proven: bool

    def as_record(self) -> dict[str, Json]:
        return {"order": list(self.order), "proven": self.proven}


def permutation(parent: Meaning, candidate: Meaning, rows: HeadRows | None = None) -> Permutation | None:
    """How the labels moved; None where they stand as they stood, or are others, or name the rows of another head.

    Raises NotAdmitted where labels moved and the head's rows did not, or rows moved and the labels did not.
    """
    old, new = parent.output.labels, candidate.output.labels
    if not old or not new or sorted(old) != sorted(new):
        return None
    order = tuple(old.index(label) for label in new)
    moved = old != new
    same_rows = _heads(parent) == _heads(candidate) or (rows is not None and rows.parent == rows.candidate)
    if moved and same_rows:
        raise NotAdmitted(
            "output.labels", found=f"{_listed(new)} over the head whose rows are {_listed(old)}",
            expected="rows and labels that move together",
            mend="Restore the label map, or permute the head's rows too.",
        )  # fmt: skip
    if rows is None:
        return Permutation(order, proven=False) if moved else None
    if sorted(rows.parent) != sorted(rows.candidate):
        return None
    if len(rows.parent) == len(order) and rows.candidate == tuple(rows.parent[at] for at in order):
        return Permutation(order, proven=True) if moved else None
    raise NotAdmitted(
        "the head's rows", found=f"the parent's rows in another order, under the labels {_listed(new)}",
        expected="rows and labels that move together",
        mend="Permute the label map as the rows were, or restore the head.",
    )  # fmt: skip


def _heads(meaning: Meaning) -> Mapping[str, object]:
    """All that is known of what the labels name."""
    towers: dict[str, object] = {
        str(side): (tower.artifact.head, [each.weights for each in tower.readout.projections])
        for side, tower in meaning.towers.items()
    }
    return {**towers, "outputs": meaning.recording.outputs if meaning.recording else None}


def _listed(labels: Sequence[str]) -> str:
    return f"[{', '.join(labels[:6])}{', …' if len(labels) > 6 else ''}]"
