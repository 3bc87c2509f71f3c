"""The figures in the page."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import pytest

from harness.output.answer import DeltaSummary
from harness.report.figure import forest, histogram


def _texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}text")]


class TestForest:
    def test_a_row_for_every_slice(self, contents):
        """Each slice is named, with its difference and interval in figures."""
        content = contents.failing()
        texts = _texts(forest(content))
        assert [each.name for each in content.slices] == [text for text in texts if text in content.deltas]
        assert "−0.0871 [−0.1332, −0.0410]" in texts

    def test_names_are_text_and_nothing_else(self, contents, hostile):
        """A hostile name neither adds an element nor is read as mathematics."""
        parts = [
            [
                element.tag
                for element in ElementTree.fromstring(forest(contents.everywhere(contents.failing(), said))).iter()
            ]
            for said in (hostile, "harmless")
        ]
        assert parts[0] == parts[1]
        content = contents.failing()
        named = replace(content, slices=(replace(content.slices[0], name="$\\frac{a"),))
        assert "$\\frac{a" in _texts(forest(named))


class TestDirection:
    """A loss is worse when it is higher."""

    @staticmethod
    def _edge(svg: str) -> float:
        """Where the dashed line of a margin stands, from the left."""
        return next(
            float(re.split("[ ,L]+", element.attrib["d"].strip())[1])
            for element in ElementTree.fromstring(svg).iter()
            if "stroke-dasharray" in element.attrib and element.tag.endswith("path")
        )

    def test_the_margin_stands_on_the_worse_side(self, contents):
        """Below zero of a score, above zero of a loss, by the same amount."""
        content = contents.failing()
        loss = replace(content, answer=replace(content.answer, losses=(content.primary,)))
        flat = {each.name: {content.primary: DeltaSummary(0.0, -0.1, 0.1, 0.1, 9, 9, 9)} for each in content.slices}
        score, loss = (forest(replace(each, answer=replace(each.answer, deltas=flat))) for each in (content, loss))
        middle = (160 + 286 / 2, 160 + 286 / 2)
        assert self._edge(score) < middle[0] < self._edge(loss)
        assert self._edge(score) + self._edge(loss) == pytest.approx(sum(middle), abs=0.01)
        assert any("lower is better" in text for text in _texts(loss)) and "lower is better" not in score

    def test_bars_and_counts_of_a_loss(self, contents):
        """What rose is worse: to the right, in its colour."""
        content = replace(contents.failing(), case_deltas=(-0.5, -0.25, 0.0, 0.5))
        loss = histogram(replace(content, answer=replace(content.answer, losses=(content.primary,))))
        assert {"▲ 2 better", "1 the same", "1 worse ▼"} <= set(_texts(loss))
        hues = [re.findall(r"--(pass|fail)", svg) for svg in (histogram(content), loss)]
        assert hues[1] == [{"pass": "fail", "fail": "pass"}[hue] for hue in hues[0]]

    def test_it_is_of_the_metric_by_which_cases_are_followed(self, contents):
        """Whatever the primary's direction."""
        content = replace(contents.labelled(), case_deltas=(-0.5, 1.0))
        assert "▼ 1 worse" in _texts(histogram(content)) and "accuracy case by case" in histogram(content)


class TestLargeNumbers:
    def test_stay_in_the_figure(self, contents):
        """Fewer decimals, and smaller letters where that is not enough."""
        content = contents.failing()
        wide = {each.name: {content.primary: DeltaSummary(7e6, -8e6, 9.5e6, 1.0, 9, 9, 9)} for each in content.slices}
        found = forest(replace(content, answer=replace(content.answer, deltas=wide)))
        assert "+7000000 [−8000000, +9500000]" in _texts(found)
        sizes = {
            float(element.attrib["font-size"].removesuffix("px"))
            for element in ElementTree.fromstring(found).iter()
            if "font-size" in element.attrib
        }
        assert min(sizes) < 11 < max(sizes)


class TestHistogram:
    def test_counts_what_moved(self, contents):
        """Cases that got worse, stayed and got better are counted in words; only those that moved have a bar."""
        content = replace(contents.failing(), case_deltas=(-0.5, -0.25, 0.0, 0.0, 0.0, 0.5))
        texts = _texts(histogram(content))
        assert {"▼ 2 worse", "3 the same", "1 better ▲"} <= set(texts)
        assert (
            len(
                re.findall(
                    r'fill="var\(--(?:pass|fail), [^"]*" clip-path|clip-path="[^"]*" fill="var\(--(?:pass|fail),',
                    histogram(content),
                )
            )
            == 3
        )

    def test_nothing_moved(self, contents):
        """Without a change there is a figure all the same."""
        assert "4 the same" in _texts(histogram(replace(contents.failing(), case_deltas=(0.0,) * 4)))


class TestRepeatable:
    def test_whatever_the_caller_set(self, contents):
        """A matplotlibrc changes nothing, and the caller's own settings stay."""
        content = contents.failing()
        before = forest(content), histogram(content)
        with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path", "axes.grid": True, "lines.linewidth": 9}):
            assert (forest(content), histogram(content)) == before
            assert matplotlib.rcParams["font.size"] == 31
        assert not re.search(r"\d{4}-\d\d-\d\d|Matplotlib", before[0])
