"""What a suite may demand: the schema of `[[rules]]`, `[guards]` and `[uncertainty]`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


def _printable(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise ValueError("a name holds no line break, control character or outer blank")
    return name


def _written(text: str) -> str:
    if not any(each.isalnum() and each not in "\u115f\u1160\u3164\uffa0" for each in text):
        raise ValueError("no word in it")
    return text


Strict = ConfigDict(extra="forbid", frozen=True, strict=True)
Positive = Annotated[int, Field(gt=0)]
Name = Annotated[str, Field(min_length=1), AfterValidator(_printable)]
Finite = Annotated[float, Field(allow_inf_nan=False)]

Written = Annotated[str, AfterValidator(_written)]
"""What a person writes, in words: there are blanks that are no space, and letters that nothing is drawn for."""


class Rule(BaseModel):
    """A headline rule (`no-worse`, `at-least`, `at-most`) or an `invariant` over a count."""

    model_config = Strict

    id: Name
    kind: Literal["no-worse", "at-least", "at-most", "invariant"]
    metric: str
    slice: str = "all"
    margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    value: Finite | None = None
    critical: bool = True

    @model_validator(mode="after")
    def _one_bound(self) -> "Rule":
        wanted, other = ("margin", "value") if self.kind == "no-worse" else ("value", "margin")
        if getattr(self, wanted) is None:
            raise ValueError(f"a {self.kind} rule needs `{wanted}`")
        if getattr(self, other) is not None:
            raise ValueError(f"a {self.kind} rule has no `{other}`")
        return self


class Guards(BaseModel):
    """Slices times metrics, each a guard `guard:SLICE:METRIC` that fails only when shown worse."""

    model_config = Strict

    metrics: Annotated[list[str], Field(min_length=1)]
    slices: Literal["every"] | list[str] = "every"
    margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class Uncertainty(BaseModel):
    """How intervals and p-values are found. `draws` resamples or sign flips, `seed` fixes them."""

    model_config = Strict

    method: Literal["bca", "percentile"] = "bca"
    draws: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    seed: Annotated[int, Field(ge=0)] = 20261201
    family: Literal["holm", "benjamini-hochberg"] = "holm"
