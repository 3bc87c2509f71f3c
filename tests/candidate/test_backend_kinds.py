"""Late interaction, sparse vectors, pairs of encoders, cross-encoders and heads on another backend than torch."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.candidate.backend import backed, prove
from harness.candidate.cross import Pair
from harness.candidate.encoder import encode
from harness.candidate.export import graph_path, record_path
from harness.candidate.head import Sample
from harness.candidate.load import LOADERS, load, load_numbers, load_proven
from harness.errors import Misconfigured, NotAdmitted
from harness.release.open import open_release
from harness.verb.admit import admit_release

from .conftest import save_tiny, write_release
from .test_bi import texts

MODELS = Path(__file__).parents[2] / "fixtures" / "models"
BACKENDS = ("onnx", "openvino")
INTERACTIONS = {"late": "late", "sparse": "sparse", "cross": "cross", "classification": "head", "entity": "head",
                "choice": "head", "answer": "head"}  # fmt: skip
KINDS = {"late": "rows", "sparse": "row-logits", "cross": "logits", "classification": "logits", "entity": "row-logits",
         "choice": "logits", "answer": "row-logits"}  # fmt: skip
NAMES = {"late": "both", "sparse": "both", "cross": "pair", "answer": "pair"}
PROVEN = [(model, backend) for model in INTERACTIONS for backend in BACKENDS]


def require(backend):
    for name in ("onnxscript", {"onnx": "onnxruntime", "openvino": "openvino"}[backend]):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the package {name} is not installed")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Graphs by model, each exported once."""
    return tmp_path_factory.mktemp("graphs")


@pytest.fixture
def opened(tmp_path, exported):
    """A release of a small real model on a backend, with the graph beside it."""

    def make(model, backend, more=""):
        require(backend)
        text = f'[model]\nsource = "path:{MODELS / model}"\n{more}[runtime]\nbackend = "{backend}"\n'
        found = open_release(write_release(tmp_path / f"{model}-{backend}", text, INTERACTIONS[model]))
        name = NAMES.get(model, "text")
        kept, mine = exported / f"{model}.onnx", graph_path(found.folder, name)
        mine.parent.mkdir()
        if kept.is_file() and "quantised" not in more:
            shutil.copy(kept, mine)
        prove(found, in_torch(found))
        if "quantised" not in more:
            shutil.copy(mine, kept)
        return found

    return make


def in_torch(release):
    encodes = release.definition.interaction in LOADERS
    return load(release, release.prompts_for()) if encodes else load_numbers(release)


def record(release, **values):
    """The record of a release's graph, after an edit where there is one."""
    [file] = sorted((release.folder / "export").glob("*.json"))
    if values:
        file.write_text(json.dumps(json.loads(file.read_text()) | values))
    return json.loads(file.read_text())


def answers(loaded, given):
    """What is kept of texts, of pairs of neighbours, or of samples of two."""
    if hasattr(loaded, "sides"):
        return [loaded.encode(given, side) for side in ("query", "document")]
    pairs = list(zip(given, [*given[1:], given[0]], strict=True))
    if hasattr(loaded, "scores"):
        return [encode([loaded], [Pair(*both) for both in pairs])[0]]
    return [encode([loaded], [Sample(first, second if loaded.paired else None) for first, second in pairs])[0]]


class TestProven:
    @pytest.mark.parametrize(("model", "backend"), PROVEN)
    def test_what_is_kept_is_the_librarys(self, opened, model, backend):
        """Rows, weights of the vocabulary, raw numbers: of texts of all lengths, within 1e-5 of the largest."""
        release = opened(model, backend)
        given = texts(30)
        for found, expected in zip(answers(backed(release, in_torch(release)), given),
                                   answers(in_torch(release), given), strict=True):  # fmt: skip
            assert not found.failed and found.offsets.tolist() == expected.offsets.tolist()
            largest = np.abs(expected.values).max()
            np.testing.assert_allclose(found.values, expected.values, atol=1e-5 * largest)
            assert found.indices is None or found.indices.tolist() == expected.indices.tolist()
        told = record(release)
        assert told["kind"] == KINDS[model] and told["padding_sides"] == ["left", "right"]
        assert told["largest_difference"] <= told["tolerance"] and told["max_length"] >= 128

    @pytest.mark.parametrize("model", INTERACTIONS)
    def test_what_is_kept_is_the_same_bits_in_any_company(self, opened, model):
        """Also the numbers of a head, whose products have as many rows as a batch has texts."""
        release = opened(model, "onnx")
        loaded, given = backed(release, in_torch(release)), texts(30)
        [*_, whole] = answers(loaded, given)
        [*_, turned] = answers(loaded, [*given[1:], given[0]])
        assert all(
            whole.piece(place).values.tobytes() == turned.piece((place - 1) % 30).values.tobytes()
            for place in range(30)
        )
        [*_, few] = answers(loaded, given[:2])
        assert few.piece(0).values.tobytes() == whole.piece(0).values.tobytes()

    def test_rows_that_fill_up_a_query_are_held_too(self, opened):
        """They are kept, though the model attends to none of them, so the mask of rows has a companion."""
        told = record(opened("late", "onnx"))
        assert (told["mask"], told["filled"]) == ("attention_mask", "query_expansion_positions")
        assert told["outside"] == ["Dense", "MultiVectorMask", "Normalize"]

    @pytest.mark.parametrize("model", ["late", "sparse", "cross", "classification"])
    def test_a_release_is_admitted_with_the_evidence(self, opened, model):
        """The record beside it is made by the way, and a line of the admission says what was held."""
        release = opened(model, "onnx")
        for file in (release.folder / "export").glob("*.json"):
            file.unlink()
        found = admit_release(release)
        assert found.ok, [each for each in found.checks if not each.ok]
        [check] = [each for each in found.checks if each.name.startswith("backend: onnx")]
        assert "padding on the left and right" in check.found and record(release)["model"]


class TestRefused:
    @pytest.mark.parametrize("model", ["late", "sparse", "cross", "entity"])
    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            ({"largest_difference": 2e-5}, "off by 2e-05"),
            ({"padding_sides": ["left"]}, "padding on the left alone"),
            ({"max_length": 31}, "proven for 31 tokens"),
            ({"of": "0" * 64}, "another model"),
            ({"versions": {"torch": "1"}}, "proven with torch 1"),
            ({"model": "0" * 64}, "another one than was proven"),
        ],
    )
    def test_a_record_that_proves_less(self, opened, model, values, reason):
        release = opened(model, "onnx")
        record(release, **values)
        with pytest.raises(NotAdmitted, match=reason):
            backed(release, in_torch(release))

    @pytest.mark.parametrize("model", ["late", "sparse", "cross", "entity"])
    def test_without_a_parity_run(self, opened, model):
        release = opened(model, "onnx")
        record_path(release.folder, NAMES.get(model, "text"), "onnx").unlink()
        with pytest.raises(NotAdmitted, match="no parity run"):
            backed(release, in_torch(release))

    @pytest.mark.parametrize("model", ["late", "cross"])
    def test_eight_bits_are_no_float32(self, opened, model):
        """They pass as a release of their own alone: its graph under one of float32 is off by far more than allowed."""
        rounded = opened(model, "onnx", 'quantised = "int8"\n')
        plain = opened(model, "openvino")
        assert rounded.content_id != plain.content_id
        backed(rounded, in_torch(rounded))
        name = NAMES.get(model, "text")
        mine = open_release(write_release(rounded.folder.with_name("mine"), (plain.folder / "release.toml").read_text()
                                          .partition("\n[model]")[2].join(["[model]", ""]).replace("openvino", "onnx"),
                                          INTERACTIONS[model]))  # fmt: skip
        graph_path(mine.folder, name).parent.mkdir()
        shutil.copy(graph_path(rounded.folder, name), graph_path(mine.folder, name))
        [part] = prove(mine, in_torch(mine))
        assert part.record.largest_difference > 10 * part.record.tolerance and "off by" in part.fault

    def test_eight_bits_of_a_sparse_encoder(self, opened):
        with pytest.raises(Misconfigured, match="quantised"):
            opened("sparse", "onnx", 'quantised = "int8"\n')


class TestPair:
    """Its members say what each side runs on."""

    @pytest.fixture
    def paired(self, tmp_path):
        require("onnx")
        query, document = save_tiny(tmp_path / "q", seed=4), save_tiny(tmp_path / "d", seed=5)
        write_release(tmp_path / "asks", f'[model]\nsource = "path:{query}"\n[runtime]\nbackend = "onnx"\n')
        write_release(tmp_path / "answers", f'[model]\nsource = "path:{document}"\n')
        return open_release(write_release(tmp_path / "both", '[pair]\nquery = "asks"\ndocument = "answers"\n'))

    def test_each_side_is_computed_as_its_member_says(self, paired):
        assert paired.cannot_run is None
        with pytest.raises(NotAdmitted, match=r"release asks.*no parity run"):
            load_proven(paired, paired.prompts_for())
        expected = load(paired, paired.prompts_for())
        [part] = prove(paired, load(paired, paired.prompts_for()))
        assert part.fault is None and graph_path(paired.members["query"].folder, "both").is_file()
        found = load_proven(paired, paired.prompts_for())
        firsts = {side: type(own.modules[0]).__name__ for side, own in found.sides.items()}
        assert firsts == {"query": "BackendRows", "document": "Transformer"}
        for side in ("query", "document"):
            vectors = (each.encode(texts(20), side).vectors for each in (found, expected))
            np.testing.assert_allclose(*vectors, atol=1e-5)

    def test_a_member_proven_by_itself_is_proven_in_the_pair(self, paired):
        asks = paired.members["query"]
        prove(asks, load(asks, asks.prompts_for()))
        assert type(load_proven(paired, paired.prompts_for()).sides["query"].modules[0]).__name__ == "BackendRows"

    def test_what_computes_is_in_the_keys_of_that_side_alone(self, paired):
        before = {side: own.keys.vector for side, own in load(paired, paired.prompts_for()).sides.items()}
        file = paired.members["query"].folder / "release.toml"
        file.write_text(file.read_text().replace("onnx", "torch"))
        torch = open_release(paired.folder)
        after = {side: own.keys.vector for side, own in load(torch, torch.prompts_for()).sides.items()}
        assert before["query"] != after["query"] and before["document"] == after["document"]

    def test_a_pair_says_no_backend_for_its_members(self, tmp_path):
        folder = write_release(
            tmp_path / "both", '[pair]\nquery = "asks"\ndocument = "answers"\n[runtime]\nbackend = "onnx"\n'
        )
        with pytest.raises(Misconfigured, match="backend"):
            open_release(folder)
