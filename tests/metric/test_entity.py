"""Entities: typed spans."""

import json
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval import metrics as seqeval
from seqeval import scheme as seqeval_scheme

from harness.compare.form import statistic
from harness.compare.statistic import Paired
from harness.errors import EmptySlice, Misconfigured
from harness.metric.entity import contribution
from harness.metric.entity_table import cut_offs, entity_errors, illegal_table, readings, type_table
from harness.metric.form import Policy
from harness.metric.name import parse
from harness.metric.span import Illegal, Span
from harness.metric.tagged import spanned, tagged, with_types
from harness.output.case import OutputStatus
from harness.output.value import Status

from .outputs import ids, ok
from .tags import texts, written

TYPES = ("PER", "LOC")
AVERAGED = [f"entity_{base}_{how}" for base in ("f1", "precision", "recall") for how in ("macro", "weighted")]
MICRO = ["entity_f1", "entity_precision", "entity_recall"]


def read(gold, predicted, types=TYPES, status=None, scheme="IOB2", **rest):
    """Tags as words."""
    gold, predicted = ([None if text is None else text.split() for text in side] for side in (gold, predicted))
    return tagged(
        ids(len(gold)), gold, types, predicted, ok(len(gold)) if status is None else status, scheme=scheme, **rest
    )


def take(gold, predicted, types=("A", "B"), n=12, **rest):
    """One case of spans, each written `TYPE start:end`."""
    sides = [[[Span(int(a), int(b), t) for t, a, b in re.findall(r"(\w+) (\d+):(\d+)", side)]]
             for side in (gold, predicted)]  # fmt: skip
    return spanned(ids(1), sides[0], types, sides[1], ok(1), lengths=np.array([n]), **rest)


def value(name, outputs, policy=None):
    return statistic(contribution(parse(name), outputs, policy)).value()


@pytest.fixture(scope="module")
def emerging(shared_data):
    """A real system's tags of 1,287 short texts, read both ways; and the folder."""
    folder = shared_data("wnut17")
    blocks = (folder / "mic-cis.gold_pred.tsv").read_text().strip().split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n")] for block in blocks]
    gold, predicted = ([[row[column] for row in text] for text in rows] for column in (1, 2))
    types = sorted({tag[2:] for tags in gold for tag in tags} - {""})
    n = len(rows)
    strict, lenient = (
        tagged(ids(n), gold, types, predicted, ok(n), scheme="IOB2", reading=reading)
        for reading in ("strict", "conlleval")
    )
    return strict, lenient, folder


class TestByHand:
    OUTPUTS = read(["B-PER I-PER O B-LOC", "O B-LOC I-LOC O", "O O"], ["B-PER I-PER O O", "O B-LOC O B-PER", "O O"])

    def test_micro_is_over_spans(self):
        """One of three gold spans is found, by one of three predictions."""
        assert [value(name, self.OUTPUTS) for name in MICRO] == pytest.approx([1 / 3] * 3, abs=1e-15)

    def test_one_type(self):
        """PER: one gold, two predicted, one right. LOC: two gold, one predicted, none right."""
        assert value("entity_precision[PER]", self.OUTPUTS) == 1 / 2
        assert value("entity_recall[PER]", self.OUTPUTS) == 1
        assert value("entity_f1[PER]", self.OUTPUTS) == 2 / 3
        assert value("entity_f1[LOC]", self.OUTPUTS) == 0

    def test_averages_over_types(self):
        assert value("entity_f1_macro", self.OUTPUTS) == pytest.approx(1 / 3, abs=1e-15)
        assert value("entity_f1_weighted", self.OUTPUTS) == pytest.approx(2 / 3 * 1 / 3, abs=1e-15)

    def test_a_case_without_entities_adds_nothing_and_is_right(self):
        """It leaves the span metrics as they are, and its tokens count."""
        assert contribution(parse("entity_f1"), self.OUTPUTS).rows.tolist() == [[1, 1, 2], [0, 2, 1], [0, 0, 0]]
        assert self.OUTPUTS.right.tolist() == [False, False, True]
        assert value("sequence_accuracy", self.OUTPUTS) == 1 / 3
        assert value("token_accuracy", self.OUTPUTS) == (3 + 2 + 2) / 10

    def test_illegal_sequences_are_a_mean_over_cases(self):
        outputs = read(["O O O", "O", "B-PER"], ["I-PER O I-PER", "O", "B"])
        assert contribution(parse("illegal_sequences"), outputs).values.tolist() == [2, 0, 1]
        assert value("illegal_sequences", outputs) == 1

    def test_a_malformed_tag_is_not_the_o_that_it_counts_as(self):
        """It makes no entity, and is no right token either."""
        outputs = read(["O O"], ["O X-PER"])
        assert (outputs.predicted, value("token_accuracy", outputs)) == (((),), 0.5)


class TestCredits:
    @pytest.mark.parametrize(
        ("gold", "predicted", "partial", "of_type", "boundary"),
        [
            ("A 0:2", "A 0:2", 1, 1, 1),
            ("A 0:2", "B 0:2", 1, 0, 1),
            ("A 1:3", "A 0:3", 0.5, 1, 0),
            ("A 1:3", "B 0:3", 0.5, 0, 0),
            ("A 0:2", "A 2:4", 0, 0, 0),
            ("A 0:2", "", 0, 0, 0),
            ("", "A 0:2", 0, 0, 0),
        ],
    )
    def test_the_scenarios(self, gold, predicted, partial, of_type, boundary):
        """nervaluate's README: what one gold and one predicted span are worth."""
        outputs = take(gold, predicted)
        for how, credit in (("partial", partial), ("type", of_type), ("boundary", boundary)):
            row = contribution(parse(f"entity_{how}_f1"), outputs).rows[0].tolist()
            assert row == [credit, int(bool(predicted)), int(bool(gold))]

    def test_all_scenarios_together(self):
        """The README's sums: 3 right of 6 by type, 3 and two halves by overlap, 3 by boundary, 2 strictly."""
        gold = "A 0:1 A 2:3 A 4:5 A 7:8 A 10:11 A 13:14"
        predicted = "A 0:1 A 2:3 B 4:5 A 6:8 B 9:11 A 15:16"
        outputs = take(gold, predicted, n=16)
        assert value("entity_type_f1", outputs) == 3 / 6
        assert value("entity_partial_f1", outputs) == (3 + 2 / 2) / 6
        assert value("entity_boundary_f1", outputs) == 3 / 6
        assert value("entity_f1", outputs) == 2 / 6

    def test_one_span_stands_for_one(self):
        """A prediction over two gold spans is half of one of them; the other is missed."""
        outputs = take("A 0:2 A 2:4", "A 0:4")
        assert value("entity_partial_f1", outputs) == pytest.approx(2 * 0.5 / 3)
        assert value("entity_type_f1", outputs) == pytest.approx(2 * 1 / 3)

    def test_a_span_of_the_right_type_is_taken_before_its_neighbour(self):
        """The prediction over both takes the second gold span, for the first is another's."""
        assert value("entity_type_f1", take("B 0:2 A 2:4", "A 0:3 B 0:1")) == 1

    def test_nested_spans(self):
        """An entity in another, both right, and one of two types at one place."""
        assert value("entity_f1", take("A 0:5 B 1:2", "B 1:2 A 0:5")) == 1
        outputs = take("A 0:5 B 0:5", "A 0:5 B 1:5")
        assert contribution(parse("entity_boundary_f1"), outputs).rows[0].tolist() == [1, 2, 2]
        assert contribution(parse("entity_partial_f1"), outputs).rows[0].tolist() == [1.5, 2, 2]


class TestReferee:
    @pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE2", "IOBES", "BILOU"])
    @settings(max_examples=25, deadline=None)
    @given(data=st.data())
    def test_seqeval_s_strict_figures(self, scheme, data):
        """Every average, over the types that gold or prediction have; outputs break the scheme as they like."""
        prefixes = {"BILOU": "BILU", "IOBES": "BIES"}.get(scheme, "I" + scheme[2])
        types = ("PER", "creative-work", "extra")
        tags = st.sampled_from(["O", *(f"{p}-{t}" for p in prefixes for t in types)])
        gold = [written(*text, scheme) for text in data.draw(st.lists(texts(), min_size=1, max_size=5))]
        outputs = [data.draw(st.lists(tags, min_size=len(each), max_size=len(each))) for each in gold]
        ours = tagged(ids(len(gold)), gold, types[:2], outputs, ok(len(gold)), scheme=scheme)
        found = contribution(parse("entity_f1"), ours)
        if not found.scored.any():
            assert set(found.status) == {Status.UNDEFINED}
            return
        how = {"mode": "strict", "scheme": getattr(seqeval_scheme, scheme), "zero_division": 0}
        for average, ending in (("micro", ""), ("macro", "_macro"), ("weighted", "_weighted")):
            for base in ("f1", "precision", "recall"):
                name = parse(f"entity_{base}{ending}")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = getattr(seqeval, f"{base}_score")(gold, outputs, average=average, **how)
                held = contribution(name, ours)
                if ending == "_weighted" and not held.scored.any():
                    assert expected == 0  # without gold there is no weight; seqeval says 0
                else:
                    assert statistic(held).value() == pytest.approx(expected, abs=1e-12)

    def test_conlleval_s_printed_figures(self, emerging):
        """Within the digits that it prints: all, and by type."""
        _, outputs, folder = emerging
        head, overall, *lines = (folder / "mic-cis.conlleval.txt").read_text().strip().splitlines()
        side = readings(*emerging[:2]).conlleval
        assert [int(number) for number in re.findall(r"\d+", head)] == [
            outputs.lengths.sum(),
            side.gold,
            side.predicted,
            side.right,
        ]
        names = ["token_accuracy", "entity_precision", "entity_recall", "entity_f1"]
        printed = [float(number) for number in re.findall(r"\d+\.\d+", overall)]
        assert [100 * value(name, outputs) for name in names] == pytest.approx(printed, abs=0.005 + 1e-9)
        table = {row.name: row for row in type_table(outputs).rows}
        assert len(lines) == len(table) == 6
        for line in lines:
            name, numbers = line.split(":", 1)
            precision, recall, f1, predicted = (float(number) for number in re.findall(r" (\d[\d.]*)", numbers))
            row = table[name.strip()]
            assert row.predicted == predicted
            assert [100 * row.precision, 100 * row.recall, 100 * row.f1] == pytest.approx(
                [precision, recall, f1], abs=0.005 + 1e-9
            )

    def test_seqeval_s_stored_figures(self, emerging):
        """Its default mode is conlleval's reading; 13 tags open what they may not, and are predictions only there."""
        strict, lenient, folder = emerging
        expected = json.loads((folder / "ner_wnut17_mic-cis_seqeval.json").read_text())
        for outputs, key in ((lenient, "seqeval_default_micro"), (strict, "seqeval_strict_IOB2_micro")):
            found = [value(name, outputs) for name in ("entity_precision", "entity_recall", "entity_f1")]
            assert found == pytest.approx(expected[key], abs=1e-12)
        assert value("entity_f1_macro", lenient) == pytest.approx(expected["seqeval_default_macro_f1"], abs=1e-12)
        assert value("entity_f1_weighted", lenient) == pytest.approx(expected["seqeval_weighted_f1"], abs=1e-12)
        for name, figures in expected["per_type_default"].items():
            if not name.endswith("avg"):
                assert value(f"entity_f1[{name}]", lenient) == pytest.approx(figures["f1-score"], abs=1e-12)
        table = illegal_table(strict)
        assert (table.n_output, table.n_gold) == (expected["I_without_start_in_pred"], 0)
        assert readings(strict, lenient).conlleval.predicted - readings(strict, lenient).strict.predicted == 13


class TestStatuses:
    def test_why_a_case_has_no_value(self):
        """What the data decide comes first; more tags than tokens have failed, with the reason."""
        status = ok(7)
        status[[1, 2, 3]] = OutputStatus.MISSING, OutputStatus.FAILED, OutputStatus.MISSING
        outputs = read(
            ["B-PER O", "B-PER", "B-PER", None, "B-PER O", "B-PER", None],
            ["B-PER O", None, "B-PER", None, "B-PER O O", None, "B-PER B-PER"],
            status=status,
        )
        assert list(outputs.status) == [
            Status.SCORED, Status.MISSING, Status.FAILED, Status.NOT_APPLICABLE, Status.FAILED, Status.FAILED,
            Status.NOT_APPLICABLE,
        ]  # fmt: skip
        assert outputs.reason.tolist() == ["", "", "", "", "3 tags for 2 tokens", "", ""]
        for name in ("entity_f1", "entity_f1_macro", "token_accuracy", "illegal_sequences"):
            found = contribution(parse(name), outputs)
            assert found.scored.tolist() == [True, *[False] * 6]
        assert value("entity_f1", outputs) == value("token_accuracy", outputs) == 1

    @pytest.mark.parametrize("name", [*MICRO, *AVERAGED, "entity_partial_f1", "entity_type_f1", "entity_boundary_f1"])
    def test_no_span_anywhere_is_undefined(self, name):
        """It is neither 0 nor 1, unless a policy says so."""
        outputs = read(["O O", "O"], ["O O", "O"])
        found = contribution(parse(name), outputs)
        assert set(found.status) == {Status.UNDEFINED}
        with pytest.raises(EmptySlice):
            statistic(found)
        assert outputs.right.all()
        assert value("entity_f1", outputs, Policy(absent="one")) == 1

    def test_spans_on_one_side_alone_are_wrong(self):
        assert value("entity_f1", read(["B-PER"], ["O"])) == 0
        assert value("entity_precision", read(["B-PER"], ["O"])) == 0
        assert value("entity_recall", read(["O"], ["B-PER"])) == 0

    @pytest.mark.parametrize("base", MICRO)
    def test_a_type_that_nobody_has_is_undefined_and_an_unknown_one_refused(self, base):
        outputs = read(["B-PER"], ["B-PER"])
        assert set(contribution(parse(f"{base}[LOC]"), outputs).status) == {Status.UNDEFINED}
        with pytest.raises(Misconfigured, match=r"no class 'ORG'"):
            contribution(parse(f"{base}[ORG]"), outputs)

    def test_a_type_that_is_never_predicted_has_no_precision(self):
        """0/0 of one type is no number; over all types it is 0, as in the averages."""
        outputs = read(["B-PER B-LOC"], ["B-PER O"])
        assert set(contribution(parse("entity_precision[LOC]"), outputs).status) == {Status.UNDEFINED}
        assert value("entity_recall[LOC]", outputs) == value("entity_f1[LOC]", outputs) == 0
        assert value("entity_precision_macro", outputs) == 1 / 2

    def test_no_tokens_have_no_accuracy(self):
        outputs = read([""], [""])
        assert set(contribution(parse("token_accuracy"), outputs).status) == {Status.UNDEFINED}

    def test_spans_have_no_token_accuracy(self):
        with pytest.raises(Misconfigured, match="one tag per token"):
            value("token_accuracy", take("A 0:1", "A 0:1"))


class TestTruncation:
    def test_a_missing_tail_is_o_and_its_entities_are_lost(self):
        """Two of three gold spans reach behind the two tags that are there; the last one is wholly behind them."""
        outputs = read(["B-PER B-LOC I-LOC B-PER O"], ["B-PER B-LOC"])
        assert outputs.short.tolist() == [True]
        assert outputs.predicted == ((Span(0, 1, "PER"), Span(1, 2, "LOC")),)
        assert value("entity_recall", outputs) == 1 / 3
        assert value("token_accuracy", outputs) == 3 / 5
        lost = cut_offs(outputs)
        assert [(str(row.gold), row.read_to, row.length) for row in lost.rows] == [("LOC 1:3", 2, 5), ("PER 3:4", 2, 5)]
        assert (lost.n_gold, lost.n_short) == (3, 1)
        assert [(error.kind, error.cut_off) for error in entity_errors(outputs).errors] == [
            ("wrong-boundary", True), ("missed", True),
        ]  # fmt: skip

    def test_an_entity_that_ends_with_the_last_tag_is_not_lost(self):
        outputs = read(["B-PER I-PER O"], ["B-PER I-PER"])
        assert (cut_offs(outputs).rows, cut_offs(outputs).n_short) == ((), 1)
        assert not read(["B-PER I-PER O"], ["B-PER I-PER O"]).short.any()
        assert value("entity_f1", outputs) == 1

    def test_an_output_without_tags_is_all_o(self):
        outputs = read(["O B-PER"], [""])
        assert (outputs.short.tolist(), value("token_accuracy", outputs)) == ([True], 0.5)

    def test_spans_say_how_far_was_read(self):
        """In their own unit; a case that nobody answered lost nothing to truncation."""
        outputs = spanned(
            ids(2), [[Span(0, 5, "A"), Span(40, 45, "A")]] * 2, ("A",), [[Span(0, 5, "A")], None],
            np.array([OutputStatus.OK, OutputStatus.MISSING], dtype=object),
            lengths=np.array([50, 50]), read_to=np.array([42, 42]),
        )  # fmt: skip
        assert [(row.case_id, str(row.gold)) for row in cut_offs(outputs).rows] == [("case-0", "A 40:45")]
        assert value("entity_recall", outputs) == 1 / 2

    @pytest.mark.parametrize("end", [-1, 13])
    def test_an_end_that_is_not_within_the_source(self, end):
        with pytest.raises(Misconfigured, match=r"what was read of case 'case-0'"):
            take("A 0:1", "A 0:1", read_to=np.array([end]))


class TestGoldMustBeSound:
    @pytest.mark.parametrize("bad", ["B", "B-", "X-PER", "E-PER", "o"])
    @pytest.mark.parametrize("reading", ["strict", "conlleval"])
    def test_a_malformed_tag(self, bad, reading):
        """It is the data's error, whatever the reading."""
        with pytest.raises(Misconfigured, match=rf"case 'case-1': '{bad}' at token 1 behind 'O' \(malformed\)"):
            read(["O", f"O {bad}"], ["O", "O O"], reading=reading)

    def test_an_illegal_sequence_would_lose_entities(self):
        """So a strict reading refuses it; conlleval's reads and counts it."""
        with pytest.raises(Misconfigured, match="'I-PER' at token 1 behind 'O'") as refusal:
            read(["O I-PER"], ["O I-PER"])
        assert "conlleval" in refusal.value.mend
        outputs = read(["O I-PER"], ["O I-PER"], reading="conlleval")
        assert value("entity_f1", outputs) == 1
        assert (illegal_table(outputs).n_gold, illegal_table(outputs).n_output) == (1, 1)

    def test_a_type_that_is_not_declared(self):
        with pytest.raises(Misconfigured, match=r"gold spans of case 'case-0': no class 'ORG'"):
            read(["B-ORG"], ["B-ORG"])

    @pytest.mark.parametrize("bad", ["A 3:3", "A 4:3", "A 0:13", "A 1:2 A 1:2"])
    def test_a_span_that_is_none(self, bad):
        with pytest.raises(Misconfigured, match="gold spans of case 'case-0'"):
            take(bad, "")
        outputs = take("A 0:1 A 1:2", bad)
        assert len(outputs.illegal[0]) == 1

    def test_a_map_to_a_type_that_is_not_there(self):
        with pytest.raises(Misconfigured, match="label_map"):
            read(["O"], ["O"], label_map={"PERSON": "ORG"})


class TestNames:
    def test_a_map_says_which_type_is_which(self):
        """Also for tokens."""
        outputs = read(["B-PER I-PER O"], ["B-PERSON I-PERSON O"], label_map={"PERSON": "PER"})
        assert value("entity_f1", outputs) == value("token_accuracy", outputs) == 1
        assert outputs.own == ()
        assert value("entity_f1", take("A 0:1", "X 0:1", label_map={"X": "A"})) == 1

    def test_a_type_of_the_model_alone_has_no_gold(self):
        """It stands behind the declared ones by name, and is in the macro mean as 0."""
        outputs = read(["B-PER O O"], ["B-PER B-ZOO B-GPE"])
        assert outputs.types == ("PER", "LOC", "GPE", "ZOO")
        assert value("entity_f1_macro", outputs) == pytest.approx(1 / 3)
        assert value("entity_f1_weighted", outputs) == 1


class TestCompanions:
    def test_types(self):
        """Support, predicted, right; a type that only the model has keeps support 0."""
        outputs = read(["B-PER O", "B-PER B-LOC"], ["B-PER B-GPE", "B-LOC B-LOC"])
        table = type_table(outputs)
        assert [(row.name, row.support, row.predicted, row.right) for row in table.rows] == [
            ("PER", 2, 1, 1), ("LOC", 1, 2, 1), ("GPE", 0, 1, 0),
        ]  # fmt: skip
        assert [row.precision for row in table.rows] == [1, 1 / 2, 0]
        assert [row.recall for row in table.rows] == [1 / 2, 1, 0]

    def test_cases_without_an_output_are_in_no_table(self):
        """They are counted as missing or failed, not as wrong."""
        outputs = read(["B-PER", "B-LOC"], ["B-PER", None], status=np.array([OutputStatus.OK, OutputStatus.MISSING]))
        assert [row.support for row in type_table(outputs).rows] == [1, 0]
        assert (entity_errors(outputs).right, entity_errors(outputs).errors) == (1, ())
        assert readings(outputs, outputs).strict.gold == cut_offs(outputs).n_gold == 1

    def test_every_span_is_right_or_one_kind_of_wrong(self):
        """The mildest kind that fits, each span once."""
        gold = "A 0:1 A 2:3 A 4:6 A 7:9 A 10:11"
        predicted = "A 0:1 B 2:3 A 5:6 B 7:8 A 9:10"
        found = entity_errors(take(gold, predicted))
        assert found.right == 1
        assert [(e.kind, str(e.gold), str(e.predicted)) for e in found.errors] == [
            ("wrong-type", "A 2:3", "B 2:3"), ("wrong-boundary", "A 4:6", "A 5:6"), ("both", "A 7:9", "B 7:8"),
            ("spurious", "None", "A 9:10"), ("missed", "A 10:11", "None"),
        ]  # fmt: skip
        assert found.count("missed") == 1
        assert not any(error.cut_off for error in found.errors)

    @settings(max_examples=60, deadline=None)
    @given(gold=texts(), predicted=texts())
    def test_no_span_is_counted_twice(self, gold, predicted):
        types = ("PER", "creative-work")
        outputs = spanned(ids(1), [gold[0]], types, [predicted[0]], ok(1), lengths=np.array([40]))
        found = entity_errors(outputs)
        held = [error for error in found.errors if error.gold]
        given_ = [error for error in found.errors if error.predicted]
        assert found.right + len(held) == len(gold[0])
        assert found.right + len(given_) == len(predicted[0])

    def test_illegal_places(self):
        """By case, with what stood there and before it; a case without an output has none."""
        status = ok(3)
        status[2] = OutputStatus.FAILED
        outputs = read(["O O", "B-PER O", "O"], ["O I-PER", "B-PER O", "I-PER"], status=status)
        table = illegal_table(outputs)
        assert [(row.case_id, row.side, row.place) for row in table.rows] == [
            ("case-0", "output", Illegal(1, "I-PER", "O", "cannot-start"))
        ]
        assert (table.n_output, table.n_cases) == (1, 1)

    def test_both_readings_side_by_side(self):
        """Strictly one of one prediction is right; conlleval reads a second one, and it is right too."""
        gold, predicted = ["B-PER O B-LOC", "B-LOC"], ["B-PER O I-LOC", "O"]
        found = readings(read(gold, predicted), read(gold, predicted, reading="conlleval"))
        assert (found.strict.right, found.strict.predicted, found.strict.gold) == (1, 1, 3)
        assert (found.conlleval.right, found.conlleval.predicted, found.conlleval.gold) == (2, 2, 3)
        assert (found.strict.f1, found.conlleval.f1) == (2 / 4, 4 / 5)

    def test_readings_of_other_cases_are_refused(self):
        with pytest.raises(Misconfigured, match="two readings"):
            readings(read(["O"], ["O"]), read(["O", "O"], ["O", "O"], reading="conlleval"))


class TestCompared:
    def test_sides_with_types_of_their_own_can_be_exchanged(self):
        """The macro F1 of two sides that have swapped a case, as of the sides read anew."""
        gold = ["B-PER", "B-LOC", "B-PER"]
        answers = (["B-PER", "B-GPE", "O"], ["B-LOC", "B-ZOO", "B-PER"])
        mixed = (["B-PER", "B-ZOO", "O"], ["B-LOC", "B-GPE", "B-PER"])
        sides = [read(gold, side) for side in answers]
        sides = [with_types(side, other.types) for side, other in zip(sides, reversed(sides), strict=True)]
        assert sides[0].types == sides[1].types == ("PER", "LOC", "GPE", "ZOO")
        pair = Paired(*(statistic(contribution(parse("entity_f1_macro"), side)) for side in sides))
        first, second = (value("entity_f1_macro", read(gold, side)) for side in mixed)
        assert pair.swapped(np.array([[False, True, False]])) == pytest.approx([first - second], abs=1e-12)
