"""namespaces.toml says what is deployed, strictly, and each store finds the node that it keeps."""

from pathlib import Path

import pytest

from harness.errors import Misconfigured
from harness.lifecycle.namespace import FILE, Namespace, node_of, read
from harness.release.graph import graph
from harness.release.manifest import Meaning
from tests.lifecycle.example import meaning, sha, whole


def written(folder: Path, text: str) -> tuple[Namespace, ...]:
    (folder / FILE).write_text(text, encoding="utf-8")
    return read(folder)


def node(kind: str, namespace: Namespace) -> str | None:
    found = node_of(namespace, graph(Meaning.model_validate(meaning(kind))))
    return found.name if found else None


class TestTheFile:
    def test_without_one_nothing_is_deployed(self, tmp_path: Path) -> None:
        """That is no error."""
        assert read(tmp_path) == ()

    def test_all_that_may_be_said(self, tmp_path: Path) -> None:
        """A vector store and a baseline, as they are written."""
        vectors, baseline = written(tmp_path, f"""
            schema = "harness.namespaces.v1"
            [[namespaces]]
            name = "docs"
            kind = "vector"
            side = "document"
            corpus = "{sha("corpus")}"
            watermark = 2026-12-01T00:00:00Z
            count = 1200
            bytes = 1843200
            location = "s3://bucket/docs"
            runtime = {{ torch = "2.6.0" }}
            tolerance = 1e-4
            [[namespaces]]
            name = "last"
            kind = "baseline"
            run = "4803c88c"
            suite_lock = "{sha("lock")}"
            scorers = {{ ranking = "1" }}
        """)  # fmt: skip
        assert (vectors.count, vectors.bytes, vectors.tolerance) == (1200, 1843200, 1e-4)
        assert vectors.as_record()["watermark"] == "2026-12-01T00:00:00Z"
        assert baseline.scorers == {"ranking": "1"}

    @pytest.mark.parametrize(
        ("line", "finding"),
        [
            ('kind = "vectors"', "kind"),
            ('kind = "vector"\nsides = "document"', "sides"),
            ('kind = "vector"\ncount = -1', "count"),
            ('kind = "vector"\nkey = "12ab"', "key"),
            ('kind = "baseline"', "run"),
            ('kind = "vector"\nrun = "r"', "run"),
        ],
    )
    def test_what_is_refused(self, tmp_path: Path, line: str, finding: str) -> None:
        """An unknown kind or key, a negative count, half a key, a baseline without its run, a run elsewhere."""
        with pytest.raises(Misconfigured) as refusal:
            written(tmp_path, f'[[namespaces]]\nname = "docs"\n{line}\n')
        assert "line" in refusal.value.subject
        assert finding in refusal.value.found

    def test_a_baseline_has_no_key(self, tmp_path: Path) -> None:
        """Its suite's lock tells it."""
        with pytest.raises(Misconfigured, match="lock"):
            written(tmp_path, f"""
                [[namespaces]]
                name = "last"
                kind = "baseline"
                run = "r"
                suite_lock = "{sha("lock")}"
                scorers = {{}}
                key = "{sha("key")}"
            """)  # fmt: skip

    def test_a_name_that_stands_twice(self, tmp_path: Path) -> None:
        """The second one's line is given."""
        entry = '[[namespaces]]\nname = "docs"\nkind = "index"\n'
        with pytest.raises(Misconfigured, match="line 5"):
            written(tmp_path, entry + entry)


class TestItsNode:
    @pytest.mark.parametrize(
        ("release", "kind", "side", "expected"),
        [
            ("tied", "vector", "document", "vector:document"),
            ("tied", "vector", "query", "vector:query"),
            ("tied", "contextual", "document", "contextual:document"),
            ("tied", "index", None, "index:document"),
            ("tied", "pair-score", None, "raw score"),
            ("tied", "pair-score", "pair", "raw score"),
            ("tied", "decision", None, "decision"),
            ("late", "token-vector", "document", "vector:document"),
            ("cross", "pair-score", "pair", "raw score"),
            ("two-stage", "pair-score", None, "raw score:reranker"),
        ],
    )  # fmt: skip
    def test_by_kind_and_side(self, release: str, kind: str, side: str | None, expected: str) -> None:
        """The one that the release has."""
        assert node(release, Namespace(name="n", kind=kind, side=side)) == expected

    def test_by_name_where_there_are_several(self) -> None:
        """As in two stages that both keep scores."""
        assert node("two-stage", Namespace(name="n", kind="pair-score", node="raw score:retriever")) == (
            "raw score:retriever"
        )

    def test_by_key(self) -> None:
        """A key that another release wrote belongs to no node here."""
        two = whole(meaning("two-stage"), {"retriever": meaning("tied"), "reranker": meaning("cross")}).graph
        key = str(two.as_record()["index:retriever/document"])
        found = node_of(Namespace(name="n", kind="index", key=key), two)
        assert found is not None and found.name == "index:retriever/document"
        assert node("tied", Namespace(name="n", kind="index", key=sha("older"))) is None

    @pytest.mark.parametrize(
        ("release", "namespace", "said"),
        [
            ("cross", Namespace(name="n", kind="vector", side="document"), "0 nodes"),
            ("tied", Namespace(name="n", kind="vector"), "2 nodes"),
            ("tied", Namespace(name="n", kind="vector", node="vector:documents"), "vector:documents"),
            ("tied", Namespace(name="n", kind="vector", node="raw score"), "raw score"),
            ("late", Namespace(name="n", kind="index"), "0 nodes"),
        ],
    )
    def test_what_the_release_cannot_have_written(self, release: str, namespace: Namespace, said: str) -> None:
        """A kind that it has no node of, a side left open, a name that isn't there."""
        with pytest.raises(Misconfigured) as refusal:
            node(release, namespace)
        assert said in refusal.value.found
