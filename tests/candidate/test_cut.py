"""Two texts that are too long together, cut as the library cuts them."""

from itertools import product

import pytest

from harness.candidate.cut import Kept, cut_pair, longest_first

from .conftest import WORDS


class TestLongestFirst:
    @pytest.mark.parametrize(
        ("first", "second", "room", "kept"),
        [
            (3, 4, 7, (3, 4)),  # all of it has room
            (3, 9, 7, (3, 4)),  # the longer one alone is cut
            (9, 3, 7, (4, 3)),
            (9, 8, 7, (4, 3)),  # both are: one more of the longer
            (8, 9, 7, (3, 4)),
            (9, 9, 7, (3, 4)),  # of two alike, of the second
            (9, 0, 7, (7, 0)),
        ],
    )
    def test_by_hand(self, first: int, second: int, room: int, kept: tuple[int, int]) -> None:
        assert longest_first(first, second, room) == Kept(*kept)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory):
    """BERT's template, and one with two tokens between the texts, each cutting at either end."""
    import transformers

    root = tmp_path_factory.mktemp("words")
    (root / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    found = []
    for side in ("right", "left"):
        found.append(transformers.BertTokenizer(str(root / "vocab.txt"), truncation_side=side))
        other = transformers.BertTokenizer(str(root / "vocab.txt"), truncation_side=side)
        from tokenizers import processors

        other.backend_tokenizer.post_processor = processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2))
        found.append(other)
    return found


def test_every_pair_of_lengths_is_cut_as_the_library_cuts_it(tokenizers) -> None:
    """Up to twelve tokens a text, from the least length that leaves room; the library itself is the referee."""
    for tokenizer in tokenizers:
        special = tokenizer.num_special_tokens_to_add(pair=True)
        for first, second, room in product(range(13), range(13), (1, 2, 5, 6, 11)):
            # As lists: a lone second text without a character is taken for none at all.
            texts = [" ".join(WORDS[:first])], [" ".join(WORDS[-second:] if second else [])]
            whole = tokenizer(*texts)
            length = special + room
            if len(whole["input_ids"][0]) <= length:
                continue
            cut = tokenizer(*texts, truncation="longest_first", max_length=length)
            expected = {name: cut[name][0] for name in cut}
            of = whole.sequence_ids(0)
            kept = longest_first(of.count(0), of.count(1), room)
            found = cut_pair({name: whole[name][0] for name in whole}, of, kept, tokenizer.truncation_side)
            assert found == expected, (first, second, room, tokenizer.truncation_side)


def test_two_texts_of_a_million_characters_are_read(tmp_path) -> None:
    """The library would make a pair of every part that it cuts off one with every part that it cuts off the other."""
    import json

    from harness.candidate.cross import Pair, load_cross
    from harness.release.open import open_release

    from .conftest import save_cross, write_release

    source = json.dumps(f"path:{save_cross(tmp_path)}")
    model = load_cross(open_release(write_release(tmp_path / "release", f"[model]\nsource = {source}\n", "cross")))
    [tokens] = model.tokenise([Pair("wing " * 200_000, "flow " * 200_000)])
    assert len(tokens) == model.max_length
    assert [share.kept + share.lost for share in tokens.shares] == [200_000, 200_000]
