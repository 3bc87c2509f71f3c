"""An opened release's model, loaded by the libraries: offline, without remote code, in float32."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypeAlias

from harness.candidate.batch import BATCHES
from harness.candidate.export import graphs
from harness.candidate.runtime import device, go_offline, go_quiet, one_row_at_a_time, runtime, said
from harness.candidate.side import SIDES, Keys, Side
from harness.candidate.skeleton import is_bare
from harness.errors import Misconfigured, NotAdmitted, Stopped
from harness.identity import Json, digest
from harness.release.field import sides_of
from harness.release.item import item_keys
from harness.release.manifest import Meaning
from harness.release.manifest import Side as AnySide
from harness.release.open import Release

# Columns of a model that has no table of positions.
UNBOUNDED = 1 << 20
# Interactions whose rows are not kept apart from the numbers that a head makes of them.
WHOLE_PASS = ("cross", "head")
Pipelines: TypeAlias = Mapping[Side, Sequence[Any]]


def loaded(release: Release, library_class: str) -> Any:
    """The model as a class of Sentence Transformers, on CUDA where there is a device. Raises Stopped."""
    go_offline()
    try:
        return _loaded(str(release.model_folder), library_class)
    except Exception as error:
        raise Stopped(
            f"release {release.name}", found=f"the model does not load ({said(error)})",
            expected=f"a folder that Sentence Transformers {version('sentence-transformers')} loads offline",
            mend=f"Try it by hand: {library_class}({str(release.model_folder)!r}, local_files_only=True).",
        ) from error  # fmt: skip


def pipelines(model: Any) -> Pipelines:
    """By side, the modules that its texts go through: a Router's own route, and all that stands behind it."""
    first, *after = model.children()
    routes = getattr(first, "sub_modules", None)
    return {side: [first, *after] if routes is None else [*routes[side], *after] for side in SIDES}


def positions(config: Any) -> int:
    """Columns that a batch may have, padding included, by the backbone's own configuration."""
    return getattr(config, "max_position_embeddings", None) or UNBOUNDED


def keys(release: Release, side: AnySide, prompt: str) -> Keys:
    """What a side's tokens, rows and vectors depend on, what computes them included."""
    return keys_on(runs_on(_reader(release, side)), release.manifest.meaning, side, prompt)


def pass_key(release: Release, side: AnySide) -> str:
    """What a live release's forward pass over a side's tokens depends on: the `rows` of its loaded encoder's keys."""
    found = keys(release, side, "")
    return found.vector if release.definition.interaction in WHOLE_PASS else found.rows


def _reader(release: Release, side: AnySide) -> Release:
    """Whose model reads a side: of a pair the member's."""
    return release.encoder_of(side) if side == "query" or side == "document" else release


def runs_on(release: Release) -> Mapping[str, Json]:
    """What a live release runs on, the graphs of another backend than torch among it; those of members by role."""
    found = runtime(release.backend)
    if release.backend is not None:
        return {**found, "graphs": graphs(release.folder)}
    apart = {role: dict(runs_on(each)) for role, each in release.members.items() if not each.on_torch}
    return {**found, **apart}


def keys_on(runtime: Mapping[str, Json], meaning: Meaning, side: AnySide, prompt: str) -> Keys:
    """`keys` of a meaning on what computed it then."""
    found, readout = item_keys(meaning, side), sides_of(meaning)[side].readout
    # The first module of a sparse encoder gives logits: its head is a part of it.
    logits = readout.projections[0] if readout.family == "sparse" else None
    head: Json = None if logits is None else logits.model_dump(mode="json", exclude={"activation"})
    on: Mapping[str, Json] = {"runtime": dict(runtime), "batches": BATCHES}
    return Keys(
        source=digest({"source": found.source, "prompt": prompt}),
        rows=digest({"rows": found.rows, "head": head, **on}),
        vector=digest({"vector": found.vector, **on}),
    )


def room_for_text(name: str, max_length: int, tokenizer: Any, *, pair: bool = False) -> None:
    """Raises Misconfigured for a maximum length that special tokens fill, those of a text or of a `pair` of them."""
    special = tokenizer.num_special_tokens_to_add(pair=pair)
    if max_length <= special:
        raise Misconfigured(
            f"release {name}", found=f"max_length {max_length}",
            expected=f"more than the {special} special tokens of a {'pair' if pair else 'text'}",
            mend="Raise [input] max_length in release.toml.",
        )  # fmt: skip


def hold(subject: str, found: Mapping[str, Json], expected: Mapping[str, Json]) -> None:
    """What was loaded against what the release means. Raises NotAdmitted with all that departs."""
    departing = [name for name in expected if found[name] != expected[name]]
    if departing:
        raise NotAdmitted(
            subject, found=", ".join(f"{name} {found[name]}" for name in departing),
            expected=", ".join(f"{name} {expected[name]}" for name in departing),
            mend="The installed library reads the folder otherwise; install the version it was made for.",
        )  # fmt: skip


def _loaded(folder: str, library_class: str) -> Any:
    import sentence_transformers
    import torch

    go_quiet()
    model = getattr(sentence_transformers, library_class)(
        folder,
        device="meta" if is_bare() else device(),
        local_files_only=True,
        trust_remote_code=False,
        model_kwargs={"dtype": torch.float32, "use_safetensors": True},
    )
    one_row_at_a_time(model, heads=library_class == "CrossEncoder")
    return model.float().eval()
