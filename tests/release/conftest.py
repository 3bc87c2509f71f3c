"""Release folders with model folders as the libraries save them, small enough to read and complete enough to admit."""

import json
import string
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from harness.release.open import inspect_release

LIBRARY = "sentence_transformers"
VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[unused0]",
    "[unused1]",
    "the",
    "flow",
    *string.punctuation,
]
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
WIDTH = 8
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": f"{LIBRARY}.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{LIBRARY}.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": f"{LIBRARY}.models.Normalize"},
]
BERT = {
    "architectures": ["BertModel"], "model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": 2,
    "max_position_embeddings": 512, "type_vocab_size": 2, "pad_token_id": 0, "vocab_size": len(VOCABULARY),
}  # fmt: skip
BODY = {
    "embeddings.word_embeddings.weight": [len(VOCABULARY), WIDTH],
    **{f"encoder.layer.{layer}.output.dense.weight": [WIDTH, WIDTH] for layer in range(2)},
}
POOLER = {"bert.pooler.dense.weight": [WIDTH, WIDTH], "bert.pooler.dense.bias": [WIDTH]}
RECORDED = """schema = "harness.release.v1"
name = "old"
interaction = "recorded"
[recorded]
format = "trec-run"
path = "run.trec"
score_type = "dot"
"""


def classifier(rows: int, name: str = "classifier") -> dict[str, list[int]]:
    return {f"{name}.weight": [rows, WIDTH], f"{name}.bias": [rows]}


def toml(interaction: str, extra: str = "", name: str = "tiny") -> str:
    return (
        f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "{interaction}"\n'
        f'[model]\nsource = "path:model"\n{extra}'
    )


def safetensors(shapes: dict[str, list[int]], changed: tuple[str, ...] = ()) -> bytes:
    """The bytes of a safetensors file; a tensor's numbers follow from its name, and from being among the changed."""
    header, body, start = {}, b"", 0
    for name, shape in shapes.items():
        rng = np.random.default_rng([zlib.crc32(name.encode()), name in changed])
        data = rng.standard_normal(shape).astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, start + len(data)]}
        body, start = body + data, start + len(data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


class Folder:
    """A release folder whose files a test can change; `model/` holds the model."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.toml(text)

    def toml(self, text: str) -> "Folder":
        (self.path / "release.toml").write_text(text, encoding="utf-8")
        return self

    def say(self, more: str) -> "Folder":
        """Adds lines to release.toml."""
        return self.toml((self.path / "release.toml").read_text(encoding="utf-8") + more)

    def write(self, name: str, content: object) -> "Folder":
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return self

    def change(self, name: str, **keys: object) -> "Folder":
        return self.write(name, json.loads((self.path / name).read_text(encoding="utf-8")) | keys)

    def without(self, name: str, *keys: str) -> "Folder":
        read = json.loads((self.path / name).read_text(encoding="utf-8"))
        return self.write(name, {key: value for key, value in read.items() if key not in keys})

    def remove(self, name: str) -> "Folder":
        (self.path / name).unlink()
        return self

    def tokenizer(self, place: str = "model") -> "Folder":
        added = [{"id": VOCABULARY.index(token), "content": token, "special": True} for token in SPECIAL.values()]
        whole = {
            "added_tokens": added,
            "normalizer": {"type": "BertNormalizer", "lowercase": True},
            "model": {"type": "WordPiece", "vocab": {token: place for place, token in enumerate(VOCABULARY)}},
        }
        self.write(f"{place}/tokenizer.json", whole)
        special = {f"{role}_token": token for role, token in SPECIAL.items()}
        return self.write(f"{place}/tokenizer_config.json", {"model_max_length": 512, **special})


def checks(folder: Folder) -> dict[str, object]:
    """Every check of a folder by name."""
    return {check.name: check for check in inspect_release(folder.path).checks}


def broken(folder: Folder) -> list[str]:
    """The names of the checks that don't hold."""
    return [check.name for check in inspect_release(folder.path).checks if not check.ok]


@pytest.fixture
def bi(tmp_path):
    """Makes a release of a BERT of width 8 with mean pooling and 64 tokens; its 2_Normalize folder is absent."""

    def make(name: str = "tiny", extra: str = "") -> Folder:
        folder = Folder(tmp_path / name, toml("bi", extra)).tokenizer()
        folder.write("model/modules.json", MODULES)
        folder.write("model/config.json", BERT)
        folder.write("model/sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": False})
        folder.write("model/1_Pooling/config.json", {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True})
        return folder.write("model/model.safetensors", safetensors(BODY))

    return make


@pytest.fixture
def dense(bi):
    """Makes a release of that BERT with a Dense from 8 to 4 between pooling and normalisation."""

    def make(name: str = "tiny", extra: str = "") -> Folder:
        folder = bi(name, extra).write("model/modules.json", [
            *MODULES[:2],
            {"path": "2_Dense", "type": f"{LIBRARY}.models.Dense"},
            {"path": "3_Normalize", "type": f"{LIBRARY}.models.Normalize"},
        ])  # fmt: skip
        folder.write("model/2_Dense/config.json", {
            "in_features": 8, "out_features": 4, "bias": True,
            "activation_function": "torch.nn.modules.activation.Tanh",
        })  # fmt: skip
        return folder.write(
            "model/2_Dense/model.safetensors", safetensors({"linear.weight": [4, 8], "linear.bias": [4]})
        )

    return make


@pytest.fixture
def sequence(tmp_path):
    """Makes a release of a BERT with a sequence head of as many rows as labels; a cross-encoder where there is one."""

    def make(interaction: str = "cross", labels: int = 1, name: str = "tiny", extra: str = "") -> Folder:
        folder = Folder(tmp_path / name, toml(interaction, extra)).tokenizer()
        names = {str(row): f"LABEL_{row}" for row in range(labels)}
        folder.write("model/config.json", BERT | {
            "architectures": ["BertForSequenceClassification"], "id2label": names,
            "label2id": {label: int(row) for row, label in names.items()},
        })  # fmt: skip
        body = {f"bert.{tensor}": shape for tensor, shape in BODY.items()}
        return folder.write("model/model.safetensors", safetensors(body | POOLER | classifier(labels)))

    return make


@pytest.fixture
def recorded(tmp_path):
    def make(name: str = "old", content: str = "q1 Q0 d1 1 1.5 x\n") -> Folder:
        return Folder(tmp_path / name, RECORDED.replace('"old"', f'"{name}"')).write("run.trec", content)

    return make
