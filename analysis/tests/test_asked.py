"""Figures on request: each kind, its numbers, what is left out, marked or refused; the same bytes twice."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from ewan.analysis import load, report, summary
from ewan.analysis.figures import choice, custom, overtime, phase, samples, scales, series, style
from ewan.analysis.figures.request import Request, Value
from ewan.analysis.figures.style import Drawing
from ewan.analysis.figures.windows import WindowValues
from ewan.analysis.rundata import RunData
from ewan.analysis.tests import synthetic
from ewan.analysis.tests.synthetic import SECOND
from ewan.labs.base import codec
from ewan.labs.record import figures, tables
from ewan.labs.record.quantities import Selection
from ewan.labs.record.series import Samples, Series
from ewan.labs.record.summary import Summary
from tests import summaries

pytestmark = pytest.mark.slow

POINTS = [{"congestion": name, "buffer": buffer} for name in ("cubic", "reno") for buffer in ("0.5BDP", "1BDP", "2BDP")]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> load.ExperimentResults:
    place = tmp_path_factory.mktemp("asked")
    return load.experiment(synthetic.experiment(place, POINTS, pairs=2, seconds=5, reverse=1))


@pytest.fixture(scope="module")
def found(experiment: load.ExperimentResults) -> Summary:
    return summary.of(experiment, figures.parse("goodput of each step by buffer").quantities)


def with_mean(found: Summary, at: int, metric: str, **changes: float | None) -> Summary:
    """The summary with another value of a metric at a point."""
    points = list(found.points)
    own = points[at].metrics
    points[at] = codec.replace(points[at], metrics={**own, metric: codec.replace(own[metric], **changes)})
    return codec.replace(found, points=tuple(points))


def draw(
    experiment: load.ExperimentResults, found: Summary, line: str, kinds: Sequence[str] = (), look: str = "page"
) -> Drawing:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib's, where things do not fit
        (drawing,) = custom.draw(experiment, found, [figures.parse(line)], style.STYLES[look], kinds)
    assert isinstance(drawing, Drawing), drawing
    return drawing


def rows(drawing: Drawing) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(drawing.csv)))


def test_a_metric_against_a_parameter_has_the_summary_s_numbers(
    experiment: load.ExperimentResults, found: Summary
) -> None:
    drawing = draw(experiment, found, "goodput by buffer")
    assert len(rows(drawing)) == len(POINTS)
    for row, point in zip(rows(drawing), found.points, strict=True):
        metric = point.metrics["aggregate goodput"]
        assert (row["congestion"], row["buffer"]) == (point.parameters["congestion"], point.parameters["buffer"])
        assert float(row["mean"]) == pytest.approx(metric.mean, rel=1e-8)
        assert float(row["high"]) == pytest.approx(metric.high, rel=1e-8) and row["n"] == "3"
    assert "95 % confidence intervals" in drawing.caption and "n = 3" in drawing.caption
    assert "Scenario synthetic, runs 1–18, seeds 1–3." in drawing.caption


def test_points_that_do_not_have_a_metric_have_no_panel(experiment: load.ExperimentResults, found: Summary) -> None:
    """Runs without a load flow have no goodput: an empty panel of a shared axis has no limits."""
    points = [
        codec.replace(point, metrics={}) if point.parameters["congestion"] == "reno" else point
        for point in found.points
    ]
    some = codec.replace(found, points=tuple(points))
    (drawing,) = custom.draw(experiment, some, [figures.parse("goodput by buffer, facets congestion, bars")])
    assert isinstance(drawing, Drawing) and {row["congestion"] for row in rows(drawing)} == {"cubic"}


def test_points_of_all_runs_are_each_run(experiment: load.ExperimentResults, found: Summary) -> None:
    told = rows(draw(experiment, found, "goodput by buffer, points all"))
    values = {run.number: run.metrics["aggregate goodput"].value for run in found.runs}
    assert {int(row["run"]): float(row["value"]) for row in told} == pytest.approx(values, rel=1e-8)


def test_of_each_step_the_steps_are_lines(experiment: load.ExperimentResults, found: Summary) -> None:
    told = rows(draw(experiment, found, "goodput of each step by buffer, where congestion=reno, lines step"))
    assert {row["step"] for row in told} == {"load", "reverse"} and {row["congestion"] for row in told} == {"reno"}
    of_reverse = [float(row["mean"]) for row in told if row["step"] == "reverse"]
    expected = [
        point.metrics["reverse goodput"].mean for point in found.points if point.parameters["congestion"] == "reno"
    ]
    assert of_reverse == pytest.approx(expected, rel=1e-8)


def test_a_relative_metric_is_divided_seed_by_seed(experiment: load.ExperimentResults, found: Summary) -> None:
    drawing = draw(experiment, found, "goodput by congestion, relative to reno, points all")
    values = {(run.parameters["congestion"], run.parameters["buffer"], run.seed): run.metrics for run in found.runs}
    for row in rows(drawing):
        key = (row["buffer"], int(row["seed"]))
        own, base = (values[name, *key]["aggregate goodput"].value for name in (row["congestion"], "reno"))
        assert own is not None and base is not None
        assert float(row["value"]) == pytest.approx(own / base, rel=1e-8)
    assert "Divided by that at congestion = reno of the same seed." in drawing.caption


def test_a_heat_map_and_a_phase_plot_have_every_point(experiment: load.ExperimentResults, found: Summary) -> None:
    told = rows(draw(experiment, found, "queueing delay by buffer and congestion"))
    assert len(told) == len(POINTS)
    drawing = draw(experiment, found, "goodput against queueing delay")
    for row, point in zip(rows(drawing), found.points, strict=True):
        for name in ("aggregate goodput", "mean queueing delay"):
            assert float(row[name]) == pytest.approx(point.metrics[name].mean, rel=1e-8)
    assert "ellipses: one standard deviation over seeds, n = 3" in drawing.caption


def test_a_heat_map_of_harm_has_what_each_seed_loses_of_what_it_has_alone(
    experiment: load.ExperimentResults, found: Summary
) -> None:
    for metric, sign in (("aggregate goodput", 1), ("mean queueing delay", -1)):  # more is better, less is better
        drawing = draw(experiment, found, f"{metric} by buffer and congestion, harm against 2BDP")
        told = rows(drawing)
        runs: dict[tuple[str, ...], list[float]] = {}
        for run in found.runs:
            value = run.metrics[metric].value
            assert value is not None
            runs.setdefault(tuple(map(str, run.parameters.values())), []).append(value)
        assert len(told) == len(POINTS) - 2 and {row["buffer"] for row in told} == {"0.5BDP", "1BDP"}
        for row in told:
            own, alone = runs[row["congestion"], row["buffer"]], runs[row["congestion"], "2BDP"]
            lost = [
                sign * (solo - value) / (solo if sign > 0 else value) for value, solo in zip(own, alone, strict=True)
            ]
            assert float(row["mean"]) == pytest.approx(sum(lost) / 3, rel=1e-6) and row["unit"] == "share"
            assert float(row["low"]) <= float(row["mean"]) <= float(row["high"]) <= 1
        assert f"What is lost of the {metric} at buffer = 2BDP, seed by seed" in drawing.caption


def test_the_ellipse_is_that_of_the_covariance() -> None:
    angle = np.radians(30)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    # Of these four, the sample's deviations along the axes are 3·√(2/3) and 1·√(2/3).
    pairs = turn @ np.array([[3, -3, 0, 0], [0, 0, 1, -1]])
    x, y = (Value(0, None, None, 4, dict(enumerate(each))) for each in pairs.tolist())
    shape = phase.deviation(x, y)
    assert shape is not None
    assert shape[:2] == pytest.approx((6 * (2 / 3) ** 0.5, 2 * (2 / 3) ** 0.5))
    assert shape[2] % 180 == pytest.approx(30)
    assert phase.deviation(x._replace(each={0: 1.0, 1: 2.0}), y) is None


def test_over_time_the_seeds_are_a_median_and_a_band(experiment: load.ExperimentResults, found: Summary) -> None:
    drawing = draw(experiment, found, "queue over time, where congestion=reno, where buffer=1BDP")
    own = [run for run in experiment.runs if run.parameters == {"congestion": "reno", "buffer": "1BDP"}]
    lines = [samples_of(run)[0] for run in own]
    by_time = {row["time (s)"]: row for row in rows(drawing)}
    assert {row["runs"] for row in by_time.values()} == {"3"}
    values = sorted(line[1.05] for line in lines)
    row = by_time["1.05"]
    assert [float(row[key]) for key in ("low", "value", "high")] == pytest.approx(values, rel=1e-8)
    assert "Lines: median over seeds; bands: the least to the largest, n = 3." in drawing.caption


def samples_of(run: load.RunResults) -> list[dict[float, float]]:
    """The queueing delay (ns) of the bottleneck by the middle of each sample's interval (s)."""
    links = run.table("links").filter(pl.col("direction") == "forward")
    times = (links["time_ns"] / SECOND - 0.05).round(2).to_list()
    delays = (links["queue_bytes"] * 8e9 / links["rate_bps"]).to_list()
    return [dict(zip(times, delays, strict=True))]


def test_of_seeds_that_end_at_different_times_the_common_time_is_shown() -> None:
    lines = [
        WindowValues(np.arange(count, dtype=float), np.full(count, value))
        for count, value in ((4, 1.0), (3, 3.0), (2, 8.0))
    ]
    middle, low, high = overtime.together(lines)
    assert low is not None and high is not None
    assert middle.times.tolist() == [0, 1, 2] and middle.values.tolist() == [3, 3, 2]
    assert low.tolist() == [1, 1, 1] and high.tolist() == [8, 8, 3]


def test_one_run_shows_each_flow_in_the_time_that_is_asked_for(
    experiment: load.ExperimentResults, found: Summary
) -> None:
    told = rows(draw(experiment, found, "cwnd over time, run 4, flows all, from 2s, to 4s"))
    assert {row["series"] for row in told} == {"load left1 to right1", "load left2 to right2"}
    times = [float(row["time (s)"]) for row in told]
    assert (min(times), max(times)) == (2, 4)
    table = experiment.runs[3].table("series").filter((pl.col("flow") == 0) & (pl.col("time_ns") == 2 * SECOND))
    assert float(told[0]["value"]) == table["cwnd_segments"].item()


def test_shares_are_of_what_crosses_the_bottleneck_and_add_up(
    experiment: load.ExperimentResults, found: Summary
) -> None:
    told = rows(draw(experiment, found, "shares over time, run 1"))
    assert {row["series"] for row in told} == {"load left1 to right1", "load left2 to right2"}, "reverse goes elsewhere"
    sums: dict[str, float] = {}
    for row in told:
        sums[row["time (s)"]] = sums.get(row["time (s)"], 0) + float(row["share"])
    assert len(sums) > 40 and list(sums.values()) == pytest.approx([1.0] * len(sums))


def test_distributions_and_boxes_have_all_seeds_values(experiment: load.ExperimentResults, found: Summary) -> None:
    drawing = draw(experiment, found, "ccdf of rtt, where congestion=reno, lines buffer")
    told = [row for row in rows(drawing) if row["buffer"] == "1BDP"]
    assert (float(told[0]["share"]), float(told[-1]["share"])) == (1, 0)
    own = [run for run in experiment.runs if run.parameters == {"congestion": "reno", "buffer": "1BDP"}]
    of_load = [run.table("flows").filter(pl.col("role") == "load")["flow"].implode() for run in own]
    loads = [run.table("series").filter(pl.col("flow").is_in(flows)) for run, flows in zip(own, of_load, strict=True)]
    values = np.concatenate([each["srtt_ns"].to_numpy() for each in loads])
    assert (float(told[0]["value"]), float(told[-1]["value"])) == (values.min(), values.max())
    (box,) = [
        row
        for row in rows(draw(experiment, found, "box of rtt by buffer"))
        if (row["congestion"], row["buffer"]) == ("reno", "1BDP")
    ]
    assert int(box["n"]) == len(values) and float(box["p50"]) == pytest.approx(np.median(values), rel=1e-8)


def test_a_timeline_has_steps_and_events(experiment: load.ExperimentResults, found: Summary) -> None:
    told = rows(draw(experiment, found, "timeline, run 1"))
    assert [row["step"] for row in told] == ["load", "reverse", "core changed"]
    ended = experiment.runs[0].table("flows").filter(pl.col("role") == "load")["ended_ns"].max()
    assert isinstance(ended, int)
    assert float(told[0]["end (s)"]) == pytest.approx(ended / SECOND) and float(told[2]["begin (s)"]) == 5


def test_a_table_of_commands_is_drawn_by_its_entry_alone(experiment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The readings of tools, by step: a column that the vocabulary names is all that is needed."""
    pings = pl.DataFrame(
        {
            "step": ["probe"] * 20,
            "node": ["left1"] * 20,
            "target": ["right1"] * 20,
            "time_ns": [number * SECOND for number in range(20)],
            "rtt_ns": [20_000_000 + number for number in range(19)] + [None],
            "duplicate": [number == 18 for number in range(20)],
        }
    )
    run = RunData(lambda name: pings if name == "probes" else tables.empty(name))
    entry = Samples("probe rtt", "ns", "of a probe", "probes", "rtt_ns", "duplicate", "command")
    assert samples.of_run(run, entry)[""].tolist() == [20_000_000.0 + number for number in range(18)]
    assert not samples.of_run(run, entry, Selection(None, "another step"))
    wanted = series.SeriesChoice(
        Series("probe rtt", "ns", "of a probe", "probes", "command", "rtt_ns"), SECOND, fine=True
    )
    (line,) = series.of_run(run, wanted).items()
    assert line[0] == "" and line[1].values[0] == 20_000_000


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("mean response time by buffer", "no run has this metric"),
        ("goodput by congestion, scale log", '"scale log": congestion has values like "cubic"'),
        ("rtt over time, run 99", "no measured run is of run 99"),
        ("cwnd over time, flows nobody", '"flows nobody": no flow has this name: there are load left1 to right1'),
        ("cdf of response time", "no run has such samples"),
        ("goodput by buffer, lines cc", '"lines cc": there is no such parameter'),
    ],
)
def test_what_cannot_be_drawn_is_said(
    experiment: load.ExperimentResults, found: Summary, line: str, error: str
) -> None:
    (said,) = custom.draw(experiment, found, [figures.parse(line)])
    assert isinstance(said, str) and error in said


def test_what_is_compared_is_side_by_side_and_many_lines_become_panels() -> None:
    points = [
        summaries.point({"parameters": {"rtt": rtt, "buffer": buffer, "cc": cc}, "runs": [1]})
        for rtt in ("10ms", "20ms", "100ms")
        for buffer in ("2BDP", "0.5BDP", "1BDP")
        for cc in ("reno", "cubic")
    ]
    layout = choice.layout(figures.parse("goodput by rtt"), points)
    assert layout.grouped == ["cc", "buffer"] and not layout.facets and len(layout.lines) == 6
    crowded = choice.layout(figures.parse("utilisation by cc"), points)
    assert crowded.facets == ["buffer"] and [key[0][1] for key in crowded.panels] == ["0.5BDP", "1BDP", "2BDP"]
    assert choice.layout(figures.parse("goodput by rtt, facets cc"), points).grouped == ["buffer"]


def test_points_without_the_parameter_of_an_axis_have_no_place_along_it() -> None:
    """An experiment that has the parameter stands beside one that has not."""
    points = [
        summaries.point({"parameters": parameters, "runs": [number]})
        for number, parameters in enumerate(({"cc": "reno", "streams": 1}, {"cc": "reno"}), 1)
    ]
    for line in ("goodput by streams", "goodput by cc and streams", "box of rtt by streams"):
        assert [place.point.runs for place in choice.layout(figures.parse(line), points).places] == [(1,)], line


def test_values_of_several_parameters_are_named() -> None:
    """Where cubic stands beside reno, the value does not identify its parameter; where no other parameter has such a
    value, it does."""
    points = [
        summaries.point({"parameters": {"left": left, "right": right, "queue": queue, "rtt": "cubic"}, "runs": [1]})
        for left in ("reno", "cubic")
        for right in ("cubic", "bbr")
        for queue in ("codel", "red")
    ]
    made = choice.layout(figures.parse("goodput by queue"), points)
    assert {made.named(line) for line in made.lines} == {
        "reno, right = cubic",
        "reno, bbr",
        "left = cubic, right = cubic",
        "left = cubic, bbr",
    }
    crowded = choice.layout(figures.parse("goodput by queue, facets right"), points)
    assert [crowded.named(panel) for panel in crowded.panels] == ["right = cubic", "bbr"]
    assert {made.named((("queue", value),)) for value in ("codel", "red")} == {"codel", "red"}


def test_what_is_written_beside_points_is_named_where_it_may_be_of_two(tmp_path: Path) -> None:
    points = [
        {"rtt": rtt, "delay": delay, "buffer": "1BDP", "congestion": variant}
        for rtt in ("100ms", "20ms")
        for delay in ("100ms", "5ms")
        for variant in ("cubic", "reno")
    ]
    experiment = load.experiment(synthetic.experiment(tmp_path, points, pairs=1, seconds=3, seeds=(1,)))
    found = summary.of(experiment)
    request = Request(
        experiment, found, figures.parse("goodput against queueing delay, lines congestion"), style.PAGE, ()
    )
    written = {phase._words(request, place) for place in request.layout.places}
    assert written == {"rtt 100ms, delay 100ms", "rtt 100ms, 5ms", "20ms, delay 100ms", "20ms, 5ms"}


def test_each_line_of_two_parameters_has_a_colour_and_a_dash_that_exist() -> None:
    """Seven buffers are more than there are colours; two parameters of six values each have one of their own."""
    for many in (6, 7, 8):
        points = [
            summaries.point({"parameters": {"buffer": f"{buffer}BDP", "crowd": crowd}, "runs": [1]})
            for buffer in range(1, many + 1)
            for crowd in (1, 2)
        ]
        made = choice.layout(figures.parse("rtt over time, lines buffer and crowd"), points)
        strokes = [made.stroke(line) for line in made.lines]
        assert len(set(strokes)) == len(strokes) > 6
        assert all(tint < len(style.COLOURS) and dash < len(style.DASHES) for tint, dash in strokes)


def test_a_value_looks_the_same_in_all_figures_of_an_experiment() -> None:
    points = [
        summaries.point({"parameters": {"buffer": buffer, "cc": cc}, "runs": [1]})
        for buffer in ("0.5BDP", "2BDP", "0.06BDP", "1BDP")
        for cc in ("reno", "cubic", "bbr")
    ]
    strokes: dict[str, set[tuple[int, int]]] = {}
    for line in ("goodput by cc", "rtt over time, lines buffer, where cc=bbr", "cdf of rtt, where buffer=2BDP",
                 "goodput by buffer", "cdf of rtt, facets buffer, where buffer=1BDP"):  # fmt: skip
        made = choice.layout(figures.parse(line), points)
        for key in made.lines:
            ((_, value),) = key
            strokes.setdefault(value, set()).add(made.stroke(key))
    assert set(strokes) == {"0.06BDP", "0.5BDP", "1BDP", "2BDP", "reno", "cubic", "bbr"}
    assert all(len(each) == 1 for each in strokes.values()), strokes
    part = [point for point in points if point.parameters["cc"] != "reno"]
    assert choice.layout(figures.parse("goodput by buffer"), part, every=points).stroke((("cc", "cubic"),)) == (1, 1)


def test_bands_that_would_hide_each_other_are_not_drawn(experiment: load.ExperimentResults, found: Summary) -> None:
    drawing = draw(experiment, found, "rtt over time, lines buffer and congestion")
    assert "Bands of more lines in one panel" in drawing.caption and "opacity: 0.2" not in drawing.svg
    few = draw(experiment, found, "rtt over time, lines congestion, facets buffer")
    assert "Bands of more" not in few.caption and "opacity: 0.2" in few.svg


def test_what_is_counted_has_ticks_at_whole_numbers() -> None:
    with style.sheet(1, 2.0) as (_, (axis,)):
        axis.plot([0, 1], [0, 1])
        scales.whole_ticks(axis.yaxis, "count")
        assert all(float(tick).is_integer() for tick in axis.get_yticks())


def test_the_axis_of_a_parameter() -> None:
    bdp = scales.axis_of("buffer", ["0.25BDP", "0.5BDP", "1BDP", "4BDP"])
    assert bdp.log and bdp.label == "buffer (BDP)" and list(bdp.places.values()) == [0.25, 0.5, 1, 4]
    linear = scales.axis_of("rtt", ["10ms", "20ms", "30ms"])
    assert not linear.log and linear.label == "rtt (ms)" and list(linear.places.values()) == [10, 20, 30]
    loss = scales.axis_of("loss", ["0%", "0.01%", "0.1%", "1%"])
    assert loss.log and loss.zero == pytest.approx(0.001) and loss.places["0%"] == loss.zero
    assert scales.axis_of("cc", ["reno", "cubic"]).words
    with pytest.raises(scales.ScaleError, match="write them as"):
        scales.axis_of("buffer", ["10pkt", "20pkt"], "bdp")


def test_intervals_end_where_the_impossible_begins(tmp_path: Path) -> None:
    assert scales.clipped(0.6, 1.75, (0.0, 1.0)) == scales.BoundedInterval(0.6, 1.0, below=False, above=True)
    assert scales.clipped(-2.0, 3.0, (0.0, None)) == scales.BoundedInterval(0.0, 3.0, below=True, above=False)
    place = synthetic.experiment(tmp_path, POINTS[:3], seeds=(1, 2), pairs=2, seconds=4)
    experiment = load.experiment(place)
    found = summary.of(experiment)
    found = with_mean(found, 0, "utilisation", low=0.3, high=1.75)
    drawing = draw(experiment, found, "utilisation by buffer")
    assert "Arrowheads: the interval goes on into what is impossible." in drawing.caption
    found = with_mean(found, 0, "aggregate goodput", mean=2e9)
    assert "Crosses: more than the link carries (1)." in draw(experiment, found, "goodput by buffer").caption


def test_values_close_together_stay_below_the_top_of_an_axis_from_zero() -> None:
    upper, lower = Figure().subplots(2, sharey=True)
    upper.plot([941.0, 943.0])
    lower.plot([955.0, 957.0])
    assert upper.get_ylim()[1] < 1.01 * 957 and scales.top([upper, lower]) == pytest.approx(1.05 * 957)
    upper.plot([0.0, 2000.0])
    assert scales.top([upper, lower]) == upper.get_ylim()[1] == pytest.approx(2100)


def test_losses_that_span_decades_have_a_logarithmic_axis(tmp_path: Path) -> None:
    experiment = load.experiment(synthetic.experiment(tmp_path, POINTS[:3], seeds=(1, 2), pairs=2, seconds=4))
    found = summary.of(experiment)
    for at, mean in enumerate((0.0, 0.0001, 0.05)):
        found = with_mean(found, at, "queue loss", mean=mean, low=None, high=None)
    zero = "Triangles on the lower edge: zero."
    assert zero in draw(experiment, found, "queue loss by buffer").caption
    assert zero not in draw(experiment, found, "queue loss by buffer, values linear").caption
    for at in range(3):
        found = with_mean(found, at, "queue loss", mean=0.0)
    (refused,) = custom.draw(experiment, found, [figures.parse("queue loss by buffer, values log")])
    assert refused == '"values log": queue loss is nowhere above zero: write "values linear"'


def test_an_axis_is_logarithmic_where_it_is_asked_for(experiment: load.ExperimentResults, found: Summary) -> None:
    linear, log = (draw(experiment, found, f"goodput by buffer, values {each}") for each in ("linear", "log"))
    assert linear.svg != log.svg and linear.csv == log.csv


@pytest.mark.parametrize("look", list(style.STYLES))
def test_the_same_numbers_give_the_same_bytes_in_every_kind_of_file(
    experiment: load.ExperimentResults, found: Summary, look: str
) -> None:
    line = "goodput by buffer, facets congestion"
    first = draw(experiment, found, line, ("pdf", "png"), look)
    assert first == draw(experiment, found, line, ("pdf", "png"), look)
    pdf = first.files["pdf"]
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf, "TrueType, embedded"
    (box,) = [part.split(b"]")[0] for part in pdf.split(b"/MediaBox [")[1:]]
    width = float(box.split()[2]) / 72
    assert width == pytest.approx(style.STYLES[look].width, abs=0.02), "inches"


def test_a_scenario_s_figures_are_in_the_report_and_one_that_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    told = [{"figure": "goodput by buffer", "name": "mine"}, {"figure": "mean response time by buffer"}]
    place = synthetic.experiment(tmp_path, POINTS[:2], seeds=(1,), pairs=1, seconds=3, told={"figures": told})
    page = report.write(place).read_text()
    assert '<figure id="mine">' in page and (place / "figures/mine.csv").exists()
    assert "A figure of the scenario is not drawn:" in page and "mean response time by buffer" in page


GOLDEN = Path(__file__).resolve().parent / "golden"
PICTURES = {
    "lines": "goodput by buffer",
    "bars": "goodput by buffer, relative to cubic of congestion",
    "map": "queueing delay by buffer and congestion",
    "phase": "goodput against queueing delay",
    "band": "queue over time, facets congestion",
    "chart": "shares over time, where buffer=1BDP",
    "cdf": "cdf of rtt",
    "box": "box of rtt by buffer",
    "timeline": "timeline",
}
TOLERANCE = 0.01
"""The share of pixels that may differ by more than a shade: another version of a font's outlines."""


@pytest.mark.parametrize("name", list(PICTURES))
def test_a_figure_looks_as_it_did_when_somebody_looked_at_it(
    experiment: load.ExperimentResults, found: Summary, name: str
) -> None:
    drawing = draw(experiment, found, PICTURES[name], ("png",), "paper-1col")
    own = pixels(drawing.files["png"])
    golden = pixels((GOLDEN / f"{name}.png").read_bytes())
    assert own.shape == golden.shape
    differ = (np.abs(own.astype(int) - golden.astype(int)).max(axis=-1) > 32).mean()
    assert differ <= TOLERANCE, (
        f"{differ:.1%} of the pixels differ: look at both, and replace the golden one if it is right"
    )


def pixels(png: bytes) -> Any:
    from matplotlib.image import imread

    return (imread(io.BytesIO(png))[..., :3] * 255).round().astype(np.uint8)


def test_panels_share_an_axis_that_holds_all_of_them(
    experiment: load.ExperimentResults, found: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The range is taken when every panel is drawn: none has its intervals cut by another's."""
    whole = found
    for at, point in enumerate(found.points):
        high = 40e6 if point.parameters["congestion"] == "reno" else 10e6
        whole = with_mean(whole, at, "mean queueing delay", mean=9e6, low=8e6, high=high)
    ranges: list[tuple[float, float]] = []
    drawn = style.drawn

    def kept(figure: Figure, *words: Any) -> Drawing:
        ranges.extend(axis.get_ylim() for axis in figure.axes)
        return drawn(figure, *words)

    monkeypatch.setattr(style, "drawn", kept)
    draw(experiment, whole, "queueing delay by buffer, facets congestion")
    assert len(ranges) == 2 and ranges[0] == ranges[1]
    assert ranges[0][0] == 0 and ranges[0][1] >= 40, "ms"


@pytest.mark.parametrize("look", ["paper-1col", "paper-2col", "slide"])
def test_panels_fit_on_a_page_of_a_paper(look: str) -> None:
    chosen = style.STYLES[look]
    for panels in range(1, 13):
        for height in (2.0, 2.8):
            columns = chosen.across(panels, height)
            width, tall = chosen.size(panels, columns, height)
            assert tall <= (7.5 if look == "slide" else 8.5)
            assert columns == min(panels, chosen.columns) or width / columns > 0.23 * chosen.font, "ticks can be read"
    assert chosen.across(1, 2.8) == 1 and style.STYLES["paper-1col"].across(3, 2.0) == 1
    assert style.PAGE.across(12, 2.8) == 2 and style.PAGE.size(12, 2, 2.0)[1] > 12, "a page in a browser has no end"


def test_a_figure_of_tables_takes_the_summary_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = synthetic.experiment(tmp_path, POINTS[:2], seeds=(1,), pairs=1, seconds=3)
    experiment = load.experiment(place)
    made, again = summary.analyse(place), summaries.summary()
    monkeypatch.setattr(summary, "of", lambda *_: again)
    assert summary.for_figure(experiment, []) == made
    assert summary.for_figure(experiment, figures.parse("goodput by buffer").quantities) is again
    (place / "summary.json").write_text("{}")
    assert summary.for_figure(experiment, []) is again


def test_of_more_runs_than_are_read_the_points_that_are_drawn_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [{"congestion": cc, "buffer": f"{n}BDP"} for cc in ("reno", "cubic") for n in range(1, 8)]
    place = synthetic.experiment(tmp_path, points, pairs=1, seconds=2)
    experiment = load.experiment(place)
    found = summary.of(experiment)
    lines = ["cwnd over time, where congestion=reno", "cdf of rtt, lines congestion, where buffer=1BDP"]
    specs = [figures.parse(line) for line in lines]
    whole = custom.draw(experiment, found, specs)
    monkeypatch.setattr(choice, "MOST_RUNS", 21)
    assert custom.draw(experiment, found, specs) == whole, "no more than 21 runs"
    monkeypatch.setattr(choice, "MOST_RUNS", 8)
    first, second = custom.draw(experiment, found, specs)
    assert isinstance(first, Drawing) and isinstance(second, Drawing)
    assert "Made of 7 of 21 runs, of each point the first 1: 7 of 7 points are drawn." in first.caption
    assert "seed 1" in first.caption and second == whole[1]
    (one,) = custom.draw(experiment, found, [figures.parse("cwnd over time, run 6")])
    assert isinstance(one, Drawing) and "run 6" in one.caption, "a run that is named is read"
