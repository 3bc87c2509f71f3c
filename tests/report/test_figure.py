"""The figures in the page."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib

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


class TestHistogram:
    def test_counts_what_moved(self, contents):
        """Cases that fell, stayed and rose are counted in words; only those that moved have a bar."""
        content = replace(contents.failing(), primary_deltas=(-0.5, -0.25, 0.0, 0.0, 0.0, 0.5))
        texts = _texts(histogram(content))
        assert {"▼ 2 fell", "3 the same", "1 rose ▲"} <= set(texts)
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
        assert "4 the same" in _texts(histogram(replace(contents.failing(), primary_deltas=(0.0,) * 4)))


class TestRepeatable:
    def test_whatever_the_caller_set(self, contents):
        """A matplotlibrc changes nothing, and the caller's own settings stay."""
        content = contents.failing()
        before = forest(content), histogram(content)
        with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path", "axes.grid": True, "lines.linewidth": 9}):
            assert (forest(content), histogram(content)) == before
            assert matplotlib.rcParams["font.size"] == 31
        assert not re.search(r"\d{4}-\d\d-\d\d|Matplotlib", before[0])
