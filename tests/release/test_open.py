"""From a folder to a release with its manifest, or to a refusal that names all that is wrong."""

import hashlib

import pytest

from harness.errors import Misconfigured, NotAdmitted, NotFound
from harness.release import source as room
from harness.release.bi import bi_meaning
from harness.release.open import inspect_release, open_release

from .conftest import toml

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"


def opened(folder):
    return open_release(folder.path)


class TestBiEncoder:
    def test_what_encodes_is_read_from_the_manifest(self, bi):
        """Length, pooling, normalisation, width and score type; there is no second reading."""
        release = opened(bi())
        found = bi_meaning(release.manifest)
        assert found.max_length.as_json() == {
            "value": 64, "folder": 64, "source": "sentence_bert_config.json#/max_seq_length",
        }  # fmt: skip
        assert (found.pooling.value, found.include_prompt) == ("mean", True)
        assert (found.normalised, found.width, release.score_type) == (True, 8, "cosine")
        assert release.meaning["interaction"]["kind"] == "bi"

    def test_an_override_and_a_declared_length_stand_beside_the_folders_own(self, bi):
        """Both are on record, and which of them counts."""
        release = opened(bi(extra='[input]\nmax_length = 16\n[override.readout]\npooling = "max"\n'))
        found = bi_meaning(release.manifest)
        assert found.pooling.as_json() == {"value": "max", "folder": "mean", "source": "declared"}
        assert found.max_length.as_json() == {"value": 16, "folder": 64, "source": "declared"}

    def test_prompts_are_those_of_the_suite(self, bi):
        """A suite's table fills in only its own side; another suite has the usual ones."""
        release = opened(bi(extra='[prompts]\nquery = "q: "\n[prompts.help]\ndocument = "h: "\n'))
        assert release.prompts("other") == {"query": "q: ", "document": ""}
        assert release.prompts_for("help").as_json() == {"query": "q: ", "document": "h: "}

    @pytest.mark.parametrize(
        "extra",
        ["[input]\nmax_length = 32\n", '[prompts]\nquery = "q: "\n', '[prompts]\ndocument = "d: "\n',
         '[prompts.help]\nquery = "q: "\n', '[override.readout]\npooling = "cls"\n',
         '[override.score]\ntype = "dot"\n'],
    )  # fmt: skip
    def test_whatever_release_toml_changes_changes_the_content_id(self, bi, extra):
        """Length, prompts, also those of one suite, pooling, score."""
        assert opened(bi()).content_id != opened(bi("other", extra)).content_id

    @pytest.mark.parametrize(
        "extra",
        ["[input]\nmax_length = 64\n", '[prompts]\nquery = ""\n',
         '[prompts.help]\nquery = ""\n', '[override.readout]\npooling = "mean"\n',
         '[override.score]\ntype = "cosine"\n'],
    )  # fmt: skip
    def test_saying_what_the_folder_says_changes_nothing(self, bi, extra):
        """A value that is the folder's own is no other meaning."""
        assert opened(bi()).content_id == opened(bi("other", extra)).content_id

    def test_a_length_may_pass_what_the_folder_says_but_not_its_positions(self, bi):
        """Both values are on record; what the model has no positions for is refused, never lowered unseen."""
        longer = opened(bi("longer", "[input]\nmax_length = 512\n"))
        assert bi_meaning(longer.manifest).max_length.value == 512
        assert longer.manifest.evidence.overridden["towers.both.input.max_length"] == 64
        with pytest.raises(Misconfigured, match="4096"):
            opened(bi("other", "[input]\nmax_length = 4096\n"))

    @pytest.mark.parametrize(("truncate", "width", "normalised"), [(None, 4, True), (2, 2, False)])
    def test_vectors_have_unit_length_where_normalisation_is_the_last_step(self, dense, truncate, width, normalised):
        """The library cuts after all modules, so also after normalisation."""
        folder = dense().write("model/config_sentence_transformers.json", {"truncate_dim": truncate})
        found = bi_meaning(opened(folder).manifest)
        assert (found.width, found.normalised) == (width, normalised)


class TestRecording:
    def test_its_tuple_is_declared_and_not_observed(self, recorded):
        """The file's digest, format, score type and revision are its meaning; there is no encoder."""
        content = "q1 Q0 d1 1 1.5 x\n"
        release = opened(recorded(content=content))
        assert release.meaning["recording"] == {
            "format": "trec-run", "outputs": hashlib.sha256(content.encode()).hexdigest(), "revision": None,
            "label_map": {}, "column": None, "null_scores": None,
        }  # fmt: skip
        assert release.meaning["towers"] == {} and release.score_type == "dot"
        assert release.manifest.evidence.sources["score.type"] == "declared"
        assert release.outputs == release.folder / "run.trec"
        assert bi_meaning(release.manifest) is None
        assert release.prompts_for("any") is None and release.prompts("any") is None

    def test_a_revision_is_part_of_its_meaning(self, recorded):
        """The same file under another revision is another release."""
        other = recorded("other").say('revision = "2"\n')
        assert opened(recorded()).content_id != opened(other).content_id

    def test_less_is_better_of_a_distance(self, recorded):
        """And of nothing else."""
        folder = recorded()
        folder.toml((folder.path / "release.toml").read_text().replace('"dot"', '"squared-l2"'))
        score = opened(folder).manifest.meaning.score
        assert (score.higher_is_better, score.low) == (False, 0.0)


class TestRefusal:
    def test_every_broken_invariant_is_named_at_once(self, bi):
        """A pointer, remote code and a pooling of another width, each with its mend."""
        folder = bi().write("model/model.safetensors", POINTER)
        folder.change("model/config.json", auto_map={"AutoModel": "modeling.Model"})
        folder.change("model/1_Pooling/config.json", word_embedding_dimension=16)
        with pytest.raises(NotAdmitted) as refusal:
            opened(folder)
        assert refusal.value.exit_code == 4
        for name in ("files-whole", "no-remote-code", "pooling-width"):
            assert name in refusal.value.found
        assert "git lfs pull" in refusal.value.mend

    def test_a_folder_that_cannot_be_described_is_refused_with_what_else_is_wrong(self, bi):
        """A module of someone else's, and weights that aren't there."""
        folder = bi().remove("model/model.safetensors").change("model/1_Pooling/config.json", pooling_mode="median")
        with pytest.raises(NotAdmitted) as refusal:
            opened(folder)
        assert "median" in refusal.value.found and "weights-there" in refusal.value.found

    def test_an_inspection_tells_of_the_same_without_refusing(self, bi):
        """With a manifest where there can be one."""
        found = inspect_release(bi().remove("model/model.safetensors").path)
        assert found.manifest is not None and not all(check.ok for check in found.checks)
        undescribed = inspect_release(bi("b").remove("model/modules.json").path)
        assert undescribed.manifest is None and undescribed.checks[0].name == "described"

    def test_what_release_toml_has_to_say_is_asked_for_as_such(self, bi):
        """Exit 2, for it is edited and not restored."""
        with pytest.raises(Misconfigured, match="visibility") as refusal:
            opened(bi().change("model/config.json", model_type="brand-new"))
        assert refusal.value.exit_code == 2

    def test_weights_that_cannot_be_read_are_the_loaders_to_refuse(self, bi):
        """An inspection names them; the library's reason is the one that helps."""
        folder = bi().write("model/model.safetensors", b"\x10\0\0\0\0\0\0\0not weights")
        assert opened(folder).content_id
        assert [check.name for check in inspect_release(folder.path).checks if not check.ok] == ["weights-readable"]


class TestSources:
    def source(self, folder, text):
        return folder.toml((folder.path / "release.toml").read_text().replace("path:model", text))

    def test_a_package_is_found_without_being_imported(self, bi, tmp_path, monkeypatch):
        """Its code would raise; its folder is read all the same."""
        folder = bi()
        package = tmp_path / "site" / "a_model_package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise RuntimeError('imported')")
        (folder.path / "model").rename(package / "model")
        monkeypatch.syspath_prepend(tmp_path / "site")
        assert opened(self.source(folder, "package:a_model_package/model")).model_folder == package / "model"

    def test_a_missing_package_comes_with_the_command_that_installs_it(self, bi):
        """Underscores are hyphens there."""
        with pytest.raises(NotFound) as refusal:
            opened(self.source(bi(), "package:no_such_model/model"))
        assert refusal.value.mend == "pip install no-such-model"

    @pytest.mark.parametrize("source", ["path:nowhere", "path:release.toml", "package:json/../..", "package:json//etc"])
    def test_a_folder_that_is_not_there_is_not_found(self, bi, source):
        """Nor is one outside of its package."""
        with pytest.raises(NotFound):
            opened(self.source(bi(), source))

    def test_releases_may_share_a_model_folder_beside_them(self, bi, tmp_path):
        """A relative path may lead out of the release's folder."""
        folder = bi()
        (folder.path / "model").rename(tmp_path / "shared")
        assert opened(self.source(folder, "path:../shared")).manifest.meaning.output.dimension == 8

    def test_a_recording_that_is_not_there_is_not_found(self, recorded):
        """The path counts from the release's folder."""
        with pytest.raises(NotFound, match=r"run\.trec"):
            opened(recorded().remove("run.trec"))

    def test_a_folder_without_its_file_is_not_found(self, tmp_path):
        """No release.toml, no release."""
        with pytest.raises(NotFound, match=r"release\.toml"):
            open_release(tmp_path)


class TestHub:
    COMMIT = "0123456789abcdef0123456789abcdef01234567"

    @pytest.fixture
    def on_hub(self, bi, tmp_path, monkeypatch):
        """A release of a model that the local cache has; which of its variables says where, a test can choose."""

        def make(name="tiny", cached=True):
            folder = bi(name)
            folder.toml(toml("bi").replace("path:model", f"hf:org/model@{self.COMMIT}"))
            snapshot = tmp_path / "cache" / "models--org--model" / "snapshots" / self.COMMIT
            if cached:
                snapshot.parent.mkdir(parents=True)
                (folder.path / "model").rename(snapshot)
            monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
            return folder, snapshot

        return make

    def test_a_commit_is_found_in_the_local_cache(self, on_hub, bi):
        """And means the same as its folder, wherever that lies."""
        folder, snapshot = on_hub()
        assert opened(folder).model_folder == snapshot
        assert opened(folder).content_id == opened(bi("plain")).content_id

    def test_a_commit_that_is_not_there_is_not_fetched_unasked(self, on_hub, monkeypatch):
        """The mend says how."""
        folder, _ = on_hub(cached=False)
        monkeypatch.setattr(room, "_fetched", lambda *_: pytest.fail("the network was used"))
        with pytest.raises(NotFound, match="--download"):
            opened(folder)

    def test_it_is_fetched_where_that_is_asked_for(self, on_hub, monkeypatch):
        """By name and commit."""
        folder, _ = on_hub(cached=False)
        asked = []
        monkeypatch.setattr(room, "_fetched", lambda source, *rest: asked.append(rest) or folder.path / "model")
        assert open_release(folder.path, download=True).manifest.meaning.output.dimension == 8
        assert asked == [("org/model", self.COMMIT)]
