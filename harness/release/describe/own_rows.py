"""A bi-encoder's own rows as late interaction: what its folder says of them, and what release.toml has to."""

import string
from collections.abc import Mapping, Sequence

from harness.errors import Misconfigured
from harness.identity import Json
from harness.release.definition import ReleaseDefinition
from harness.release.describe.backbone import Backbone
from harness.release.describe.modules import Module, unsupported
from harness.release.describe.told import DECLARED, Told

PUNCTUATION: list[Json] = list(string.punctuation)
# What leaves the rows as they are.
BEHIND = ("Pooling", "Dropout", "Normalize")


def skipped(definition: ReleaseDefinition, backbone: Backbone, modules: Sequence[Module]) -> Mapping[str, Told] | None:
    """By side, the declared tokens whose rows do not count; None for a folder of late interaction.

    Raises Misconfigured where they have to be declared and aren't, or the other way round, NotAdmitted for modules that
    a bi-encoder's rows would have to go through.
    """
    kinds, said = [module.kind for module in modules], definition.late
    if "Pooling" not in kinds:
        if said is not None:
            raise Misconfigured(
                f"release {definition.name}", found="a [late] beside a model of late interaction",
                expected="the folder's own policies", mend="Take [late] out of release.toml.",
            )  # fmt: skip
        return None
    if said is None:
        raise Misconfigured(
            f"release {definition.name}", found="a bi-encoder, which does not say which of its rows count",
            expected="a [late] that does",
            mend='Add [late] to release.toml, with `skip = "punctuation"` or a list of tokens.',
        )  # fmt: skip
    if kinds[0] != "Transformer" or not set(kinds[1:]) <= set(BEHIND):
        raise unsupported(
            str(backbone.folder.path / "modules.json"), f"the modules {', '.join(kinds)}",
            f"a Transformer with nothing behind it but {', '.join(BEHIND)}",
        )  # fmt: skip
    words: list[Json] = list(said.skip)
    if said.skip == "punctuation":
        words = [mark for mark in PUNCTUATION if not backbone.tokenizer.whole or mark in backbone.tokenizer.ids]
    return {"document": Told(words, DECLARED)} if words else {}
