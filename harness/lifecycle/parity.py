"""Parity runs that a deployment made: `parity.jsonl` in the candidate's folder, one run a line."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from harness.file.lines import Entry, read_objects, refuse
from harness.lifecycle.compatibility import ParityRun

FILE = "parity.jsonl"


class _Line(BaseModel):
    """A run as it is written: what `diff` demanded, how many items were made again, and how far the worst value was."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    namespace: Annotated[str, Field(min_length=1)]
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    items: Annotated[int, Field(gt=0)]
    largest: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    runtime: dict[str, JsonValue]


def read(release_folder: Path) -> tuple[ParityRun, ...]:
    """The runs that a candidate's folder tells of; none without the file. Raises Misconfigured with the line."""
    path = release_folder / FILE
    return tuple(_run(entry) for entry in read_objects(path)) if path.exists() else ()


def _run(entry: Entry) -> ParityRun:
    try:
        line = _Line.model_validate(entry.keys)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        refuse(
            entry.place, f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}",
            "`namespace`, `key`, `items`, `largest` and `runtime` of a parity run",
            "Copy what `harness diff --json` demands under `parity`, and add `items` and `largest`.",
        )  # fmt: skip
    return ParityRun(line.namespace, line.key, line.items, line.largest, line.runtime)
