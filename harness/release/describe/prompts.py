"""What is put before a text, by side, and on which suites something else is."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from harness.identity import Json
from harness.release.definition import ReleaseDefinition, SidePrompts
from harness.release.describe.told import DECLARED, LIBRARY, Told, Tree, declared

Sides: TypeAlias = tuple[Literal["query", "document"], ...]
# By tower, whose texts it reads.
SIDES: Mapping[str, Sides] = {"both": ("query", "document"), "query": ("query",), "document": ("document",)}
SETTINGS = "config_sentence_transformers.json"
NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}


def side_prompts(said: SidePrompts, settings: Mapping[str, Json], sides: Sides) -> Mapping[str, Told]:
    """By side: what release.toml says, else the folder's prompt of that name, else its default one, else nothing."""
    return {side: _prompt(said, settings, side) for side in sides}


def suite_prompts(definition: ReleaseDefinition, settings: Mapping[str, Json], sides: Sides) -> Tree:
    """The prompts of those suites whose table in release.toml departs from the usual ones."""
    usual = side_prompts(definition.prompts, settings, sides)
    suites: dict[str, Tree] = {}
    for suite in sorted(definition.prompts.suites):
        said = definition.prompts_for(suite)
        other = {side: text for side in sides if (text := said.of(side)) is not None and text != usual[side].value}
        if other:
            suites[suite] = {side: Told(text, DECLARED) for side, text in other.items()}
    return suites or Told({}, DECLARED)


def _prompt(said: SidePrompts, settings: Mapping[str, Json], side: Literal["query", "document"]) -> Told:
    known = saved_prompts(settings)
    default = settings.get("default_prompt_name")
    # A default that is the other side's prompt by name is no default for this one.
    others = {name for other, named in NAMES.items() if other != side for name in named}
    names: Sequence[Json] = (*NAMES[side], None if default in others else default)
    name = next((name for name in names if isinstance(name, str) and name in known), None)
    if name is None:
        text = said.of(side)
        return Told("", LIBRARY) if text is None else Told(text, DECLARED)
    return declared(said.of(side), known[name], f"{SETTINGS}#/prompts/{name}")


def saved_prompts(settings: Mapping[str, Json]) -> Mapping[str, str]:
    """Those of the folder that have a text."""
    prompts = settings.get("prompts")
    every = prompts.items() if isinstance(prompts, Mapping) else ()
    return {name: text for name, text in every if isinstance(text, str)}
