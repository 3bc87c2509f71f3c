"""What the reference makes of a recipe."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from harness.errors import EmptySlice, Misconfigured
from harness.readout.normalisation import l2
from harness.readout.pooling import Attention
from harness.readout.projection import Dense, LayerNorm
from harness.readout.reference import DENOMINATORS, Normalisation, Recipe, row_vectors, score, vector
from harness.rows.mask import Counting, Masks

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(17)
EVERY = Counting(special=True, prompt=True, expansion=None)
PLAIN = Normalisation("none", None, "none")
LIBRARY = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def recipe(*modes, weights=None, **changes):
    """A recipe of these modes and nothing after them, but for what is changed."""
    weighs = "weightedmean" in modes
    return Recipe(
        **{
            "counting": EVERY,
            "modes": modes,
            "denominators": tuple(DENOMINATORS.get(mode, "none") for mode in modes if isinstance(mode, str)),
            "weights": weights or ("content-relative" if weighs else "none"),
            "projections": (),
            "normalisation": PLAIN,
            "truncate_dim": None,
            "renormalised": None,
            "empty": "reject",
        }
        | changes
    )


@pytest.fixture(scope="module")
def pooling():
    from sentence_transformers.sentence_transformer.modules import Pooling

    return Pooling


ROWS = RNG.normal(size=(6, 4))
ALL = np.ones(6, dtype=bool)
RIGHT, LEFT = np.array([1, 1, 1, 1, 0, 0], dtype=bool), np.array([0, 0, 1, 1, 1, 1], dtype=bool)


def by_library(module, mask, **features):
    """The library's vector of ROWS under a mask."""
    given = {"token_embeddings": torch.tensor(ROWS)[None], "attention_mask": torch.tensor(mask.astype(int))[None]}
    return module(given | features)["sentence_embedding"][0].detach().numpy()


class TestSentenceTransformersPooling:
    @pytest.mark.parametrize("mode", LIBRARY)
    @pytest.mark.parametrize("mask", [ALL, RIGHT, LEFT], ids=["no padding", "right", "left"])
    def test_every_mode_on_every_side_of_padding(self, pooling, mode, mask):
        """Equal to the last digits of float64."""
        assert vector(ROWS, Masks(mask), recipe(mode)) == pytest.approx(by_library(pooling(4, mode), mask), abs=1e-14)

    @pytest.mark.parametrize("mode", LIBRARY)
    @pytest.mark.parametrize("mask", [ALL, RIGHT, LEFT], ids=["no padding", "right", "left"])
    def test_a_prompt_left_out(self, pooling, mode, mask):
        """Two rows of it; the weights of the others stay as they were."""
        without = recipe(mode, counting=Counting(special=True, prompt=False, expansion=None))
        wanted = by_library(pooling(4, mode, include_prompt=False), mask, prompt_length=2)
        assert vector(ROWS, Masks(mask, prompt_length=2), without) == pytest.approx(wanted, abs=1e-14)

    @pytest.mark.parametrize("modes", [*combinations(LIBRARY, 2), LIBRARY, LIBRARY[::-1]])
    def test_modes_are_joined_in_their_order(self, pooling, modes):
        """Each pair, all six, and all six the other way round."""
        wanted = by_library(pooling(4, modes), LEFT)
        assert vector(ROWS, Masks(LEFT), recipe(*modes)) == pytest.approx(wanted, abs=1e-14)

    @pytest.mark.parametrize("mode", ["mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
    def test_no_row_counts_and_it_clamps(self, pooling, mode):
        """The clamped denominator, and the zeroed last row, are the policy `zero`."""
        none = np.zeros(6, dtype=bool)
        found = vector(ROWS, Masks(none), recipe(mode, empty="zero"))
        assert found.tolist() == by_library(pooling(4, mode), none).tolist() == [0, 0, 0, 0]

    def test_no_row_counts_and_cls_falls_back(self, pooling):
        """Its first row whose mask is 1 is then the physical first: the policy `fallback-row`."""
        none = np.zeros(6, dtype=bool)
        found = vector(ROWS, Masks(none), recipe("cls", empty="fallback-row"))
        assert found == pytest.approx(by_library(pooling(4, "cls"), none))

    def test_no_row_counts_and_max_has_no_policy(self, pooling):
        """The library gives minus infinity, which no recipe does."""
        none = np.zeros(6, dtype=bool)
        assert np.isneginf(by_library(pooling(4, "max"), none)).all()
        with pytest.raises(EmptySlice):
            vector(ROWS, Masks(none), recipe("max"))

    def test_half_precision_rows(self, pooling):
        """The library's float16 result is the reference's to what float16 can hold."""
        half = ROWS.astype(np.float16)
        features = {"token_embeddings": torch.tensor(half)[None], "attention_mask": torch.ones(1, 6, dtype=torch.int64)}
        wanted = pooling(4, "mean")(features)["sentence_embedding"][0]
        assert wanted.dtype == torch.float16
        assert vector(half, Masks(ALL), recipe("mean")) == pytest.approx(wanted.float().numpy(), abs=2**-11)


class TestPipeline:
    """Pooling, Dense, LayerNorm and Normalize one after another, as a folder lists them."""

    def test_is_the_modules_own(self, pooling):
        """Two modes, a map with tanh, a layer norm, unit length."""
        from sentence_transformers.base.modules import Dense as DenseModule
        from sentence_transformers.base.modules import Normalize
        from sentence_transformers.sentence_transformer.modules import LayerNorm as LayerNormModule

        dense, norm = DenseModule(8, 3).double(), LayerNormModule(3).double()
        modules = torch.nn.Sequential(pooling(4, ("cls", "mean")), dense, norm, Normalize())
        made = recipe(
            "cls",
            "mean",
            projections=(
                Dense(dense.linear.weight.detach().numpy(), dense.linear.bias.detach().numpy(), "tanh"),
                LayerNorm(norm.norm.weight.detach().numpy(), norm.norm.bias.detach().numpy(), 1e-5),
            ),
            normalisation=Normalisation("l2", 1e-12, "after-projection"),
        )
        assert vector(ROWS, Masks(LEFT), made) == pytest.approx(by_library(modules, LEFT), abs=1e-14)

    def test_bert_pooler_is_the_physical_first_row_through_tanh(self):
        """Also under left padding, where it is a row of padding."""
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertPooler

        pooler = BertPooler(BertConfig(hidden_size=4, num_attention_heads=1)).double()
        by = Dense(pooler.dense.weight.detach().numpy(), pooler.dense.bias.detach().numpy(), "tanh")
        wanted = pooler(torch.tensor(ROWS)[None])[0].detach().numpy()
        assert vector(ROWS, Masks(LEFT), recipe("physical-first", projections=(by,))) == pytest.approx(
            wanted, abs=1e-14
        )
        assert vector(ROWS, Masks(LEFT), recipe("cls", projections=(by,))) != pytest.approx(wanted)

    @pytest.mark.parametrize(
        ("stage", "renormalised", "wanted"),
        [
            ("after-projection", False, [3 / 13, 4 / 13]),
            ("after-projection", True, [3 / 5, 4 / 5]),
            ("after-truncation", True, [3 / 5, 4 / 5]),
        ],
    )
    def test_cutting_dimensions_leaves_unit_length_behind(self, stage, renormalised, wanted):
        """(3, 4, 12) has length 13, and its first two dimensions 5."""
        made = recipe(
            "mean", normalisation=Normalisation("l2", 1e-12, stage), truncate_dim=2, renormalised=renormalised
        )
        rows = np.array([[3.0, 4, 12]])
        assert vector(rows, Masks(ALL[:1]), made) == pytest.approx(wanted)

    def test_each_stage_is_another_vector(self):
        """Unit rows, a unit mean and a unit projection are three things."""
        by = Dense(np.array([[1.0, 2], [0, 1]]), None, "identity")
        rows = np.array([[3.0, 4], [1, 0]])
        found = {
            stage: vector(
                rows, Masks(ALL[:2]), recipe("mean", projections=(by,), normalisation=Normalisation("l2", 1e-12, stage))
            )
            for stage in ("per-row", "after-pooling", "after-projection")
        }
        assert found["per-row"] == pytest.approx([1.6, 0.4])
        assert found["after-pooling"] == pytest.approx([3 / 2**0.5, 1 / 2**0.5])
        assert found["after-projection"] == pytest.approx([3 / 10**0.5, 1 / 10**0.5])

    def test_attention_is_a_mode_with_its_weights(self):
        """Joined like any other: even weights make it the mean."""
        even = Attention(np.zeros((1, 4)), None, np.ones((1, 1)))
        found = vector(ROWS, Masks(RIGHT), recipe("max", even, denominators=("none", "none")))
        assert found == pytest.approx(vector(ROWS, Masks(RIGHT), recipe("max", "mean")))


class TestNoRowCounts:
    NONE = Masks(np.zeros(6, dtype=bool))

    def test_is_rejected_unless_a_policy_says_otherwise(self):
        """Every mode."""
        for mode in DENOMINATORS:
            with pytest.raises(EmptySlice):
                vector(ROWS, self.NONE, recipe(mode))

    @pytest.mark.parametrize("mode", DENOMINATORS)
    def test_zero_and_fallback_have_the_width_of_the_modes(self, mode):
        """Boundary rows are two."""
        width = vector(ROWS, Masks(ALL), recipe(mode)).shape
        assert vector(ROWS, self.NONE, recipe(mode, empty="zero")).tolist() == np.zeros(width).tolist()
        assert vector(ROWS, self.NONE, recipe(mode, empty="fallback-row")) == pytest.approx(np.resize(ROWS[0], width))

    def test_learned_stands_for_the_pooled_vector(self):
        """And goes through what follows."""
        made = recipe("mean", empty="learned", learned=np.array([3.0, 4, 0, 0]),
                      normalisation=Normalisation("l2", 1e-12, "after-projection"))  # fmt: skip
        assert vector(ROWS, self.NONE, made) == pytest.approx([0.6, 0.8, 0, 0])

    def test_without_any_row_nothing_can_stand_in(self):
        """There is no physical first row."""
        with pytest.raises(EmptySlice, match="any row"):
            vector(ROWS[:0], Masks(ALL[:0]), recipe("cls", empty="fallback-row"))


class TestEveryFieldMatters:
    """A recipe with a value changed gives another vector, or contradicts itself."""

    MASKS = Masks(LEFT, special=np.array([0, 0, 1, 0, 0, 1], dtype=bool), prompt_length=2)
    MADE = recipe(
        "cls",
        "weightedmean",
        projections=(Dense(RNG.normal(size=(3, 8)), RNG.normal(size=3), "tanh"),),
        normalisation=Normalisation("l2", 1e-12, "after-projection"),
        truncate_dim=2,
        renormalised=False,
    )
    DENSE = MADE.projections[0]

    @pytest.mark.parametrize(
        "change",
        [
            {"counting": Counting(special=False, prompt=True, expansion=None)},
            {"counting": Counting(special=True, prompt=False, expansion=None)},
            {"modes": ("weightedmean", "cls"), "denominators": ("sum of weights", "none")},
            {"modes": ("lasttoken", "weightedmean")},
            {"weights": "physical-position"},
            {"projections": (replace(DENSE, activation="identity"),)},
            {"projections": (replace(DENSE, bias=None),)},
            {"projections": (replace(DENSE, weight=DENSE.weight[[1, 0, 2]]),)},
            {"normalisation": PLAIN},
            {"normalisation": Normalisation("l2", 10.0, "after-projection")},
            {"normalisation": Normalisation("l2", 1e-12, "after-pooling")},
            {"normalisation": Normalisation("l2", 1e-12, "per-row")},
            {"truncate_dim": 1},
            {"truncate_dim": None, "renormalised": None},
            {"renormalised": True},
        ],
        ids=str,
    )
    def test_another_vector(self, change):
        """Shape or numbers differ."""
        was = vector(ROWS, self.MASKS, self.MADE)
        now = vector(ROWS, self.MASKS, replace(self.MADE, **change))
        assert now.shape != was.shape or np.abs(now - was).max() > 1e-3

    @pytest.mark.parametrize(
        "change",
        [
            {"modes": ("cls", "mean")},
            {"modes": ("cls", "cls")},
            {"modes": ("cls", "no such mode")},
            {"denominators": ("none", "counted rows")},
            {"denominators": ("none",)},
            {"weights": "none"},
            {"normalisation": Normalisation("l2", None, "after-projection")},
            {"normalisation": Normalisation("none", 1e-12, "none")},
            {"normalisation": Normalisation("l2", 1e-12, "none")},
            {"normalisation": Normalisation("l2", 1e-12, "after-truncation")},
            {"normalisation": PLAIN, "renormalised": True},
            {"truncate_dim": None},
            {"renormalised": None},
            {"empty": "learned"},
            {"learned": np.zeros(8)},
        ],
        ids=str,
    )
    def test_a_contradiction(self, change):
        """It is refused before any vector is made."""
        with pytest.raises(Misconfigured, match="recipe"):
            replace(self.MADE, **change)

    @pytest.mark.parametrize("change", [{"projections": (DENSE, DENSE)}, {"truncate_dim": 4}], ids=str)
    def test_a_width_that_does_not_fit(self, change):
        """It is refused when the vector is made."""
        with pytest.raises(Misconfigured):
            vector(ROWS, self.MASKS, replace(self.MADE, **change))

    def test_the_empty_policy_matters_where_no_row_counts(self):
        """Three policies, three ends."""
        none = Masks(np.zeros(6, dtype=bool))
        zero, fallback = (vector(ROWS, none, replace(self.MADE, empty=e)) for e in ("zero", "fallback-row"))
        assert zero != pytest.approx(fallback)
        with pytest.raises(EmptySlice):
            vector(ROWS, none, self.MADE)


class TestRowVectors:
    BY = Dense(RNG.normal(size=(3, 4)), None, "identity")
    MADE = recipe(projections=(BY,), normalisation=Normalisation("l2", 1e-12, "per-row"))

    def test_the_counted_rows_each_by_itself(self):
        """Skipped and padded rows are not there."""
        masks = Masks(RIGHT, skipped=np.array([0, 1, 0, 0, 0, 0], dtype=bool))
        assert row_vectors(ROWS, masks, self.MADE) == pytest.approx(l2(ROWS[[0, 2, 3]] @ self.BY.weight.T, 0.0))

    def test_cut_after_unit_length(self):
        """Of unit length again only where the recipe says so."""
        masks = Masks(RIGHT)
        cut = row_vectors(ROWS, masks, replace(self.MADE, truncate_dim=2, renormalised=False))
        assert cut == pytest.approx(row_vectors(ROWS, masks, self.MADE)[:, :2])
        again = row_vectors(ROWS, masks, replace(self.MADE, truncate_dim=2, renormalised=True))
        assert again == pytest.approx(l2(cut, 0.0))

    def test_no_row_is_refused(self):
        """There is nothing to match."""
        with pytest.raises(EmptySlice):
            row_vectors(ROWS, Masks(np.zeros(6, dtype=bool)), self.MADE)

    @pytest.mark.parametrize(
        "made", [recipe("mean"), replace(MADE, empty="zero"),
                 replace(MADE, normalisation=Normalisation("l2", 1e-12, "after-projection"))],
        ids=["modes", "empty", "stage"],
    )  # fmt: skip
    def test_a_recipe_for_one_vector_is_refused(self, made):
        """Its modes, or its stage, would go unheard."""
        with pytest.raises(Misconfigured, match="recipe for rows"):
            row_vectors(ROWS, Masks(RIGHT), made)


class TestScore:
    def test_by_kind(self):
        """(3, 4) and (4, 3): 24, 24/25 and 2."""
        a, b = np.array([3.0, 4]), np.array([4.0, 3])
        found = [score(a, b, kind, 1e-12) for kind in ("dot", "cosine", "squared-l2")]
        assert found == pytest.approx([24, 0.96, 2])
