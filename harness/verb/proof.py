"""What only running a release shows: the libraries behave as relied on, and its answers are those of the reference."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.release.admit import Check
from harness.release.open import Release

if TYPE_CHECKING:
    from harness.candidate.graphed import Loaded
    from harness.candidate.parity import Parity
    from harness.candidate.probe import Probe


def proofs_of(opened: Release) -> Iterator[Check]:
    """What only running shows. A recording has nothing to run; what cannot be proven says so, and stays DRAFT."""
    if opened.recorded is not None:
        return
    from harness.candidate.head_parity import head_parity, provable
    from harness.candidate.head_window_parity import head_window_parity
    from harness.candidate.load import LOADERS, load_numbers
    from harness.candidate.probe import probe_texts
    from harness.candidate.prompt_room import head_prompt_room

    yield from _markers(opened)
    if opened.definition.interaction in LOADERS and not opened.cannot_run:
        yield from _encoder(opened)
    elif opened.model_folder is not None and provable(opened.manifest):
        [tower] = opened.manifest.meaning.towers.values()
        texts = probe_texts(tower.input.max_length)
        yield _parity(head_parity(opened.model_folder, opened.manifest, texts))
        if not (opened.cannot_run or opened.unranked):
            if opened.backend is not None:
                yield from _backend(opened, load_numbers(opened))
            joined = head_window_parity(opened, texts)
            if joined is not None:
                yield _parity(joined)
        yield head_prompt_room(opened.model_folder, tower)
    else:
        yield Check(
            "parity", False, f"not proven: this version has no reference for {opened.cannot_run or 'it'}",
            "vectors and scores proven against the reference",
            "It can be described and compared; to judge it, record its outputs as a TREC run.",
        )  # fmt: skip


def _markers(opened: Release) -> Iterator[Check]:
    from harness.candidate.marker import markers, relied_on

    symbols = relied_on(opened.manifest)
    for marker in markers():
        if marker.symbol in symbols:
            fatal = [finding.text for finding in marker.findings if finding.fatal]
            told = [finding.text for finding in marker.findings if not finding.fatal]
            yield Check(
                f"marker: {marker.symbol}", not fatal, "; ".join(fatal or told) or "behaves as relied on",
                "the reviewed behaviour", "Install the versions that were reviewed." if fatal else "",
            )  # fmt: skip


def _encoder(opened: Release) -> Iterator[Check]:
    from harness.candidate.backend import backed
    from harness.candidate.load import load
    from harness.candidate.parity import Parity
    from harness.candidate.prompt_room import prompt_room
    from harness.candidate.prove import proofs

    prompts = opened.prompts_for()
    if prompts is None:
        return
    encoder = load(opened, prompts)
    room = prompt_room(opened, encoder)
    yield room
    if not room.ok:
        return
    if not opened.on_torch:
        checks = list(_backend(opened, encoder))
        yield from checks
        if not all(check.ok for check in checks):
            return
        encoder = backed(opened, encoder)
    for shown in proofs(opened, encoder):
        yield _parity(shown) if isinstance(shown, Parity) else _probe(shown)


def _probe(shown: "Probe") -> Check:
    relied = "" if shown.ok or shown.fatal else " (not relied on)"
    found = f"largest difference {shown.largest_difference:.2g}" + (f": {shown.policy}" if shown.policy else "")
    return Check(
        f"probe: {shown.name}", shown.ok or not shown.fatal, found + relied, f"at most {shown.tolerance:g}",
        "" if shown.ok else "Serve texts only as they are arranged here.",
    )  # fmt: skip


def _backend(opened: Release, loaded: "Loaded") -> Iterator[Check]:
    """What another backend computes is what the library does, or what a model that means itself does."""
    from harness.candidate.backend import prove

    for part in prove(opened, loaded):
        record, fault = part.record, part.fault
        read = f"padding on the {' and '.join(record.padding_sides)}, at most {record.max_length} tokens"
        what = "rows" if record.kind == "rows" else "numbers"
        yield Check(
            f"backend: {record.backend}, {part.name}", fault is None,
            fault or f"largest difference {record.largest_difference:.2g}; {read}",
            f"{what} in eight bits" if record.quantised else f"{what} within {record.tolerance:g} of the library's",
            "" if fault is None else "Delete the export beside release.toml to have it made again, or run on torch.",
        )  # fmt: skip


def _parity(shown: "Parity") -> Check:
    mend = "" if shown.ok else "Say in release.toml what the folder does."
    found = f"largest difference {shown.largest_difference:.2g}: {shown.text}"
    return Check(shown.name, shown.ok, found, f"at most {shown.tolerance:g} from the reference", mend)
