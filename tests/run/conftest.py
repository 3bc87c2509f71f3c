"""A small suite in memory, and releases of tiny models of random weights beside one another."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.release.open import Release, open_release
from harness.suite.case import Case, Counts, Document, Suite
from harness.suite.definition import SuiteDefinition

from ..candidate.conftest import save_cross, save_tiny

TEXTS = (
    "the flow of heat", "a wing at high speed", "drag and lift of a body", "shock wave", "layer of air on the plate",
    "jet", "the wing", "lift", "heat heat heat", "speed of the body and the jet and the wave", "plate", "a shock layer",
)  # fmt: skip
QUERIES = ("heat of the flow", "lift of a wing", "shock", "the jet at speed")


def suite_of(texts: Sequence[str] = TEXTS, queries: Sequence[str] = QUERIES) -> Suite:
    """Documents d00, d01, … and cases q0, q1, …."""
    definition = SuiteDefinition.model_validate({
        "schema": "harness.suite.v1", "name": "small", "task": "retrieval", "source": {"format": "beir"},
        "metrics": {"primary": "RR@10"},
    })  # fmt: skip
    return Suite(
        definition=definition,
        folder=Path(),
        cases=tuple(Case(f"q{i}", text, "promotion", f"q{i}", True, {}) for i, text in enumerate(queries)),
        documents=tuple(Document(f"d{i:02}", text) for i, text in enumerate(texts)),
        judgements=(),
        files={},
        counts=Counts(0, 0, 0, 0, 0, 0),
        warnings=(),
    )


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "bi": save_tiny(root / "bi"),
        "other": save_tiny(root / "other", pooling="cls", normalise=False),
        "cross": save_cross(root / "cross"),
        "third": save_cross(root / "third", seed=6),
    }


@pytest.fixture
def releases(tmp_path: Path, models: Mapping[str, Path]) -> Callable[..., Release]:
    """Opens a release by name: of one of the models, or of whatever release.toml is given."""

    def make(name: str, text: str | None = None, *, model: str | None = None, extra: str = "") -> Release:
        folder = tmp_path / "releases" / name
        folder.mkdir(parents=True, exist_ok=True)
        kind = "cross" if (model or name) in ("cross", "third") else "bi"
        live = f'interaction = "{kind}"\n[model]\nsource = {json.dumps(f"path:{models.get(model or name)}")}\n'
        (folder / "release.toml").write_text(
            f'schema = "harness.release.v1"\nname = "{name}"\n{live if text is None else text}{extra}'
        )
        return open_release(folder)

    return make


@pytest.fixture
def recorded(releases: Callable[..., Release], tmp_path: Path) -> Callable[..., Release]:
    """A recorded release of a TREC run, given as `query document score` a line."""

    def make(name: str, *rows: str) -> Release:
        folder = tmp_path / "releases" / name
        folder.mkdir(parents=True, exist_ok=True)
        run = "".join("{} Q0 {} 1 {} x\n".format(*row.split()) for row in rows)
        (folder / "run.trec").write_text(run)
        text = 'interaction = "recorded"\n[recorded]\nformat = "trec-run"\npath = "run.trec"\nscore_type = "dot"\n'
        return releases(name, text)

    return make


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Counts the pairs and the single texts that models read."""
    from harness.candidate.cross import PairEncoder
    from harness.candidate.side import SideEncoder

    seen = SimpleNamespace(pairs=0, texts=0)
    joint, alone = PairEncoder.rows, SideEncoder.rows

    def pairs(self, tokens, *more):
        seen.pairs += len(tokens)
        return joint(self, tokens, *more)

    def texts(self, tokens, *more):
        seen.texts += len(tokens)
        return alone(self, tokens, *more)

    monkeypatch.setattr(PairEncoder, "rows", pairs)
    monkeypatch.setattr(SideEncoder, "rows", texts)
    return seen
