"""A pair that is reported is one, and one above the threshold is reported: held against every pair by brute force."""

import random
import subprocess
import sys

import pytest

from harness.suite.nearness import near, shingles


def jaccard(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    return len(one & other) / len(one | other)


class TestShingles:
    def test_every_run_of_words_within_a_field(self) -> None:
        """No shingle crosses from one field into the next, and a short field is one."""
        assert shingles([("a", "b", "c"), ("d",)], 2) == {("a", "b"), ("b", "c"), ("d",)}
        assert shingles([("a", "b"), ("c", "d")], 2) == shingles([("c", "d"), ("a", "b")], 2)
        assert shingles([(), ()], 2) == frozenset()


class TestNear:
    def test_a_worked_pair(self) -> None:
        """Ten words and an eleventh: 8 of 9 shingles of three are shared."""
        text = tuple("abcdefghij")
        found = near([(text,), ((*text, "k"),)], [0, 1], size=3, threshold=0.8)
        assert [(each.first, each.second, each.similarity) for each in found] == [(0, 1, 8 / 9)]
        assert near([(text,), ((*text, "k"),)], [0, 1], size=3, threshold=0.9) == ()

    @pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.95])
    def test_the_same_pairs_as_by_brute_force(self, threshold: float) -> None:
        """Texts of few words, many of them copies with some words exchanged; none is invented, none is lost."""
        generator = random.Random(7)
        texts: list[tuple[tuple[str, ...], ...]] = []
        for _ in range(120):
            base = [f"w{generator.randrange(60)}" for _ in range(generator.randrange(4, 30))]
            texts.append((tuple(base),))
            for place in generator.sample(range(len(base)), k=generator.randrange(0, 3)):
                base[place] = "other"
            texts.append((tuple(base),))
        sides = [generator.randrange(3) for _ in texts]
        sets = [shingles(each, 2) for each in texts]
        wanted = {
            (i, j)
            for i in range(len(texts))
            for j in range(i + 1, len(texts))
            if sides[i] != sides[j] and jaccard(sets[i], sets[j]) >= threshold
        }
        found = near(texts, sides, size=2, threshold=threshold)
        assert {(each.first, each.second) for each in found} == wanted
        assert all(each.similarity == jaccard(sets[each.first], sets[each.second]) for each in found)

    def test_one_side_has_no_pairs(self) -> None:
        """Within a role nothing leaks."""
        assert near([(("a",),), (("a",),)], [1, 1], size=3, threshold=0.5) == ()

    def test_texts_without_words_are_like_nothing(self) -> None:
        """Two empty texts share no shingle."""
        assert near([((),), ((),)], [0, 1], size=3, threshold=0.1) == ()

    def test_another_process_finds_the_same(self) -> None:
        """Nothing hangs on Python's own hash, which differs from process to process."""
        code = (
            "from harness.suite.nearness import _signatures, shingles;"
            "print(_signatures([shingles([tuple('hello world again'.split())], 2)])[0, :3].tolist())"
        )
        said = {
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
            for env in ({"PYTHONHASHSEED": "1", "PYTHONPATH": "."}, {"PYTHONHASHSEED": "2", "PYTHONPATH": "."})
        }
        assert len(said) == 1
