"""Labels and head rows move together, with proof, or not at all."""

from typing import Any

import pytest

from harness.errors import NotAdmitted
from harness.lifecycle.permutation import HeadRows, Permutation, permutation
from harness.release.manifest import Meaning
from tests.lifecycle.example import changed, meaning, sha

HEAD = meaning("head")
ROWS = ("r-ask", "r-buy", "r-sell")
SWAPPED = ["BUY", "ASK", "SELL"]


def found(rows: HeadRows | None = None, *, labels: Any = None, head: bool = False) -> Permutation | None:
    values: dict[str, Any] = {} if labels is None else {"output__labels": labels}
    if head:
        values["towers__text__artifact__head"] = sha("other")
    return permutation(Meaning.model_validate(HEAD), Meaning.model_validate(changed(HEAD, **values)), rows)


class TestTogether:
    def test_with_the_rows_known_it_is_proven(self) -> None:
        """Each of the candidate's labels names the row that it named."""
        rows = HeadRows(ROWS, ("r-buy", "r-ask", "r-sell"))
        assert found(rows, labels=SWAPPED, head=True) == Permutation((1, 0, 2), proven=True)

    def test_without_them_it_needs_proof(self) -> None:
        """The digests of whole files cannot tell a permuted head from a new one."""
        assert found(labels=SWAPPED, head=True) == Permutation((1, 0, 2), proven=False)


class TestAlone:
    def test_labels_over_the_same_head(self) -> None:
        """Refused by name, whether the files or the rows tell it."""
        with pytest.raises(NotAdmitted, match=r"output\.labels"):
            found(labels=SWAPPED)
        with pytest.raises(NotAdmitted, match=r"output\.labels"):
            found(HeadRows(ROWS, ROWS), labels=SWAPPED, head=True)

    def test_rows_under_the_same_labels(self) -> None:
        """Refused: every label would name another row."""
        with pytest.raises(NotAdmitted, match="rows"):
            found(HeadRows(ROWS, ("r-buy", "r-ask", "r-sell")), head=True)

    def test_both_but_not_alike(self) -> None:
        """As wrong as one alone."""
        with pytest.raises(NotAdmitted, match="rows"):
            found(HeadRows(ROWS, ("r-sell", "r-ask", "r-buy")), labels=SWAPPED, head=True)


class TestOrdinaryChanges:
    def test_none(self) -> None:
        """Nothing moved."""
        assert found() is None
        assert found(HeadRows(ROWS, ROWS)) is None

    def test_a_head_trained_anew(self) -> None:
        """Under the same labels, or under moved ones: its rows are others."""
        other = HeadRows(ROWS, ("s-ask", "s-buy", "s-sell"))
        assert found(head=True) is None
        assert found(other, head=True) is None
        assert found(other, labels=SWAPPED, head=True) is None

    def test_other_labels(self) -> None:
        """A label added or renamed is no permutation."""
        assert found(labels=["ASK", "BUY", "HOLD"]) is None

    def test_no_labels(self) -> None:
        """A retriever has none."""
        tied = Meaning.model_validate(meaning("tied"))
        assert permutation(tied, tied) is None
