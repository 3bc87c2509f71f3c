"""What is put before a text, by its side and by the suite."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.identity import Json
from harness.release.field import sides_of
from harness.release.manifest import Meaning, Side, Tower


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is put before the text of a query and of a document."""

    query: str
    document: str

    def of(self, side: Literal["query", "document"]) -> str:
        return self.query if side == "query" else self.document

    def as_json(self) -> Mapping[str, Json]:
        return {"query": self.query, "document": self.document}


def prompts_of(meaning: Meaning, suite_name: str | None = None) -> Prompts | None:
    """A release's prompts on one suite, by default on one that it doesn't name; None where texts have no sides."""
    towers = sides_of(meaning)
    if "query" not in towers or "document" not in towers:
        return None
    return Prompts(
        prompt_of(towers["query"], "query", suite_name), prompt_of(towers["document"], "document", suite_name)
    )


def prompt_of(tower: Tower, side: Side, suite_name: str | None = None) -> str:
    """What stands before a side's texts, on one suite or outside of any."""
    special = {} if suite_name is None else tower.input.suite_prompts.get(suite_name, {})
    return {**tower.input.prompts, **special}.get(side, "")
