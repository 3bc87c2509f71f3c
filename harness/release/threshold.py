"""Thresholds: a file that says on what one was fitted, and what a threshold of one score is in another."""

import math
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import Misconfigured
from harness.file.sealed import Sealed, require_sealed

Strict = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Type: TypeAlias = Literal["logit", "probability", "cosine", "dot", "squared-l2", "maxsim", "value", "gap"]
Ground: TypeAlias = Literal["confidence", "margin", "entropy", "gap", "answerability"]
Rule: TypeAlias = Literal["costs", "capacity", "f1", "coverage", "risk"]


class ThresholdFit(BaseModel):
    """The cases, as a calibrator has them."""

    model_config = Strict

    suite: str
    data: Digest
    role: Literal["calibration"] = "calibration"
    slice: str = "all"
    included: str
    n: int
    n_cases: int | None = None
    n_groups: int | None = None
    left_out: int = 0
    case_digests: list[str]
    case_ids: list[str]
    case_inputs: list[str]


class ThresholdRecord(Sealed):
    """`threshold`: one, or one for each of `labels`, of a score of this `type`; or `ground` and `below`, when nothing
    is said. `by`: what the rule was told. `reached`: what it comes to on the cases it was fitted on. `fitted_under`:
    the key of the scores, calibrated where they are. `own_digest`: of all the rest, so that a changed number is seen.
    """

    model_config = Strict

    schema_: Annotated[Literal["harness.threshold.v1"], Field(alias="schema")] = "harness.threshold.v1"
    rule: Rule
    by: dict[str, float | dict[str, list[float]]]
    threshold: float | list[float] | None = None
    labels: list[str] = Field(default_factory=list)
    type: Type
    ground: Ground | None = None
    below: float | None = None
    reached: dict[str, float]
    fitted_under: Digest
    release: str
    fitted_on: ThresholdFit
    aggregation: Literal["none", "windows", "stages", "members"] = "none"
    software: dict[str, str]
    dtype: Literal["float64"] = "float64"


def read_threshold(path: Path) -> ThresholdRecord:
    """Raises Misconfigured for a file that is none, Tampered for one that was changed since it was written."""
    return threshold_from(str(path), path.read_bytes())


def threshold_from(subject: str, text: str | bytes) -> ThresholdRecord:
    """As `read_threshold`, of a text that stands elsewhere."""
    require_sealed(subject, text, "Choose it again with `harness calibrate --threshold`, or say it in release.toml.")
    try:
        return ThresholdRecord.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Misconfigured(
            subject, found=f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            expected="a threshold as `harness calibrate --threshold` saves it", mend="Fit it again.",
        ) from error  # fmt: skip


def converted(value: float, of: str, wanted: str, *, unit: bool) -> float | None:
    """The threshold of another score that lets the same pairs pass, None where there is none. Of vectors of unit length
    d² = 2 − 2 cos, so that cos ≥ .8 where d² ≤ .4; a logit is the log odds of a probability.
    """
    if unit and {of, wanted} <= {"cosine", "dot", "squared-l2"}:
        cosine = 1 - value / 2 if of == "squared-l2" else value
        return round(2 - 2 * cosine, 12) if wanted == "squared-l2" else cosine
    if (of, wanted) == ("probability", "logit") and 0 < value < 1:
        return math.log(value) - math.log1p(-value)
    if (of, wanted) == ("logit", "probability"):
        return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
    return None
