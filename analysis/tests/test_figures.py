"""Selection of figures: the same each time, no more than can be distinguished."""

from __future__ import annotations

import csv
import io
import re
import warnings
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ewan.analysis import arrivals, figures, load, summary
from ewan.analysis.figures import spreads, style, windows
from ewan.analysis.figures.style import Drawing
from ewan.analysis.rows import spread
from ewan.analysis.tests import synthetic
from ewan.analysis.tests.synthetic import SECOND, frame

pytestmark = pytest.mark.slow

VARIANTS = [{"congestion": name} for name in synthetic.DEPTH]
BY_RENO = {"normalise": {"by": "congestion", "to": "reno"}}


def draw(directory: Path, points: list[dict[str, Any]], **options: Any) -> dict[str, Drawing]:
    experiment = load.experiment(synthetic.experiment(directory, points, **{"pairs": 3, "seconds": 6, **options}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib's, where things do not fit
        return {drawing.name: drawing for drawing in figures.draw(experiment, summary.of(experiment)).drawings}


def rows(drawing: Drawing) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(drawing.csv)))


def colours(drawing: Drawing) -> set[str]:
    return {each.lower() for each in re.findall(r"#[0-9a-fA-F]{6}", drawing.svg)}


def test_bulk_transfers_have_the_figures_of_the_papers(tmp_path: Path) -> None:
    found = draw(tmp_path, VARIANTS, told=BY_RENO, reverse=1)
    assert list(found) == [
        "normalised",
        "goodput-over-time",
        "completion-cdf",
        "cwnd",
        "queue-over-time",
        "fairness-over-time",
        "start-lateness",
    ]
    palette = {colour.lower() for colour in (*style.COLOURS, style.INK, style.FAINT, style.PAPER)}
    for drawing in found.values():
        Xml.fromstring(drawing.svg)
        assert colours(drawing) <= palette, drawing.name
        assert "<text" not in drawing.svg  # letters are outlines: the same on every machine
        assert rows(drawing), drawing.name


@pytest.mark.parametrize(
    ("kind", "figure"), [("requests", "response-cdf"), ("messages", "iteration-cdf"), ("arrivals", "completion-cdf")]
)
def test_other_kinds_have_their_distributions(tmp_path: Path, kind: str, figure: str) -> None:
    assert figure in draw(tmp_path, VARIANTS[:2], kind=kind, seeds=(1,))


def test_the_same_numbers_give_the_same_bytes(tmp_path: Path) -> None:
    first = draw(tmp_path / "a", VARIANTS[:1], seeds=(1,))
    assert first == draw(tmp_path / "b", VARIANTS[:1], seeds=(1,))


def test_ratios_are_drawn_with_their_intervals(tmp_path: Path) -> None:
    drawing = draw(tmp_path, VARIANTS[:3], told=BY_RENO, seeds=(1, 2))["normalised"]
    assert "confidence intervals over seeds" in drawing.caption
    reno = [row for row in rows(drawing) if row["congestion"] == "reno"]
    assert {row["ratio"] for row in reno} == {"1"}
    assert {row["congestion"] for row in rows(drawing)} == {"reno", "cubic", "bic"}


def test_one_seed_says_that_it_has_no_intervals(tmp_path: Path) -> None:
    found = draw(tmp_path, VARIANTS[:2], told=BY_RENO, seeds=(1,))
    assert "no confidence intervals" in found["normalised"].caption


def test_a_sweep_over_words_alone_has_a_figure_with_intervals(tmp_path: Path) -> None:
    found = draw(tmp_path, VARIANTS[:3], seeds=(1, 2), seconds=3)
    drawing = found["sweep"]
    assert {row["congestion"] for row in rows(drawing)} == {each["congestion"] for each in VARIANTS[:3]}
    assert all(float(row["low"]) <= float(row["mean"]) <= float(row["high"]) for row in rows(drawing))
    assert "95 % confidence intervals" in drawing.caption and drawing.title.endswith("against congestion")


def test_numeric_parameters_have_lines(tmp_path: Path) -> None:
    points = [{"rtt": rtt, "congestion": name} for rtt in ("10ms", "20ms", "100ms") for name in ("reno", "cubic")]
    drawing = draw(tmp_path, points, seeds=(1,), pairs=2, seconds=3)["sweep"]
    assert drawing.title == "Metrics against rtt"
    assert {row["rtt"] for row in rows(drawing)} == {"10ms", "20ms", "100ms"}


def test_of_many_points_twelve_are_drawn_and_all_are_in_the_csv(tmp_path: Path) -> None:
    points = [{"streams": 1, "case": f"c{number}"} for number in range(20)]
    found = draw(tmp_path, points, seeds=(1,), pairs=2, seconds=3)
    drawing = found["goodput-over-time"]
    assert "12 of 20 lines drawn, all are in the CSV" in drawing.caption
    assert {row["case"] for row in rows(drawing)} == {f"c{number}" for number in range(20)}


def test_an_experiment_without_measurements_has_no_figures(tmp_path: Path) -> None:
    synthetic.experiment(tmp_path, VARIANTS[:1], seeds=())
    experiment = load.experiment(tmp_path)
    assert figures.draw(experiment, summary.of(experiment)) == ([], {})


def test_goodput_in_windows_is_the_bytes_of_its_bins() -> None:
    bins = [
        {
            "flow": 0,
            "part": 0,
            "time_ns": (n + 1) * SECOND // 10,
            "bin_ns": SECOND // 10,
            "arrived_bytes": 1000 * (n // 10),
            "delivered_bytes": 0,
        }
        for n in range(40)
    ]
    length, grid = windows.goodput_grid(arrivals.shown(frame("goodput", bins)), most=4)
    assert length == SECOND
    line = windows.rate(grid, length, 4)
    assert line.times.tolist() == [0.5 * SECOND, 1.5 * SECOND, 2.5 * SECOND, 3.5 * SECOND]
    assert line.values.tolist() == [0, 80_000, 160_000, 240_000]
    assert windows.whole(line, length, SECOND // 2, 3 * SECOND).times.tolist() == [1.5 * SECOND, 2.5 * SECOND]


def test_fairness_over_time_counts_flows_while_they_are_active() -> None:
    load_flows = frame(
        "flows",
        [
            synthetic.flow(0, ended_ns=4 * SECOND),
            synthetic.flow(1, ended_ns=4 * SECOND, started_ns=2 * SECOND),
            synthetic.flow(2, ended_ns=0, started_ns=None),  # it failed before it started
        ],
    )
    sizes = {0: [100, 100, 100, 300], 1: [0, 0, 100, 100]}
    bins = [
        {
            "flow": flow,
            "part": 0,
            "time_ns": (n + 1) * SECOND,
            "bin_ns": SECOND,
            "arrived_bytes": size,
            "delivered_bytes": 0,
        }
        for flow, each in sizes.items()
        for n, size in enumerate(each)
    ]
    line = windows.fairness(load_flows, arrivals.shown(frame("goodput", bins)), most=4)
    assert line.times.tolist() == [2.5 * SECOND, 3.5 * SECOND]
    assert line.values.tolist() == pytest.approx([1, 16 / (2 * 10)])
    assert [flow for flow, _, _ in windows.ends(load_flows)] == [(0, 0), (1, 0)]


def test_a_window_is_a_round_number_of_bins() -> None:
    assert windows.window_ns(600 * SECOND, SECOND // 10, 240) == 5 * SECOND
    assert windows.window_ns(10 * SECOND, SECOND // 10, 240) == SECOND // 10


def test_a_distribution_begins_at_zero_and_ends_at_one() -> None:
    values, shares = spreads.steps(np.arange(1.0, 2001.0))
    assert (shares[0], shares[-1], values[0], values[-1]) == (0, 1, 1, 2000)
    assert len(shares) == spreads.MOST_STEPS + 1
    assert np.all(np.diff(shares) >= 0)


def test_spread_keeps_first_and_last() -> None:
    assert spread(3, 6) == [0, 1, 2]
    assert spread(11, 6) == [0, 2, 4, 6, 8, 10]


def bands(drawing: Drawing) -> list[tuple[float, float]]:
    """The left and the right end of each band, in the SVG's points."""
    return [
        (min(xs), max(xs))
        for path in re.findall(rf'd="([^"]*)"[^>]*fill: {style.COLOURS[4].lower()}; opacity: 0.25', drawing.svg)
        if (xs := [float(x) for x in re.findall(r"[ML] ([\d.]+) ", path)])
    ]


def test_seconds_in_which_links_left_their_tolerance_are_shaded(tmp_path: Path) -> None:
    synthetic.experiment(tmp_path, VARIANTS[:1], seeds=(1,), pairs=2, seconds=10, told=BY_RENO)
    synthetic.watched(tmp_path, 1, 2, 3, 7, seconds=10)
    experiment = load.experiment(tmp_path)
    found = {drawing.name: drawing for drawing in figures.draw(experiment, summary.of(experiment)).drawings}
    for name in ("goodput-over-time", "cwnd", "queue-over-time", "fairness-over-time"):
        drawn = bands(found[name])
        widths = sorted(end - begin for begin, end in drawn)
        # In the panel; the legend's own patch is a third one.
        assert len(drawn) == 3, name
        first, second = sorted((band for band in drawn if band[1] - band[0] in widths[-2:]), key=lambda band: band[0])
        second_wide = second[1] - second[0]
        assert first[1] - first[0] == pytest.approx(2 * second_wide, rel=0.02), "seconds 2 and 3, then second 7"
        assert second[0] - first[0] == pytest.approx(5 * second_wide, rel=0.02)
    assert all("Links left their tolerance for a time in run 1." in drawing.caption for drawing in found.values())


def test_a_run_that_nothing_disturbed_has_no_band(tmp_path: Path) -> None:
    synthetic.experiment(tmp_path, VARIANTS[:1], seeds=(1,), pairs=2, seconds=6)
    before = figures.draw(load.experiment(tmp_path), summary.of(load.experiment(tmp_path))).drawings
    synthetic.watched(tmp_path, 1)
    after = figures.draw(load.experiment(tmp_path), summary.of(load.experiment(tmp_path))).drawings
    assert before == after and not any(bands(drawing) for drawing in after)


def test_words_beside_points_cover_neither_points_nor_each_other() -> None:
    points = [(0.5, 0.5, "buffer 1"), (0.52, 0.505, "buffer 2"), (0.54, 0.5, "buffer 4"), (0.9, 0.1, "buffer 8")]
    with style.sheet(1, 2.8, 1) as (_, (axis,)):
        axis.plot([x for x, _, _ in points], [y for _, y, _ in points], linestyle="none", marker="o")
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
        style.beside_points(axis, points, 6)
        boxes = [text.get_window_extent() for text in axis.texts]
        at = axis.transData.transform([(x, y) for x, y, _ in points])
    assert [text.get_text() for text in axis.texts] == [words for _, _, words in points]
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
        assert not any(box.contains(*each) for each in at)
