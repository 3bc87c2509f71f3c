"""Where a project's things lie, by names that people type."""

from pathlib import Path

import pytest

from harness.errors import NotFound
from harness.verb.place import find_place


class TestLinksInACircle:
    @pytest.mark.parametrize("what", ["suite", "release"])
    def test_are_no_suite_and_no_release(self, tmp_path: Path, what: str) -> None:
        shelf = tmp_path / f"{what}s"
        shelf.mkdir()
        (shelf / "loop").symlink_to("loop")
        with pytest.raises(NotFound, match=f"no {what}.toml in"):
            getattr(find_place(tmp_path), what)("loop")

    def test_are_no_store(self, tmp_path: Path) -> None:
        (tmp_path / "loop").symlink_to("loop")
        with (
            pytest.raises(NotFound, match="no store here"),
            find_place(tmp_path, str(tmp_path / "loop")).store.reading(),
        ):
            pass
