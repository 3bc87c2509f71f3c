"""Figures as SVG to stand inside the page: real text, colours that follow the page, the same bytes every time.

Matplotlib draws under its own defaults, so that no matplotlibrc plays a part, and writes placeholders where a
text of the user's belongs: such text is never measured, never read as mathematics, and goes in as an XML text node.
"""

import io
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from harness.output.decision import Outcome
from harness.report import number, text, verdict
from harness.report.content import Content

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"

INK, FAINT, RULE, BAND = "#1b2430", "#5b6673", "#d5dae0", "#eef1f4"
HUES = {Outcome.PASS: "#00705a", Outcome.FAIL: "#b23c00", Outcome.UNDECIDED: "#7a5c00", Outcome.WAIVED: "#7d3f73"}
VARIABLES = {INK: "ink", FAINT: "faint", RULE: "line", BAND: "band", "#ffffff": "card"} | {
    hue: str(outcome).lower() for outcome, hue in HUES.items()
}
"""The custom property of the page that each colour stands for."""
MARKERS = {Outcome.PASS: "o", Outcome.FAIL: "X", Outcome.UNDECIDED: "s", Outcome.WAIVED: "D"}
"""Shape says the outcome too, for eyes that don't tell the hues apart."""

LABEL = 24
LONGEST = 26
"""Characters of a difference with its interval that stand beside the forest at full size."""
FONT = 12.5
BINS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the forest plot. `outcome` is that of the no-worse rule over the slice, `margin` its margin, and
    `edge` the difference beyond which the rule fails.
    """

    label: str
    delta: float | None
    low: float | None
    high: float | None
    margin: float | None
    edge: float | None
    outcome: Outcome | None


@contextmanager
def defaults(salt: str) -> Iterator[None]:
    """Matplotlib as it comes, with what makes its SVG repeatable; afterwards as the caller had it."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": salt, "svg.fonttype": "none"})
        yield


@defaults("harness-forest")
def forest(content: Content) -> str:
    """The primary metric's delta of every slice with its interval, and the margin where a rule sets one."""
    rows = _rows(content)
    height = 26 * len(rows) + 58
    figure = canvas(640, height)
    axes = figure.add_axes((160 / 640, 44 / height, 286 / 640, 26 * len(rows) / height))
    ends = [
        end
        for row in rows
        for end in (row.delta, row.low, row.high, row.edge)
        if end is not None and math.isfinite(end)
    ]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.06 * (high - low) or 0.01
    axes.set(xlim=(low - room, high + room), ylim=(len(rows) - 0.5, -0.5), yticks=[])
    for at in range(0, len(rows), 2):
        axes.axhspan(at - 0.5, at + 0.5, color=BAND, lw=0, zorder=0)
    axes.axvline(0, color=FAINT, lw=1, zorder=1)
    texts: list[str] = []
    digits = min(4, number.decimals(ends))
    moved = [_moved(row, digits) for row in rows]
    size = FONT * min(1.0, LONGEST / max(map(len, moved)))
    for at, row in enumerate(rows):
        _draw(axes, at, row)
        middle = 1 - (14 + 26 * at + 13) / height
        strong = "bold" if row.outcome in (Outcome.FAIL, Outcome.UNDECIDED) else "normal"
        put(figure, texts, (152 / 640, middle), text.clipped(row.label, LABEL), ha="right", weight=strong)
        put(figure, texts, (456 / 640, middle), moved[at], ha="left", weight=strong, size=size)
    plain(axes)
    put(
        figure,
        texts,
        (303 / 640, 8 / height),
        f"{text.clipped(content.primary, LABEL)}: candidate − parent"
        + (f" ({told})" if (told := verdict.direction(content.answer, content.primary)) else ""),
        ha="center",
    )
    title = f"{text.clipped(content.primary, text.LONGEST_NAME)} by slice, candidate minus parent"
    described = "; ".join(
        f"{text.clipped(row.label, text.LONGEST_NAME)}: {_moved(row, digits)}"
        + (f", margin {number.value(row.margin)}, {row.outcome}" if row.outcome else "")
        for row in rows
    )
    return as_svg(figure, "forest", texts, title, described)


@defaults("harness-histogram")
def histogram(content: Content) -> str:
    """The per-case deltas, of the metric by which cases are followed, that aren't zero; the unchanged cases are counted
    in its title.
    """
    metric = content.answer.followed or content.primary
    signs = Counter((delta > 0) - (delta < 0) for delta in content.case_deltas if math.isfinite(delta))
    moved = [delta for delta in content.case_deltas if math.isfinite(delta) and delta != 0]
    figure = canvas(330, 210)
    axes = figure.add_axes((36 / 330, 44 / 210, 280 / 330, 136 / 210))
    reach = max((abs(delta) for delta in moved), default=1.0)
    width = 2 * reach / BINS
    heights = Counter(min(int((delta + reach) / width), BINS - 1) for delta in moved)
    for bin_, tall in sorted(heights.items()):
        left = -reach + bin_ * width
        hue = _side(content, metric, 1 if bin_ >= BINS // 2 else -1).hue
        axes.bar(left, tall, width=width, align="edge", color=hue, edgecolor="#ffffff", lw=1)
    top = max(heights.values(), default=1)
    axes.set(xlim=(-1.04 * reach, 1.04 * reach), ylim=(0, 1.12 * top), yticks=sorted({0, math.ceil(top / 2), top}))
    axes.axvline(0, color=FAINT, lw=1)
    plain(axes)
    texts: list[str] = []
    fell, rose = (_side(content, metric, sign) for sign in (-1, 1))
    below = f"{fell.arrow} {number.count(signs[-1])} {fell.word}"
    above = f"{number.count(signs[1])} {rose.word} {rose.arrow}"
    put(figure, texts, (36 / 330, 196 / 210), below, ha="left", color=fell.hue)
    put(figure, texts, (176 / 330, 196 / 210), f"{number.count(signs[0])} the same", ha="center", color=FAINT)
    put(figure, texts, (316 / 330, 196 / 210), above, ha="right", color=rose.hue)
    put(figure, texts, (176 / 330, 8 / 210), "per-case difference (unchanged cases left out)", ha="center", color=FAINT)
    title = f"{text.clipped(metric, text.LONGEST_NAME)} case by case, candidate minus parent"
    described = (
        f"{signs[-1]} cases fell and are {fell.word}, {signs[0]} stayed the same, {signs[1]} rose and are {rose.word}"
    )
    return as_svg(figure, "histogram", texts, title, described)


@dataclass(frozen=True, slots=True)
class _Side:
    """How a side of zero is drawn: `better` or `worse`."""

    word: str
    arrow: str
    hue: str


def _side(content: Content, metric: str, sign: int) -> _Side:
    if verdict.better(content.answer, metric, sign):
        return _Side("better", "▲", HUES[Outcome.PASS])
    return _Side("worse", "▼", HUES[Outcome.FAIL])


def _rows(content: Content) -> list[Row]:
    rules = {
        rule.slice: rule
        for rule in content.answer.decision.rules
        if rule.kind == "no-worse" and rule.metric == content.primary
    }
    rows = []
    for each in content.slices:
        summary = content.deltas.get(each.name, {}).get(content.primary)
        rule = rules.get(each.name)
        margin = rule.margin if rule else None
        worse = 1 if content.primary in content.answer.losses else -1
        rows.append(
            Row(
                label=each.name,
                delta=summary.delta if summary else None,
                low=summary.low if summary else None,
                high=summary.high if summary else None,
                margin=margin,
                edge=None if margin is None else worse * margin,
                outcome=rule.outcome if rule else None,
            )
        )
    return rows


def _moved(row: Row, digits: int) -> str:
    ends = number.interval(row.low, row.high, of_delta=True, digits=digits)
    return number.signed(row.delta, digits) + ("" if ends == number.NOTHING else f" {ends}")


def _draw(axes: "Axes", at: int, row: Row) -> None:
    hue = HUES[row.outcome] if row.outcome else FAINT
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [at, at], color=hue, lw=2.5, solid_capstyle="round", zorder=3)
    if row.edge is not None:
        axes.plot([row.edge] * 2, [at - 0.36, at + 0.36], color=INK, lw=1.5, ls=(0, (2, 1.5)), zorder=2)
    if row.delta is not None:
        marker = MARKERS[row.outcome] if row.outcome else "o"
        size = 9 if row.outcome is Outcome.FAIL else 7
        axes.plot([row.delta], [at], marker=marker, ms=size, mfc=hue, mec="#ffffff", mew=0.8, ls="", zorder=4)


def canvas(width: int, height: int) -> "Figure":
    """An empty figure, a point of which is one pixel of the page."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="none")


def put(
    figure: "Figure", texts: list[str], at: tuple[float, float], words: str, *, ha: str, weight: str = "normal",
    color: str = INK, size: float = FONT,
) -> None:  # fmt: skip
    """Puts the next placeholder into the figure and keeps the words that it stands for."""
    figure.text(*at, f"@{len(texts)}@", ha=ha, va="center_baseline", fontsize=size, weight=weight, color=color)
    texts.append(words)


def plain(axes: "Axes") -> None:
    """No frame but a line below, and few ticks."""
    from matplotlib.ticker import MaxNLocator

    axes.set_facecolor("none")
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)
    axes.tick_params(colors=FAINT, labelsize=11, length=3)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))


def as_svg(figure: "Figure", name: str, texts: list[str], title: str, description: str) -> str:
    """The figure as an element of the page, with the user's texts in place and in words for those who don't see it."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    root = ElementTree.fromstring(stream.getvalue())
    _make_ours(root, texts)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib |= {
        "xmlns": SVG, "width": width, "height": height, "role": "img", "class": f"figure {name}",
        "aria-labelledby": f"{name}-title {name}-desc",
    }  # fmt: skip
    for position, (tag, words) in enumerate((("title", title), ("desc", description))):
        child = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        child.text = words
        root.insert(position, child)
    return ElementTree.tostring(root, encoding="unicode")


def _make_ours(root: ElementTree.Element, texts: list[str]) -> None:
    """Style attributes become plain ones, which the page's policy admits; colours become the page's; IDs that
    nothing refers to go, for both figures would have them."""
    for parent in list(root.iter()):
        for child in list(parent):
            if _tag(child) in ("style", "metadata"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _tag(element)
        if element.tag == "g":
            element.attrib.pop("id", None)
        if LINK in element.attrib:
            element.set("href", element.attrib.pop(LINK))
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            key, _, setting = declaration.partition(":")
            if key.strip() != "font-family":
                element.set(key.strip(), setting.strip())
        for key in ("fill", "stroke"):
            if variable := VARIABLES.get(element.get(key, "")):
                element.set(key, f"var(--{variable}, {element.get(key)})")
        if element.tag == "text":
            element.attrib.pop("transform", None)
            if found := re.fullmatch(r"@(\d+)@", element.text or ""):
                element.text = texts[int(found.group(1))]


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
