"""What a release makes of its outcomes, on what that was fitted, and the refusal of what saw promotion cases."""

import json

from harness.calibration.record import CalibratorRecord, FittedOn, Of, read_calibrator
from harness.errors import Leaked, Misconfigured, NotAdmitted
from harness.gate.exposure import Parameter
from harness.identity import Json
from harness.release.threshold import ThresholdRecord, threshold_from
from harness.store.read import CaseMarks, ReleaseRecord
from harness.suite.lock import Lock
from harness.verb.calibration_cases import corpus_digest

CALIBRATED: dict[str, tuple[Of, ...]] = {
    "classification": ("labels",),
    "multilabel": ("labels",),
    "multiple-choice": ("choices",),
    "similarity": ("pairs",),
    "answer": ("answerability",),
    "retrieval": ("relevance", "answerability"),
    "reranking": ("relevance", "answerability"),
}
"""Whose chance a calibrator may give, by task."""


def decision_parameters(release: ReleaseRecord) -> dict[str, Parameter]:
    """Calibrator, threshold and abstention of a release, by name; nothing where it has none.

    A calibrator always has a record of what it was fitted on; a threshold has one where it stands in a file of its own.
    """
    score = json.loads(release.meaning)["score"]
    found: dict[str, Parameter] = {}
    if score["calibrator"] is not None:
        found["calibrator"] = Parameter(score["calibrator"]["digest"], fitted=True)
    decision = score.get("decision") or {}
    fitted = decision.get("digest") is not None
    if score["threshold"] is not None:
        found["threshold"] = Parameter(score["threshold"], fitted)
    if decision.get("ground") is not None:
        said: Json = [decision["ground"], decision["below"]]
        found["abstention"] = Parameter(said, fitted)
    return found


def refuse_leaked(what: str, fitted_on: FittedOn, marks: CaseMarks, lock: Lock) -> None:
    """Raises Leaked where a parameter was fitted on a case that this suite promotes by, whatever role, ID or suite it
    had then.

    The same inputs are the same case. The same ID is, where the suite has the same name or shares a case: else `17` of
    one collection would be `17` of any other.
    """
    promoted = [i for i, role in enumerate(lock.roles) if role == "promotion"]
    saw_inputs, saw_ids, saw = (
        set(each) for each in (fitted_on.case_inputs, fitted_on.case_ids, fitted_on.case_digests)
    )
    related = fitted_on.suite == lock.definition.name or not saw_inputs.isdisjoint(marks.inputs)
    seen = [
        i
        for i in promoted
        if marks.inputs[i] in saw_inputs or lock.case_digests[i] in saw or (related and marks.ids[i] in saw_ids)
    ]
    if seen:
        raise Leaked(
            what,
            found=f"{len(seen)} promotion cases among those it was fitted on, the first {lock.case_ids[seen[0]]!r}",
            expected="cases of the calibration role alone, under whatever role, ID or suite they stood then",
            mend="Fit it again, on a run under the present roles.",
        )  # fmt: skip


def calibrator_of(release: ReleaseRecord, lock: Lock, marks: CaseMarks) -> CalibratorRecord | None:
    """The release's calibrator. Raises Misconfigured for a file that is none and for a task that it is not for, Leaked
    as `refuse_leaked`, NotAdmitted where what it says hangs on a corpus, and this is another.
    """
    if release.calibrator is None:
        return None
    what = f"calibrator of release {release.release!r}"
    found = read_calibrator(what, release.calibrator)
    task = lock.definition.task
    if found.of not in CALIBRATED.get(task, ()):
        raise Misconfigured(
            what, found=f"one of {found.of} in a suite of {task}",
            expected=f"one of {' or '.join(CALIBRATED.get(task, ('nothing: its outputs are no chance',)))}",
            mend="Take [calibrator] out of its release.toml, or run it on the suite that it is for.",
        )  # fmt: skip
    refuse_leaked(what, found.fitted_on, marks, lock)
    if found.corpus is not None and found.corpus != corpus_digest(lock):
        raise NotAdmitted(
            what, found=f"one that was fitted on the corpus {found.corpus}",
            expected=f"this suite's corpus, {corpus_digest(lock)}: whether a question is answerable hangs on it",
            mend="Fit it again on a run over this corpus.",
        )  # fmt: skip
    return found


def threshold_of(release: ReleaseRecord, lock: Lock, marks: CaseMarks) -> ThresholdRecord | None:
    """The file that says on what a release's threshold was fitted; Leaked as `refuse_leaked`."""
    if release.threshold is None:
        return None
    found = threshold_from(f"threshold of release {release.release!r}", release.threshold)
    fitted_on = FittedOn.model_validate(found.fitted_on.model_dump())
    refuse_leaked(f"threshold of release {release.release!r}", fitted_on, marks, lock)
    return found


def threshold_in_words(release: ReleaseRecord, found: ThresholdRecord) -> str:
    """What the decision says of it."""
    on = found.fitted_on
    what = "rule of abstention" if found.ground else "threshold"
    return (
        f"The {what} of {release.release} (by {found.rule}) was fitted on {on.n_cases or on.n} cases of the {on.role} "
        f"role of {on.suite}."
    )


def in_words(release: ReleaseRecord, found: CalibratorRecord) -> str:
    """What the decision says of it: which role fitted it, on how much, and what it is valid for."""
    on = found.fitted_on
    rows = "" if on.n_cases in (None, on.n) else f" ({on.n} rows)"
    beyond = f" It speaks of {found.valid_for}." if found.valid_for else ""
    certain = sum(each.n_certain or 0 for each in found.maps)
    exact = f" It gives {certain} of the scores that it was fitted on exactly 0 or 1." if certain else ""
    told = "".join(f" {each}" for each in found.reported)
    return (
        f"The calibrator of {release.release} ({found.family}) was fitted on {on.n_cases or on.n} cases{rows} of the "
        f"{on.role} role of {on.suite}.{beyond}{exact}{told}"
    )
