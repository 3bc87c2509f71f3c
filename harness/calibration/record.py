"""A fitted calibrator as it is kept beside a release: what it is, on what it was fitted, and under which scores."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from harness.calibration import fit, scaling
from harness.calibration.fit import Beta, Calibration, Platt, Scaling, Steps, Temperature
from harness.errors import Misconfigured
from harness.file.sealed import Sealed, require_sealed

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
ScoreType: TypeAlias = Literal["logit", "probability", "cosine", "dot", "squared-l2", "maxsim", "value", "gap"]
"""What a score is; a gap is how far an answer's is above that of there being none."""
Of: TypeAlias = Literal["labels", "choices", "pairs", "relevance", "answerability"]
Family: TypeAlias = Literal["temperature", "vector", "matrix", "platt", "isotonic", "beta", "histogram"]
Fit: TypeAlias = Callable[[Floats, Ints], Calibration]
Strict = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

TOGETHER: tuple[Family, ...] = ("temperature", "vector", "matrix")
"""Families for classes that exclude one another, on all their logits; the others take one label's score at a time."""

OBJECTIVES: dict[Family, str] = {
    **dict.fromkeys(TOGETHER, "negative log-likelihood"),
    "platt": "negative log-likelihood against Platt's targets",
    "beta": "negative log-likelihood",
    "isotonic": "squared error under order",
    "histogram": "share by bin of equal mass",
}


class Parameters(BaseModel):
    """Of one map; what its family has not stays out."""

    model_config = Strict

    temperature: float | None = None
    weights: list[list[float]] | None = None
    bias: list[float] | None = None
    slope: float | None = None
    intercept: float | None = None
    a: float | None = None
    b: float | None = None
    c: float | None = None
    at: list[float] | None = None
    values: list[float] | None = None
    n_certain: int | None = None


class FittedOn(BaseModel):
    """The cases: suite, digest of its data, role and slice, how many rows of how many cases in how many groups, and
    which: by the digests that its lock has, and by those of their IDs and inputs, which no role and no suite changes.
    `left_out`: calibration cases with the inputs of a promotion case.
    """

    model_config = Strict

    suite: str
    data: Digest
    role: Literal["calibration"] = "calibration"
    slice: str = "all"
    included: str = "scored cases with gold"
    n: int
    n_cases: int | None = None
    n_groups: int | None = None
    left_out: int = 0
    case_digests: list[str]
    case_ids: list[str] = []
    case_inputs: list[str] = []


class Point(BaseModel):
    """What a score comes to, with its interval, whole groups of cases resampled and the map fitted anew."""

    model_config = Strict

    score: float
    probability: float
    low: float
    high: float


class CalibratorRecord(Sealed):
    """`of`: whose chance it gives. `maps`: one for all labels together, or one a label, in the order of `labels`.
    `fitted_under`: the key of the raw scores, `release` what they were called. `corpus`: digest of the documents, where
    what is asked depends on what is among them. `valid_for`: what it says nothing beyond. `aggregation`: of windows or
    members, behind which the scores stand. `curve`: of one map of a score,
    from `curve_draws` draws that allow a fit. `reported`: what one should know of the fit.
    `own_digest`: of all the rest, so that a changed number is seen.
    """

    model_config = Strict

    schema_: Annotated[Literal["harness.calibrator.v1"], Field(alias="schema")] = "harness.calibrator.v1"
    of: Of = "labels"
    family: Family
    objective: str
    maps: list[Parameters]
    labels: list[str]
    score_type: ScoreType
    fitted_under: Digest
    release: str | None = None
    corpus: Digest | None = None
    fitted_on: FittedOn
    valid_for: str | None = None
    curve: list[Point] = Field(default_factory=list)
    curve_draws: int = 0
    reported: list[str] = Field(default_factory=list)
    aggregation: Literal["none", "windows", "stages", "members"] = "none"
    software: dict[str, str]
    dtype: Literal["float64"] = "float64"

    @model_validator(mode="after")
    def _usable(self) -> Self:
        """A file edited by hand is refused when it is read, not where it is first applied."""
        wanted = 1 if self.family in TOGETHER else len(self.labels)
        if len(self.maps) != wanted:
            raise PydanticCustomError("maps", f"{len(self.maps)} maps in place of {wanted}")
        for each in self.maps:
            if not _sound(self.family, each, len(self.labels)):
                raise PydanticCustomError("maps", f"a map that no fit of {self.family} gives")
        return self


def read_calibrator(subject: str, text: str | bytes) -> CalibratorRecord:
    """Raises Misconfigured for a text that is no calibrator, Tampered for one that was changed since it was fitted."""
    mend = "Fit it again with `harness calibrate`; its numbers are never written by hand."
    require_sealed(subject, text, mend)
    try:
        return CalibratorRecord.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Misconfigured(
            subject, found=": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]])),
            expected="a calibrator as `harness calibrate` saves it", mend="Fit it again.",
        ) from error  # fmt: skip


def fitted(family: Family, scores: Floats, gold: Ints | Floats, labels: Sequence[str] = ()) -> list[Calibration]:
    """One map for classes that exclude one another (gold [n] holds columns), else one a column (gold [n, k], 0 or 1).

    Scores [n, k] are logits, or for beta probabilities. Raises Misconfigured as the fits do, naming
    the label where `labels` [k] are given.
    """
    if family in TOGETHER:
        by_family: dict[str, Fit] = {
            "temperature": fit.fit_temperature,
            "vector": scaling.fit_vector,
            "matrix": scaling.fit_matrix,
        }
        return [by_family[family](scores, gold.astype(np.int64))]
    single: dict[str, Fit] = {
        "platt": fit.fit_platt,
        "isotonic": fit.fit_isotonic,
        "beta": fit.fit_beta,
        "histogram": fit.fit_histogram,
    }
    found = []
    for column, (each, held) in enumerate(zip(scores.T, gold.T, strict=True)):
        try:
            found.append(single[family](each, held.astype(np.int64)))
        except Misconfigured as refusal:
            if len(labels) < 2:
                raise
            raise Misconfigured(
                f"{refusal.subject} of label {labels[column]!r}", found=refusal.found, expected=refusal.expected,
                mend=refusal.mend,
            ) from refusal  # fmt: skip
    return found


def worth_telling(family: Family, labels: Sequence[str], scores: Floats, gold: Ints) -> list[str]:
    """What the cases did not decide by themselves: scores [n, k] of which a cut tells gold [n, k] from the rest."""
    if family != "platt":
        return []
    apart = [name for name, *of in zip(labels, scores.T, gold.T, strict=True) if fit.separated(*of)]
    if not apart:
        return []
    shown = ", ".join(apart[:5]) + (", …" if len(apart) > 5 else "")
    return [
        f"A cut tells {shown} from the rest on all {len(gold)} rows: how steep its map is follows from Platt's prior, "
        "not from the cases."
    ]


def inputs(scores: Floats, kind: ScoreType, family: Family) -> Floats:
    """What a family reads of finite scores [n, k]: probabilities for beta, logits for those of classes together and for
    Platt, all else as it is.
    """
    if family == "beta":
        return fit.sigmoid(scores) if kind == "logit" else scores
    if kind == "probability" and family in (*TOGETHER, "platt"):
        inside = np.clip(scores, 2.0**-52, 1 - 2.0**-52)
        return np.asarray(np.log(inside) - (np.log1p(-inside) if family == "platt" else 0.0))
    return scores


def applied(record: CalibratorRecord, scores: Floats) -> Floats:
    """Probabilities [n, k] of scores [n, k], columns as in `labels`; rows that aren't finite stay NaN.

    Raises Misconfigured for other labels than it was fitted on.
    """
    if scores.shape[1] != len(record.labels):
        raise Misconfigured(
            "calibrator", found=f"{scores.shape[1]} scores a case for {len(record.labels)} labels",
            expected="the labels that it was fitted on", mend="Fit it again.",
        )  # fmt: skip
    usable = np.isfinite(scores).all(axis=1)
    result = np.full(scores.shape, np.nan)
    given = inputs(scores[usable], record.score_type, record.family)
    maps = [_map(record.family, each) for each in record.maps]
    if record.family in TOGETHER:
        result[usable] = maps[0].probabilities(given)
    else:
        for column, each in enumerate(maps):
            result[usable, column] = each.probabilities(given[:, column])
    return result


def applied_to_score(record: CalibratorRecord, scores: Floats) -> Floats:
    """Probabilities [n] of one score [n]; NaN stays."""
    return applied(record, scores[:, None])[:, 0]


def applied_to_choices(record: CalibratorRecord, scores: Floats) -> Floats:
    """Probabilities [k] of a case's choices, whose scores [k] compete."""
    [said] = record.maps
    given = inputs(scores[None], record.score_type, record.family)
    return np.asarray(_map(record.family, said).probabilities(given)[0])


def parameters(found: Calibration) -> Parameters:
    """A map as its numbers."""
    match found:
        case Temperature(temperature):
            return Parameters(temperature=temperature)
        case Scaling():
            return Parameters(weights=found.weights.tolist(), bias=found.bias.tolist())
        case Platt(slope, intercept):
            return Parameters(slope=slope, intercept=intercept)
        case Beta(a, b, c):
            return Parameters(a=a, b=b, c=c)
        case Steps():
            return Parameters(at=found.at.tolist(), values=found.values.tolist(), n_certain=found.n_certain)


def _sound(family: Family, said: Parameters, k: int) -> bool:
    """Whether a map has the numbers of its family, in their shapes, and within what a fit can give."""
    if family == "temperature":
        return said.temperature is not None and said.temperature > 0
    if family in ("vector", "matrix"):
        rows = said.weights or []
        return len(rows) == k and all(len(row) == k for row in rows) and len(said.bias or []) == k
    if family == "platt":
        return said.slope is not None and said.slope > 0 and said.intercept is not None
    if family == "beta":
        return said.a is not None and said.b is not None and said.c is not None and min(said.a, said.b) >= 0
    at, values = said.at or [], said.values or []
    wanted = len(at) + (1 if family == "histogram" else 0)
    within = all(0 <= value <= 1 for value in values)
    return len(values) == wanted > 0 and within and all(low <= high for low, high in pairwise(at))


def _map(family: Family, said: Parameters) -> Calibration:
    if family == "temperature" and said.temperature is not None:
        return Temperature(said.temperature)
    if family in ("vector", "matrix") and said.weights is not None and said.bias is not None:
        return Scaling(np.array(said.weights), np.array(said.bias))
    if family == "platt" and said.slope is not None and said.intercept is not None:
        return Platt(said.slope, said.intercept)
    if family == "beta" and said.a is not None and said.b is not None and said.c is not None:
        return Beta(said.a, said.b, said.c)
    if family in ("isotonic", "histogram") and said.at is not None and said.values is not None:
        return Steps(np.array(said.at), np.array(said.values), said.n_certain or 0, bins=family == "histogram")
    raise Misconfigured(
        "calibrator", found=f"a map without the numbers of {family}", expected="a calibrator as it was saved",
        mend="Fit it again with `harness calibrate`.",
    )  # fmt: skip
