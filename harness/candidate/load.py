"""From an opened release to what encodes its texts, whatever its interaction."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from harness.candidate.backend import backed, require_proven
from harness.candidate.bi import load_bi
from harness.candidate.cross import PairEncoder, load_cross
from harness.candidate.encoder import Encoder
from harness.candidate.head import HeadModel, load_head
from harness.candidate.late import load_late
from harness.candidate.skeleton import without_weights
from harness.candidate.sparse import load_sparse
from harness.errors import Misconfigured
from harness.release.open import Release
from harness.release.prompts import Prompts

Numbers = TypeVar("Numbers", PairEncoder, HeadModel)
LOADERS: Mapping[str, Callable[[Release, Prompts], Encoder]] = {
    "bi": load_bi, "late": load_late, "sparse": load_sparse
}  # fmt: skip


def load(release: Release, prompts: Prompts) -> Encoder:
    """The loaded encoder of a release that keeps something of every query and document, all of it in torch.

    Raises Stopped where the libraries cannot load it, NotAdmitted where what they load isn't what the release means,
    Misconfigured for an interaction that encodes no texts and for a maximum length that leaves no room for text.
    """
    kind = release.definition.interaction
    if kind not in LOADERS:
        raise Misconfigured(
            f"release {release.name}", found=f"a {kind} release", expected="one that encodes queries and documents",
            mend="Only such a release has vectors.",
        )  # fmt: skip
    return LOADERS[kind](release, prompts)


def load_proven(release: Release, prompts: Prompts) -> Encoder:
    """As `load`, with the rows from the release's backend. Raises NotAdmitted for one that isn't proven."""
    return backed(release, load(release, prompts))


def load_numbers(release: Release) -> PairEncoder | HeadModel:
    """What gives numbers of pairs or of texts, all of it in torch. Raises as `load_cross` and `load_head` do."""
    return load_cross(release) if release.definition.interaction == "cross" else load_head(release)


def load_to_run(release: Release, prompts: Prompts) -> Encoder:
    """As `load_proven`, but the weights are read when the first text has to be computed."""
    with without_weights():
        found = load(release, prompts)
    require_proven(release, found)

    def wake() -> None:
        real = load_proven(release, prompts)
        for side, own in found.sides.items():
            own.waken(real.sides[side])

    for own in found.sides.values():
        own.wake = wake
    return found


def load_cross_to_run(release: Release) -> PairEncoder:
    """As `load_cross`, with the numbers from the release's backend, and the weights read as by `load_to_run`.

    Raises NotAdmitted for a release that isn't proven.
    """
    return _when_needed(release, load_cross)


def load_head_to_run(release: Release) -> HeadModel:
    """As `load_head`, with the numbers from the release's backend, and the weights read as by `load_to_run`.

    Raises NotAdmitted for a release that isn't proven.
    """
    return _when_needed(release, load_head)


def _when_needed(release: Release, read: Callable[[Release], Numbers]) -> Numbers:
    with without_weights():
        found = read(release)
    require_proven(release, found)

    def wake() -> None:
        real = backed(release, read(release))
        found.model, found.core, found.widest, found.wake = real.model, real.core, real.widest, None

    found.wake = wake
    return found
