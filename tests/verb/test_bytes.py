"""The same inputs give the same bytes, whatever seed the interpreter hashes text with."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("suite", ["help-answers", "same-question"])
def test_tables_of_several_thresholds_stand_in_the_order_of_the_metrics(suite: str, tmp_path: Path) -> None:
    """Two thresholds are fitted, each for its own end; four seeds leave a set's order one chance in eight."""
    pages = set()
    for seed in "1234":
        project = tmp_path / seed
        shutil.copytree(ROOT / "suites" / suite, project / "suites" / suite)
        shutil.copytree(ROOT / "fixtures/outputs" / suite, project / "releases")
        (project / "suites" / suite / "exposures.jsonl").unlink(missing_ok=True)
        command = [sys.executable, "-c", "from harness.cli import main; main()", "run", suite]
        command += ["--candidate", "candidate", "--parent", "parent"]
        seeded = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=project, check=False, capture_output=True, env=seeded)
        [page] = project.glob("reports/*/report.md")
        pages.add(page.read_bytes())
    assert len(pages) == 1
