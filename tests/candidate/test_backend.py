"""Rows from ONNX Runtime and OpenVINO: only where they are proven to be the library's."""

import importlib.util
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from harness.candidate.backend import backed, prove
from harness.candidate.export import Source, export_graph, graph_path, record_path
from harness.candidate.graphed import graphed
from harness.candidate.load import load, load_proven
from harness.errors import Misconfigured, NotAdmitted

from .test_bi import texts

BACKENDS = ("onnx", "openvino")


def require(backend):
    for name in ("onnxscript", {"onnx": "onnxruntime", "openvino": "openvino"}[backend]):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the package {name} is not installed")


@pytest.fixture(scope="session")
def graph(tiny, tmp_path_factory):
    """The tiny model's graph, exported once."""
    require("onnx")
    from sentence_transformers import SentenceTransformer

    from harness.candidate.bi import PooledSide
    from harness.candidate.side import Keys

    model = SentenceTransformer(str(tiny), device="cpu", local_files_only=True).eval()
    side = PooledSide(
        list(model.children()), model.tokenizer, folder=tiny, prompt="", width=32, max_length=48, widest=48,
        keys=Keys("", "", ""), side="document", include_prompt=True, truncate_dim=None,
    )  # fmt: skip
    file = tmp_path_factory.mktemp("graph") / "both.onnx"
    export_graph(source_of(side), file, None)
    return file


def source_of(side):
    """A side's rows, as they are exported."""
    first, names = side.modules[0], tuple(side.tokenizer.model_input_names)
    return Source(side.folder, first, first, names, "token_embeddings", side.widest)


def test_windows_are_proven_as_long_as_they_are(release, tiny, graph):
    """A text of any length is read twelve tokens at a time."""
    require("onnx")
    window = '[input.window]\nsize = 12\nstride = 5\naggregation = "mean"\nnormalise = "after"\n'
    here, torchs = (release(f"path:{tiny}", window + more) for more in ('[runtime]\nbackend = "onnx"\n', ""))
    graph_path(here.folder, "both").parent.mkdir()
    shutil.copy(graph, graph_path(here.folder, "both"))
    prove(here, load(here, here.prompts_for("any")))
    found, expected = (
        load_proven(each, each.prompts_for("any")).encode(texts(9), "document") for each in (here, torchs)
    )
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-5)


@pytest.fixture
def opened(release, tiny, graph):
    """A release on a backend, with the exported graph beside it unless told otherwise."""

    def make(backend, more="", file=graph):
        require(backend)
        found = release(f"path:{tiny}", f'{more}[runtime]\nbackend = "{backend}"\n')
        if file is not None:
            graph_path(found.folder, "both").parent.mkdir()
            shutil.copy(file, graph_path(found.folder, "both"))
        return found

    return make


def loaded(release):
    return load(release, release.prompts_for())


def proven(release):
    """The record of the only graph of a release."""
    [part] = prove(release, loaded(release))
    return part.record


def edit(release, backend, **values):
    file = record_path(release.folder, "both", backend)
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def unread_by(release):
    """An entry of the vocabulary that stands in no probe text."""
    [part] = graphed(release, loaded(release))
    read = {token for each in part.probes() for token in each.features["input_ids"]}
    return max(set(part.reader.tokenizer.get_vocab().values()) - read)


def change_one_weight(file, entry):
    """Of the table of the vocabulary's vectors, the first number of one."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(file))
    [table] = [each for each in model.graph.initializer if each.name.endswith("word_embeddings.weight")]
    weights = numpy_helper.to_array(table).copy()
    weights[entry, 0] += 1
    table.CopyFrom(numpy_helper.from_array(weights, table.name))
    onnx.save(model, str(file))


class TestProven:
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_vectors_are_the_librarys(self, opened, backend):
        """After the parity run, texts of all lengths; torch makes no row any more."""
        release = opened(backend)
        plain = loaded(release).encode(texts(30), "query").vectors
        record = proven(release)
        encoder = load_proven(release, release.prompts_for())
        np.testing.assert_allclose(encoder.encode(texts(30), "query").vectors, plain, atol=1e-5)
        assert record.largest_difference <= record.tolerance
        assert (record.padding_sides, record.max_length, record.mask) == (["left", "right"], 48, "attention_mask")
        assert record.outside == ["Pooling", "Normalize"] and record.inputs["input_ids"] == ["batch", "width"]
        assert type(encoder.sides["query"].modules[0]).__name__ == "BackendRows"

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_a_vector_is_the_same_bits_in_any_company(self, opened, backend):
        release = opened(backend)
        prove(release, loaded(release))
        encoder = load_proven(release, release.prompts_for())
        given = texts(30)
        whole = encoder.encode(given, "query").vectors
        assert encoder.encode(given[::-1], "query").vectors[::-1].tobytes() == whole.tobytes()
        assert encoder.encode(given[:1], "query").vectors.tobytes() == whole[:1].tobytes()

    def test_a_release_without_a_graph_has_one_exported(self, opened):
        release = opened("onnx", file=None)
        record = proven(release)
        assert graph_path(release.folder, "both").is_file() and record.largest_difference <= record.tolerance

    def test_what_computes_is_in_the_keys(self, opened, release, tiny):
        """A vector of one backend is never taken for another's."""
        one, other, torch = opened("onnx"), opened("openvino"), release(f"path:{tiny}")
        found = {loaded(each).sides["query"].keys.vector for each in (one, other, torch)}
        assert len(found) == 3 and one.content_id == torch.content_id


class TestRefused:
    def test_without_a_parity_run(self, opened):
        release = opened("onnx")
        with pytest.raises(NotAdmitted, match="no parity run"):
            load_proven(release, release.prompts_for())

    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            ({"largest_difference": 2e-5}, "off by 2e-05"),
            ({"padding_sides": ["left"]}, "padding on the left alone"),
            ({"max_length": 47}, "proven for 47 tokens"),
            ({"of": "0" * 64}, "another model"),
            ({"quantised": "int8"}, "another model"),
            ({"versions": {"torch": "1"}}, "proven with torch 1"),
            ({"model": "0" * 64}, "another one than was proven"),
        ],
    )
    def test_a_record_that_proves_less(self, opened, values, reason):
        """Every part of it counts."""
        release = opened("onnx")
        prove(release, loaded(release))
        edit(release, "onnx", **values)
        with pytest.raises(NotAdmitted, match=reason):
            load_proven(release, release.prompts_for())

    def test_a_record_that_cannot_be_read(self, opened):
        release = opened("onnx")
        prove(release, loaded(release))
        edit(release, "onnx", tolerance="loose")
        with pytest.raises(Misconfigured, match="tolerance"):
            load_proven(release, release.prompts_for())

    def test_another_graph_than_was_proven(self, opened):
        release = opened("onnx")
        prove(release, loaded(release))
        with graph_path(release.folder, "both").open("ab") as file:
            file.write(b"\0")
        with pytest.raises(NotAdmitted, match="another one than was proven"):
            load_proven(release, release.prompts_for())

    @pytest.mark.parametrize("again", [False, True])
    def test_a_graph_with_one_other_weight_that_no_probe_reads(self, opened, tmp_path, again):
        """Also where the parity run is simply made again: a record that proves nothing vouches for nothing."""
        require("onnx")
        release = opened("onnx")
        prove(release, loaded(release))
        file = graph_path(release.folder, "both")
        change_one_weight(file, unread_by(release))
        for _ in range(2 if again else 1):
            record = proven(release)
        assert record.largest_difference > 10 * record.tolerance
        with pytest.raises(NotAdmitted, match="rows are off by"):
            backed(release, loaded(release))

    def test_eight_bits_under_a_release_of_float32(self, opened, release, tiny, tmp_path):
        """The tolerance of float32 tells them apart, by the figure."""
        require("onnx")
        rounded = tmp_path / "int8.onnx"
        export_graph(source_of(loaded(release(f"path:{tiny}")).sides["query"]), rounded, "int8")
        mine = opened("onnx", file=rounded)
        record = proven(mine)
        assert record.largest_difference > 10 * record.tolerance
        with pytest.raises(NotAdmitted, match="rows are off by"):
            backed(mine, loaded(mine))


class TestEightBits:
    def test_are_a_release_of_their_own(self, release, tiny):
        """Other content, other rows, and the same bits in any company."""
        require("onnx")
        model = json.dumps(f"path:{tiny}")[1:-1]
        mine = release(model, 'quantised = "int8"\n[runtime]\nbackend = "onnx"\n')
        assert mine.content_id != release(model).content_id
        prove(mine, loaded(mine))
        encoder = load_proven(mine, mine.prompts_for())
        whole, plain = (each.encode(texts(20), "query").vectors for each in (encoder, loaded(mine)))
        assert 1e-4 < np.abs(whole - plain).max() < 0.2
        assert encoder.encode(texts(20)[:1], "query").vectors.tobytes() == whole[:1].tobytes()

    def test_are_made_without_a_word_of_the_quantisers(self, release, tiny):
        """Where it is imported it turns the whole process's log on, and has a line for every node."""
        require("onnx")
        mine = release(json.dumps(f"path:{tiny}")[1:-1], 'quantised = "int8"\n[runtime]\nbackend = "onnx"\n')
        code = (
            "import logging\nfrom harness.cli import main\ntry:\n    main()\n"
            "finally:\n    print(logging.getLogger().handlers, logging.getLogger().level)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "admit", str(mine.folder)], capture_output=True, text=True, cwd=mine.folder
        )
        assert "RECONCILED" in done.stdout and done.stderr == ""
        assert done.stdout.splitlines()[-1] == "[] 30"

    def test_need_the_backend_that_has_them(self, release, tiny):
        with pytest.raises(Misconfigured, match="quantised"):
            release(f"path:{tiny}", 'quantised = "int8"\n')
