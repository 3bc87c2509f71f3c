"""There is a way back only where every part of it is there, unmodified."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import NotAdmitted, Tampered
from harness.identity import canonical_json
from harness.lifecycle.namespace import Namespace
from harness.lifecycle.rollback import Rollback, Standing, location_digest, rollback, standing
from harness.lifecycle.state import State
from tests.lifecycle.example import manifest, meaning

EVIDENCE = {"run": "r", "suite": "s"}


def way_back(folder: Path, **other: Any) -> Rollback:
    given: dict[str, Any] = {
        "manifest": manifest(meaning("tied")), "namespaces": (), "evidence": EVIDENCE, "state": State.CANDIDATE,
    }  # fmt: skip
    found = {**given, **other}
    return rollback(found.pop("manifest"), folder=folder, **found)


class TestWhole:
    def test_the_complete_manifest_is_in_it(self, tmp_path: Path) -> None:
        """Not the weights, but everything that they mean."""
        target = manifest(meaning("tied"))
        record = way_back(tmp_path).as_record()
        assert record["target"] == target.model_dump(mode="json", by_alias=True)
        assert record["schema"] == "harness.rollback.v1"
        assert canonical_json(record)

    @pytest.mark.parametrize(
        ("state", "known_as"),
        [(State.CANDIDATE, "CANDIDATE"), (State.EVALUATED, "declared"), (State.DRAFT, "declared")],
    )
    def test_how_well_it_is_known(self, tmp_path: Path, state: State, known_as: str) -> None:
        """As CANDIDATE here, or only declared."""
        assert way_back(tmp_path, state=state).known_as == known_as

    def test_nothing_deployed_is_an_answer(self, tmp_path: Path) -> None:
        """An empty list is a part; none at all is not."""
        assert way_back(tmp_path, namespaces=()).namespaces == ()


class TestRefused:
    @pytest.mark.parametrize(
        ("missing", "value", "said"),
        [
            ("manifest", None, "manifest"),
            ("namespaces", None, "namespaces"),
            ("evidence", None, "run and suite"),
            ("evidence", {}, "run and suite"),
            ("evidence", {"run": "r"}, "suite"),
            ("evidence", {"suite": "s"}, "run"),
            ("state", None, "how well"),
        ],
    )
    def test_each_part_that_is_missing(self, tmp_path: Path, missing: str, value: Any, said: str) -> None:
        """By name."""
        with pytest.raises(NotAdmitted) as refusal:
            way_back(tmp_path, **{missing: value})
        assert said in refusal.value.found

    def test_a_release_without_its_parts(self, tmp_path: Path) -> None:
        """Two stages are two manifests more, and those that its content IDs name."""
        two = manifest(meaning("two-stage"))
        parts = {"retriever": manifest(meaning("tied")), "reranker": manifest(meaning("cross"))}
        assert set(way_back(tmp_path, manifest=two, parts=parts).parts) == {"retriever", "reranker"}
        for lacking in ({}, {"retriever": parts["retriever"]}, {**parts, "reranker": manifest(meaning("late"))}):
            with pytest.raises(NotAdmitted, match="reranker"):
                way_back(tmp_path, manifest=two, parts=lacking)

    def test_a_manifest_that_was_changed(self, tmp_path: Path) -> None:
        """Its content ID no longer is that of its meaning."""
        target = manifest(meaning("tied"))
        other = target.model_copy(update={"meaning": manifest(meaning("late")).meaning})
        with pytest.raises(Tampered):
            way_back(tmp_path, manifest=other)

    @pytest.mark.parametrize("damage", ["gone", "longer", "altered"])
    def test_a_namespace_that_no_longer_is_what_was_declared(self, tmp_path: Path, damage: str) -> None:
        """Gone, of another size, or with other bytes."""
        store = tmp_path / "store"
        store.mkdir()
        (store / "a.bin").write_bytes(b"1234")
        namespace = Namespace(name="docs", kind="index", location="store", bytes=4, digest=location_digest(store))
        assert [each.standing for each in way_back(tmp_path, namespaces=(namespace,)).namespaces] == [
            Standing.UNMODIFIED
        ]
        if damage == "gone":
            (store / "a.bin").unlink()
            store.rmdir()
        else:
            (store / "a.bin").write_bytes(b"12345" if damage == "longer" else b"1235")
        with pytest.raises(NotAdmitted, match="docs"):
            way_back(tmp_path, namespaces=(namespace,))


class TestStanding:
    def check(self, folder: Path, **said: Any) -> Standing:
        return standing(Namespace(name="docs", kind="vector", **said), folder).standing

    def test_an_address_elsewhere_is_not_checked(self, tmp_path: Path) -> None:
        """Nor a namespace without one, nor one of which neither size nor digest is known."""
        (tmp_path / "file").write_bytes(b"1234")
        assert self.check(tmp_path, location="s3://bucket/docs", bytes=4) is Standing.NOT_CHECKED
        assert self.check(tmp_path) is Standing.NOT_CHECKED
        assert self.check(tmp_path, location="file") is Standing.NOT_CHECKED

    def test_a_file_by_size_and_by_digest(self, tmp_path: Path) -> None:
        """Either is enough, and each can tell a change."""
        file = tmp_path / "file"
        file.write_bytes(b"1234")
        assert self.check(tmp_path, location="file", bytes=4) is Standing.UNMODIFIED
        assert self.check(tmp_path, location="file", bytes=5) is Standing.MODIFIED
        assert self.check(tmp_path, location="file", digest=location_digest(file)) is Standing.UNMODIFIED
        assert self.check(tmp_path, location="file", digest="0" * 64) is Standing.MODIFIED

    def test_a_folders_digest_is_of_names_and_bytes(self, tmp_path: Path) -> None:
        """A renamed file is another folder; where the folder lies plays no part."""
        for name in ("one", "two"):
            (tmp_path / name / "deep").mkdir(parents=True)
            (tmp_path / name / "deep" / "a").write_bytes(b"1")
        assert location_digest(tmp_path / "one") == location_digest(tmp_path / "two")
        (tmp_path / "two" / "deep" / "a").rename(tmp_path / "two" / "deep" / "b")
        assert location_digest(tmp_path / "one") != location_digest(tmp_path / "two")
