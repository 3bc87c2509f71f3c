"""What is declared of a training, held against the release that it began from, where that is the one compared."""

from harness.errors import NotAdmitted
from harness.release.manifest import Manifest


def refuse_moved_backbone(parent: Manifest, candidate: Manifest) -> None:
    """A candidate whose training was of the head alone has the backbone and the adapter that it began from.

    Held where its `base` or `parent` names this parent, by name or content ID, and of encoders of one architecture: the
    same weights in another model's file have other names.
    Raises NotAdmitted with every digest that differs.
    """
    said = candidate.meaning.training
    names = {parent.identity.name, parent.identity.content_id}
    if said is None or not said.head_only or names.isdisjoint((said.base, said.parent)):
        return
    moved = []
    for side, tower in candidate.meaning.towers.items():
        before = parent.meaning.towers.get(side)
        if before is None or before.artifact.architecture != tower.artifact.architecture:
            continue
        pairs = {
            "backbone": (before.artifact.backbone, tower.artifact.backbone),
            "adapter": (before.artifact.adapter, tower.artifact.adapter),
        }
        moved += [
            f"{what} of {side}: {_short(old)} → {_short(new)}" for what, (old, new) in pairs.items() if old != new
        ]
    if moved:
        raise NotAdmitted(
            f"{candidate.identity.name}, [training] head_only", found="; ".join(moved),
            expected=f"the weights of {parent.identity.name}, but for the head",
            mend="Restore them, or take `head_only` out of release.toml: then all that descends from them is invalid.",
        )  # fmt: skip


def _short(digest: str | None) -> str:
    return "none" if digest is None else f"{digest[:16]}…"
