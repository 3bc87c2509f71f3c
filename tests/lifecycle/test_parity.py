"""What a deployment says of its parity runs, and what follows from them."""

import json
from pathlib import Path

import pytest

from harness.errors import Misconfigured
from harness.lifecycle.compatibility import ParityRun
from harness.lifecycle.parity import FILE, read

RUN = {"namespace": "docs", "key": "a" * 64, "items": 256, "largest": 2e-7, "runtime": {"backend": "onnx"}}


def write(folder: Path, *rows: object) -> Path:
    (folder / FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


class TestReading:
    def test_a_line_is_a_run(self, tmp_path: Path) -> None:
        assert read(tmp_path) == ()
        assert read(write(tmp_path, RUN)) == (ParityRun("docs", "a" * 64, 256, 2e-7, {"backend": "onnx"}),)

    @pytest.mark.parametrize(
        "change",
        [
            {"key": "short"},
            {"items": 0},
            {"items": True},
            {"largest": -1e-9},
            {"largest": "0"},
            {"more": 1},
            {"runtime": None},
        ],
    )
    def test_what_is_none_is_refused_with_its_line(self, tmp_path: Path, change: dict[str, object]) -> None:
        with pytest.raises(Misconfigured) as refusal:
            read(write(tmp_path, RUN, {**RUN, **change}))
        assert refusal.value.subject.endswith(f"{FILE} line 2")
        assert next(iter(change)) in refusal.value.found
