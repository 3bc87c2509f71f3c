"""Late interaction: Sentence Transformers' own layout, PyLate's and Stanford's."""

import json
import string

import pytest

from harness.errors import NotAdmitted

from ..conftest import BERT, BODY, LIBRARY, Folder, safetensors, toml
from .conftest import described, source, tower

SETTINGS = "model/config_sentence_transformers.json"
PUNCTUATION = list(string.punctuation)


@pytest.fixture
def late(tmp_path):
    """A BERT with a map of rows from 8 to 4, a mask and a normalisation of rows."""

    def make(name="late", extra=""):
        folder = Folder(tmp_path / name, toml("late", extra)).tokenizer().write("model/config.json", BERT)
        folder.write("model/model.safetensors", safetensors(BODY))
        folder.write("model/modules.json", [
            {"path": "", "type": f"{LIBRARY}.base.modules.transformer.Transformer"},
            {"path": "1_Dense", "type": f"{LIBRARY}.base.modules.dense.Dense"},
            {"path": "2_Mask", "type": f"{LIBRARY}.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask"},
            {"path": "3_Normalize", "type": f"{LIBRARY}.base.modules.normalize.Normalize"},
        ])  # fmt: skip
        folder.write("model/sentence_bert_config.json", {
            "document_length": 40, "query_expansion": {"strategy": "fixed", "attend": False, "length": 16},
        })  # fmt: skip
        folder.write("model/1_Dense/config.json", {
            "in_features": 8, "out_features": 4, "bias": False, "module_input_name": "token_embeddings",
            "activation_function": "torch.nn.modules.linear.Identity",
        })  # fmt: skip
        folder.write("model/1_Dense/model.safetensors", safetensors({"linear.weight": [4, 8]}))
        folder.write("model/2_Mask/config.json", {"skiplist_words": PUNCTUATION})
        folder.write("model/3_Normalize/config.json", {"module_input_name": "token_embeddings"})
        return folder.write(SETTINGS, {"prompts": {"query": "[unused0] ", "document": "[unused1] "}})

    return make


@pytest.fixture
def pylate(late):
    """The same as PyLate saves it: two modules, and everything else at the top."""

    def make(name="pylate"):
        folder = late(name).write("model/modules.json", [
            {"path": "", "type": f"{LIBRARY}.models.Transformer"},
            {"path": "1_Dense", "type": "pylate.models.Dense.Dense"},
        ])  # fmt: skip
        folder.without("model/1_Dense/config.json", "module_input_name")
        folder.write("model/sentence_bert_config.json", {"max_seq_length": 48})
        return folder.write(SETTINGS, {
            "model_type": "ColBERT", "query_prefix": "[unused0] ", "document_prefix": "[unused1] ", "query_length": 16,
            "document_length": 40, "attend_to_expansion_tokens": False, "do_query_expansion": True,
        })  # fmt: skip

    return make


@pytest.fixture
def stanford(tmp_path):
    """The same as Stanford's ColBERT saves it: the map among the encoder's weights, artifact.metadata beside them."""

    def make(name="stanford", **metadata):
        folder = Folder(tmp_path / name, toml("late")).tokenizer()
        folder.write("model/config.json", BERT | {"architectures": ["HF_ColBERT"]})
        folder.write("model/model.safetensors", safetensors(BODY | {"linear.weight": [4, 8]}))
        return folder.write("model/artifact.metadata", {
            "query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 16, "doc_maxlen": 40, "dim": 4,
            "mask_punctuation": True, "attend_to_mask_tokens": False, "similarity": "cosine", "interaction": "colbert",
        } | metadata)  # fmt: skip

    return make


class TestThreeLayouts:
    @pytest.mark.parametrize("layout", ["late", "pylate", "stanford"])
    def test_all_say_the_same_of_rows_lengths_and_score(self, layout, request):
        """Queries of 16 rows filled up with masks, documents of 40 without punctuation, rows of 4 and unit length."""
        meaning = described(request.getfixturevalue(layout)()).meaning
        query, document = meaning.towers["query"], meaning.towers["document"]
        assert (query.input.max_length, document.input.max_length) == (16, 40)
        assert (query.input.prompts, document.input.prompts) == ({"query": "[unused0] "}, {"document": "[unused1] "})
        assert (query.rows.expansion, query.rows.expansion_token) == ({"query": 16}, "[MASK]")
        assert (query.rows.expansion_counts, query.rows.expansion_attended) == (True, False)
        assert (query.rows.skipped, document.rows.skipped) == ({}, {"document": PUNCTUATION})
        (step,) = document.readout.projections
        assert (step.width_in, step.width_out, step.bias, step.activation) == (8, 4, False, "identity")
        norm = document.readout.normalisation
        assert (document.readout.family, norm.kind, norm.stage) == ("rows", "l2", "per-row")
        assert (meaning.score.type, meaning.interaction.maxsim, meaning.output.dimension) == ("maxsim", "sum", 4)
        assert meaning.interaction.tied is True

    def test_each_value_comes_from_the_layouts_own_file(self, late, pylate, stanford):
        """The length of documents in three places."""
        place = "towers.document.input.max_length"
        assert [source(make(), place) for make in (late, pylate, stanford)] == [
            "sentence_bert_config.json#/document_length",
            "config_sentence_transformers.json#/document_length",
            "artifact.metadata#/doc_maxlen",
        ]

    def test_the_map_among_the_encoders_weights_has_a_digest_of_its_own(self, stanford):
        """So that another one is no other encoder."""
        found = tower(stanford(), "document")
        assert found.readout.projections[0].weights not in (None, found.artifact.backbone)


class TestPolicies:
    def test_expansion_that_is_a_least_width_leaves_longer_queries_alone(self, late):
        """Strategy `min`."""
        expansion = {"strategy": "min", "attend": True, "length": 16, "token": "[SEP]"}
        found = tower(late().change("model/sentence_bert_config.json", query_expansion=expansion), "query")
        assert found.input.max_length == 512
        assert (found.rows.expansion_strategy, found.rows.expansion_token, found.rows.expansion_attended) == (
            "min", "[SEP]", True,
        )  # fmt: skip

    def test_without_expansion_a_query_is_only_cut(self, late):
        """At its own length."""
        folder = late().write("model/sentence_bert_config.json", {"query_length": 20})
        found = tower(folder, "query")
        assert (found.input.max_length, found.rows.expansion, found.rows.expansion_counts) == (20, {}, None)

    def test_words_that_are_no_token_are_not_skipped(self, late):
        """The library drops them, lest every unknown token be skipped."""
        folder = late().write("model/2_Mask/config.json", {"skiplist_words": ["!", "nowhere"]})
        assert tower(folder, "document").rows.skipped == {"document": ["!"]}

    def test_punctuation_counts_where_it_is_said_to(self, stanford):
        """mask_punctuation off."""
        assert tower(stanford(mask_punctuation=False), "document").rows.skipped == {}

    def test_pylates_prefix_stands_before_its_prompt(self, pylate):
        """Once, also where the prompt repeats it."""
        folder = pylate().change(SETTINGS, prompts={"query": "search: ", "document": "[unused1] text: "})
        assert tower(folder, "query").input.prompts == {"query": "[unused0] search: "}
        assert tower(folder, "document").input.prompts == {"document": "[unused1] text: "}

    def test_a_mean_over_query_rows_is_told_apart(self, late):
        """similarity_fn_name meanmaxsim."""
        assert described(late().change(SETTINGS, similarity_fn_name="meanmaxsim")).meaning.interaction.maxsim == "mean"

    def test_a_declared_prompt_counts_before_the_marker(self, late):
        """With both on record."""
        manifest = described(late(extra='[prompts]\nquery = "q: "\n'))
        assert manifest.evidence.overridden == {"towers.query.input.prompts.query": "[unused0] "}


class TestRefusals:
    def test_a_distance_is_refused(self, stanford):
        """The library would score by cosine all the same."""
        with pytest.raises(NotAdmitted, match="'l2'"):
            described(stanford(similarity="l2"))

    def test_a_checkpoint_without_its_map_is_refused(self, stanford):
        """Neither weights nor metadata say how wide it is."""
        folder = stanford(dim=None).write("model/model.safetensors", safetensors(BODY))
        with pytest.raises(NotAdmitted, match=r"linear\.weight"):
            described(folder)

    @pytest.mark.parametrize("kept", [1, 3])
    def test_modules_that_do_not_make_rows_are_refused(self, late, kept):
        """No map, or a mask without the normalisation behind it."""
        folder = late()
        modules = json.loads((folder.path / "model/modules.json").read_text())
        with pytest.raises(NotAdmitted):
            described(folder.write("model/modules.json", modules[:kept]))

    def test_rows_kept_by_their_ids_are_refused(self, late):
        """As models of images do."""
        with pytest.raises(NotAdmitted, match="keep_only_token_ids"):
            described(late().write("model/2_Mask/config.json", {"keep_only_token_ids": [3]}))
