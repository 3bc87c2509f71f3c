"""The manifest: nothing by default, everything with a source, an ID that only the meaning changes."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from harness.file.sealed import own_digest
from harness.identity import digest
from harness.release.field import join
from harness.release.manifest import Manifest, Meaning
from harness.release.open import open_release
from harness.release.schema import schema_text

from .conftest import BODY, safetensors, toml

DOCS = Path(__file__).parents[2] / "docs"


def leaves(value, keys=()):
    """The path of every field that is no record; the normaliser is one value, whatever the tokenizer puts into it."""
    if keys[-1:] == ("normaliser",):
        yield join(keys)
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from leaves(getattr(value, name), (*keys, name))
    elif isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, (*keys, key))
    elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
        for place, each in enumerate(value):
            yield from leaves(each, (*keys, str(place)))
    else:
        yield join(keys)


@pytest.fixture
def every(bi, dense, sequence, recorded):
    """A release of several kinds, with all that can be declared of it."""
    whole = (
        '[input.window]\nsize = 32\nstride = 16\naggregation = "best"\n'
        '[prompts.help]\nquery = "h: "\n[score]\nthreshold = 0.5\n'
        '[training]\nseed = 1\n[calibrator]\npath = "c.json"\n'
    )
    folder = dense("dense")
    folder.toml(toml("bi").replace("[model]", 'tests = ["t"]\n[model]') + whole)
    said = {"family": "platt", "fitted_under": "0" * 64}
    folder.write("c.json", {**said, "own_digest": own_digest(said)})
    return [
        bi(),
        folder,
        sequence(name="cross"),
        sequence("head", 3, "head", '[output]\nkind = "classes"\n'),
        recorded(),
    ]


class TestSources:
    def test_every_field_of_every_meaning_has_one(self, every):
        """A file with a pointer, or a word that says whose the value is."""
        for folder in every:
            manifest = open_release(folder.path).manifest
            assert set(leaves(manifest.meaning)) == set(manifest.evidence.sources), folder.path.name

    def test_a_source_is_a_file_that_was_read_or_one_of_three_words(self, every):
        """And the file is among the digests."""
        for folder in every:
            evidence = open_release(folder.path).manifest.evidence
            files = {source.partition("#")[0] for source in evidence.sources.values()}
            assert files - {"declared", "derived", "library"} <= set(evidence.files), folder.path.name


class TestContentId:
    def test_it_is_the_digest_of_the_meaning_alone(self, every):
        """In canonical JSON, as anyone can compute it."""
        for folder in every:
            release = open_release(folder.path)
            assert release.content_id == digest(release.meaning)
            assert release.meaning == release.manifest.model_dump(mode="json")["meaning"]

    def test_names_folders_parents_and_places_change_nothing(self, bi, tmp_path):
        """Renamed, moved, with a parent, tests and a rollback that says so, and another runtime."""
        before = open_release(bi().path).content_id
        folder = bi("elsewhere")
        (folder.path / "model").rename(tmp_path / "shared")
        folder.toml(
            toml("bi", '[rollback]\ncompatible = true\n[runtime]\nbackend = "torch"\n', name="b")
            .replace('name = "b"', 'name = "b"\nparent = "c"\ntests = ["x"]').replace("path:model", "path:../shared")
        )  # fmt: skip
        release = open_release(folder.path)
        assert release.content_id == before
        identity, runtime = release.manifest.identity, release.manifest.runtime
        assert (identity.name, identity.parent, identity.tests, identity.rollback_compatible) == ("b", "c", ["x"], True)
        assert runtime.declared == {"backend": "torch"}

    @pytest.mark.parametrize(
        ("file", "keys", "fields"),
        [
            ("tokenizer.json", {"version": "1.0"}, ["towers.both.input.tokenizer[tokenizer.json]"]),
            ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True},
             ["towers.both.readout.denominator", "towers.both.readout.empty", "towers.both.readout.modes"]),
            ("config.json", {"layer_norm_eps": 1e-5}, ["towers.both.artifact.config"]),
            ("sentence_bert_config.json", {"max_seq_length": 32}, ["towers.both.input.max_length"]),
            ("2_Dense/config.json", {"activation_function": "torch.nn.ReLU"},
             ["towers.both.readout.projections[0].activation"]),
            ("config_sentence_transformers.json", {"prompts": {"query": "q: "}}, ["towers.both.input.prompts.query"]),
        ],
    )  # fmt: skip
    def test_a_file_from_another_release_changes_the_fields_that_it_says(self, dense, file, keys, fields):
        """One file, and the change is named by field."""
        folder = dense("other").write("model/config_sentence_transformers.json", {})
        before = _plain(open_release(folder.path).manifest)
        after = _plain(open_release(folder.change(f"model/{file}", **keys).path).manifest)
        assert sorted(name for name in before | after if before.get(name) != after.get(name)) == fields

    def test_other_weights_are_named_by_what_they_belong_to(self, dense, sequence):
        """Of the backbone, of a Dense, of a head."""
        body = open_release(dense("a").path).manifest
        other = dense("b").write("model/2_Dense/model.safetensors", safetensors(
            {"linear.weight": [4, 8], "linear.bias": [4]}, changed=("linear.bias",)
        ))  # fmt: skip
        assert _changed(body, open_release(other.path).manifest) == ["towers.both.readout.projections[0].weights"]
        folder = sequence(name="c")
        before = open_release(folder.path).manifest
        content = bytearray((folder.path / "model/model.safetensors").read_bytes())
        content[-1] ^= 1
        after = open_release(folder.write("model/model.safetensors", bytes(content)).path).manifest
        assert _changed(before, after) == ["towers.pair.artifact.head"]

    def test_weights_in_shards_are_the_same_release(self, bi):
        """Two files and an index in the place of one: the files differ, what they mean does not."""
        one, other = bi("one"), bi("other").remove("model/model.safetensors")
        halves = [dict(list(BODY.items())[:1]), dict(list(BODY.items())[1:])]
        for at, half in enumerate(halves):
            other.write(f"model/model-{at}.safetensors", safetensors(half))
        names = {name: f"model-{at}.safetensors" for at, half in enumerate(halves) for name in half}
        other.write("model/model.safetensors.index.json", {"weight_map": names})
        before, after = (open_release(folder.path).manifest for folder in (one, other))
        assert before.identity.content_id == after.identity.content_id
        assert before.evidence.files != after.evidence.files

    def test_an_empty_training_is_none(self, bi):
        """A table without a word in it is the same release as no table."""
        one, other = (open_release(bi(name, extra).path) for name, extra in (("a", ""), ("b", "[training]\n")))
        assert one.content_id == other.content_id

    def test_another_label_map_is_the_labels_and_nothing_else(self, sequence):
        """Two names exchanged: the rows they stand for are the same."""
        declared = '[output]\nkind = "classes"\n'
        one = sequence("head", 2, "one", declared)
        other = sequence("head", 2, "other", declared).change(
            "model/config.json", id2label={"0": "LABEL_1", "1": "LABEL_0"}, label2id={"LABEL_1": 0, "LABEL_0": 1}
        )
        assert _changed(open_release(one.path).manifest, open_release(other.path).manifest) == ["output.labels"]


def _plain(manifest: Manifest) -> dict[str, object]:
    """Every leaf of the meaning by path."""
    found: dict[str, object] = {}

    def walk(value, keys):
        if isinstance(value, dict) and value:
            for key, each in value.items():
                walk(each, (*keys, key))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for place, each in enumerate(value):
                walk(each, (*keys, str(place)))
        else:
            found[join(keys)] = value

    walk(manifest.model_dump(mode="json")["meaning"], ())
    return found


def _changed(one: Manifest, other: Manifest) -> list[str]:
    before, after = _plain(one), _plain(other)
    return sorted(name for name in before | after if before.get(name) != after.get(name))


class TestSchema:
    def test_the_schema_in_docs_is_current(self):
        """Mend: python -m harness.release.schema > docs/manifest.schema.json"""
        assert (DOCS / "manifest.schema.json").read_text(encoding="utf-8") == schema_text()

    def test_a_manifest_reads_back_as_it_was_written(self, every):
        """JSON, by its own names."""
        for folder in every:
            manifest = open_release(folder.path).manifest
            assert Manifest.model_validate_json(manifest.model_dump_json(by_alias=True)) == manifest

    def test_no_field_has_a_default(self, bi):
        """Each left out of a meaning in turn is an error; only what is declared of a training may be."""
        meaning = open_release(bi().path).manifest.meaning.model_dump(mode="json")
        for record in (meaning, meaning["interaction"], meaning["output"], meaning["score"], *(
            meaning["towers"]["both"][name] for name in ("artifact", "input", "rows", "state", "readout")
        )):  # fmt: skip
            for key in list(record):
                value = record.pop(key)
                with pytest.raises(ValidationError):
                    Meaning.model_validate(meaning)
                record[key] = value
        Meaning.model_validate(meaning)
