"""An encoder for each side: what each gives is the library's own, and what the manifest says of that side."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.candidate.encoder import encode
from harness.candidate.load import load
from harness.candidate.parity import Parity, parity
from harness.candidate.probe import probe_texts, probes
from harness.candidate.prove import proofs
from harness.errors import NotAdmitted
from harness.release.open import Release, open_release

from .conftest import save_tiny, write_release
from .test_bi import texts
from .tiny import save_router


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_router(tmp_path_factory.mktemp("router"))


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory, router: Path) -> Release:
    folder = tmp_path_factory.mktemp("routed") / "release"
    return open_release(write_release(folder, f'[model]\nsource = "path:{router}"\n'))


@pytest.fixture(scope="module")
def routes(routed: Release):
    """Both sides of it, loaded."""
    return loaded(routed)


@pytest.fixture
def paired(tmp_path: Path) -> Release:
    """Two releases of other weights, poolings, lengths and prompts, each with a prompt for the side that it isn't."""
    query, document = save_tiny(tmp_path / "q", pooling="max", seed=4), save_tiny(tmp_path / "d", seed=5)
    more = (
        '[input]\nmax_length = 9\n[prompts]\nquery = "the: "\ndocument = "no "\n[override.readout]\npooling = "cls"\n'
    )
    write_release(tmp_path / "asks", f'[model]\nsource = "path:{query}"\n{more}')
    more = '[prompts]\nquery = "no "\ndocument = "flow "\n'
    write_release(tmp_path / "answers", f'[model]\nsource = "path:{document}"\n{more}')
    return open_release(write_release(tmp_path / "both", '[pair]\nquery = "asks"\ndocument = "answers"\n'))


def loaded(release: Release):
    return load(release, release.prompts_for())


def shown(release: Release, manifest=None, encoder=None) -> Parity:
    given = {name: probe_texts(48)[name] for name in ("short", "truncated", "empty")}
    members = {side: release.encoder_of(side).manifest for side in ("query", "document")}
    return parity(encoder or loaded(release), manifest or release.manifest, given, members=members)


def corrupted(release: Release, side: str, path: str, value: object):
    """Its manifest, with another value at one place of a side."""
    manifest = release.manifest.model_copy(deep=True)
    at: object = manifest.meaning.towers[side]
    *above, last = path.split(".")
    for key in above:
        at = at[int(key)] if isinstance(at, list) else at[key] if isinstance(at, dict) else getattr(at, key)
    at.__setitem__(last, value) if isinstance(at, dict) else object.__setattr__(at, last, value)
    return manifest


class TestARouter:
    def test_vectors_are_those_of_encode_query_and_encode_document(self, routed: Release, router: Path) -> None:
        """Each side by its own route, prompt and length, and the modules behind the routes for both."""
        from sentence_transformers import SentenceTransformer

        library = SentenceTransformer(str(router), device="cpu", local_files_only=True)
        model, given = loaded(routed), texts(40)
        for side, encode_side in (("query", library.encode_query), ("document", library.encode_document)):
            np.testing.assert_allclose(model.encode(given, side).vectors, encode_side(given), atol=1e-6)
        assert [model.encode(["the " * 60], side).tokens_kept.tolist() for side in model.sides] == [[24], [40]]

    def test_its_manifest_is_rebuilt_on_both_sides(self, routed: Release, routes) -> None:
        assert shown(routed, encoder=routes).ok
        found = list(proofs(routed, routes))
        assert [each.name for each in found if isinstance(each, Parity)] == ["parity"]
        assert all(each.ok for each in found if isinstance(each, Parity) or each.fatal)

    @pytest.mark.parametrize("side", ["query", "document"])
    @pytest.mark.parametrize(
        ("path", "value"),
        [("readout.modes", ["max"]), ("readout.projections.0.bias", False), ("input.prompts", {}),
         ("input.max_length", 12), ("state.width", 16), ("readout.normalisation.kind", "none")],
        ids=str,
    )  # fmt: skip
    def test_a_false_value_on_one_side_is_found(
        self, routed: Release, routes, side: str, path: str, value: object
    ) -> None:
        """Whatever the other side says."""
        assert not shown(routed, corrupted(routed, side, path, value), routes).ok

    def test_the_sides_may_not_be_swapped(self, routed: Release, routes) -> None:
        manifest = routed.manifest.model_copy(deep=True)
        towers = manifest.meaning.towers
        towers["query"], towers["document"] = towers["document"], towers["query"]
        assert not shown(routed, manifest, routes).ok

    def test_a_route_that_the_library_reads_otherwise_is_refused(self, routed: Release, monkeypatch) -> None:
        """Pooling and width are held against that side's own."""
        from harness.candidate import open as room

        model = room._loaded(str(routed.model_folder), "SentenceTransformer")
        model[0].sub_modules["document"][1].pooling_mode = "max"
        monkeypatch.setattr(room, "_loaded", lambda folder, library_class: model)
        with pytest.raises(NotAdmitted, match=r"pooling max\. Expected: pooling mean"):
            loaded(routed)


class TestAPair:
    def test_each_side_is_encoded_as_its_member_encodes_it(self, paired: Release) -> None:
        """Weights, length, prompt and override are the member's, to the bit."""
        model, given = loaded(paired), texts(30)
        for side, member in paired.members.items():
            alone = load(member, member.prompts_for()).encode(given, side)
            assert model.encode(given, side).vectors.tobytes() == alone.vectors.tobytes()
            assert model.sides[side].folder == member.model_folder

    def test_what_a_member_shares_with_it_is_computed_once(self, paired: Release) -> None:
        """The documents' vectors are those of the release that they come from, by key."""
        member = paired.members["document"]
        mine, other = loaded(paired).sides["document"], load(member, member.prompts_for()).sides["document"]
        assert mine.keys == other.keys
        assert mine.keys.rows != loaded(paired).sides["query"].keys.rows
        first, second = encode([mine, other], texts(5))
        assert first.vectors.tobytes() == second.vectors.tobytes()

    def test_it_is_proven_and_probed_on_both_sides(self, paired: Release) -> None:
        assert shown(paired).ok
        assert all(probe.ok for probe in probes(loaded(paired), paired.manifest) if probe.fatal)

    def test_a_member_may_be_a_router(self, tmp_path: Path, router: Path, paired: Release) -> None:
        """Then its route for that side counts."""
        for name in ("asks", "answers"):
            shutil.rmtree(tmp_path / name)
        query = save_tiny(tmp_path / "wide", seed=7, tail=lambda: [dense(), normalise()])
        write_release(tmp_path / "asks", f'[model]\nsource = "path:{query}"\n')
        write_release(tmp_path / "answers", f'[model]\nsource = "path:{router}"\n')
        whole = open_release(paired.folder)
        assert shown(whole).ok
        member = whole.members["document"]
        expected = load(member, member.prompts_for()).encode(["the flow"], "document").vectors
        assert loaded(whole).encode(["the flow"], "document").vectors.tobytes() == expected.tobytes()

    @pytest.mark.parametrize("side", ["query", "document"])
    def test_a_members_file_that_changed_since_is_named(self, paired: Release, side: str) -> None:
        """Each member's record is held against its own folder."""
        folder = paired.members[side].model_folder
        assert folder is not None
        model = loaded(paired)
        with (folder / "1_Pooling/config.json").open("a") as stream:
            stream.write(" ")
        members = {side: paired.encoder_of(side).manifest for side in ("query", "document")}
        found = parity(model, paired.manifest, {"a": "the flow"}, members=members)
        assert not found.ok and "stale" in found.text and "1_Pooling/config.json" in found.text


class TestPromptsOfASuite:
    WRITTEN = (
        '[prompts]\nquery = "the: "\n[prompts.help]\nquery = "flow "\n[prompts.same]\nquery = "flow "\n'
        '[prompts.usual]\nquery = "the: "\n[prompts.docs]\ndocument = "a "\n'
    )

    def test_each_set_of_prompts_is_proven_once(self, release, tmp_path: Path) -> None:
        """Of two suites with the same prompts the first, and none with the usual ones."""
        opened = release(f"path:{save_tiny(tmp_path / 'saved', include_prompt=False)}", self.WRITTEN)
        found = [each for each in proofs(opened, loaded(opened)) if isinstance(each, Parity)]
        assert [each.name for each in found] == ["parity", "parity: prompts on docs", "parity: prompts on help"]
        assert all(each.ok for each in found)

    def test_a_suite_whose_prompts_are_not_those_encoded_with_fails(self, release, tmp_path: Path) -> None:
        """The encoder has the usual ones."""
        opened = release(f"path:{save_tiny(tmp_path / 'saved')}", self.WRITTEN)
        model = loaded(opened)
        assert parity(model, opened.manifest, {"a": "wing"}).ok
        assert not parity(model, opened.manifest, {"a": "wing"}, suite="help").ok


def dense():
    from sentence_transformers.sentence_transformer.modules import Dense

    torch.manual_seed(8)
    return Dense(32, 16)


def normalise():
    from sentence_transformers.sentence_transformer.modules import Normalize

    return Normalize()
