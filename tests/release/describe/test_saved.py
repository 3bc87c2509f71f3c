"""Folders as the installed libraries save them, held against what the libraries make of them when they load them."""

import string
from pathlib import Path

import pytest

from harness.release.admit import findings
from harness.release.definition import ReleaseDefinition
from harness.release.describe import describe, interaction_of
from harness.release.folder import read_folder
from harness.release.manifest import Manifest

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "flow", *string.punctuation, *"abcdefg"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Saves a BERT of width 16 with a head of some class, and its tokenizer."""
    from transformers import BertConfig, BertTokenizer

    def save(model_class, **config):
        path = tmp_path_factory.mktemp(model_class.__name__)
        whole = BertConfig(
            vocab_size=len(TOKENS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=48, **config,
        )  # fmt: skip
        model_class(whole).save_pretrained(path)
        (path / "vocab.txt").write_text("\n".join(TOKENS))
        BertTokenizer(str(path / "vocab.txt"), model_max_length=48).save_pretrained(path)
        return str(path)

    return save


@pytest.fixture
def saved(tmp_path):
    """Saves a model of Sentence Transformers and describes its folder, which must keep every invariant."""

    def describe_saved(model) -> Manifest:
        model.save(str(tmp_path / "model"))
        return described(tmp_path / "model")

    return describe_saved


def described(path, **declared) -> Manifest:
    folder = read_folder(Path(path))
    definition = ReleaseDefinition.model_validate({
        "schema": "harness.release.v1", "name": "saved", "interaction": interaction_of(folder),
        "model": {"source": "path:model"}, **declared,
    })  # fmt: skip
    manifest = describe(definition, folder)
    assert [check for check in findings(manifest, folder) if not check.ok] == []
    return manifest


class TestSentenceTransformer:
    def test_modules_settings_and_width_are_the_loaded_models(self, bare, saved):
        """A Dense, a norm, unit length, then four dimensions of eight."""
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm, Normalize, Pooling, Transformer
        from transformers import BertModel

        model = SentenceTransformer(
            modules=[
                Transformer(bare(BertModel)), Pooling(16, ("cls", "mean")), Dense(32, 8), LayerNorm(8), Normalize(),
            ],
            prompts={"query": "q: ", "document": "d: "}, truncate_dim=4, similarity_fn_name="dot", device="cpu",
        )  # fmt: skip
        meaning = saved(model).meaning
        found = meaning.towers["both"]
        assert meaning.output.dimension == model.get_embedding_dimension() == 4
        assert tuple(found.readout.modes) == model[1].pooling_mode
        assert found.input.max_length == model.max_seq_length and found.input.prompts == model.prompts
        assert [step.kind for step in found.readout.projections] == ["dense", "layer-norm"]
        assert meaning.score.type == model.similarity_fn_name

    def test_a_router_is_two_towers(self, bare, saved):
        """Queries by their first row, documents by the mean."""
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Router, Transformer
        from transformers import BertModel

        router = Router.for_query_document(
            [Transformer(bare(BertModel)), Pooling(16, "cls")], [Transformer(bare(BertModel)), Pooling(16, "mean")]
        )
        meaning = saved(SentenceTransformer(modules=[router, Normalize()], device="cpu")).meaning
        assert {name: tower.readout.modes for name, tower in meaning.towers.items()} == {
            "query": ["cls"], "document": ["mean"],
        }  # fmt: skip


class TestCrossEncoder:
    @pytest.mark.parametrize(("labels", "activation"), [(1, None), (1, "Identity"), (3, None)])
    def test_activation_and_labels_are_the_loaded_models(self, bare, saved, labels, activation):
        """The library's own choice, and a saved one."""
        import torch
        from sentence_transformers import CrossEncoder
        from transformers import BertForSequenceClassification

        chosen = None if activation is None else getattr(torch.nn, activation)()
        path = bare(BertForSequenceClassification, num_labels=labels)
        model = CrossEncoder(path, activation_fn=chosen, device="cpu")
        meaning = saved(model).meaning
        assert meaning.score.activation == type(model.activation_fn).__name__.lower()
        assert meaning.output.dimension == model.num_labels == labels
        assert meaning.towers["pair"].input.max_length == model.max_seq_length


class TestMultiVectorEncoder:
    def test_rows_masks_and_expansion_are_the_loaded_models(self, bare, saved):
        """Queries of exactly 16, documents without punctuation."""
        import torch
        from sentence_transformers import MultiVectorEncoder
        from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
        from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Transformer
        from transformers import BertModel

        expansion = {"strategy": "fixed", "attend": False, "length": 16}
        rows = "token_embeddings"
        model = MultiVectorEncoder(modules=[
            Transformer(bare(BertModel), document_length=40, query_expansion=expansion),
            Dense(16, 8, bias=False, activation_function=torch.nn.Identity(), module_input_name=rows),
            MultiVectorMask(skiplist_words=[*string.punctuation, "nowhere"]),
            Normalize(module_input_name=rows),
        ], device="cpu")  # fmt: skip
        meaning = saved(model).meaning
        query, document = meaning.towers["query"], meaning.towers["document"]
        features = model.preprocess(["the flow"], task="query")
        assert features["input_ids"].shape[1] == query.input.max_length == query.rows.expansion["query"] == 16
        assert TOKENS[features["input_ids"][0, -1]] == query.rows.expansion_token
        skipped = [TOKENS.index(token) for token in document.rows.skipped["document"]]
        assert skipped == model[2]._skiplist_ids.tolist()
        assert model.encode_document(["the flow"])[0].shape[1] == meaning.output.dimension == 8


class TestSparseEncoder:
    def test_width_and_similarity_are_the_loaded_models(self, bare, saved):
        """One weight a token, by dot."""
        from sentence_transformers import SparseEncoder
        from transformers import BertForMaskedLM

        model = SparseEncoder(bare(BertForMaskedLM), device="cpu")
        meaning = saved(model).meaning
        assert meaning.output.dimension == model.encode(["the flow"]).shape[1] == len(TOKENS)
        assert meaning.score.type == model.similarity_fn_name
        assert meaning.towers["both"].readout.modes == [model[1].pooling_strategy]


class TestHeads:
    @pytest.mark.parametrize(
        ("name", "kind", "dimension"),
        [("BertForTokenClassification", "tags", 2), ("BertForQuestionAnswering", "span", 2),
         ("BertForMultipleChoice", "choice", 1)],
    )  # fmt: skip
    def test_a_head_has_the_rows_of_its_weights(self, bare, name, kind, dimension):
        """Whether the configuration names them or leaves them to the library."""
        import transformers

        output = described(bare(getattr(transformers, name))).meaning.output
        assert (output.kind, output.dimension) == (kind, dimension)

    @pytest.mark.parametrize("problem", ["single_label_classification", "regression"])
    def test_the_problem_type_says_what_a_sequence_heads_numbers_are(self, bare, problem):
        """As the training of transformers reads it."""
        from transformers import BertForSequenceClassification

        rows = 1 if problem == "regression" else 3
        path = bare(BertForSequenceClassification, num_labels=rows, problem_type=problem)
        declared = {"output": {"regression": {"units": "stars", "scale": 1.0, "shift": 0.0}}} if rows == 1 else {}
        output = described(path, **declared).meaning.output
        assert (output.kind, output.dimension) == ("value" if rows == 1 else "classes", rows)
