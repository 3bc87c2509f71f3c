"""Late interaction: Sentence Transformers' own layout, PyLate's and Stanford's."""

import json
import string

import pytest

from harness.errors import Misconfigured, NotAdmitted

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

    def test_a_sides_own_length_counts_before_the_modules(self, pylate):
        """PyLate leaves that of its last call in the module, and the library reads it as the tokenizer's."""
        folder = pylate().write("model/sentence_bert_config.json", {"max_seq_length": 31})
        assert tower(folder, "document").input.max_length == 40

    def test_it_does_not_pass_the_models_positions(self, late):
        """512 of them."""
        folder = late().change("model/sentence_bert_config.json", document_length=600)
        assert tower(folder, "document").input.max_length == 512

    def test_a_declared_length_leaves_queries_of_one_width_alone(self, late):
        """Documents may be longer than the folder says, and both are on record."""
        manifest = described(late(extra="[input]\nmax_length = 90\n"))
        lengths = {side: found.input.max_length for side, found in manifest.meaning.towers.items()}
        assert lengths == {"query": 16, "document": 90}
        assert manifest.evidence.overridden == {"towers.document.input.max_length": 40}

    def test_longer_queries_than_the_least_width_have_a_length_too(self, late):
        """That of queries, or the least width where it is more."""
        for length, expected in ((30, 30), (9, 16)):
            folder = late(f"of-{length}").change(
                "model/sentence_bert_config.json", query_length=length,
                query_expansion={"strategy": "min", "length": 16},
            )  # fmt: skip
            assert tower(folder, "query").input.max_length == expected

    def test_nothing_is_skipped_where_nothing_says_pylate(self, late):
        """What the library adds to other folders skips no token."""
        modules = json.loads((late().path / "model/modules.json").read_text())
        folder = late("bare").write("model/modules.json", modules[:2])
        assert tower(folder, "document").rows.skipped == {}
        assert tower(folder.change(SETTINGS, document_prefix=""), "document").rows.skipped == {"document": PUNCTUATION}

    def test_rows_may_be_kept_as_wide_as_they_are(self, late):
        """Where the folder says that it is whole; to any other the library would add a map of random numbers."""
        folder = late()
        modules = json.loads((folder.path / "model/modules.json").read_text())
        folder.write("model/modules.json", [modules[0], *modules[2:]])
        with pytest.raises(NotAdmitted, match="a Dense for each row"):
            described(folder)
        meaning = described(folder.change(SETTINGS, model_type="MultiVectorEncoder")).meaning
        assert meaning.output.dimension == 8 and meaning.towers["query"].readout.projections == []


class TestOwnRows:
    @pytest.fixture
    def own(self, bi):
        """The rows of a bi-encoder's folder."""

        def make(extra, name="own"):
            return bi(name).toml(toml("late", extra))

        return make

    def test_they_are_the_encoders_before_its_pooling(self, own, bi):
        """Of unit length, summed up; what is skipped is declared, and nothing is filled up."""
        meaning = described(own('[late]\nskip = "punctuation"\n')).meaning
        query, document = meaning.towers["query"], meaning.towers["document"]
        assert (query.rows.skipped, document.rows.skipped) == ({}, {"document": PUNCTUATION})
        assert query.rows.expansion == {} and query.input.max_length == document.input.max_length == 64
        norm = document.readout.normalisation
        assert (document.readout.family, document.readout.projections, norm.stage) == ("rows", [], "per-row")
        assert (meaning.score.type, meaning.interaction.maxsim, meaning.output.dimension) == ("maxsim", "sum", 8)
        assert document.artifact == tower(bi("pooled")).artifact

    def test_tokens_are_skipped_as_declared(self, own):
        """None, or those that are named."""
        assert tower(own("[late]\nskip = []\n", "none"), "document").rows.skipped == {}
        named = own('[late]\nskip = ["the"]\n', "named")
        assert tower(named, "document").rows.skipped == {"document": ["the"]}
        assert source(named, "towers.document.rows.skipped.document") == "declared"

    def test_the_folders_prompts_are_theirs(self, own):
        """Under any of the names that a document's has."""
        folder = own("[late]\nskip = []\n").write(SETTINGS, {"prompts": {"query": "q: ", "passage": "p: "}})
        assert tower(folder, "query").input.prompts == {"query": "q: "}
        assert tower(folder, "document").input.prompts == {"document": "p: "}

    def test_what_nobody_says_is_not_guessed(self, own):
        """Which rows count."""
        with pytest.raises(Misconfigured, match=r"Add \[late\] to release.toml"):
            described(own(""))

    def test_a_length_of_one_side_is_refused_as_a_bi_encoders(self, own):
        """The library would cut by it."""
        folder = own("[late]\nskip = []\n").change("model/sentence_bert_config.json", document_length=9)
        with pytest.raises(NotAdmitted, match="document_length"):
            described(folder)


class TestRefusals:
    def test_a_declaration_beside_the_folders_own_is_refused(self, late):
        """Two words on one matter."""
        with pytest.raises(Misconfigured, match=r"a \[late\] beside"):
            described(late(extra='[late]\nskip = "punctuation"\n'))

    def test_a_whole_model_without_its_mask_is_refused(self, late):
        """The library adds nothing to a folder that says it is its own."""
        folder = late().change(SETTINGS, model_type="MultiVectorEncoder")
        modules = json.loads((folder.path / "model/modules.json").read_text())
        with pytest.raises(NotAdmitted, match="MultiVectorMask"):
            described(folder.write("model/modules.json", modules[:2]))

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
