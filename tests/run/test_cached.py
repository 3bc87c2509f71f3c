"""Encoding from the cache: whatever is changed, what comes out is what an empty cache would give, to the bit.

Each change is made alone, to a real model or its release, after the cache was filled. Where it could change a vector,
the texts are computed again; where it could not, they are not.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from harness.candidate import open as room
from harness.candidate.cross import Pair, load_cross
from harness.candidate.encoder import encode
from harness.candidate.load import load
from harness.candidate.side import SideEncoder
from harness.release.open import open_release
from harness.run.cache import Cache
from tests.candidate.conftest import (  # noqa: F401  # the fixtures
    encoder,
    release,
    save_cross,
    save_tiny,
    tiny,
    write_release,
)
from tests.candidate.late_folder import save_late
from tests.candidate.tiny import save_router, save_sparse

# None of them has the words jet or speed but the last; the long one is cut at 16 tokens.
TEXTS = ["the flow", "wing heat shock", "layer drag " * 12, "the plate", "jet speed"]
CUT, SWAPPED = 1, 1


def rewrite(path: Path, change: Callable[[dict], None]) -> None:
    read = json.loads(path.read_text())
    change(read)
    path.write_text(json.dumps(read))


def _tokenizer(folder: Path) -> None:
    """Two words of the vocabulary change places."""

    def swap(read: dict) -> None:
        words = read["model"]["vocab"]
        words["jet"], words["speed"] = words["speed"], words["jet"]

    rewrite(folder / "tokenizer.json", swap)


def _configuration(folder: Path) -> None:
    rewrite(folder / "config.json", lambda read: read.update(layer_norm_eps=1e-3))


def _weights(folder: Path) -> None:
    """The least bit of one number."""
    from safetensors.numpy import load_file, save_file

    tensors = {name: value.copy() for name, value in load_file(folder / "model.safetensors").items()}
    bits = next(iter(tensors.values())).reshape(-1).view(np.uint32)
    bits[0] ^= 1
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _without_segments(folder: Path) -> None:
    rewrite(
        folder / "tokenizer_config.json", lambda read: read.update(model_input_names=["input_ids", "attention_mask"])
    )


def _pooling(folder: Path) -> None:
    rewrite(folder / "1_Pooling" / "config.json", lambda read: read.update(pooling_mode="max"))


def _unnormalised(folder: Path) -> None:
    modules = folder / "modules.json"
    modules.write_text(json.dumps(json.loads(modules.read_text())[:2]))


def _name(folder: Path) -> None:
    """Where the files came from is no part of what they mean."""
    rewrite(folder / "config.json", lambda read: read.update(_name_or_path="elsewhere"))


@dataclass(frozen=True)
class Change:
    """In release.toml or in the model's folder; how many of TEXTS are computed again."""

    computed: int
    toml: str = ""
    folder: Callable[[Path], None] | None = None


CHANGES = {
    "nothing": Change(0),
    "the name of the files": Change(0, folder=_name),
    "the other side's prompt": Change(0, '[prompts]\nquery = "the "\n'),
    "another suite's prompt": Change(0, '[prompts.other]\ndocument = "the "\n'),
    "the threshold": Change(0, "[score]\nthreshold = 0.5\n"),
    "the score": Change(0, '[override.score]\ntype = "dot"\n'),
    "the training": Change(0, "[training]\nseed = 7\n"),
    "the maximum length": Change(CUT, "[input]\nmax_length = 20\n"),
    "the vocabulary": Change(SWAPPED, folder=_tokenizer),
    "the prompt": Change(len(TEXTS), '[prompts]\ndocument = "the "\n'),
    "this suite's prompt": Change(len(TEXTS), '[prompts.any]\ndocument = "the "\n'),
    "the segments": Change(len(TEXTS), folder=_without_segments),
    "the weights": Change(len(TEXTS), folder=_weights),
    "the configuration": Change(len(TEXTS), folder=_configuration),
    "the pooling, in the folder": Change(len(TEXTS), folder=_pooling),
    "the pooling, in the release": Change(len(TEXTS), '[override.readout]\npooling = "cls"\n'),
    "the normalisation": Change(len(TEXTS), folder=_unnormalised),
}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of every text of which rows are computed."""
    seen: list[int] = []
    whole = SideEncoder.rows

    def rows(self, tokens, *more):
        seen.extend(len(each) for each in tokens)
        return whole(self, tokens, *more)

    monkeypatch.setattr(SideEncoder, "rows", rows)
    return seen


@pytest.fixture
def filled(tmp_path: Path, encoder) -> Path:  # noqa: F811
    """A cache of what the healthy encoder makes of TEXTS."""
    encode([encoder("[input]\nmax_length = 16\n").sides["document"]], TEXTS, Cache(tmp_path / "cache"))
    return tmp_path / "cache"


def again(side: SideEncoder, folder: Path, computed: list[int]) -> int:
    """Encodes from the cache, holds it against an encoding without, and counts what the first computed."""
    computed.clear()
    found = encode([side], TEXTS, Cache(folder))[0]
    count = len(computed)
    expected = encode([side], TEXTS)[0]
    assert found.vectors.tobytes() == expected.vectors.tobytes() and found.items == expected.items
    return count


@pytest.mark.parametrize("what", CHANGES)
def test_each_change_costs_the_texts_that_it_changes(
    what: str, filled: Path, encoder, tiny: Path, tmp_path: Path, computed: list[int]  # noqa: F811
) -> None:  # fmt: skip
    change = CHANGES[what]
    folder = shutil.copytree(tiny, tmp_path / "changed")
    if change.folder:
        change.folder(folder)
    length = "" if "max_length" in change.toml else "[input]\nmax_length = 16\n"
    side = encoder(length + change.toml, folder).sides["document"]
    assert again(side, filled, computed) == change.computed
    assert again(side, filled, computed) == 0


def test_the_side_of_padding_costs_them_all(
    filled: Path, encoder, tmp_path: Path, computed: list[int]  # noqa: F811
) -> None:  # fmt: skip
    """The same weights, and of every text the same tokens."""
    folder = save_tiny(tmp_path / "left", padding_side="left")
    side = encoder("[input]\nmax_length = 16\n", folder).sides["document"]
    assert again(side, filled, computed) == len(TEXTS)


@pytest.mark.parametrize("what", ["unit", "device", "torch", "tokenizers"])
def test_the_runtime_costs_them_all(
    what: str, filled: Path, encoder, computed: list[int], monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    whole = room.runtime
    monkeypatch.setattr(room, "runtime", lambda *more: {**whole(*more), what: "other"})
    side = encoder("[input]\nmax_length = 16\n").sides["document"]
    assert again(side, filled, computed) == len(TEXTS)


def test_tokens_of_a_prompt_that_the_readout_leaves_out_are_part_of_an_item(
    tmp_path: Path, encoder, computed: list[int]  # noqa: F811
) -> None:  # fmt: skip
    """The prompt as a prompt, then as the text's own first word: the same tokens, another vector."""
    folder, kept = save_tiny(tmp_path / "instructor", include_prompt=False), Cache(tmp_path / "cache")
    prompted = encoder('[prompts]\ndocument = "the "\n', folder).sides["document"]
    encode([prompted], TEXTS, kept)
    plain = encoder("", folder).sides["document"]
    computed.clear()
    found = encode([plain], [f"the {text}" for text in TEXTS], kept)[0]
    assert len(computed) == len(TEXTS)
    assert found.vectors.tobytes() == encode([plain], [f"the {text}" for text in TEXTS])[0].vectors.tobytes()


def test_both_sides_share_a_text_that_they_read_alike(filled: Path, encoder, computed: list[int]) -> None:  # noqa: F811
    assert again(encoder("[input]\nmax_length = 16\n").sides["query"], filled, computed) == 0


def test_a_damaged_cache_costs_time_and_nothing_else(filled: Path, encoder, computed: list[int]) -> None:  # noqa: F811
    [path] = filled.rglob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-5])
    side = encoder("[input]\nmax_length = 16\n").sides["document"]
    assert again(side, filled, computed) == len(TEXTS)
    assert again(side, filled, computed) == 0


def test_the_graph_of_another_backend_is_what_a_release_runs_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """By its bytes; without another backend no graph is looked for."""
    monkeypatch.setattr(room, "runtime", lambda backend: {"backend": backend})
    (tmp_path / "export").mkdir()
    found = []
    for graph in (b"one", b"two"):
        (tmp_path / "export" / "both.onnx").write_bytes(graph)
        found.append(room.runs_on(SimpleNamespace(backend="onnx", folder=tmp_path)))
    assert found[0] != found[1] and found[0]["graphs"].keys() == {"both.onnx"}
    assert room.runs_on(SimpleNamespace(backend=None, folder=tmp_path, members={})) == {"backend": None}


SAVED = {"late": save_late, "sparse": save_sparse, "bi": save_router}


def sides_of(folder: Path, model: Path, interaction: str) -> Mapping[str, SideEncoder]:
    opened = open_release(write_release(folder, f'[model]\nsource = "path:{model}"\n', interaction))
    return load(opened, opened.prompts_for()).sides


@pytest.mark.parametrize("interaction", SAVED)
def test_whatever_is_kept_of_a_text_comes_back_as_it_was(
    interaction: str, tmp_path: Path, computed: list[int]
) -> None:  # fmt: skip
    """Rows of late interaction, among them a text of which none counts; weights of a vocabulary; two encoders."""
    given, kept = [*TEXTS, "", "!"], Cache(tmp_path / "cache")
    for side in sides_of(tmp_path / "release", SAVED[interaction](tmp_path / "saved"), interaction).values():
        first = encode([side], given, kept)[0]
        computed.clear()
        again = encode([side], given, Cache(tmp_path / "cache"))[0]
        assert computed == [] and again.failed == first.failed
        assert [each.tobytes() for each in (again.values, again.offsets)] == [
            each.tobytes() for each in (first.values, first.offsets)
        ]
        assert (again.indices is None) == (interaction != "sparse")
        assert first.indices is None or first.indices.tobytes() == again.indices.tobytes()


def test_pairs_come_back_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cross-encoder's raw numbers; the other way round, two texts are another pair."""
    folder = write_release(tmp_path / "release", f'[model]\nsource = "path:{save_cross(tmp_path)}"\n', "cross")
    model = load_cross(open_release(folder))
    pairs, kept = [Pair("lift", text) for text in TEXTS], Cache(tmp_path / "cache")
    first = encode([model], pairs, kept)[0]
    turned = [Pair(pair.document, pair.query) for pair in pairs]
    assert set(encode([model], turned)[0].items).isdisjoint(first.items)
    monkeypatch.setattr(model, "rows", lambda *_: pytest.fail("computed again"))
    again = encode([model], pairs, Cache(tmp_path / "cache"))[0]
    assert again.values.tobytes() == first.values.tobytes() and again.failed == {}


def test_what_becomes_of_a_pairs_numbers_costs_no_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another class that ranks, another activation: the raw numbers that are kept are the same, the scores are not."""
    folder, pairs = save_cross(tmp_path, labels=("no", "yes")), [Pair("lift", text) for text in TEXTS]

    def opened(label: str):
        more = f'[model]\nsource = "path:{folder}"\n[score]\nlabel = "{label}"\n'
        return load_cross(open_release(write_release(tmp_path / f"release-{label}", more, "cross")))

    first = opened("no")
    values = encode([first], pairs, Cache(tmp_path / "cache"))[0].values
    settings = folder / "config_sentence_transformers.json"
    rewrite(settings, lambda read: read.update(activation_fn="torch.nn.modules.activation.Sigmoid"))
    second = opened("yes")
    monkeypatch.setattr(second, "rows", lambda *_: pytest.fail("computed again"))
    again = encode([second], pairs, Cache(tmp_path / "cache"))[0].values
    assert again.tobytes() == values.tobytes()
    assert not np.allclose(first.scores(values, 1e-6), second.scores(again, 1e-6))


def test_the_same_tokens_are_other_rows_where_a_word_that_is_left_out_has_another_number(tmp_path: Path) -> None:
    """Comma and `a` change places: what was kept of `wing a` is not what `wing ,` has without its comma."""
    model = save_late(tmp_path / "saved")
    old = sides_of(tmp_path / "old", model, "late")["document"]
    kept = Cache(tmp_path / "cache")
    [before] = encode([old], ["wing a"], kept)

    def swap(read: dict) -> None:
        words = read["model"]["vocab"]
        words["a"], words[","] = words[","], words["a"]

    rewrite(shutil.copytree(model, tmp_path / "swapped") / "tokenizer.json", swap)
    new = sides_of(tmp_path / "new", tmp_path / "swapped", "late")["document"]
    [found], [expected] = encode([new], ["wing ,"], kept), encode([new], ["wing ,"])
    assert found.items == before.items and found.values.tobytes() == expected.values.tobytes()
    assert len(found.values) == len(before.values) - 1
