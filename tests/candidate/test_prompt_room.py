"""A prompt that fills the whole of what a model reads leaves every text alike, and is refused by name."""

import json

import pytest

from harness.candidate.load import load
from harness.candidate.prompt_room import head_prompt_room, prompt_room
from harness.verb.admit import admit_release

from .conftest import save_cross, save_tiny

# Twelve tokens are read: [CLS] and [SEP], and ten more.
SHORT = "[input]\nmax_length = 12\n"


def said(words: int) -> str:
    return " ".join(["wing"] * words)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("room"))


@pytest.fixture
def room(release, tiny):
    """The check of the tiny model with further lines of release.toml."""

    def of(extra: str):
        opened = release(f"path:{tiny}", SHORT + extra)
        return prompt_room(opened, load(opened, opened.prompts_for()))

    return of


class TestOfSides:
    @pytest.mark.parametrize(("words", "holds"), [(0, True), (9, True), (10, False), (30, False)])
    def test_a_prompt_must_leave_one_token_of_a_text(self, room, words: int, holds: bool) -> None:
        """Special tokens counted: of twelve, ten are left for prompt and text."""
        assert room(f'[prompts]\nquery = "{said(words)}"\ndocument = ""\n').ok is holds

    def test_the_side_and_the_figures_are_named(self, room) -> None:
        check = room(f'[prompts]\nquery = ""\ndocument = "{said(10)}"\n')
        assert (check.name, check.found) == (
            "prompt-room", "document: special tokens and prompt are 12, of 12 that the model reads"
        )  # fmt: skip
        assert "at least one token" in check.expected and "[prompts]" in check.mend

    def test_so_is_the_suite_whose_prompt_it_is(self, room) -> None:
        check = room(f'[prompts]\nquery = ""\ndocument = ""\n[prompts.help]\nquery = "{said(11)}"\n')
        assert check.found == "query on help: special tokens and prompt are 13, of 12 that the model reads"

    def test_admission_refuses_it_and_proves_nothing_with_it(self, release, tiny) -> None:
        opened = release(f"path:{tiny}", f'{SHORT}[prompts]\nquery = "{said(10)}"\ndocument = ""\n')
        found = admit_release(opened)
        assert [check.name for check in found.checks if not check.ok] == ["prompt-room"]
        assert "parity" not in {check.name for check in found.checks}


class TestOfPairs:
    @pytest.mark.parametrize(("words", "holds"), [(8, True), (9, False)])
    def test_what_stands_before_every_query_counts_with_the_special_tokens_of_a_pair(
        self, release, tmp_path, words: int, holds: bool
    ) -> None:
        folder = save_cross(tmp_path)
        settings = folder / "config_sentence_transformers.json"
        told = {**json.loads(settings.read_text()), "prompts": {"q": said(words)}, "default_prompt_name": "q"}
        settings.write_text(json.dumps(told))
        opened = release(f"path:{folder}", SHORT, "cross")
        [tower] = opened.manifest.meaning.towers.values()
        assert head_prompt_room(folder, tower).ok is holds
        assert [check.ok for check in admit_release(opened).checks if check.name == "prompt-room"] == [holds]
