"""The migration record: how a deployment gets from one release to another, and what must hold before and after."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.identity import Json
from harness.lifecycle.compatibility import NamespaceState, ParityRun, Reuse
from harness.lifecycle.invalidation import Act, Plan
from harness.lifecycle.permutation import Permutation
from harness.release.semantic import SemanticTuple

SCHEMA = "harness.migration.v1"
BUILDING = (Act.RE_ENCODE, Act.REBUILD_INDEX, Act.DUAL_WRITE)


@dataclass(frozen=True, slots=True)
class Transformed:
    """A namespace that has a successor under another key. `items` of its `of` are made again, the others taken over."""

    namespace: str
    old_key: str | None
    new_key: str | None
    items: int | None
    of: int | None

    def as_record(self) -> dict[str, Json]:
        return {
            "namespace": self.namespace, "old_key": self.old_key, "new_key": self.new_key, "items": self.items,
            "of": self.of,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Migration:
    """Content IDs, what is transformed, the conditions in words, the evidence of parity, the plan.

    `outstanding`: namespaces whose parity the plan demands and no run shows yet.
    """

    source: str
    target: str
    transformed: tuple[Transformed, ...]
    preconditions: tuple[str, ...]
    postconditions: tuple[str, ...]
    parity: tuple[ParityRun, ...]
    outstanding: tuple[str, ...]
    labels: Permutation | None
    plan: Plan
    rollback_target: str

    def as_record(self) -> dict[str, Json]:
        return {
            "schema": SCHEMA,
            "source": self.source,
            "target": self.target,
            "transformed": [each.as_record() for each in self.transformed],
            "preconditions": list(self.preconditions),
            "postconditions": list(self.postconditions),
            "parity": [each.as_record() for each in self.parity],
            "outstanding": list(self.outstanding),
            "labels": None if self.labels is None else self.labels.as_record(),
            "plan": self.plan.as_record(),
            "rollback_target": self.rollback_target,
        }


def migration(
    parent: SemanticTuple,
    candidate: SemanticTuple,
    states: Sequence[NamespaceState],
    plan: Plan,
    *,
    parity: Sequence[ParityRun] = (),
    labels: Permutation | None = None,
) -> Migration:
    """The record of going from the parent to the candidate under a plan."""
    built = [action for action in plan.actions if action.action in BUILDING and action.namespace is not None]
    work = {action.namespace: action for action in built}
    transformed = tuple(
        Transformed(str(name), action.old_key, action.new_key, action.items, action.of) for name, action in work.items()
    )
    demanded = {action.namespace for action in plan.actions if action.action is Act.PROVE_PARITY}
    shown = {(run.namespace, run.key) for run in parity}
    keys = {state.namespace.name: state.new_key for state in states}
    outstanding = sorted(str(name) for name in demanded if (name, keys.get(str(name))) not in shown)
    return Migration(
        source=parent.content_id,
        target=candidate.content_id,
        transformed=transformed,
        preconditions=(
            f"what is deployed is {parent.name}, content {parent.content_id}",
            *(f"{state.namespace.name} is unmodified{_watermark(state)}" for state in states),
            f"{candidate.name}, content {candidate.content_id}, is a CANDIDATE",
        ),
        postconditions=(
            *(f"{each.namespace} has a successor under {each.new_key}" for each in transformed),
            *(
                f"{action.namespace} stands under {action.new_key}"
                for action in plan.actions
                if action.action is Act.BUILD
            ),
            *(f"{name} is proven by a parity run" for name in sorted(str(each) for each in demanded)),
            *(
                f"{state.namespace.name} is as it was, and read by {candidate.name}"
                for state in states
                if state.state is Reuse.REUSABLE
            ),
            "queries and documents are switched in one step",
            f"every namespace of {parent.name} stands as it stood, until the deployment retires it",
        ),
        parity=tuple(parity),
        outstanding=tuple(outstanding),
        labels=labels,
        plan=plan,
        rollback_target=parent.content_id,
    )


def _watermark(state: NamespaceState) -> str:
    return f", up to {state.namespace.watermark}" if state.namespace.watermark is not None else ""
