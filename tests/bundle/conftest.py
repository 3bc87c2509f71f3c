"""A bundle of every kind of file."""

from pathlib import Path

import pyarrow as pa
import pytest

from harness.bundle.write import write


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """decision.json, suite.lock.json, two tables and a report."""
    folder = tmp_path / "bundles" / "ab12"
    write(
        folder,
        {"decision": {"outcome": "PASS", "value": 0.1}, "suite.lock": ["é", None]},
        {"cases": pa.table({"case_id": ["q1", "q2"]}), "none": pa.table({"x": pa.array([], pa.float64())})},
        {"report.md": "# PASS\n"},
    )
    return folder
