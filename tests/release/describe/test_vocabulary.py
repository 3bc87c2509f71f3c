"""The files of a tokenizer: vocabulary, special tokens, normaliser."""

from pathlib import PurePosixPath

import pytest

from harness.errors import NotAdmitted
from harness.release.describe.vocabulary import read_tokenizer
from harness.release.folder import read_folder

from ..conftest import VOCABULARY
from .conftest import source, tower


def tokenizer(folder):
    return read_tokenizer(read_folder(folder.path / "model"), PurePosixPath())


class TestVocabulary:
    def test_every_form_gives_the_same_ids(self, bi):
        """tokenizer.json with an object or a list of pieces, vocab.txt, vocab.json."""
        ids = {token: place for place, token in enumerate(VOCABULARY)}
        pieces = [[token, -1.0] for token in VOCABULARY]
        forms = [
            bi("whole"),
            bi("unigram").write("model/tokenizer.json", {"model": {"type": "Unigram", "vocab": pieces}}),
            bi("lines").remove("model/tokenizer.json").write("model/vocab.txt", "\n".join(VOCABULARY)),
            bi("mapping").remove("model/tokenizer.json").write("model/vocab.json", ids),
        ]
        assert all(dict(tokenizer(folder).ids) == ids and tokenizer(folder).size == len(ids) for folder in forms)

    def test_added_tokens_count_wherever_they_are_said(self, bi):
        """In tokenizer_config.json, added_tokens.json."""
        folder = bi().write("model/added_tokens.json", {"<new>": 50})
        folder.change("model/tokenizer_config.json", added_tokens_decoder={"51": {"content": "<other>"}})
        assert (tokenizer(folder).ids["<new>"], tokenizer(folder).ids["<other>"], tokenizer(folder).size) == (
            50,
            51,
            52,
        )

    def test_without_a_vocabulary_the_size_is_unknown(self, bi):
        """Only what is added is known then, and rows cannot be led back to words."""
        folder = bi().remove("model/tokenizer.json").write("model/spiece.model", "x")
        assert (tokenizer(folder).size, tokenizer(folder).fast) == (None, False)

    @pytest.mark.parametrize("content", [{"added_tokens": [{"id": 1}]}, {"model": {"vocab": [1, 2]}}])
    def test_a_file_that_is_no_tokenizers_is_refused(self, bi, content):
        """With its path."""
        with pytest.raises(NotAdmitted, match=r"tokenizer\.json"):
            tokenizer(bi().write("model/tokenizer.json", content))


class TestSpecialTokens:
    def test_ids_come_with_the_file_that_names_the_token(self, bi):
        """special_tokens_map.json before tokenizer_config.json, as text or as an object."""
        folder = bi().write("model/special_tokens_map.json", {"cls_token": {"content": "[unused0]"}})
        assert tower(folder).input.special_tokens == {
            "cls_token": 5, "unk_token": 1, "sep_token": 3, "pad_token": 0, "mask_token": 4,
        }  # fmt: skip
        assert source(folder, "towers.both.input.special_tokens.cls_token") == "special_tokens_map.json#/cls_token"

    def test_a_token_that_the_tokenizer_lacks_has_no_id(self, bi):
        """It is for the admission to name."""
        folder = bi().change("model/tokenizer_config.json", mask_token="<mask>")
        assert "mask_token" not in tower(folder).input.special_tokens


class TestNormaliser:
    @pytest.mark.parametrize(
        ("normaliser", "lower"),
        [
            ({"type": "Lowercase"}, True),
            ({"type": "BertNormalizer", "lowercase": False}, False),
            ({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}, True),
            (None, None),
        ],
    )
    def test_it_is_the_tokenizers_own_and_says_whether_letters_become_small(self, bi, normaliser, lower):
        """As tokenizer.json states it."""
        folder = bi().change("model/tokenizer.json", normalizer=normaliser)
        assert (tower(folder).input.normaliser, tower(folder).input.lower_case) == (normaliser, lower)

    def test_the_modules_setting_counts_before_the_tokenizers(self, bi):
        """Sentence Transformers puts a lower-casing step in front."""
        folder = bi().change("model/tokenizer.json", normalizer=None)
        folder.change("model/sentence_bert_config.json", do_lower_case=True)
        assert tower(folder).input.lower_case is True
        assert source(folder, "towers.both.input.lower_case") == "sentence_bert_config.json#/do_lower_case"

    def test_long_tables_stand_as_their_digest(self, bi):
        """SentencePiece's are hundreds of kilobytes."""
        folder = bi().change(
            "model/tokenizer.json", normalizer={"type": "Precompiled", "precompiled_charsmap": "x" * 999}
        )
        assert tower(folder).input.normaliser["precompiled_charsmap"].startswith("sha256:")

    def test_sides_are_the_tokenizers_or_the_librarys(self, bi):
        """Right for both, where nothing else is said."""
        folder = bi().change("model/tokenizer_config.json", padding_side="left", truncation_side="left")
        assert (tower(bi("plain")).input.padding_side, tower(folder).input.padding_side) == ("right", "left")
        assert tower(folder).input.truncation_side == "left"
