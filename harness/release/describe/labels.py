"""The ordered labels of a head, and what its numbers are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import Misconfigured, NotAdmitted
from harness.identity import Json
from harness.release.definition import ReleaseDefinition
from harness.release.describe.backbone import Backbone
from harness.release.describe.told import DERIVED, LIBRARY, Told, declared

GENERIC = re.compile(r"LABEL_\d+")
LIBRARYS_LABELS = 2
KINDS = {"single_label_classification": "classes", "multi_label_classification": "multilabel", "regression": "value"}


@dataclass(frozen=True, slots=True)
class Labels:
    """`names` in the order of the head's rows, and how many of those there are. `generic`: nobody named them."""

    names: Told
    count: Told
    generic: Told


def labels_of(backbone: Backbone) -> Labels:
    """From the configuration, or as release.toml names them.

    A configuration leaves out what is the library's own: two labels, and generic names.
    Raises NotAdmitted for a label map that gives no order.
    """
    said, file = backbone.definition.output.labels, backbone.at("config.json")
    stated = backbone.config.get("id2label")
    number = backbone.config.get("num_labels")
    if isinstance(stated, Mapping) and stated:
        folder, source = _ordered(backbone, stated), f"{file}#/id2label"
    elif isinstance(number, int) and not isinstance(number, bool):
        folder, source = _unnamed(number), f"{file}#/num_labels"
    else:
        folder, source = _unnamed(LIBRARYS_LABELS), LIBRARY
    names = declared(None if said is None else list(said), folder, source)
    count = Told(len(folder), source)
    generic = isinstance(names.value, list) and any(GENERIC.fullmatch(str(each)) for each in names.value)
    return Labels(names, count, Told(generic, DERIVED))


def output_kind(definition: ReleaseDefinition, backbone: Backbone) -> Told:
    """What a sequence head's numbers are. Never inferred from their count, or from the type of training labels.

    Raises Misconfigured where neither the configuration nor release.toml says it.
    """
    folder = KINDS.get(str(backbone.config.get("problem_type")))
    source = f"{backbone.at('config.json')}#/problem_type"
    said = definition.output.kind
    if folder is None and said is None:
        raise Misconfigured(
            f"release {definition.name}", found=f"no `problem_type` in {backbone.at('config.json')}",
            expected="whether the head gives classes, several labels at once, or a value",
            mend='Add `kind = "classes"`, "multilabel" or "value" to [output] in release.toml.',
        )  # fmt: skip
    return declared(said, folder, source)


def _unnamed(count: int) -> list[str]:
    return [f"LABEL_{row}" for row in range(count)]


def _ordered(backbone: Backbone, stated: Mapping[str, Json]) -> list[str]:
    try:
        rows = {int(row): str(label) for row, label in stated.items()}
    except ValueError:
        rows = {}
    if sorted(rows) != list(range(len(stated))):
        raise NotAdmitted(
            str(backbone.config_file), found=f"id2label of the rows {', '.join(stated)}",
            expected=f"the rows 0 to {len(stated) - 1}", mend="Name every row of the head once, in `id2label`.",
        )  # fmt: skip
    return [rows[row] for row in range(len(rows))]
