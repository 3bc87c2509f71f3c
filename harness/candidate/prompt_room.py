"""Whether a prompt leaves its texts any room. One that does not makes all of them alike, and keeps every shape."""

from collections.abc import Iterator
from pathlib import Path

from harness.candidate.encoder import Encoder
from harness.candidate.runtime import go_offline
from harness.candidate.side import tokens_around
from harness.release.admit.check import Check, listed
from harness.release.manifest import Tower
from harness.release.open import Release


def prompt_room(release: Release, encoder: Encoder) -> Check:
    """Of a release with sides: its usual prompts, and those of each suite that it names."""
    return _check(_filled(release, encoder), "Shorten the prompt in [prompts] of release.toml, or raise max_length.")


def head_prompt_room(folder: Path, tower: Tower) -> Check:
    """Of a head on its own, which reads a prompt where it is a cross-encoder: before every query."""
    return _check(
        _filled_for_head(folder, tower),
        "Shorten the prompt in config_sentence_transformers.json, or raise [input] max_length in release.toml.",
    )


def _check(filled: Iterator[str], mend: str) -> Check:
    return listed(
        "prompt-room", filled, sound="holds", expected="prompts that leave room for at least one token of a text",
        mend=mend,
    )  # fmt: skip


def _filled(release: Release, encoder: Encoder) -> Iterator[str]:
    named = {suite for tower in release.manifest.meaning.towers.values() for suite in tower.input.suite_prompts}
    for suite in (None, *sorted(named)):
        prompts = release.prompts_for(suite)
        for side, own in encoder.sides.items():
            around = 0 if prompts is None else own.around(prompts.of(side))
            if around >= own.max_length:
                yield _told(side if suite is None else f"{side} on {suite}", around, own.max_length)


def _filled_for_head(folder: Path, tower: Tower) -> Iterator[str]:
    go_offline()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    around = tokens_around(tokenizer, tower.input.prompts.get("pair", ""), pair=tower.input.template != "single")
    if around >= tower.input.max_length:
        yield _told(tower.input.template, around, tower.input.max_length)


def _told(what: str, around: int, limit: int) -> str:
    return f"{what}: special tokens and prompt are {around}, of {limit} that the model reads"
