"""A small JSON record that carries a digest of all else it says, so that a number changed by hand is seen."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, Field

from harness.errors import Misconfigured, Tampered
from harness.identity import Json, canonical_json

OWN = "own_digest"


class Sealed(BaseModel):
    """A record that is kept as canonical JSON. `own_digest`: of all else that stands there."""

    own_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None

    def sealed(self) -> Self:
        """The same with the digest of what it says."""
        return self.model_copy(update={OWN: own_digest(self._record())})

    def as_bytes(self) -> bytes:
        """The file that is kept."""
        return canonical_json(self._record()) + b"\n"

    def _record(self) -> dict[str, Json]:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def own_digest(record: Mapping[str, Json]) -> str:
    """Of all that a record says but this digest."""
    return hashlib.sha256(canonical_json({name: value for name, value in record.items() if name != OWN})).hexdigest()


def require_sealed(subject: str, text: str | bytes, mend: str) -> Mapping[str, Json]:
    """The record of a text that holds what its digest says.

    Raises Misconfigured for a text that is no such record or carries no digest, Tampered for one of another content.
    """
    try:
        record = json.loads(text)
        found = own_digest(record) if isinstance(record, dict) else ""
    except (ValueError, RecursionError):
        record, found = None, ""
    if not isinstance(record, dict) or not isinstance(record.get(OWN), str):
        raise Misconfigured(
            subject, found="no JSON record" if not isinstance(record, dict) else f"a record without `{OWN}`",
            expected=f"a record that carries a digest of itself as `{OWN}`", mend=mend,
        )  # fmt: skip
    if record[OWN] != found:
        raise Tampered(
            subject, found=f"a record whose content has the digest {found}",
            expected=f"{record[OWN]}, which stands in it as `{OWN}`: it was changed after it was written", mend=mend,
        )  # fmt: skip
    return record
