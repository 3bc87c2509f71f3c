"""Release folders with a model folder as Sentence Transformers saves it; the weights are a stand-in, never loaded."""

import json
from pathlib import Path

import pytest

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]
BI = """schema = "harness.release.v1"
name = "tiny"
interaction = "bi"
[model]
source = "path:model"
"""
RECORDED = """schema = "harness.release.v1"
name = "old"
interaction = "recorded"
[recorded]
format = "trec-run"
path = "run.trec"
score_type = "dot"
"""


class Folder:
    """A release folder whose files a test can change."""

    def __init__(self, path: Path, toml: str) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.toml(toml)

    def toml(self, text: str) -> "Folder":
        (self.path / "release.toml").write_text(text, encoding="utf-8")
        return self

    def write(self, name: str, content: object) -> "Folder":
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return self

    def change(self, name: str, **keys: object) -> "Folder":
        return self.write(name, json.loads((self.path / name).read_text(encoding="utf-8")) | keys)

    def remove(self, name: str) -> "Folder":
        (self.path / name).unlink()
        return self


@pytest.fixture
def bi(tmp_path):
    """Makes a release of a BERT of width 8 with mean pooling and 64 tokens; its 2_Normalize folder is absent."""

    def make(name: str = "tiny", extra: str = "") -> Folder:
        folder = Folder(tmp_path / name, BI + extra)
        folder.write("model/modules.json", MODULES)
        folder.write("model/config.json", {"model_type": "bert", "hidden_size": 8, "max_position_embeddings": 512})
        folder.write("model/sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": False})
        folder.write("model/tokenizer_config.json", {"model_max_length": 512})
        folder.write("model/1_Pooling/config.json", {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True})
        folder.write("model/tokenizer.json", {})
        return folder.write("model/model.safetensors", "weights")

    return make


@pytest.fixture
def recorded(tmp_path):
    def make(name: str = "old", content: str = "q1 Q0 d1 1 1.5 x\n") -> Folder:
        return Folder(tmp_path / name, RECORDED).write("run.trec", content)

    return make
