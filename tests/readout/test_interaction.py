"""What late interaction says."""

import numpy as np
import pytest

from harness.errors import EmptySlice, Misconfigured
from harness.readout.interaction import maxsim, row_similarities, smooth_maxsim

QUERY = np.array([[1.0, 0], [0, 1]])
DOCUMENT = np.array([[0.5, -1], [0.5, -3], [-2, -2]])


class TestMaxSim:
    def test_by_hand(self):
        """Rows reach .5 and -1, also where all similarities of a row are negative."""
        assert row_similarities(QUERY, DOCUMENT).tolist() == [[0.5, 0.5, -2], [-1, -3, -2]]
        assert maxsim(QUERY, DOCUMENT).score == -0.5

    def test_the_first_among_equals_is_the_match(self):
        """Two document rows give .5; the tie rule is declared, the score is the same."""
        assert maxsim(QUERY, DOCUMENT).best.tolist() == [0, 0]
        assert maxsim(QUERY, DOCUMENT[::-1]).best.tolist() == [1, 2]
        assert maxsim(QUERY, DOCUMENT[::-1]).score == -0.5

    def test_each_query_row_counts(self):
        """It is a sum, so a query twice has twice the score."""
        assert maxsim(np.concatenate([QUERY, QUERY]), DOCUMENT).score == -1

    def test_sides_are_not_exchangeable(self):
        """From the document's side there are three maxima: .5, .5, -2."""
        assert maxsim(DOCUMENT, QUERY).score == -1

    @pytest.mark.parametrize(("query", "document"), [(QUERY[:0], DOCUMENT), (QUERY, DOCUMENT[:0])])
    def test_a_side_without_rows_is_refused(self, query, document):
        """There is no maximum of nothing."""
        for score in (maxsim, lambda q, d: smooth_maxsim(q, d, 1.0)):
            with pytest.raises(EmptySlice):
                score(query, document)

    def test_is_sentence_transformers_own_whatever_the_padding(self):
        """Padded rows, masked there, are simply absent here."""
        torch = pytest.importorskip("torch")
        from sentence_transformers.util import maxsim as referee

        rng = np.random.default_rng(11)
        query, document = rng.normal(size=(4, 3)), rng.normal(size=(6, 3)) - 2
        padded = torch.tensor(np.pad(document, ((0, 3), (0, 0)), constant_values=9.0))[None]
        mask = torch.arange(9)[None] < 6
        wanted = float(referee(torch.tensor(query)[None], padded, b_mask=mask))
        assert maxsim(query, document).score == pytest.approx(wanted)


class TestSmoothMaxSim:
    def test_by_hand(self):
        """log(2 e^.5 + e^-2) + log(e^-1 + e^-3 + e^-2)."""
        wanted = np.log(2 * np.exp(0.5) + np.exp(-2)) + np.log(np.exp(-1) + np.exp(-3) + np.exp(-2))
        assert smooth_maxsim(QUERY, DOCUMENT, 1.0) == pytest.approx(wanted)

    @pytest.mark.parametrize("temperature", [2.0, 1.0, 0.1, 0.001])
    def test_lies_above_maxsim_by_a_bound_that_falls_with_temperature(self, temperature):
        """By no more than q T log k, without overflow."""
        excess = smooth_maxsim(QUERY, DOCUMENT, temperature) - maxsim(QUERY, DOCUMENT).score
        assert 0 < excess <= 2 * temperature * np.log(3)

    @pytest.mark.parametrize("temperature", [0.0, -1.0, np.inf, np.nan])
    def test_needs_a_temperature(self, temperature):
        """At 0 it would be MaxSim, which has its own name."""
        with pytest.raises(Misconfigured, match="temperature"):
            smooth_maxsim(QUERY, DOCUMENT, temperature)
