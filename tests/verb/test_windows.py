"""The main job with a model that reads long documents in windows, against itself as it cuts them."""

import json
from pathlib import Path

import pytest

import harness

from ..candidate.conftest import WORDS, save_tiny

TOPICS = ("jet", "lift", "drag", "shock")
# Each says its own word behind a hundred that all of them say.
DOCUMENTS = {f"d{at}": " ".join([*WORDS[:6] * 17, *[topic] * 12]) for at, topic in enumerate(TOPICS)}


def write(root: Path, folder: Path) -> None:
    place = root / "suites" / "long"
    (place / "qrels").mkdir(parents=True)
    queries = {f"q{at}": " ".join([topic] * 10) for at, topic in enumerate(TOPICS)}
    for name, texts in (("corpus", DOCUMENTS), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()]
        (place / f"{name}.jsonl").write_text("".join(lines))
    (place / "qrels" / "test.tsv").write_text("".join(f"q{at}\td{at}\t1\n" for at in range(len(TOPICS))))
    (place / "suite.toml").write_text(
        'schema = "harness.suite.v1"\nname = "long"\ntask = "retrieval"\nsource = { format = "beir" }\n'
        '[metrics]\nprimary = "RR@10"\n[uncertainty]\ndraws = 200\n'
        '[[rules]]\nid = "h"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 0.5\n'
    )
    window = '[input.window]\nsize = 12\nstride = 5\naggregation = "{}"\n'
    lines = {"cut": "", "best": window.format("best"), "mean": window.format("mean") + 'normalise = "after"\n'}
    for name, text in lines.items():
        (root / "releases" / name).mkdir(parents=True)
        (root / "releases" / name / "release.toml").write_text(
            f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "bi"\n'
            f'[model]\nsource = "path:{folder}"\n{text}'
        )


def first() -> dict[str, str]:
    rows = harness.sql("SELECT case_id, document_id FROM rankings WHERE side = 'candidate' AND position = 1").rows
    return {str(case): str(document) for case, document in rows}


@pytest.mark.usefixtures("plain_page")
def test_what_only_the_end_says_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the best window; the mean, too, tells documents apart that are one text where they are cut, and tie."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, save_tiny(tmp_path / "model"))
    harness.freeze("long")
    found = {name: harness.run("long", candidate=name, parent="cut") for name in ("best", "mean")}
    for name, result in found.items():
        record = result.as_record()
        metrics = {side: record["metrics"][side]["all"]["RR@10"]["value"] for side in ("candidate", "parent")}
        assert metrics["parent"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
        assert metrics["candidate"] != metrics["parent"], name
        assert name == "mean" or metrics["candidate"] == 1.0
        assert record["counts"]["truncated"] == 0
    checks = {check.name for check in harness.admit("mean").checks}
    assert "parity: windows" in checks
