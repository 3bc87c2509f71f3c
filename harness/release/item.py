"""What a single text's rows and vector depend on, once its tokens are known.

Within a node's key stands how a text becomes tokens. An item holds across releases where its tokens are the same and
all later fields agree, whatever made the tokens.
"""

from dataclasses import dataclass

from harness.identity import Json, digest
from harness.release.graph import Node, graph
from harness.release.manifest import Meaning

# What of the source neither tokens nor masks show: on which columns the model finds them.
UNSEEN = "input.padding_side"
# Words whose rows are left out are found by their token IDs: by another vocabulary the same tokens are other words.
SKIPPED, VOCABULARY = "rows.skipped", "input.tokenizer"
# What becomes of a head's raw numbers once they are there: the names of labels, the activation, the class that ranks.
BEHIND_NUMBERS = ("score.", "output.labels", "output.null", "output.transitions", "output.regression.")


@dataclass(frozen=True, slots=True)
class ItemKeys:
    """`source`: how a text becomes tokens, by everything but the suite's own prompts. `rows`: from tokens to
    contextual rows. `vector`: that, and the readout. Equal keys, equal results for equal input on equal runtime.
    """

    source: str
    rows: str
    vector: str


def item_keys(meaning: Meaning, side: str) -> ItemKeys:
    """The keys of one side of a release. What has no vector node has the key of its rows and its raw numbers for it."""
    found = graph(meaning)
    nodes = {name: found.find(f"{name}:{side}") for name in ("source", "contextual", "vector")}
    last = nodes["vector"] or found.find("raw score")
    source = _values(nodes["source"])
    rows = {**_values(nodes["contextual"]), UNSEEN: source[UNSEEN]}
    # Where windows are joined as rows, what is read out is the whole text's.
    readout = {**_values(last), **_values(found.find(f"contextual:{side}:aggregated"))}
    if nodes["vector"] is None:
        readout = {name: value for name, value in readout.items() if not name.startswith(BEHIND_NUMBERS)}
    if last and any(field.name == SKIPPED and field.value for field in last.fields):
        readout |= {name: value for name, value in source.items() if name.startswith(VOCABULARY)}
    return ItemKeys(
        source=digest({"source": source}),
        rows=digest({"rows": rows}),
        vector=digest({"rows": rows, "readout": readout}),
    )


def _values(node: Node | None) -> dict[str, Json]:
    """By the name that both sides of a shared encoder have for a field; a node of no side has its fields' paths."""
    if node is None:
        return {}
    named = {(field.name if node.side else field.path): field.value for field in node.fields}
    return {name: value for name, value in named.items() if value is not None}
