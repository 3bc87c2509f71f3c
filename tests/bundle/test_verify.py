"""What a deployment runs before it believes a bundle: every difference by name."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.bundle.verify import SUMS, verify
from harness.errors import NotFound, Tampered
from harness.identity import file_digest, text_digest
from harness.lifecycle.state import State, advance


def found(folder: Path) -> list[tuple[str, str]]:
    return sorted((finding.path, finding.kind) for finding in verify(folder).findings)


def add_line(folder: Path, line: str) -> None:
    with (folder / SUMS).open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")


class TestWhatHolds:
    def test_a_bundle_as_it_was_written(self, bundle: Path) -> None:
        """No finding, twice; verifying writes nothing."""
        before = sorted(bundle.rglob("*"))
        assert verify(bundle).ok and verify(bundle).as_record() == {"ok": True, "findings": []}
        assert sorted(bundle.rglob("*")) == before

    @pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum on this machine")
    def test_sha256sum_agrees(self, bundle: Path) -> None:
        """Without this package: it accepts the bundle, and refuses it once a byte has changed."""
        command = ["sha256sum", "--check", "--strict", "--quiet", SUMS]
        assert subprocess.run(command, cwd=bundle, capture_output=True).returncode == 0
        (bundle / "report.md").write_text("# FAIL\n")
        assert subprocess.run(command, cwd=bundle, capture_output=True).returncode == 1


class TestFiles:
    @pytest.mark.parametrize("name", ["decision.json", "evidence/cases.parquet", "report.md"])
    def test_changed(self, bundle: Path, name: str) -> None:
        """One byte, the length kept."""
        content = bytearray((bundle / name).read_bytes())
        content[-1] ^= 1
        (bundle / name).write_bytes(content)
        assert found(bundle) == [(name, "changed")]

    @pytest.mark.parametrize("name", ["decision.json", "evidence/none.parquet"])
    def test_missing(self, bundle: Path, name: str) -> None:
        """Listed, but not there."""
        (bundle / name).unlink()
        assert found(bundle) == [(name, "missing")]

    @pytest.mark.parametrize(
        "name",
        ["more.json", ".hidden", "evidence/.h", "new/deep/file", "decision.json ", "SHA256SUMS.bak", "new/SHA256SUMS"],
    )
    def test_extra(self, bundle: Path, name: str) -> None:
        """Hidden ones and those in new folders too; a second list does not vouch for itself."""
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).touch()
        assert found(bundle) == [(name, "extra")]

    def test_renamed_is_missing_and_extra(self, bundle: Path) -> None:
        """Also where only the case of a letter changed."""
        (bundle / "decision.json").rename(bundle / "Decision.json")
        assert found(bundle) == [("Decision.json", "extra"), ("decision.json", "missing")]

    def test_two_that_changed_places(self, bundle: Path) -> None:
        """The names are all there, and so are the digests."""
        one, other = bundle / "decision.json", bundle / "report.md"
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)
        assert found(bundle) == [("decision.json", "changed"), ("report.md", "changed")]

    def test_all_findings_at_once(self, bundle: Path) -> None:
        """Not only the first; the record says the same."""
        (bundle / "decision.json").unlink()
        (bundle / "report.md").write_text("other")
        (bundle / "more").touch()
        assert found(bundle) == [("decision.json", "missing"), ("more", "extra"), ("report.md", "changed")]
        record = verify(bundle).as_record()
        assert record["ok"] is False
        assert [list(finding) for finding in record["findings"]] == [["path", "kind", "detail"]] * 3


class TestLinksAndDevices:
    def test_a_link_to_the_same_bytes(self, bundle: Path, tmp_path: Path) -> None:
        """What it points to can change after it was verified."""
        moved = tmp_path / "outside.json"
        (bundle / "decision.json").rename(moved)
        (bundle / "decision.json").symlink_to(moved)
        assert found(bundle) == [("decision.json", "changed")]

    def test_a_link_that_was_not_there(self, bundle: Path, tmp_path: Path) -> None:
        """To a file, to a folder, to nothing: extra, and what is behind it is not looked at."""
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "file").touch()
        for name, target in (("f", tmp_path / "outside" / "file"), ("d", tmp_path / "outside"), ("n", tmp_path / "no")):
            (bundle / name).symlink_to(target)
        assert found(bundle) == [("d", "extra"), ("f", "extra"), ("n", "extra")]

    def test_a_folder_that_became_a_link(self, bundle: Path, tmp_path: Path) -> None:
        """Its files are no longer in the bundle, though the paths lead to the same bytes."""
        (bundle / "evidence").rename(tmp_path / "outside")
        (bundle / "evidence").symlink_to(tmp_path / "outside")
        assert found(bundle) == [
            ("evidence", "extra"), ("evidence/cases.parquet", "missing"), ("evidence/none.parquet", "missing"),
        ]  # fmt: skip

    def test_the_list_itself_is_a_link(self, bundle: Path, tmp_path: Path) -> None:
        """It says what the bundle is, so it must be in it."""
        (bundle / SUMS).rename(tmp_path / SUMS)
        (bundle / SUMS).symlink_to(tmp_path / SUMS)
        assert found(bundle) == [(SUMS, "changed")]

    def test_a_pipe_in_the_place_of_a_file(self, bundle: Path) -> None:
        """It is not read: nobody might ever write to it."""
        (bundle / "decision.json").unlink()
        os.mkfifo(bundle / "decision.json")
        assert found(bundle) == [("decision.json", "changed")]

    def test_a_folder_in_the_place_of_a_file(self, bundle: Path) -> None:
        """The file is missing, and an empty folder is nothing that was bundled."""
        (bundle / "decision.json").unlink()
        (bundle / "decision.json").mkdir()
        assert found(bundle) == [("decision.json", "extra"), ("decision.json", "missing")]

    def test_an_empty_folder(self, bundle: Path) -> None:
        """Extra, however deep."""
        (bundle / "evidence" / "more" / "still").mkdir(parents=True)
        assert found(bundle) == [("evidence/more/still", "extra")]


class TestTheList:
    def test_emptied(self, bundle: Path) -> None:
        """A list of nothing vouches for nothing: every file is extra, and it says so."""
        (bundle / SUMS).write_text("")
        kinds = dict(found(bundle))
        assert kinds.pop(SUMS) == "unreadable"
        assert set(kinds.values()) == {"extra"} and len(kinds) == 5

    @pytest.mark.parametrize("empty", [True, False])
    def test_emptied_with_all_the_files(self, bundle: Path, empty: bool) -> None:
        """A bundle of nothing at all is not ok."""
        for path in [path for path in bundle.rglob("*") if path.is_file()]:
            path.unlink()
        (bundle / SUMS).write_text("" if empty else "\n\n")
        assert found(bundle) == [(SUMS, "unreadable"), ("evidence", "extra")]

    @pytest.mark.parametrize(
        "line",
        [
            "nonsense", "abc  report.md", "0" * 64, "0" * 64 + "  ", "A" * 64 + "  report.md", "0" * 64 + " report.md",
            " " + "0" * 64 + "  report.md", "0" * 64 + " *report.md", "\x00", "# comment",
        ],
    )  # fmt: skip
    def test_a_line_that_is_no_checksum(self, bundle: Path, line: str) -> None:
        """Named by its number; the others still count."""
        add_line(bundle, line)
        [finding] = verify(bundle).findings
        assert (finding.path, finding.kind) == (SUMS, "unreadable")
        assert "line 6" in finding.detail

    def test_a_file_listed_twice(self, bundle: Path) -> None:
        """Even if one of the two is right: the other is not, and a reader may take that one."""
        right = (bundle / SUMS).read_text()
        for text in (right + "0" * 64 + "  report.md\n", "0" * 64 + "  report.md\n" + right):
            (bundle / SUMS).write_text(text)
            assert (SUMS, "unreadable") in found(bundle)

    def test_bytes_that_are_no_text(self, bundle: Path) -> None:
        """A finding, not a traceback."""
        (bundle / SUMS).write_bytes((bundle / SUMS).read_bytes() + b"\xff\xfe\n")
        assert found(bundle) == [(SUMS, "unreadable")]

    @pytest.mark.parametrize("path", ["../outside", "evidence/../../outside", "{absolute}", "./report.md", "//outside"])
    def test_a_path_out_of_the_folder_is_never_read(
        self, bundle: Path, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is missing, whatever stands there; even its digest is not asked for."""
        outside = bundle.parent / "outside"
        outside.write_text("x")
        read: list[Path] = []
        opened = Path.open

        def watched(self: Path, *arguments: object, **options: object) -> object:
            read.append(self.resolve())
            return opened(self, *arguments, **options)

        monkeypatch.setattr(Path, "open", watched)
        name = path.format(absolute=outside)
        add_line(bundle, f"{'2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881'}  {name}")
        assert found(bundle) == [(name, "missing")]
        assert read and all(each.is_relative_to(bundle.resolve()) for each in read)


class TestNoBundle:
    @pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, Path.touch], ids=["nothing", "a folder", "a file"])
    def test_nothing_to_hold_it_against(self, tmp_path: Path, make: Callable[[Path], None]) -> None:
        """NotFound: that is no tampered bundle, it is none."""
        make(tmp_path / "x")
        with pytest.raises(NotFound):
            verify(tmp_path / "x")


class TestBesideItsRelease:
    """releases/NAME/bundles/RUN: the ledger of NAME says under which checksums it became a candidate."""

    @pytest.fixture
    def beside(self, bundle: Path) -> Path:
        evidence = {"run": bundle.name, "bundle": file_digest(bundle / SUMS)}
        advance(bundle.parents[1], "content", State.RECONCILED, {"files": {}})
        advance(bundle.parents[1], "content", State.EVALUATED, {"run": bundle.name})
        advance(bundle.parents[1], "content", State.CANDIDATE, evidence)
        return bundle

    def test_as_it_was_recorded(self, beside: Path) -> None:
        """No finding."""
        assert found(beside) == []

    def test_one_that_was_made_consistent_again(self, beside: Path) -> None:
        """Its own list vouches for the changed file, the release's ledger does not."""
        (beside / "report.md").write_text("# FAIL\n")
        lines = (beside / SUMS).read_text().replace(
            text_digest("# PASS\n"), text_digest("# FAIL\n")
        )  # fmt: skip
        (beside / SUMS).write_text(lines)
        assert found(beside) == [(SUMS, "changed")]

    def test_away_from_its_release(self, beside: Path, tmp_path: Path) -> None:
        """A copy has only itself to be held against, also in a folder of its release's form."""
        assert verify(shutil.copytree(beside, tmp_path / "elsewhere" / "x" / beside.name)).ok
        assert verify(shutil.copytree(beside, tmp_path / "releases" / "x" / "bundles" / beside.name)).ok

    def test_one_of_a_run_that_was_never_recorded(self, beside: Path) -> None:
        """Its release says of no such run that it became a candidate."""
        renamed = shutil.copytree(beside, beside.parent / "cd34")
        assert found(renamed) == [("../../lifecycle.jsonl", "missing")]

    @pytest.mark.parametrize("kept", [2, 0])
    def test_one_whose_line_was_taken_away(self, beside: Path, kept: int) -> None:
        """The last line of a chain can be removed without breaking it; the bundle still shows that it was there."""
        ledger = beside.parents[1] / "lifecycle.jsonl"
        ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:kept]))
        assert found(beside) == [("../../lifecycle.jsonl", "missing")]

    def test_one_whose_ledger_was_taken_away(self, beside: Path) -> None:
        """What is left of the release says that this is its place."""
        (beside.parents[1] / "release.toml").touch()
        (beside.parents[1] / "lifecycle.jsonl").unlink()
        assert found(beside) == [("../../lifecycle.jsonl", "missing")]

    def test_a_line_that_was_written_to_fit(self, beside: Path) -> None:
        """The last line names the checksums; another digest in it is seen by the line's own."""
        ledger = beside.parents[1] / "lifecycle.jsonl"
        (beside / "report.md").write_text("# FAIL\n")
        before = file_digest(beside / SUMS)
        (beside / SUMS).write_text(
            (beside / SUMS).read_text().replace(text_digest("# PASS\n"), text_digest("# FAIL\n"))
        )
        ledger.write_text(ledger.read_text().replace(before, file_digest(beside / SUMS)))
        with pytest.raises(Tampered, match=r"lifecycle\.jsonl line 3"):
            verify(beside)
