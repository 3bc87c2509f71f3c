"""Every field of a described bi-encoder's manifest said otherwise in turn: parity fails for each that matters."""

import json
from collections.abc import Iterator
from typing import Any, Literal, get_origin

import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Normalize

from harness.candidate.load import load
from harness.candidate.parity import parity
from harness.candidate.probe import probe_texts
from harness.release.manifest import Manifest
from tests.lifecycle import example

from .conftest import save_tiny
from .test_parity import INSTRUCTOR, dense

HELD = {
    "output.dimension",
    "towers.*.input.max_length",
    "towers.*.input.padding_side",
    "towers.*.input.prompts.*",
    "towers.*.input.special_tokens.*",
    "towers.*.input.truncation_side",
    "towers.*.readout.denominator",
    "towers.*.readout.empty",
    "towers.*.readout.family",
    "towers.*.readout.max_active_dims",
    "towers.*.readout.modes",
    "towers.*.readout.normalisation.epsilon",
    "towers.*.readout.normalisation.kind",
    "towers.*.readout.normalisation.stage",
    "towers.*.readout.renormalised",
    "towers.*.readout.truncate_dim",
    "towers.*.readout.weights",
    "towers.*.readout.projections.*.activation",
    "towers.*.readout.projections.*.bias",
    "towers.*.readout.projections.*.kind",
    "towers.*.readout.projections.*.residual",
    "towers.*.readout.projections.*.weights",
    "towers.*.readout.projections.*.width_in",
    "towers.*.readout.projections.*.width_out",
    "towers.*.rows.expansion_counts",
    "towers.*.rows.prompt",
    "towers.*.rows.special",
    "towers.*.state.layers",
    "towers.*.state.mixture",
    "towers.*.state.scale",
    "towers.*.state.width",
}
# What the rows that the reference is given already are: the digests of all files hold it, and so does `stale`.
BEFORE_THE_ROWS = {
    "towers.*.artifact.architecture",
    "towers.*.artifact.model_type",
    "towers.*.artifact.config",
    "towers.*.artifact.backbone",
    "towers.*.artifact.adapter",
    "towers.*.artifact.head",
    "towers.*.artifact.quantised",
    "towers.*.artifact.visibility",
    "towers.*.input.tokenizer.*",
    "towers.*.input.normaliser",
    "towers.*.input.lower_case",
    "towers.*.state.final_norm",
}
# Of pairs, of late interaction, of names, of storage: a text's vector does not know it.
NOT_OF_A_VECTOR = {
    "towers.*.artifact.revision",
    "towers.*.artifact.task_revision",
    "towers.*.input.template",
    "towers.*.input.truncation",
    "towers.*.input.truncated_first",
    "towers.*.readout.stored",
    "towers.*.rows.expansion_attended",
    "towers.*.rows.expansion_strategy",
    "towers.*.rows.expansion_token",
    "towers.*.rows.offsets",
    "towers.*.rows.segments",
    "towers.*.rows.sequences",
    "towers.*.rows.words",
}


ANYTHING = "anything that the schema takes"


def corrupted(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """By the field's path, the manifest with another value there alone; also where it says nothing."""
    whole = manifest.model_dump(mode="json", by_alias=True)
    for pattern, meaning in example.single_changes(whole["meaning"]):
        for value in (2, [0.5], ["x"], True, "x", example.sha("other")):
            said = json.loads(json.dumps(meaning).replace(f'"{ANYTHING}"', json.dumps(value)))
            try:
                other = Manifest.model_validate({**whole, "meaning": said})
            except ValueError:
                continue
            yield pattern, other
            break
        else:
            pytest.fail(f"no other value of {pattern} was found")


@pytest.fixture
def any_value_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    other = example._other

    def of(annotation: Any, value: Any, optional: bool) -> Any:
        if value is None and get_origin(annotation) is not Literal:
            return ANYTHING
        return other(annotation, value, optional)

    monkeypatch.setattr(example, "_other", of)


def test_each_is_held_or_has_a_reason_not_to_be(release, tmp_path, any_value_for_none):
    """A mean over all rows but the prompt's, a Dense with tanh, unit length; no bias, so that short rows stay short."""
    tail = [dense(16, torch.nn.Tanh(), bias=False), Normalize()]
    opened = release(f"path:{save_tiny(tmp_path, include_prompt=False, tail=lambda: tail)}", INSTRUCTOR)
    encoder, texts = load(opened, opened.prompts_for("any")), probe_texts(48)
    assert parity(encoder, opened.manifest, texts).ok
    fails: dict[str, bool] = {}
    for field, manifest in corrupted(opened.manifest):
        fails[field] = fails.get(field, True) and not parity(encoder, manifest, texts).ok
    assert {field for field, failed in fails.items() if failed} == HELD
    spared = {field for field in fails if field.startswith("towers.")} - HELD
    assert spared == BEFORE_THE_ROWS | NOT_OF_A_VECTOR
