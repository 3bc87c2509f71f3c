"""Fusion: reciprocal ranks and scaled scores, worked by hand and held against the plain way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Misconfigured
from harness.output.case import CaseOutput, OutputStatus, Ranking
from harness.readout.fusion import Member, fusion
from harness.release.definition import Fusion
from harness.run.compose import Task, carry_out, node_of
from harness.run.fuse import Voice, fuse, fused, mean_ranks, scaled
from harness.run.output import CutDocument, Executed, Remark
from harness.run.ranking import Cut

from .conftest import suite_of

CUT = Cut(100, "expected", False)
SCALES = ("none", "min-max", "z-score", "reciprocal-rank")


def ranking(scores: dict[str, float], crossing: int = 0) -> Ranking:
    """In the suite's total order."""
    order = sorted(scores, key=lambda each: (-scores[each], each))
    values = np.array([scores[each] for each in order], dtype=np.float64)
    return Ranking(np.array(order, dtype=object), values, crossing)


def fused_of(
    *members: tuple[dict[str, float], float, str], k: float = 60.0, ties: str = "expected"
) -> dict[str, float]:
    voices = [Voice(ranking(scores), weight, scale) for scores, weight, scale in members]
    found = fused(voices, rank_constant=k, ties=ties)
    return dict(zip(found.documents.tolist(), found.scores.tolist(), strict=True))


class TestByHand:
    def test_reciprocal_ranks(self) -> None:
        """k = 60: a is first and third, b second and first, c third alone, d second alone."""
        found = fused_of(
            ({"a": 9, "b": 8, "c": 7}, 1.0, "reciprocal-rank"), ({"b": 0.3, "d": 0.2, "a": 0.1}, 1.0, "reciprocal-rank")
        )
        assert found == pytest.approx({"a": 1 / 61 + 1 / 63, "b": 1 / 62 + 1 / 61, "c": 1 / 63, "d": 1 / 62})

    def test_a_weight_and_another_constant(self) -> None:
        """k = 1, weights 1 and .5: x has 1/2 + .5/3, y 1/3 + .5/2."""
        found = fused_of(({"x": 2, "y": 1}, 1.0, "reciprocal-rank"), ({"y": 2, "x": 1}, 0.5, "reciprocal-rank"), k=1.0)
        assert found == pytest.approx({"x": 1 / 2 + 1 / 6, "y": 1 / 3 + 1 / 4})

    def test_tied_documents_share_the_mean_of_their_ranks(self) -> None:
        """Ranks 2 and 3 are both 2.5; by trec_eval's order nothing is tied."""
        found = fused_of(({"a": 2, "b": 1, "c": 1}, 1.0, "reciprocal-rank"))
        assert found == pytest.approx({"a": 1 / 61, "b": 1 / 62.5, "c": 1 / 62.5})
        trec = fused_of(({"a": 2, "b": 1, "c": 1}, 1.0, "reciprocal-rank"), ties="trec")
        assert trec == pytest.approx({"a": 1 / 61, "b": 1 / 62, "c": 1 / 63})

    def test_min_max(self) -> None:
        """From 0 to 1 in each, and 0 for what one of them hasn't."""
        found = fused_of(({"a": 10, "b": 5, "c": 0}, 1.0, "min-max"), ({"b": 0.8, "d": 0.6}, 2.0, "min-max"))
        assert found == pytest.approx({"a": 1.0, "b": 0.5 + 2.0, "c": 0.0, "d": 0.0})

    def test_z_scores(self) -> None:
        """1, 2, 3 have mean 2 and deviation √(2/3); what isn't there has the lowest."""
        z = 1 / np.sqrt(2 / 3)
        found = fused_of(({"a": 3, "b": 2, "c": 1}, 1.0, "z-score"), ({"a": 1, "e": 0}, 1.0, "none"))
        assert found == pytest.approx({"a": z + 1, "b": 0.0, "c": -z, "e": -z})

    def test_scores_as_they_are(self) -> None:
        """What a member hasn't counts as its lowest, also below 0."""
        found = fused_of(({"a": -1.0, "b": -3.0}, 1.0, "none"), ({"c": 0.5}, 2.0, "none"))
        assert found == pytest.approx({"a": -1 + 1.0, "b": -3 + 1.0, "c": -3 + 1.0})

    def test_members_without_documents_add_nothing(self) -> None:
        assert fused_of(({}, 1.0, "z-score"), ({"a": 1.0}, 1.0, "none"), ({}, 1.0, "reciprocal-rank")) == {"a": 1.0}

    @pytest.mark.parametrize("scale", ["min-max", "z-score"])
    def test_equal_scores_say_nothing(self, scale: str) -> None:
        assert fused_of(({"a": 7, "b": 7}, 1.0, scale)) == {"a": 0.0, "b": 0.0}


DOCUMENTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-4, 4).map(lambda each: each / 4), max_size=8)
MEMBERS = st.lists(
    st.tuples(DOCUMENTS, st.sampled_from([0.25, 1.0, 3.0]), st.sampled_from(SCALES)), min_size=2, max_size=3
)


class TestLaws:
    @given(MEMBERS, st.sampled_from([0.0, 1.0, 60.0]))
    def test_it_is_the_plain_way(self, members, k) -> None:
        """One document at a time, in fractions."""
        plain = fusion([Member(scores, weight, scale) for scores, weight, scale in members], k)
        assert fused_of(*members, k=k) == pytest.approx(plain, abs=1e-12)

    @given(MEMBERS, st.permutations("abcdefgh"))
    def test_names_and_order_of_members_change_no_number(self, members, names) -> None:
        """Documents under other names, members backwards: the same bits."""
        renamed = dict(zip("abcdefgh", names, strict=True))
        others = [
            ({renamed[document]: score for document, score in scores.items()}, weight, scale)
            for scores, weight, scale in members[::-1]
        ]
        assert fused_of(*others) == {renamed[document]: score for document, score in fused_of(*members).items()}

    @given(st.lists(st.integers(-3, 3), max_size=9))
    def test_mean_ranks_sum_to_what_ranks_sum_to(self, scores) -> None:
        falling = np.array(sorted(scores, reverse=True), dtype=np.float64)
        assert mean_ranks(falling).sum() == len(falling) * (len(falling) + 1) / 2

    def test_a_scale_without_a_name_is_refused(self) -> None:
        with pytest.raises(Misconfigured, match="'softmax'"):
            fusion([Member({"a": 1.0}, 1.0, "softmax")], 60.0)

    def test_no_scale_turns_an_order_round(self) -> None:
        falling = np.array([5.0, 3.0, 3.0, -1.0])
        for scale in SCALES:
            assert (np.diff(scaled(falling, scale)) <= 0).all()


def done(*outputs: CaseOutput, remarks: tuple[Remark, ...] = (), cut: tuple[CutDocument, ...] = ()) -> Executed:
    return Executed(outputs, remarks, cut)


def ok(scores: dict[str, float], crossing: int = 0, **more: int) -> CaseOutput:
    return CaseOutput("q", OutputStatus.OK, ranking=ranking(scores, crossing), **more)


def said(scale: str = "reciprocal-rank") -> Fusion:
    return Fusion.model_validate({"weights": {"a": 1.0, "b": 1.0}, "scales": {"a": scale, "b": scale}, "depth": 10})


class TestOutputs:
    def test_a_member_that_failed_fails_the_case(self) -> None:
        """With its name and its reason; and missing is missing."""
        failed = CaseOutput("q", OutputStatus.FAILED, "no number", non_finite=True)
        [found] = fuse(said(), {"a": done(ok({"x": 1})), "b": done(failed)}, CUT, {}).outputs
        assert (found.status, found.reason, found.non_finite) == (OutputStatus.FAILED, "b: no number", True)
        missing = CaseOutput("q", OutputStatus.MISSING, "no line")
        [found] = fuse(said(), {"a": done(missing), "b": done(ok({}))}, CUT, {}).outputs
        assert (found.status, found.reason) == (OutputStatus.MISSING, "a: no line")

    def test_a_group_that_is_not_all_there_takes_no_part(self) -> None:
        """Of five hundred tied documents only the judged one was kept, which must not be its merit."""
        members = {"a": done(ok({"x": 2, "judged": 1}, crossing=500)), "b": done(ok({"y": 1}))}
        [found] = fuse(said(), members, CUT, {"q": {"judged"}}).outputs
        assert sorted(found.ranking.documents) == ["x", "y"]

    def test_equal_sums_are_tied_and_ordered_by_name(self) -> None:
        """First and second here, second and first there."""
        members = {"a": done(ok({"x": 2, "y": 1})), "b": done(ok({"y": 2, "x": 1}))}
        [found] = fuse(said(), members, CUT, {}).outputs
        assert found.ranking.documents.tolist() == ["x", "y"]
        assert found.ranking.scores[0] == found.ranking.scores[1]

    def test_what_members_did_not_see_is_told_with_their_names(self) -> None:
        """A document that both cut counts once, by the one that lost more; so does the query."""
        a = done(
            ok({"x": 1}, tokens_kept=5, tokens_lost=1), remarks=(Remark("k", 1, "one"),), cut=(CutDocument("x", 9, 1),)
        )
        b = done(ok({"x": 1}, tokens_kept=4, tokens_lost=2), cut=(CutDocument("x", 8, 2),))
        found = fuse(said(), {"a": a, "b": b}, CUT, {})
        assert [remark.detail for remark in found.remarks] == ["a: one"]
        assert found.cut_documents == (CutDocument("x", 8, 2),)
        assert (found.outputs[0].tokens_kept, found.outputs[0].tokens_lost) == (4, 2)


FUSION = 'interaction = "fusion"\n[fusion]\ndepth = {}\nweights = {{ {} }}\nscales = {{ {} }}\n'


def text(depth: int = 5, scale: str = "reciprocal-rank", **weights: float) -> str:
    weighed = ", ".join(f"{name} = {weight}" for name, weight in weights.items())
    return FUSION.format(depth, weighed, ", ".join(f'{name} = "{scale}"' for name in weights))


class TestCarriedOut:
    @pytest.mark.parametrize("scale", SCALES)
    def test_it_is_the_plain_way_over_the_members_rankings(self, releases, recorded, scale: str) -> None:
        """A bi-encoder, two stages and a recording, each with its first five."""
        for name in ("bi", "cross"):
            releases(name)
        releases("both", 'interaction = "two-stage"\nretriever = "bi"\nreranker = "cross"\ndepth = 7\n')
        recorded("old", *(f"q{i} d{j:02} {(i * j) % 5}" for i in range(4) for j in range(8)))
        whole = releases("fused", text(5, scale, bi=1.0, both=0.5, old=2.0))
        weights, pool = {"bi": 1.0, "both": 0.5, "old": 2.0}, Cut(5, "expected", False)
        nodes = {name: node_of(member, pool) for name, member in whole.members.items()}
        found = carry_out({"whole": node_of(whole, CUT), **nodes}, Task(suite_of(), {}, 1e-6))
        for row, output in enumerate(found["whole"].outputs):
            members = []
            for name, weight in weights.items():
                own = found[name].outputs[row].ranking
                members.append(Member(dict(zip(own.documents, own.scores.tolist(), strict=True)), weight, scale))
            plain = fusion(members, 60.0)
            assert dict(zip(output.ranking.documents, output.ranking.scores, strict=True)) == pytest.approx(plain)

    def test_the_manifest_states_pool_constant_and_what_is_absent(self, releases) -> None:
        """60 and a hundred unless said otherwise; no constant where no rank counts."""
        for name in ("bi", "other"):
            releases(name)
        plain = text(bi=1.0, other=1.0)
        written = (
            plain,
            plain + "k = 10.0\n",
            text(scale="min-max", bi=1.0, other=1.0),
            plain.replace("depth = 5\n", ""),
        )
        stated = [releases(f"f{i}", each).manifest.meaning.interaction for i, each in enumerate(written)]
        assert [(each.pool, each.rank_constant, each.absent) for each in stated] == [
            (5, 60.0, "lowest"), (5, 10.0, "lowest"), (5, None, "lowest"), (100, 60.0, "lowest"),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("written", "what"),
        [
            (text(bi=1.0, other=-1.0), "greater than 0"),
            (text(bi=1.0), "at least 2"),
            (text(scale="min-max", bi=1.0, other=1.0) + "k = 10.0\n", "reciprocal-rank"),
            (text(depth=0, bi=1.0, other=1.0), "greater than 0"),
        ],
    )
    def test_what_says_no_fusion_is_refused(self, releases, written: str, what: str) -> None:
        for name in ("bi", "other"):
            releases(name)
        with pytest.raises(Misconfigured, match=what):
            releases("fused", written)
