"""Labels go by name."""

import pytest

from harness.errors import Misconfigured
from harness.metric.label import match_labels

DATA = ("REFUND", "ORDER", "OTHER")


class TestMatching:
    def test_the_model_s_order_may_differ(self):
        """Each class is read from the column that the model has it in."""
        found = match_labels(DATA, ("OTHER", "REFUND", "ORDER"))
        assert found.classes == DATA
        assert found.columns.tolist() == [1, 2, 0]

    def test_what_only_the_model_knows_is_a_class_without_gold(self):
        """It comes last, and by name: the model may answer it, and is then wrong."""
        found = match_labels(DATA, ("ZEBRA", "OTHER", "APPLE", "REFUND", "ORDER"))
        assert found.classes == (*DATA, "APPLE", "ZEBRA")
        assert found.columns.tolist() == [3, 4, 1, 2, 0]

    def test_a_map_says_which_is_which(self):
        found = match_labels(DATA, ("LABEL_0", "LABEL_1", "LABEL_2"), {
            "LABEL_0": "OTHER", "LABEL_1": "REFUND", "LABEL_2": "ORDER",
        })  # fmt: skip
        assert found.columns.tolist() == [1, 2, 0]


class TestRefusal:
    def test_a_label_that_the_model_lacks(self):
        """Both lists are shown, and the map to write, filled in where only case and blanks differ."""
        with pytest.raises(Misconfigured) as refusal:
            match_labels(DATA, ("refund", "ORDER", "misc"))
        assert refusal.value.exit_code == 2
        assert "the model lacks 'REFUND', 'OTHER'" in refusal.value.found
        assert "data's labels are 'REFUND', 'ORDER', 'OTHER'" in refusal.value.found
        assert "the model's 'refund', 'ORDER', 'misc'" in refusal.value.found
        assert refusal.value.mend.endswith('label_map = { "refund" = "REFUND", "misc" = "?" }')

    def test_letters_that_look_alike_are_told_apart(self):
        """One letter, or a letter and a mark: the map to write has both spellings."""
        with pytest.raises(Misconfigured) as refusal:
            match_labels(("\u00fcbung",), ("u\u0308bung",))
        assert refusal.value.mend.endswith('label_map = { "u\u0308bung" = "\u00fcbung" }')

    @pytest.mark.parametrize("data", [DATA, ("LABEL_0", "LABEL_1", "LABEL_2")])
    def test_generic_names_need_a_map(self, data):
        """LABEL_0 is only a place, even where the data's own labels are called so."""
        with pytest.raises(Misconfigured, match="say nothing"):
            match_labels(data, ("LABEL_0", "LABEL_1", "LABEL_2"))
        match_labels(data, ("LABEL_0", "LABEL_1", "LABEL_2"), {f"LABEL_{i}": name for i, name in enumerate(data)})

    def test_the_map_to_write_is_whole_where_the_data_have_generic_names_too(self):
        """As it stands it says that they mean the same; what else departs is open."""
        with pytest.raises(Misconfigured) as refusal:
            match_labels(("LABEL_0", "LABEL_1", "OTHER"), ("LABEL_1", "LABEL_0", "misc"))
        written = '{ "LABEL_1" = "LABEL_1", "LABEL_0" = "LABEL_0", "misc" = "?" }'
        assert refusal.value.mend.endswith(f"label_map = {written}")

    @pytest.mark.parametrize("strange", [{"REFUNDS": "REFUND"}, {"REFUND": "REFUNDS"}])
    def test_a_map_of_labels_that_are_not_there(self, strange):
        with pytest.raises(Misconfigured, match="'REFUNDS', which neither side"):
            match_labels(DATA, DATA, strange)

    def test_a_label_twice(self):
        """On either side, and after the map."""
        with pytest.raises(Misconfigured, match="'ORDER' more than once"):
            match_labels(("ORDER", "ORDER"), DATA)
        with pytest.raises(Misconfigured, match="'ORDER' more than once"):
            match_labels(DATA, (*DATA, "ORDER"))
        with pytest.raises(Misconfigured, match="'ORDER' more than once"):
            match_labels(DATA, (*DATA, "ORDERS"), {"ORDERS": "ORDER"})
