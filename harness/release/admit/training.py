"""What is declared of a training, held against the names of the weights that came out of it."""

from collections.abc import Iterator, Sequence

from harness.release.admit.check import Check, listed
from harness.release.admit.tower import Seen
from harness.release.describe.heads import groups_of
from harness.release.describe.split import is_of
from harness.release.manifest import Training


def training_findings(training: Training, towers: Sequence[Seen]) -> tuple[Check, ...]:
    """Of the names that are trainable and frozen: tensors, or modules with all that is in them."""
    names = [name for seen in towers for name in seen.tensors]
    return (
        listed(
            "training-disjoint", _both(training, names), sound="holds", expected="no weight both trainable and frozen",
            mend="Correct `trainable` and `frozen` in [training] of release.toml.",
        ),
        listed(
            "training-names", _unknown(training, names), sound="holds", expected="names that the weights have",
            mend="Correct the names in [training] of release.toml.",
        ),
        listed(
            "training-whole", _neither(training, names), sound="holds",
            expected="every weight either trainable or frozen, where both are named",
            mend="Name the others too, in [training] of release.toml.",
        ),
        listed(
            "training-ends", _ends(training), sound="holds", expected="first and last of what is trainable",
            mend="Correct `first_trainable` and `last_trainable` in [training] of release.toml.",
        ),
        listed(
            "head-only", _not_head(training, towers, names), sound="holds", expected="nothing but the head's weights",
            mend="Take `head_only` out of release.toml, or what is not the head's out of `trainable`.",
        ),
    )  # fmt: skip


def _named(said: Sequence[str], names: Sequence[str]) -> set[str]:
    return {name for name in names if any(name == each or name.startswith(f"{each}.") for each in said)}


def _both(training: Training, names: Sequence[str]) -> Iterator[str]:
    yield from sorted(_named(training.trainable, names) & _named(training.frozen, names))
    yield from sorted(set(training.trainable) & set(training.frozen) - set(names))


def _unknown(training: Training, names: Sequence[str]) -> Iterator[str]:
    for each in (*training.trainable, *training.frozen) if names else ():
        if not _named([each], names):
            yield each


def _neither(training: Training, names: Sequence[str]) -> Iterator[str]:
    if training.trainable and training.frozen:
        yield from sorted(set(names) - _named(training.trainable, names) - _named(training.frozen, names))


def _ends(training: Training) -> Iterator[str]:
    for what, said in (("first", training.first_trainable), ("last", training.last_trainable)):
        if said is not None and training.trainable and not _named(training.trainable, [said]):
            yield f"{what} {said}, which is not trainable"


def _not_head(training: Training, towers: Sequence[Seen], names: Sequence[str]) -> Iterator[str]:
    if not training.head_only:
        return
    groups = {group for seen in towers for group in groups_of(seen.tower)}
    if not groups:
        yield "a head that the release does not have"
    if not training.trainable:
        yield "no names of what is trainable"
    for name in sorted(_named(training.trainable, names)):
        if not any(is_of(group, name) for group in groups):
            yield name
