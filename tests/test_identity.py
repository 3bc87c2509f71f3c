"""Equal content has one byte form and one digest; what JSON cannot say has none."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from harness.identity import BLOCK, canonical_json, digest, file_digest, text_digest


class TestCanonicalJson:
    def test_the_example_of_the_standard(self) -> None:
        """RFC 8785, section 3.2.2: numbers as ECMAScript prints them, escapes only where JSON must."""
        numbers = [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001]
        value = {"numbers": numbers, "string": '€$\u000f\u000aA\'B"\\\\"/', "literals": [None, True, False]}
        expected = (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        )
        assert canonical_json(value) == expected.encode()

    def test_keys_stand_by_utf16_units(self) -> None:
        """RFC 8785, section 3.2.3: an emoji (surrogates D83D…) stands before U+FB33, though its code point is above."""
        keys = "€", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "ö"
        expected = '{"\\r":1,"1":3,"\u0080":5,"ö":6,"€":0,"\U0001f600":4,"\ufb33":2}'
        assert canonical_json({key: number for number, key in enumerate(keys)}).decode() == expected

    @pytest.mark.parametrize(
        ("one", "other"),
        [({"a": 1, "b": 2}, {"b": 2, "a": 1}), (1, 1.0), (0.0, -0.0), ((1, 2), [1, 2]), (np.float64(0.1), 0.1)],
    )
    def test_equal_values_are_equal_bytes(self, one: object, other: object) -> None:
        """Neither the order of keys nor Python's types are part of what is said."""
        assert digest(one) == digest(other)

    @pytest.mark.parametrize(
        ("one", "other"), [("é", "e\u0301"), (1, "1"), (True, 1), (None, ""), ([[1], 2], [1, [2]]), ({}, [])]
    )
    def test_unequal_values_are_not(self, one: object, other: object) -> None:
        """Text is not normalised, types of JSON are kept, nesting too."""
        assert digest(one) != digest(other)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2**53, -(2**53), "\ud800", {1: 2}])
    def test_what_json_cannot_say_is_refused(self, value: object) -> None:
        """Also deep inside another value."""
        with pytest.raises(ValueError):
            canonical_json(value)
        with pytest.raises(ValueError):
            canonical_json([{"a": value}])

    def test_the_largest_integer(self) -> None:
        """2**53 - 1, on both sides of 0."""
        assert canonical_json([2**53 - 1, 1 - 2**53]) == b"[9007199254740991,-9007199254740991]"


class TestDigests:
    def test_known_digests(self) -> None:
        """SHA-256 of `abc` (FIPS 180-2) and of the two bytes `{}`."""
        abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        assert text_digest("abc") == abc
        assert digest({}) == hashlib.sha256(b"{}").hexdigest()

    def test_text_is_utf8(self) -> None:
        """U+00E9 is C3 A9."""
        assert text_digest("é") == hashlib.sha256(b"\xc3\xa9").hexdigest()

    @pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
    def test_a_file_is_its_bytes_whatever_the_blocks(self, tmp_path: Path, size: int) -> None:
        """Around the edges of a block."""
        content = bytes(range(256)) * (size // 256 + 1)
        path = tmp_path / "file"
        path.write_bytes(content[:size])
        assert file_digest(path) == hashlib.sha256(content[:size]).hexdigest()

    def test_a_file_is_not_its_name(self, tmp_path: Path) -> None:
        """Copied elsewhere it is the same; one bit changed it is not."""
        paths = [tmp_path / name for name in "abc"]
        for path, content in zip(paths, [b"x\n", b"x\n", b"x\r\n"], strict=True):
            path.write_bytes(content)
        one, copied, changed = map(file_digest, paths)
        assert one == copied != changed
