"""From tags to spans."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval import scheme as seqeval_scheme
from seqeval.metrics.sequence_labeling import get_entities

from harness.errors import Misconfigured
from harness.metric.span import Illegal, Span
from harness.metric.tagging import SCHEMES, read_tags

from .tags import tag_lists, texts, written

many = settings(max_examples=100, deadline=None)


def spans(text, scheme, reading="strict"):
    return [str(span) for span in read_tags(text.split(), scheme, reading).spans]


def illegal(text, scheme):
    return [(bad.position, bad.found, bad.previous, bad.why) for bad in read_tags(text.split(), scheme).illegal]


class TestSchemes:
    @pytest.mark.parametrize("scheme", SCHEMES)
    @pytest.mark.parametrize("reading", ["strict", "conlleval"])
    @many
    @given(text=texts())
    def test_what_a_scheme_writes_is_read_back(self, scheme, reading, text):
        """Under both readings, also entities that touch, and nothing in it is illegal."""
        found, length = text
        read = read_tags(written(found, length, scheme), scheme, reading)
        assert read.spans == tuple(found)
        assert read.illegal == ()

    @pytest.mark.parametrize(
        ("scheme", "text"),
        [
            ("IOB1", "I-A I-A B-A O I-B"),
            ("IOB2", "B-A I-A B-A O B-B"),
            ("IOE1", "I-A E-A I-A O I-B"),
            ("IOE2", "I-A E-A E-A O E-B"),
            ("IOBES", "B-A E-A S-A O S-B"),
            ("BILOU", "B-A L-A U-A O U-B"),
        ],
    )
    def test_one_text_in_every_scheme(self, scheme, text):
        for reading in ("strict", "conlleval"):
            assert spans(text, scheme, reading) == ["A 0:2", "A 2:3", "B 4:5"]

    def test_a_type_is_all_behind_the_first_dash(self):
        assert spans("B-creative-work I-creative-work B-work", "IOB2") == ["creative-work 0:2", "work 2:3"]

    @pytest.mark.parametrize(("scheme", "reading"), [("IOB", "strict"), ("iob2", "strict"), ("IOB2", "lenient")])
    def test_an_unknown_scheme_or_reading_is_refused(self, scheme, reading):
        """It is never quietly another one."""
        with pytest.raises(Misconfigured):
            read_tags(["O"], scheme, reading)


class TestStrictReferee:
    @pytest.mark.parametrize("scheme", SCHEMES)
    @many
    @given(data=st.data())
    def test_seqeval_s_strict_spans_of_any_tags(self, scheme, data):
        """Illegal ones too, but for IOE1 where an E opens: seqeval loses entities that the scheme writes so."""
        tags = data.draw(tag_lists(scheme))
        if scheme == "IOE1":
            for i, tag in enumerate(tags):
                before = tags[i - 1] if i else "O"
                if tag[0] == "E" and (before == "O" or before[1:] != tag[1:]):
                    tags[i] = "I" + tag[1:]
        theirs = seqeval_scheme.Tokens(tags, getattr(seqeval_scheme, scheme)).entities
        assert [(s.start, s.end, s.type) for s in read_tags(tags, scheme).spans] == [
            (each.start, each.end, each.tag) for each in theirs
        ]

    def test_an_entity_of_one_token_before_another_in_ioe1(self):
        assert spans("O E-A I-A O", "IOE1") == ["A 1:2", "A 2:3"]
        assert len(seqeval_scheme.Tokens(["O", "E-A", "I-A", "O"], seqeval_scheme.IOE1).entities) == 1


class TestConllevalReferee:
    @pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES"])
    @many
    @given(data=st.data())
    def test_seqeval_s_default_spans_of_any_tags(self, scheme, data):
        """That mode is conlleval's reading; it knows no L and U. Behind an E, an S or a B it needs no new start."""
        tags = data.draw(tag_lists(scheme))
        theirs = [(start, end + 1, kind) for kind, start, end in get_entities(list(tags))]
        assert [(s.start, s.end, s.type) for s in read_tags(tags, scheme, "conlleval").spans] == theirs

    def test_bilou_reads_as_iobes(self):
        for text in ("I-A L-A I-A", "L-A L-A", "B-A U-A I-A", "U-A I-A O L-A"):
            twin = text.replace("L-", "E-").replace("U-", "S-")
            assert spans(text, "BILOU", "conlleval") == spans(twin, "IOBES", "conlleval")

    def test_an_inside_tag_may_open(self):
        assert spans("O I-A I-A I-B", "IOB2", "conlleval") == ["A 1:3", "B 3:4"]
        assert spans("O I-A I-A I-B", "IOB2") == []


class TestIllegal:
    @pytest.mark.parametrize(
        ("scheme", "text", "expected"),
        [
            ("IOB2", "O I-A I-A O", [(1, "I-A", "O", "cannot-start")]),
            ("IOB2", "I-A", [(0, "I-A", None, "cannot-start")]),
            ("IOB2", "B-A I-B I-B", [(1, "I-B", "B-A", "cannot-start")]),
            ("IOB1", "O B-A I-A", [(1, "B-A", "O", "cannot-start")]),
            ("IOB1", "I-A B-B", [(1, "B-B", "I-A", "cannot-start")]),
            ("IOE1", "I-A E-A O", [(2, "O", "E-A", "cannot-end")]),
            ("IOE1", "E-A I-B", [(1, "I-B", "E-A", "cannot-end")]),
            ("IOE2", "I-A I-A O", [(2, "O", "I-A", "cannot-end")]),
            ("IOE2", "I-A", [(1, None, "I-A", "cannot-end")]),
            ("IOBES", "B-A O E-A", [(1, "O", "B-A", "cannot-end"), (2, "E-A", "O", "cannot-start")]),
            ("IOBES", "B-A S-A", [(1, "S-A", "B-A", "cannot-end")]),
            ("IOBES", "S-A I-A E-A", [(1, "I-A", "S-A", "cannot-start")]),
            ("BILOU", "B-A L-B", [(1, "L-B", "B-A", "cannot-start")]),
        ],
    )
    def test_each_break_is_located_once(self, scheme, text, expected):
        assert illegal(text, scheme) == expected

    @pytest.mark.parametrize("bad", ["B", "B-", "B- ", "-A", "X-A", "BI-A", "E-A", "b-A", "o", "", "B_A", "A-B"])
    @pytest.mark.parametrize("reading", ["strict", "conlleval"])
    def test_what_is_no_tag_counts_as_o(self, bad, reading):
        """Also one of another scheme, or none at all; what goes on behind it has lost its start."""
        read = read_tags(["B-A", bad, "I-A"], "IOB2", reading)
        why = "malformed" if bad else "lacking"
        assert read.spans[0] == Span(0, 1, "A")
        assert read.illegal == (Illegal(1, bad, "B-A", why), Illegal(2, "I-A", bad, "cannot-start"))

    @pytest.mark.parametrize("scheme", SCHEMES)
    @many
    @given(data=st.data())
    def test_legal_tags_are_those_that_the_scheme_writes(self, scheme, data):
        """Without an illegal place both readings agree, and writing the spans again gives the same tags."""
        tags = data.draw(tag_lists(scheme))
        strict = read_tags(tags, scheme)
        if not strict.illegal:
            assert read_tags(tags, scheme, "conlleval").spans == strict.spans
        assert (written(strict.spans, len(tags), scheme) == tags) == (not strict.illegal)


class TestNames:
    def test_a_map_renames_types_and_places_keep_what_was_written(self):
        read = read_tags(["B-PERSON", "I-PER", "I-LOC"], "IOB2", label_map={"PERSON": "PER"})
        assert read.spans == (Span(0, 2, "PER"),)
        assert read.illegal == (Illegal(2, "I-LOC", "I-PER", "cannot-start"),)
