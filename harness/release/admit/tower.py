"""The invariants of an encoder: what its numbers say to each other, and to the weights' own shapes."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.identity import Json
from harness.release.admit.check import Check, broken, held, listed
from harness.release.describe.architecture import first_position, known
from harness.release.describe.heads import TASKS, groups_of
from harness.release.describe.modules import Module, read_towers
from harness.release.describe.split import all_tensors, is_of
from harness.release.describe.vocabulary import Tokenizer, read_tokenizer
from harness.release.folder import ModelFolder
from harness.release.manifest import Manifest, Tower
from harness.release.weights import Tensor

LAYER = re.compile(r"(?:^|\.)(?:encoder\.layer|transformer\.layer|layers|h)\.(\d+)\.")
# Modules that map one width to another, and what their tensors are called.
MAPS = {"Dense": "linear", "LayerNorm": "norm"}
EMBEDDINGS = ("word_embeddings.weight", "embed_tokens.weight", "tok_embeddings.weight", "shared.weight", "wte.weight")


@dataclass(frozen=True, slots=True)
class Seen:
    """A tower beside the files that it was read from, and the modules that it is made of, where it is."""

    name: str
    tower: Tower
    folder: ModelFolder
    modules: tuple[Module, ...]
    config: Mapping[str, Json]
    tokenizer: Tokenizer
    tensors: Mapping[str, Tensor]

    @property
    def embeddings(self) -> Tensor | None:
        found = [tensor for name, tensor in self.tensors.items() if name.endswith(EMBEDDINGS)]
        return found[0] if found else None


def see(manifest: Manifest, folder: ModelFolder) -> tuple[Seen, ...]:
    """Each tower with its files. Raises NotAdmitted for files that cannot be read."""
    found = []
    modules = dict[str, tuple[Module, ...]]()
    if (folder.path / "modules.json").is_file():
        modules = {str(name): steps for name, steps in read_towers(folder).items()}
    for name, tower in manifest.meaning.towers.items():
        place = manifest.place(name)
        found.append(
            Seen(
                name, tower, folder, modules.get(name) or modules.get("both", ()),
                folder.json(place / "config.json") or {}, read_tokenizer(folder, place), all_tensors(folder, place),
            )
        )  # fmt: skip
    return tuple(found)


def tower_findings(towers: tuple[Seen, ...]) -> tuple[Check, ...]:
    """The invariants that need a folder's files beside the manifest, each over all towers."""
    mend = "Restore the files: they don't belong together."
    return (
        over(towers, "tokenizer-there", _no_tokenizer, "the files of a tokenizer", "Fetch the tokenizer's files."),
        over(
            towers, "tokenizer-vocabulary", _no_vocabulary, "tokens in the tokenizer's vocabulary",
            "Restore the tokenizer's files from where the model came from.",
        ),
        over(
            towers, "special-ids-exist", _special, "every special token in the tokenizer, below the embeddings' rows",
            "Restore the tokenizer's files: they name tokens that it does not have.",
        ),
        _padding(towers),
        over(
            towers, "embedding-rows", _vocabulary, "no more tokens than rows of the embeddings",
            "Restore tokenizer or weights: one of them is another model's.",
        ),
        over(towers, "embedding-width", _width, "the configuration's width in the weights", mend),
        over(towers, "layers-there", _layers, "as many layers in the weights as in the configuration", mend),
        over(towers, "pooling-width", _pooling, "the width of the model's rows", mend),
        over(towers, "projection-shapes", _shapes, "the shapes that the configuration says", mend),
        over(
            towers, "length-within-positions", _positions, "no more tokens than positions",
            "Lower [input] max_length, or restore the file that says the length.",
        ),
        over(
            towers, "mask-source", _mask, "an attention mask from the tokenizer",
            "Add `attention_mask` to `model_input_names` in tokenizer_config.json.",
        ),
        over(
            towers, "head-weights", _head, "weights for every map of the head, one row for each number",
            "Fetch the weights of the model with its head; the library would make a head of random numbers.",
        ),
        over(
            towers, "row-tokens-exist", _row_tokens, "tokens that the tokenizer has",
            "Restore the tokenizer, or the list of tokens.",
        ),
    )  # fmt: skip


def over(
    towers: tuple[Seen, ...], name: str, faults: Callable[[Seen], Iterator[str]], expected: str, mend: str
) -> Check:
    """One check over all towers, each fault with its tower's name where there are several."""
    several = len(towers) > 1
    found = [f"{seen.name}: {fault}" if several else fault for seen in towers for fault in faults(seen)]
    return listed(name, dict.fromkeys(found), sound="holds", expected=expected, mend=mend)


def _no_tokenizer(seen: Seen) -> Iterator[str]:
    names = {PurePosixPath(file).name for file in seen.tokenizer.files}
    if not names & {"tokenizer.json", "vocab.txt", "vocab.json"} and not any(name.endswith(".model") for name in names):
        yield f"no vocabulary among {', '.join(sorted(names)) or 'no files'}"


def _no_vocabulary(seen: Seen) -> Iterator[str]:
    if seen.tokenizer.empty:
        yield f"no tokens but {len(seen.tokenizer.ids)} added ones"


def _special(seen: Seen) -> Iterator[str]:
    tokenizer, rows = seen.tokenizer, seen.embeddings
    for role, token in tokenizer.stated.items() if tokenizer.whole else ():
        if token not in tokenizer.ids:
            yield f"{role} {token!r}, which the tokenizer does not have"
    for role, token_id in seen.tower.input.special_tokens.items():
        if rows is not None and token_id >= rows.shape[0]:
            yield f"{role} has ID {token_id}, the embeddings {rows.shape[0]} rows"


def _padding(towers: tuple[Seen, ...]) -> Check:
    """Broken where an output depends on it; else what departs is told, and does no harm."""
    name, expected = "padding-id", "a padding token of one ID in tokenizer and configuration"
    mend = "Set `pad_token_id` in config.json to the tokenizer's padding token, as the model was trained."
    told = {}
    for seen in towers:
        read, departs = _reads_padding(seen), _padding_departs(seen)
        if read and seen.config.get("pad_token_id") is None and seen.tower.readout.family == "cls-head":
            departs = "no `pad_token_id` in config.json"
        if departs is not None:
            told[departs + (f", by which {read}" if read else "; no output depends on it")] = bool(read)
    harm = [text for text, harms in told.items() if harms]
    return broken(name, "; ".join(harm), expected, mend) if harm else held(name, "; ".join(told) or "holds", expected)


def _reads_padding(seen: Seen) -> str | None:
    """What is found by the configuration's padding ID; everywhere else the attention mask tells."""
    if seen.tower.readout.family == "cls-head" and seen.tower.readout.modes == ["lasttoken"]:
        return "the last row is found"
    architecture = known(seen.config)
    return "positions are counted" if architecture is not None and architecture.offset_positions else None


def _padding_departs(seen: Seen) -> str | None:
    said, padding = seen.config.get("pad_token_id"), seen.tower.input.special_tokens.get("pad_token")
    if said is None or padding is None or said == padding:
        return None
    return f"pad_token_id {said} in config.json, {padding} in the tokenizer"


def _vocabulary(seen: Seen) -> Iterator[str]:
    rows, size = seen.embeddings, seen.tokenizer.size
    count = rows.shape[0] if rows is not None else seen.config.get("vocab_size")
    if size is not None and isinstance(count, int) and size > count:
        yield f"{size} tokens, {count} rows"


def _width(seen: Seen) -> Iterator[str]:
    rows = seen.embeddings
    width = seen.config.get("embedding_size", seen.tower.state.width)
    if rows is not None and len(rows.shape) == 2 and rows.shape[1] != width:
        yield f"width {width} in config.json, {rows.shape[1]} in the weights"


def _layers(seen: Seen) -> Iterator[str]:
    there = {int(match.group(1)) for name in seen.tensors if (match := LAYER.search(name))}
    if there and seen.tower.state.mixture is None and len(there) != max(seen.tower.state.layers):
        yield f"{len(there)} layers in the weights, {max(seen.tower.state.layers)} in config.json"
    parts: dict[str, set[str]] = {}
    for name in seen.tensors:
        if match := LAYER.search(name):
            parts.setdefault(match.group(1), set()).add(name[: match.start()] + name[match.end() :])
    every = set().union(*parts.values())
    for layer, own in sorted(parts.items(), key=lambda part: int(part[0])):
        # Some models have layers of several kinds; one that alone lacks what all others have was cut.
        gone = sorted(part for part in every - own if sum(part in other for other in parts.values()) == len(parts) - 1)
        if gone and len(parts) > 2:
            yield f"layer {layer} without {gone[0]}" + (f" and {len(gone) - 1} more" if gone[1:] else "")


def _pooling(seen: Seen) -> Iterator[str]:
    for module in seen.modules:
        width = module.config.get("embedding_dimension", module.config.get("word_embedding_dimension"))
        if module.kind == "Pooling" and width != seen.tower.state.width:
            yield f"the width {width!r} in {module.file}, {seen.tower.state.width} in the model"


def _shapes(seen: Seen) -> Iterator[str]:
    maps = [module for module in seen.modules if module.kind in MAPS]
    for module, step in zip(maps, seen.tower.readout.projections, strict=True) if maps else ():
        name, place = MAPS[module.kind], module.place
        tensors = all_tensors(seen.folder, place)
        weight, bias = tensors.get(f"{name}.weight"), tensors.get(f"{name}.bias")
        shape = (step.width_out, step.width_in) if step.kind == "dense" else (step.width_out,)
        if tensors and (weight is None or weight.shape != shape):
            yield f"{place} has the shape {None if weight is None else list(weight.shape)}, not {list(shape)}"
        if tensors and (bias is not None) != step.bias:
            yield f"{place} has {'no' if bias is None else 'a'} bias, unlike its configuration"
        elif bias is not None and bias.shape != (step.width_out,):
            yield f"{place} has a bias of the shape {list(bias.shape)}, not {[step.width_out]}"


def _positions(seen: Seen) -> Iterator[str]:
    limit = seen.config.get("max_position_embeddings")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
        return
    limit -= first_position(seen.config)
    if seen.tower.input.max_length > limit:
        yield f"{seen.tower.input.max_length} tokens, {limit} positions"


def _mask(seen: Seen) -> Iterator[str]:
    names = seen.tokenizer.config.get("model_input_names")
    if isinstance(names, list) and seen.tower.rows.mask not in names:
        yield f"a tokenizer that gives {', '.join(str(name) for name in names)}"


def _head(seen: Seen) -> Iterator[str]:
    readout = seen.tower.readout
    if readout.family == "sparse" and seen.tensors and not readout.projections[0].weights:
        yield "no weights of a language model's head"
    if readout.family not in TASKS or not seen.tensors:
        return
    names = groups_of(seen.tower)
    gone = [
        group for group in names if not any(is_of(group, name) and name.endswith("weight") for name in seen.tensors)
    ]
    yield from (f"no weights of {group}" for group in gone)
    if gone or not names:
        return
    rows = readout.projections[-1].width_out
    for name, tensor in seen.tensors.items():
        whole = name.endswith(".weight") and not name.endswith(".dense.weight") and len(tensor.shape) == 2
        if whole and is_of(names[-1], name) and tensor.shape[0] != rows:
            yield f"{tensor.shape[0]} rows in {name}, {rows} in the configuration"


def _row_tokens(seen: Seen) -> Iterator[str]:
    ids, rows = seen.tokenizer.ids, seen.tower.rows
    tokens = [token for some in rows.skipped.values() for token in some]
    for token in [*tokens, *([rows.expansion_token] if rows.expansion_token else [])]:
        if seen.tokenizer.whole and token not in ids:
            yield f"{token!r}, which the tokenizer does not have"
    if any(rows.expansion.values()) and rows.expansion_token is None:
        yield "texts are filled up, and no token is known to do it with"
