"""What a deployment's texts are now tells which stores lack some of them, and which were made of others."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.lifecycle.compatibility import NamespaceState, Reuse, compatibility
from harness.lifecycle.corpus import as_of
from harness.lifecycle.invalidation import Act, invalidation_plan
from harness.lifecycle.namespace import FILE, Corpus, Namespace, corpus_now
from tests.lifecycle.example import changed, meaning, sha, whole

TIED = meaning("tied")
NOVEMBER, DECEMBER = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)


def documents(kind: str = "vector", side: str | None = "document", **said: Any) -> Namespace:
    return Namespace.model_validate({"name": "docs", "kind": kind, "side": side, "count": 1000, **said})


def state(namespace: Namespace, corpus: Corpus | None, after: Any = TIED) -> NamespaceState:
    [found] = as_of(compatibility([namespace], whole(TIED), whole(after)), corpus)
    return found


class TestWatermark:
    def test_an_older_one_holds_and_gets_the_texts_since(self) -> None:
        """A thousand of twelve hundred: two hundred are to be added, and none is made again."""
        found = state(documents(watermark=NOVEMBER), Corpus(watermark=DECEMBER, count=1200))
        assert found.state is Reuse.REUSABLE and "2026-11-01" in found.reason
        plan = invalidation_plan([found], whole(TIED), whole(TIED))
        assert [(each.action, each.items, each.of) for each in plan.actions] == [
            (Act.KEEP, 1000, 1000), (Act.ADD_ITEMS, 200, 1200),
        ]  # fmt: skip

    def test_how_many_is_not_known_without_a_count(self) -> None:
        found = state(documents(watermark=NOVEMBER), Corpus(watermark=DECEMBER))
        assert found.behind is not None and found.behind.items is None

    def test_an_older_one_explains_another_digest(self) -> None:
        """More texts have another digest."""
        found = state(documents(watermark=NOVEMBER, corpus=sha("then")), Corpus(watermark=DECEMBER, digest=sha("now")))
        assert found.state is Reuse.REUSABLE and found.behind is not None

    @pytest.mark.parametrize(("theirs", "now"), [(DECEMBER, NOVEMBER), ("v9", "v10"), ("v9", DECEMBER)])
    def test_one_that_is_not_older_proves_nothing(self, theirs: object, now: object) -> None:
        """A later one, or words of which nobody knows the order."""
        found = state(documents(watermark=theirs), Corpus.model_validate({"watermark": now}))
        assert found.state is Reuse.UNPROVEN and found.behind is None


class TestDigest:
    def test_other_texts_are_unproven(self) -> None:
        """Its key is right, and which of its items stand is not known."""
        found = state(documents(corpus=sha("then")), Corpus(digest=sha("now")))
        assert found.state is Reuse.UNPROVEN
        assert sha("then")[:16] in found.reason and sha("now")[:16] in found.reason
        [action] = invalidation_plan([found], whole(TIED), whole(TIED)).actions
        assert action.action is Act.PROVE_PARITY and action.items == 1000

    @pytest.mark.parametrize("kind", ["contextual", "vector", "index"])
    def test_the_same_texts_hold(self, kind: str) -> None:
        found = state(
            documents(kind, corpus=sha("now"), watermark=DECEMBER), Corpus(digest=sha("now"), watermark=DECEMBER)
        )
        assert found.state is Reuse.REUSABLE and found.behind is None


class TestWhatItDoesNotConcern:
    @pytest.mark.parametrize(("kind", "side"), [("vector", "query"), ("pair-score", None), ("decision", None)])
    def test_what_is_not_made_of_documents(self, kind: str, side: str | None) -> None:
        found = state(documents(kind, side, corpus=sha("then")), Corpus(digest=sha("now")))
        assert found.state is Reuse.REUSABLE

    def test_what_is_invalid_stays_so(self) -> None:
        """It is made again of all texts."""
        after = changed(TIED, towers__both__readout__modes=["cls"])
        found = state(documents(watermark=NOVEMBER), Corpus(watermark=DECEMBER), after)
        assert found.state is Reuse.INVALID and found.behind is None

    def test_where_either_says_nothing(self) -> None:
        assert state(documents(), Corpus(digest=sha("now"), watermark=DECEMBER)).state is Reuse.REUSABLE
        assert state(documents(corpus=sha("then")), Corpus()).state is Reuse.REUSABLE
        assert state(documents(corpus=sha("then")), None).state is Reuse.REUSABLE


class TestTheFile:
    def test_it_is_declared_beside_the_namespaces(self, tmp_path: Path) -> None:
        assert corpus_now(tmp_path) is None
        (tmp_path / FILE).write_text('[corpus]\ndigest = "abc"\nwatermark = 2026-12-01T00:00:00Z\ncount = 3\n')
        assert corpus_now(tmp_path) == Corpus(digest="abc", watermark=DECEMBER, count=3)
