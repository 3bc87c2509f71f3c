"""The tables beside the metrics: both sides together."""

from harness.output.companion import Companion
from harness.report.beside import is_matrix, joined, paired


def table(name: str, columns: str, *rows: tuple) -> Companion:
    return Companion(name, name.title(), "", tuple(columns.split()), rows)


class TestPaired:
    def test_by_name(self):
        """In the candidate's order, and what the parent alone has behind."""
        found = paired({
            "parent": (table("costs", "a"), table("classes", "a"), table("old", "a")),
            "candidate": (table("classes", "a"), table("costs", "a")),
        })  # fmt: skip
        assert [(each.name, list(each.sides)) for each in found] == [
            ("classes", ["candidate", "parent"]), ("costs", ["candidate", "parent"]), ("old", ["parent"]),
        ]  # fmt: skip

    def test_none(self):
        assert paired({}) == ()


class TestColumns:
    def test_have_the_same_decimals_on_both_sides(self):
        """By the largest number of either; counts have none."""
        [found] = paired({
            "candidate": (table("t", "name n share", ("x", 1200, 0.5)),),
            "parent": (table("t", "name n share", ("x", 7, 123.45678), ("y", 8, None)),),
        })  # fmt: skip
        assert [found.shown("share", cell) for cell in found.cells("share")] == ["0.50", "123.46", "–"]
        assert [found.shown("n", cell) for cell in found.cells("n")] == ["1,200", "7", "8"]
        assert [found.numeric(column) for column in found.columns] == [False, True, True]
        assert found.words == 1

    def test_one_row_of_each_side_can_be_turned_upright(self):
        """Not where a side has more, or other columns."""
        one, two, other = table("t", "a b", (1, 2)), table("t", "a b", (1, 2), (3, 4)), table("t", "a c", (1, 2))
        assert [paired({"candidate": (one,), "parent": (each,)})[0].one_row for each in (one, two, other)] == [
            True, False, False,
        ]  # fmt: skip


class TestMatrix:
    def test_has_its_names_twice(self):
        """In one order; other tables have no diagonal."""
        assert is_matrix(table("confusion", "gold A B", ("A", 1, 2), ("B", 3, 4)))
        assert not is_matrix(table("confusion", "gold A B", ("B", 1, 2), ("A", 3, 4)))
        assert not is_matrix(table("classes", "class f1", ("A", 1.0)))


class TestJoined:
    def test_rows_by_the_words_they_begin_with(self):
        """Whatever their order; what one side lacks is None, and a row that stands twice stands twice."""
        [found] = paired({
            "candidate": (table("pairs", "gold predicted cases", ("A", "B", 3), ("A", "C", 1), ("A", "C", 2)),),
            "parent": (table("pairs", "gold predicted cases", ("A", "C", 5), ("A", "B", 4), ("B", "A", 6)),),
        })  # fmt: skip
        assert [(row.key, row.candidate, row.parent) for row in joined(found)] == [
            (("A", "B"), (3,), (4,)), (("A", "C"), (1,), (5,)), (("A", "C"), (2,), None), (("B", "A"), None, (6,)),
        ]  # fmt: skip

    def test_by_the_first_cell_where_all_are_numbers(self):
        """As of how many labels a case has."""
        [found] = paired({"candidate": (table("sizes", "labels gold", (0, 5), (1, 6)),)})
        assert [(row.key, row.candidate) for row in joined(found)] == [((0,), (5,)), ((1,), (6,))]

    def test_words_alone_keep_their_last_column(self):
        """A key is never all there is."""
        [found] = paired({"candidate": (table("t", "a b", ("x", "y"), ("x", "z")),)})
        assert [(row.key, row.candidate) for row in joined(found)] == [(("x",), ("y",)), (("x",), ("z",))]
