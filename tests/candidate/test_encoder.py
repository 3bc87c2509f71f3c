"""Several encoders over the same texts: what they share is computed once, and changes nothing."""

from dataclasses import replace

import numpy as np
import pytest

from harness.candidate.encoder import encode
from harness.candidate.side import Piece

from .conftest import Memory, save_tiny
from .test_bi import texts

POOLINGS = ("mean", "cls", "max", "lasttoken", "weightedmean")


def pooled(encoder, mode, more=""):
    return encoder(f'{more}[override.readout]\npooling = "{mode}"\n').sides["document"]


class TestTokenising:
    """What is cut away of a long text is held in memory until it is, so not of all texts at once."""

    @pytest.fixture
    def asked(self, encoder, monkeypatch):
        side, seen = encoder("").sides["document"], []
        whole = side.tokenise

        def tokenise(texts):
            seen.append(sum(map(len, texts)))
            return whole(texts)

        monkeypatch.setattr(side, "tokenise", tokenise)
        return side, seen

    def test_no_more_characters_at_a_time_than_stated(self, asked, monkeypatch):
        """A longer text stands alone; whatever the portions, what comes out is the same, to the bit."""
        side, seen = asked
        given = [*texts(12), "wing " * 300, *texts(3), ""]
        whole = encode([side], given)[0]
        assert len(seen) == 1
        longest = len("wing " * 300)
        monkeypatch.setattr("harness.candidate.encoder.CHARACTERS", longest)
        seen.clear()
        apart = encode([side], given)[0]
        assert len(seen) > 1 and max(seen) <= longest and sum(seen) == sum(map(len, set(given)))
        assert apart.vectors.tobytes() == whole.vectors.tobytes() and apart.items == whole.items
        assert apart.tokens_lost.tolist() == whole.tokens_lost.tolist()

    def test_one_that_cannot_be_tokenised_fails_alone_in_its_portion(self, asked, monkeypatch):
        side, _ = asked
        whole = side.tokenise

        def tokenise(some):
            if "spoiled" in some:
                raise ValueError("no")
            return whole(some)

        monkeypatch.setattr(side, "tokenise", tokenise)
        monkeypatch.setattr("harness.candidate.encoder.CHARACTERS", 20)
        given = ["the wing", "heat flow", "spoiled", "shock"]
        assert list(encode([side], given)[0].failed) == [2]


class TestOneForwardPass:
    def test_two_readouts_are_those_of_each_alone(self, encoder):
        """Every pair of poolings, to the bit; a readout writes into its rows, and the other must not see it."""
        given = texts(20)
        sides = {mode: pooled(encoder, mode) for mode in POOLINGS}
        alone = {mode: encode([side], given)[0].vectors.tobytes() for mode, side in sides.items()}
        assert len(set(alone.values())) == len(POOLINGS)
        for mine in POOLINGS:
            for other in POOLINGS:
                found = encode([sides[mine], sides[other]], given)
                assert [each.vectors.tobytes() for each in found] == [alone[mine], alone[other]]

    def test_a_prompt_is_left_out_by_whom_it_concerns(self, encoder, tiny, tmp_path):
        """Two that differ in that alone share tokens and rows."""
        prompt, other = '[prompts]\ndocument = "wing jet "\n', save_tiny(tmp_path / "other", include_prompt=False)
        sides = [encoder(prompt, folder).sides["document"] for folder in (tiny, other)]
        alone = [encode([side], texts(5))[0].vectors.tobytes() for side in sides]
        assert alone[0] != alone[1] and sides[0].keys.source == sides[1].keys.source
        assert [each.vectors.tobytes() for each in encode(sides, texts(5))] == alone
        assert [each.vectors.tobytes() for each in encode(sides[::-1], texts(5))] == alone[::-1]

    def test_a_readout_that_writes_into_its_rows_spoils_no_other(self, encoder, monkeypatch):
        """Modules may: what one leaves behind, the next never sees."""
        mean, cls = pooled(encoder, "mean"), pooled(encoder, "cls")
        alone = encode([cls], texts(5))[0].vectors.tobytes()
        whole = mean.read_out

        def writing(features, excluded=0):
            found = whole(dict(features), excluded)
            features["token_embeddings"].zero_()
            return found

        monkeypatch.setattr(mean, "read_out", writing)
        assert encode([mean, cls], texts(5))[1].vectors.tobytes() == alone

    def test_rows_are_computed_once_for_two_readouts(self, encoder, counted):
        encode([pooled(encoder, "mean"), pooled(encoder, "cls")], texts(20))
        assert len(counted) == 20

    def test_a_longer_reading_costs_only_the_texts_that_were_cut(self, encoder, counted):
        """Of four texts one has more than 16 tokens."""
        given = ["the flow", "a wing", "the " * 10, "the " * 30]
        short, long = (encoder(f"[input]\nmax_length = {length}\n").sides["document"] for length in (16, 48))
        found = encode([short, long], given)
        assert sorted(counted) == [4, 4, 12, 16, 32]
        assert [each.tokens_lost.tolist() for each in found] == [[0, 0, 0, 16], [0, 0, 0, 0]]
        assert found[0].vectors[:3].tobytes() == found[1].vectors[:3].tobytes()
        assert found[0].vectors[3].tobytes() != found[1].vectors[3].tobytes()

    def test_another_backbone_shares_nothing(self, encoder, tmp_path, counted):
        other = save_tiny(tmp_path / "other", positions=64)
        encode([encoder().sides["document"], encoder(folder=other).sides["document"]], texts(5))
        assert len(counted) == 10

    def test_a_prompt_left_out_by_one_readout_stays_in_the_other(self, encoder, tmp_path):
        """The same tokens, the same rows; the readouts leave out a prompt of one, and of none."""
        folder = save_tiny(tmp_path / "instructor", include_prompt=False)
        prompted = encoder('[prompts]\ndocument = "the flow "\n', folder).sides["document"]
        plain = encoder("", folder).sides["document"]
        a, b = encode([prompted], ["wing heat"])[0], encode([plain], ["the flow wing heat"])[0]
        assert a.items[0] != b.items[0] and a.vectors.tobytes() != b.vectors.tobytes()

    def test_texts_are_tokenised_once_where_the_source_is_shared(self, encoder, monkeypatch):
        mean, cls = pooled(encoder, "mean"), pooled(encoder, "cls")
        monkeypatch.setattr(cls, "tokenise", lambda *_: pytest.fail("tokenised again"))
        encode([mean, cls], texts(5))

    def test_a_readout_that_raises_fails_alone(self, encoder, monkeypatch):
        """The other one's vectors are there."""
        mean, cls = pooled(encoder, "mean"), pooled(encoder, "cls")

        def broken(features, excluded=0):
            raise RuntimeError("no room")

        monkeypatch.setattr(cls, "read_out", broken)
        found = encode([mean, cls], texts(3))
        assert found[0].failed == {} and np.isfinite(found[0].vectors).all()
        assert found[1].failed == dict.fromkeys(range(3), "RuntimeError: no room")
        assert np.isnan(found[1].vectors).all()


class TestKept:
    def test_what_is_kept_is_not_computed_again(self, encoder, counted):
        """Neither by the same encoder nor by another with the same keys."""
        kept, given = Memory(), texts(10)
        first = encode([encoder().sides["document"]], given, kept)[0]
        counted.clear()
        again = encode([encoder().sides["document"]], given[::-1], kept)[0]
        assert counted == [] and again.vectors[::-1].tobytes() == first.vectors.tobytes()

    def test_another_readout_or_runtime_is_computed(self, encoder, counted):
        kept, given = Memory(), texts(4)
        side = pooled(encoder, "mean")
        encode([side], given, kept)
        counted.clear()
        encode([pooled(encoder, "cls")], given, kept)
        assert len(counted) == 4
        side.keys = replace(side.keys, vector="0" * 64)
        encode([side], given, kept)
        assert len(counted) == 8

    def test_what_failed_is_not_kept(self, encoder, monkeypatch):
        kept, side = Memory(), encoder().sides["document"]

        def broken(*_):
            raise RuntimeError("no")

        monkeypatch.setattr(side, "rows", broken)
        assert encode([side], ["the flow"], kept)[0].failed and not kept

    def test_what_is_kept_is_what_is_given(self, encoder):
        """A piece from elsewhere comes out as it was put in."""
        side, kept = encoder().sides["document"], Memory()
        [item] = encode([side], ["the flow"])[0].items
        kept.put(side.keys.vector, {item: Piece(np.full((1, 32), 7, dtype=np.float32))})
        assert (encode([side], ["the flow"], kept)[0].vectors == 7).all()
