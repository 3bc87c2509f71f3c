"""Diagrams of the tables that stand beside measures of calibration, both sides in one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.output.companion import Cell, Companion
from harness.report import number
from harness.report.beside import Beside
from harness.report.figure import FAINT, INK, RULE, as_svg, canvas, defaults, plain, put

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HUES = {"candidate": INK, "parent": FAINT}
MARKERS = {"candidate": "o", "parent": "s"}
LINES = {"candidate": "-", "parent": (0, (4, 2))}
"""Shape and line say the side too."""


@defaults("harness-reliability")
def reliability(pair: Beside) -> str:
    """What was said against what came true, by bin, and below how many forecasts each bin has."""
    figure = canvas(330, 390)
    axes = figure.add_axes((56 / 330, 140 / 390, 250 / 330, 220 / 390))
    axes.plot([0, 1], [0, 1], color=RULE, lw=1, ls=(0, (2, 2)), zorder=1)
    counts = figure.add_axes((56 / 330, 48 / 390, 250 / 330, 56 / 390))
    for side, table in pair.sides.items():
        points = [
            (x, y) for x, y in zip(_column(table, "said"), _column(table, "came true"), strict=True) if x is not None
        ]
        _line(axes, side, [float(x or 0) for x, _ in points], [float(y or 0) for _, y in points])
        edges = [float(each or 0) for each in _column(table, "above")]
        tall = [float(each or 0) for each in _column(table, "forecasts")]
        ends = [float(each or 0) for each in _column(table, "to")]
        wide = [(end - edge) / len(pair.sides) for edge, end in zip(edges, ends, strict=True)]
        left = [edge + width * list(pair.sides).index(side) for edge, width in zip(edges, wide, strict=True)]
        counts.bar(left, tall, width=wide, align="edge", color=HUES[side], lw=0)
    top = max(float(each or 0) for table in pair.sides.values() for each in _column(table, "forecasts"))
    axes.set(xlim=(0, 1), ylim=(0, 1), yticks=[0, 0.5, 1], xticks=[])
    counts.set(xlim=(0, 1), ylim=(0, 1.1 * top), yticks=[0, top])
    for each in (axes, counts):
        plain(each)
    axes.set_xticks([])
    texts: list[str] = []
    put(figure, texts, (56 / 330, 376 / 390), "came true", ha="left", color=FAINT)
    put(figure, texts, (56 / 330, 118 / 390), "forecasts", ha="left", color=FAINT)
    put(figure, texts, (181 / 330, 10 / 390), "said", ha="center", color=FAINT)
    _legend(figure, texts, pair, 376 / 390)
    described = "; ".join(f"{side}: {_bins_in_words(table)}" for side, table in pair.sides.items())
    return as_svg(figure, "reliability", texts, "Reliability by bin of what was said, with counts", described)


def _bins_in_words(table: Companion) -> str:
    names = ("above", "forecasts", "said", "came true")
    rows = zip(*(_column(table, name) for name in names), strict=True)
    return ", ".join(
        f"above {number.value(above)} {number.count(int(count))} forecasts, said {number.value(said)}, "
        f"came true {number.value(true)}"
        for above, count, said, true in rows
        if count
    )


@defaults("harness-coverage")
def coverage(pair: Beside) -> str:
    """The share of wrong answers where only the surest cases are answered."""
    figure = canvas(330, 260)
    axes = figure.add_axes((56 / 330, 48 / 260, 250 / 330, 180 / 260))
    top = max(float(each or 0) for table in pair.sides.values() for each in _column(table, "risk"))
    for side, table in pair.sides.items():
        _line(axes, side, *([float(each or 0) for each in _column(table, name)] for name in ("coverage", "risk")))
    axes.set(xlim=(0, 1.02), ylim=(0, 1.1 * top or 1), yticks=sorted({0, round(top, 3)}))
    plain(axes)
    texts: list[str] = []
    put(figure, texts, (56 / 330, 246 / 260), "risk", ha="left", color=FAINT)
    put(figure, texts, (181 / 330, 10 / 260), "coverage: share answered", ha="center", color=FAINT)
    _legend(figure, texts, pair, 246 / 260)
    described = "; ".join(
        f"{side}: " + ", ".join(
            f"at coverage {number.value(float(row[0] or 0))} risk {number.value(float(row[3] or 0))}"
            for row in _numbers(table)
        )
        for side, table in pair.sides.items()
    )  # fmt: skip
    return as_svg(figure, "coverage", texts, "Risk against coverage, the surest cases first", described)


DIAGRAMS: dict[str, Callable[[Beside], str]] = {"reliability": reliability, "coverage": coverage}
"""By the name of the table that one is drawn of."""


def _line(axes: "Axes", side: str, x: list[float], y: list[float]) -> None:
    axes.plot(
        x, y, color=HUES[side], marker=MARKERS[side], ms=5, mec="#ffffff", mew=0.6, lw=1.4, ls=LINES[side],
        zorder=3 if side == "candidate" else 2, clip_on=False,
    )  # fmt: skip


def _legend(figure: "Figure", texts: list[str], pair: Beside, height: float) -> None:
    signs = {"candidate": "● candidate", "parent": "■ parent"}
    for at, side in zip((230 / 330, 306 / 330), pair.sides, strict=False):
        put(figure, texts, (at, height), signs[side], ha="right", color=HUES[side])


def _column(table: Companion, name: str) -> list[float | None]:
    at = table.columns.index(name)
    return [row[at] for row in _numbers(table)]


def _numbers(table: Companion) -> list[list[float | None]]:
    def one(cell: Cell) -> float | None:
        return None if cell is None or isinstance(cell, str) else float(cell)

    return [[one(cell) for cell in row] for row in table.rows]
