"""What a key leaves out of a configuration changes no bit of what the library computes."""

import json
import shutil
from typing import Any

import numpy as np
import pytest

from harness.release.describe.backbone import WITHOUT_EFFECT

from .conftest import bare_bert

MODELS = ("bert", "distilbert", "mpnet", "gpt2", "modernbert", "deberta-v2", "electra")


def other(value: Any) -> Any:
    """Another value of the same kind; nothing said is taken for a rate."""
    return not value if isinstance(value, bool) else 0.7 if value is None or isinstance(value, float) else value


def rows(folder: Any) -> Any:
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(str(folder), local_files_only=True).float().eval()
    with torch.inference_mode():
        return model(input_ids=torch.tensor([[2, 5, 6, 7, 3]])).last_hidden_state.numpy()


@pytest.mark.parametrize("model_type", MODELS)
def test_no_bit_depends_on_it(tmp_path, model_type: str) -> None:
    import transformers

    had = transformers.AutoConfig.for_model(model_type).to_dict()
    kwargs = {"pooler_hidden_size": 32} if model_type == "deberta-v2" else {}
    folder = bare_bert(tmp_path / "plain", model_type=model_type, **kwargs)
    changed = {key: other(had[key]) for key in WITHOUT_EFFECT if key in had and key not in ("dtype", "torch_dtype")}
    changed |= {"gradient_checkpointing": True, "use_cache": not had.get("use_cache", True)}
    assert any("drop" in key for key in changed) and any("init" in key for key in changed)
    shutil.copytree(folder, tmp_path / "changed")
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "changed" / "config.json").write_text(json.dumps({**config, **changed}))
    np.testing.assert_array_equal(rows(tmp_path / "changed"), rows(folder))
