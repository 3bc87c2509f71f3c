"""Diagnostics of a space, on vectors and rankings small enough to work by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from harness.errors import EmptySlice
from harness.metric import space
from harness.readout.loss import contrastive

CROSS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
"""Four unit vectors at right angles: of their six pairs, four have cosine 0 (d² = 2) and two -1 (d² = 4)."""


def ranking(documents: str, scores: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Documents are letters; scores are digits, falling by one where none are given."""
    numbers = [float(each) for each in scores] if scores else list(range(len(documents), 0, -1))
    return np.array(list(documents), dtype=object), np.array(numbers, dtype=np.float64)


def agreement(first, second) -> space.Agreement:
    return space.agreement(*first, *second)


class TestVectors:
    def test_alignment_is_the_mean_squared_distance_of_positive_pairs(self):
        """Equal vectors are 0 apart, those at a right angle 2, opposite ones 4."""
        assert space.alignment(CROSS[[0, 0, 0]], CROSS[[0, 1, 2]]) == pytest.approx((0 + 2 + 4) / 3)

    def test_uniformity_is_over_pairs_of_different_vectors(self):
        expected = math.log((4 * math.exp(-2 * 2) + 2 * math.exp(-2 * 4)) / 6)
        assert space.uniformity(CROSS) == pytest.approx(expected, rel=1e-12)

    def test_one_point_has_uniformity_0_and_anisotropy_1(self):
        point = np.repeat(CROSS[:1], 5, axis=0)
        assert (space.uniformity(point), space.anisotropy(point)) == (0.0, 1.0)

    def test_anisotropy_is_the_mean_cosine_of_different_vectors(self):
        assert space.anisotropy(CROSS) == pytest.approx((4 * 0 + 2 * -1) / 6)
        assert space.anisotropy(CROSS[:2]) == 0.0

    def test_the_order_of_vectors_changes_no_bit(self):
        vectors = space.unit(np.random.default_rng(3).normal(size=(60, 17)))
        for seed in range(5):
            shuffled = vectors[np.random.default_rng(seed).permutation(60)]
            assert space.uniformity(shuffled) == space.uniformity(vectors)
            assert space.anisotropy(shuffled) == space.anisotropy(vectors)

    def test_a_norm_is_that_before_scoring(self):
        assert space.norms(np.array([[3.0, 4.0], [0.0, 2.0]], dtype=np.float32)).tolist() == [5.0, 2.0]

    def test_a_vector_without_a_direction_is_refused(self):
        with pytest.raises(EmptySlice):
            space.unit(np.array([[1.0, 0.0], [0.0, 0.0]]))

    def test_too_few_are_refused(self):
        with pytest.raises(EmptySlice):
            space.uniformity(CROSS[:1])
        with pytest.raises(EmptySlice):
            space.alignment(CROSS[:0], CROSS[:0])


class TestContrastiveNll:
    def test_of_several_positives_the_logarithms_are_averaged(self):
        """Chances are 1/7, 2/7, 4/7 at temperature .5: scores of log(1), log(2), log(4), halved."""
        scores = 0.5 * np.log(np.array([[1.0, 2.0, 4.0]]))
        positives = np.array([[True, False, True]])
        found = space.contrastive_nll(scores, positives, np.ones_like(positives), 0.5)
        assert found == pytest.approx(-(math.log(1 / 7) + math.log(4 / 7)) / 2)

    def test_what_is_not_admitted_has_no_part_in_the_softmax(self):
        scores = np.log(np.array([[1.0, 2.0, 1000.0]]))
        positives, admitted = np.array([[True, False, False]]), np.array([[True, True, False]])
        assert space.contrastive_nll(scores, positives, admitted, 1.0) == pytest.approx(math.log(3))

    def test_it_is_the_training_objective(self):
        chance = np.random.default_rng(1)
        scores, positives = chance.normal(size=(5, 9)), chance.random((5, 9)) < 0.3
        positives[:, 0] = True
        admitted = positives | (chance.random((5, 9)) < 0.6)
        found = space.contrastive_nll(scores, positives, admitted, 0.05)
        assert found == pytest.approx(contrastive(scores, positives, admitted, 0.05), rel=1e-12)

    def test_a_positive_that_is_not_admitted_is_refused(self):
        with pytest.raises(EmptySlice):
            space.contrastive_nll(np.zeros((1, 2)), np.array([[True, False]]), np.array([[False, True]]), 1.0)


class TestAdmitted:
    documents = np.array(["d1", "d2", "d3", "d4"], dtype=object)
    texts = np.array(["jet", "wing", "jet", "lift"], dtype=object)
    queries = np.array(["q1", "q2"], dtype=object)
    relevant = frozenset({("q1", "d3"), ("q2", "d4")})

    def test_of_one_text_the_first_by_id_stands_for_all(self):
        found = space.admit(self.documents, self.texts, self.queries, self.relevant)
        assert self.documents[found.columns].tolist() == ["d1", "d2", "d4"]

    def test_a_copy_of_a_relevant_document_is_never_a_wrong_one(self):
        """d3 is relevant to q1, and d1 has its text."""
        found = space.admit(self.documents, self.texts, self.queries, self.relevant)
        assert found.positives.tolist() == [[True, False, False], [False, False, True]]

    @pytest.mark.parametrize("order", [[3, 2, 1, 0], [2, 0, 3, 1]])
    def test_positives_are_found_in_any_order(self, order):
        found = space.admit(self.documents[order], self.texts[order], self.queries, self.relevant)
        assert self.documents[order][found.columns].tolist() == ["d1", "d2", "d4"]
        assert found.positives.tolist() == [[True, False, False], [False, False, True]]


class TestHubness:
    def test_it_is_scipys_skewness(self):
        counts = np.array([0, 0, 0, 1, 1, 2, 9], dtype=np.float64)
        assert space.skewness(counts) == pytest.approx(stats.skew(counts), rel=1e-12)

    def test_one_hub_among_four(self):
        """Mean 1, gaps -1 -1 -1 3: third moment 6, variance 3."""
        assert space.skewness(np.array([0.0, 0.0, 0.0, 4.0])) == pytest.approx(6 / 3**1.5)

    def test_equal_counts_have_none(self):
        with pytest.raises(EmptySlice):
            space.skewness(np.ones(4))

    def test_a_tied_group_shares_the_places_that_are_left(self):
        """Two places for a document by itself and three that tie behind it: a third of the orders puts each there."""
        places = space.tied_places(np.array([9.0, 5.0, 5.0, 5.0, 1.0]))
        assert places.tolist() == [0, 1, 1, 1, 4]
        sizes = np.bincount(places, minlength=5)[places]
        assert space.occurrences(places, sizes, 2).tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 0])


class TestAgreement:
    def test_of_equal_length(self):
        """abc against bad: in common 0, then a and b, then the same."""
        found = agreement(ranking("abc"), ranking("bad"))
        assert found.shares.tolist() == pytest.approx([0, 1, 2 / 3])

    def test_overlap_at_k(self):
        found = agreement(ranking("abc"), ranking("bad"))
        assert (space.overlap_at(found, 2), space.overlap_at(found, 10)) == (1.0, pytest.approx(2 / 3))

    def test_rbo_goes_on_with_the_last_agreement(self):
        """(1 - p)(0 + p·1 + p²·2/3) + p³·2/3 at p = .5."""
        found = agreement(ranking("abc"), ranking("bad"))
        assert space.rank_biased_overlap(found, 0.5) == pytest.approx(0.5 * (0.5 + 0.25 * 2 / 3) + 0.125 * 2 / 3)

    def test_uneven_rankings_are_equation_32(self):
        """abcd against ba. X = 0, 2, 2, 2; s = 2, l = 4."""
        p, overlap, s, length = 0.9, [0, 2, 2, 2], 2, 4
        total = sum(overlap[d - 1] / d * p**d for d in range(1, length + 1))
        total += sum(overlap[s - 1] * (d - s) / (s * d) * p**d for d in range(s + 1, length + 1))
        expected = (1 - p) / p * total
        expected += ((overlap[length - 1] - overlap[s - 1]) / length + overlap[s - 1] / s) * p**length
        found = agreement(ranking("abcd"), ranking("ba"))
        assert space.rank_biased_overlap(found, p) == pytest.approx(expected, rel=1e-12)
        # Whichever of them is the shorter.
        turned = agreement(ranking("ba"), ranking("abcd"))
        assert space.rank_biased_overlap(turned, p) == pytest.approx(expected, rel=1e-12)

    def test_documents_of_one_score_share_a_rank(self):
        """a, then b and c together, against abc. At depth 2 {a b c} and {a b}: 2·2/5."""
        found = agreement(ranking("abc", "322"), ranking("abc"))
        assert found.shares.tolist() == pytest.approx([1, 0.8, 1])

    @pytest.mark.parametrize("scores", ["4321", "4221", "1111", "2211"])
    def test_a_ranking_agrees_wholly_with_itself_whatever_ties(self, scores):
        found = agreement(ranking("abcd", scores), ranking("abcd", scores))
        assert found.shares.tolist() == [1, 1, 1, 1]
        assert space.rank_biased_overlap(found, 0.9) == pytest.approx(1)

    def test_the_order_within_a_tie_changes_nothing(self):
        other = ranking("dbca")
        found = agreement(ranking("abcd", "3221"), other).shares
        assert agreement(ranking("acbd", "3221"), other).shares.tolist() == found.tolist()

    def test_nothing_in_common_is_0(self):
        assert space.rank_biased_overlap(agreement(ranking("ab"), ranking("cd")), 0.9) == 0

    def test_an_empty_ranking_is_refused(self):
        with pytest.raises(EmptySlice):
            agreement(ranking(""), ranking("a"))
