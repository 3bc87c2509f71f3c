"""From an opened release to what encodes its texts, whatever its interaction."""

from collections.abc import Callable, Mapping

from harness.candidate.backend import backed
from harness.candidate.bi import load_bi
from harness.candidate.cross import PairEncoder, load_cross
from harness.candidate.encoder import Encoder
from harness.candidate.head import HeadModel, load_head
from harness.candidate.late import load_late
from harness.candidate.sparse import load_sparse
from harness.errors import Misconfigured
from harness.release.open import Release
from harness.release.prompts import Prompts

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


def load_to_run(release: Release, prompts: Prompts) -> Encoder:
    """As `load`, with the rows from the release's backend. Raises NotAdmitted for one that isn't proven."""
    return backed(release, load(release, prompts))


def load_numbers(release: Release) -> PairEncoder | HeadModel:
    """What gives numbers of pairs or of texts, all of it in torch. Raises as `load_cross` and `load_head` do."""
    return load_cross(release) if release.definition.interaction == "cross" else load_head(release)


def load_cross_to_run(release: Release) -> PairEncoder:
    """As `load_cross`, with the numbers from the release's backend. Raises NotAdmitted for one that isn't proven."""
    return backed(release, load_cross(release))


def load_head_to_run(release: Release) -> HeadModel:
    """As `load_head`, with the numbers from the release's backend. Raises NotAdmitted for one that isn't proven."""
    return backed(release, load_head(release))
