"""What is put before a text, by its side and by the suite."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.identity import Json
from harness.release.manifest import Meaning


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is put before the text of a query and of a document."""

    query: str
    document: str

    def as_json(self) -> Mapping[str, Json]:
        return {"query": self.query, "document": self.document}


def prompts_of(meaning: Meaning, suite_name: str | None = None) -> Prompts | None:
    """A release's prompts on one suite, by default on one that it doesn't name; None where texts have no sides."""
    found = [_prompt(meaning, side, suite_name) for side in ("query", "document")]
    return None if None in found else Prompts(*(each or "" for each in found))


def _prompt(meaning: Meaning, side: Literal["query", "document"], suite_name: str | None) -> str | None:
    tower = next((meaning.towers[name] for name in (side, "both") if name in meaning.towers), None)
    if tower is None:
        return None
    special = tower.input.suite_prompts.get(suite_name, {}) if suite_name is not None else {}
    return {**tower.input.prompts, **special}.get(side, "")
