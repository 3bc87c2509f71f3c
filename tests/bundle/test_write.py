"""The same run gives the same bytes, and a bundle is there whole or not at all."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import harness
from harness.bundle.verify import SUMS, verify
from harness.bundle.write import write

FILES = ["decision.json", "evidence/cases.parquet", "evidence/none.parquet", "report.md", "suite.lock.json"]

MAKE = """
import sys
from pathlib import Path
import pyarrow as pa
from harness.bundle.write import write
from harness.store.evidence import Evidence
n, rows = 100_000, int(sys.argv[2])
table = pa.table({
    "case_id": [f"q{i % 977}" for i in range(n)],
    "document_id": [f"document-{i * 31 % 100_003}" for i in range(n)],
    "score": [((i * 7919) % 1000) / 7 if i % 5 else None for i in range(n)],
    "remarks": [["a", "é"][: i % 3] for i in range(n)],
})
table = pa.concat_tables([table.slice(start, rows) for start in range(0, n, rows)])
records = {"a": {"x": 1, "y": 0.1}, "b": {"y": 0.1, "x": 1}}
if rows < n:
    records = {name: dict(reversed(records[name].items())) for name in ("b", "a")}
print(write(Path(sys.argv[1]), records, [Evidence("rankings", table.to_reader())], {"report.md": "é\\n"}))
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestContents:
    def test_what_is_in_it(self, bundle: Path) -> None:
        """The files asked for and their checksums, nothing else, nothing beside."""
        assert sorted(contents(bundle)) == [SUMS, *FILES]
        assert [path.name for path in bundle.parent.iterdir()] == ["ab12"]

    def test_records_are_canonical_json(self, bundle: Path) -> None:
        """One line each."""
        assert (bundle / "decision.json").read_bytes() == b'{"outcome":"PASS","value":0.1}\n'
        assert json.loads((bundle / "suite.lock.json").read_text(encoding="utf-8")) == ["é", None]

    def test_tables_come_back(self, bundle: Path) -> None:
        """An empty one keeps its columns and types."""
        assert parquet.read_table(bundle / "evidence" / "cases.parquet").to_pydict() == {"case_id": ["q1", "q2"]}
        assert parquet.read_table(bundle / "evidence" / "none.parquet").schema.field("x").type == pa.float64()

    def test_the_digest_is_that_of_the_checksums(self, tmp_path: Path) -> None:
        """One figure that names all of it."""
        found = write(tmp_path / "b", {"a": 1}, [], {})
        assert found == hashlib.sha256((tmp_path / "b" / SUMS).read_bytes()).hexdigest()
        assert found != write(tmp_path / "b", {"a": 2}, [], {})


class TestSameBytes:
    def test_in_fresh_processes(self, tmp_path: Path) -> None:
        """Whatever the order of the records, the hash seed, the threads or how the table lay in memory."""
        written = []
        for name, cut, threads in (("one", "100000", "1"), ("two", "2048", "2")):
            digest = subprocess.run(
                [sys.executable, "-c", MAKE, str(tmp_path / name), cut], capture_output=True, text=True, check=True,
                cwd=Path(harness.__file__).parents[1],
                env={"PYTHONHASHSEED": cut, "OMP_NUM_THREADS": threads, "PATH": "", "TZ": f"UTC+{threads}"},
            ).stdout  # fmt: skip
            written.append((digest, contents(tmp_path / name)))
        assert written[0] == written[1]
        assert len(written[0][1]["evidence/rankings.parquet"]) > 1000

    def test_the_list_has_an_order_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not that in which a file system gives names."""
        walk = Path.rglob
        monkeypatch.setattr(Path, "rglob", lambda self, pattern: sorted(walk(self, pattern), reverse=True))
        write(tmp_path / "b", {"b": 1, "a": 2, "B": 3}, [], {"é.md": ""})
        names = [line.split("  ")[1] for line in (tmp_path / "b" / SUMS).read_text(encoding="utf-8").splitlines()]
        assert names == ["B.json", "a.json", "b.json", "é.md"]

    def test_the_folder_is_no_part_of_it(self, bundle: Path, tmp_path: Path) -> None:
        """Copied elsewhere it still holds."""
        shutil.copytree(bundle, tmp_path / "elsewhere")
        assert verify(tmp_path / "elsewhere").ok


class TestWhole:
    def test_what_stood_there_is_replaced_whole(self, bundle: Path) -> None:
        """A file of the old one does not stay behind."""
        write(bundle, {"decision": {"outcome": "PASS"}}, [], {})
        assert sorted(contents(bundle)) == [SUMS, "decision.json"]
        assert verify(bundle).ok

    @pytest.mark.parametrize(
        ("records", "texts"),
        [({"bad": float("nan")}, {}), ({"good": 1, "worse": {1: 2}}, {}), ({}, {"report.md": "\ud800"})],
    )
    def test_one_that_cannot_be_written_leaves_the_old_one(
        self, bundle: Path, records: dict[str, float], texts: dict[str, str]
    ) -> None:
        """Byte for byte."""
        before = contents(bundle)
        with pytest.raises(ValueError):
            write(bundle, records, [], texts)
        assert contents(bundle) == before
