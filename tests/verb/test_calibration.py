"""Measures of calibration from recorded outputs to the report, through the store."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import harness
from harness.calibration import reliability
from harness.report.page import html
from harness.verb.place import find_place
from harness.verb.report import content

from .test_task import Bench
from .test_task import bench as bench

N = 200
RNG = np.random.default_rng(8)
LABELS = [f"l{c:02}" for c in range(6)]
GOLD = RNG.integers(0, 6, N)
NAMES = [
    "log_loss", "ece_top_label", "ece_top_label(by='mass')", "ece_classwise", "mce", "calibration_slope",
    "calibration_intercept", "brier_reliability", "aurc", "risk_at_coverage(0.8)",
]  # fmt: skip


def outputs(sure: float, seed: int) -> tuple[np.ndarray, dict[str, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    logits = sure * (rng.normal(size=(N, 6)) + 2 * np.eye(6)[GOLD])
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return chances, {f"c{i}": dict(zip(LABELS, row.tolist(), strict=True)) for i, row in enumerate(chances)}


@pytest.fixture
def ran(bench: Bench) -> Bench:
    cases = [{"id": f"c{i}", "text": f"t{i}", "label": LABELS[GOLD[i]], "odd": i % 2 == 1} for i in range(N)]
    bench.suite(
        "classification", cases, NAMES, margin=1, more='[[slices]]\nname = "odd"\nwhere = "odd"\nmin_support = 20\n'
    )
    bench.release("raw", "probabilities", "probability", outputs(1, 1)[1])
    bench.release("sure", "probabilities", "probability", outputs(3, 2)[1])
    return bench


class TestThroughTheStore:
    def test_every_measure_has_a_value_an_interval_and_a_delta_in_every_slice(self, ran: Bench) -> None:
        found = harness.run("s", candidate="sure", parent="raw")
        chances, _ = outputs(3, 2)
        for name, members in (("all", np.arange(N)), ("odd", np.arange(1, N, 2))):
            told = found.metrics["candidate"][name]
            top = reliability.top_label(chances[members], GOLD[members])
            assert told["ece_top_label"].value == pytest.approx(top.ece, abs=1e-9)
            mass = reliability.top_label(chances[members], GOLD[members], mass="mass")
            assert told["ece_top_label(by='mass')"].value == pytest.approx(mass.ece, abs=1e-9)
            for metric in NAMES:
                assert told[metric].low is not None and told[metric].low < told[metric].high
                assert told[metric].n_groups == len(members)
                assert found.deltas[name][metric].low is not None
        assert found.metrics["candidate"]["all"]["calibration_slope"].value < 0.7

    def test_decided_again_it_is_the_same_to_the_byte(self, ran: Bench) -> None:
        first = harness.run("s", candidate="sure", parent="raw")
        pages = [(ran.root / "reports" / first.run / name).read_bytes() for name in ("index.html", "report.md")]
        again = harness.decide(first.run)
        assert again.as_record() == first.as_record()
        assert pages == [(ran.root / "reports" / first.run / name).read_bytes() for name in ("index.html", "report.md")]

    def test_bins_and_coverage_stand_beside_it(self, ran: Bench) -> None:
        """In the store as numbers, in the page as diagrams that name every count."""
        found = harness.run("s", candidate="sure", parent="raw")
        rows = harness.sql("SELECT name, content FROM companions WHERE side = 'candidate'").rows
        tables = {name: json.loads(str(content)) for name, content in rows}
        top = reliability.top_label(outputs(3, 2)[0], GOLD)
        assert [row[2] for row in tables["reliability"]["rows"]] == top.counts.tolist()
        assert sum(row[2] for row in tables["reliability"]["rows"]) == N
        assert tables["coverage"]["columns"][:2] == ["coverage", "answered"]
        assert tables["coverage"]["rows"][-1][:2] == [1.0, N]
        shown = {each.name: each for each in content(find_place(), found).companions["candidate"]}
        assert [row[2] for row in shown["reliability"].rows] == [count for count in top.counts if count]
        assert {row[0] for row in shown["slice-reliability"].rows} == {"odd"}
        page = html(content(find_place(), found))
        assert page == html(content(find_place(), found))
        for name in ("reliability", "coverage"):
            svg = page[page.index(f'class="figure {name}"') :]
            svg = svg[: svg.index("</svg>")]
            assert "candidate" in svg and "parent" in svg
        drawn = page[page.rindex("<svg", 0, page.index('class="figure reliability"')) :]
        root = ElementTree.fromstring(drawn[: drawn.index("</svg>") + 6])
        described = next(each.text or "" for each in root.iter() if each.tag.endswith("desc"))
        assert all(f"{int(count)} forecasts" in described for count in top.counts if count)
