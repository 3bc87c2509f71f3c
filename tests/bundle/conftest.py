"""A bundle of every kind of file."""

from pathlib import Path

import pyarrow as pa
import pytest

from harness.bundle.write import write
from harness.store.evidence import Evidence


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """decision.json, suite.lock.json, two tables and a report."""
    folder = tmp_path / "bundles" / "ab12"
    write(
        folder,
        {"decision": {"outcome": "PASS", "value": 0.1}, "suite.lock": ["é", None]},
        [
            Evidence("cases", pa.table({"case_id": ["q1", "q2"]}).to_reader()),
            Evidence("none", pa.table({"x": pa.array([], pa.float64())}).to_reader()),
        ],
        {"report.md": "# PASS\n"},
    )
    return folder
