"""What was made of a file is kept for as long as the file stays as it is."""

import os

from harness.file.unchanged import kept_while_unchanged


def reader():
    """What reads a text, and the paths that it was given."""
    asked = []

    @kept_while_unchanged(8)
    def read(path):
        asked.append(path)
        return path.read_text()

    return read, asked


class TestKeptWhileUnchanged:
    def test_a_file_that_stays_is_read_once(self, tmp_path):
        """Also under another name that leads there."""
        path, link = tmp_path / "a", tmp_path / "b"
        path.write_text("one")
        link.symlink_to(path)
        read, asked = reader()
        assert [read(path), read(path), read(link)] == ["one"] * 3
        assert asked == [path.resolve()]

    def test_another_size_or_time_of_change_is_read_again(self, tmp_path):
        """Either tells."""
        path = tmp_path / "a"
        path.write_text("one")
        read, _ = reader()
        before = read(path), path.stat().st_mtime_ns
        path.write_text("three")
        os.utime(path, ns=(0, before[1]))
        assert read(path) == "three"
        path.write_text("seven")
        os.utime(path, ns=(0, before[1] + 1))
        assert read(path) == "seven"
