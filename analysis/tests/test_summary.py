"""Summaries of made-up experiments: grouping, intervals, ratios, numbers of papers."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ewan.analysis import load, metric_tables, metrics, statistics, summary
from ewan.analysis.tests import synthetic
from ewan.analysis.tests.synthetic import SECOND
from ewan.extra import installed
from ewan.labs.record import metrics as vocabulary
from ewan.labs.record import summary as summaries
from ewan.labs.record import tables
from ewan.labs.record.metric import Metric, MetricGroup
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.scenario_requests import Values
from ewan.labs.record.summary import LinkDirection, Ratio

CC = [{"congestion": "reno", "rtt": "20ms"}, {"congestion": "cubic", "rtt": "20ms"}]
BY_RENO = {"normalise": {"by": "congestion", "to": "reno"}}


def small(directory: Path, points: list[dict[str, Any]], **options: Any) -> Path:
    return synthetic.experiment(directory, points, **{"pairs": 2, "seconds": 4, **options})


def numbers(values: Iterable[float | None]) -> list[float]:
    """Values that are all there."""
    there = list(values)
    assert None not in there
    return [value for value in there if value is not None]


def edit(directory: Path, **changes: Any) -> None:
    path = directory / "experiment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_points_are_parameters_and_seeds_make_intervals(tmp_path: Path) -> None:
    found = summary.analyse(small(tmp_path, CC))
    assert summaries.read(tmp_path) == found
    assert [point.parameters for point in found.points] == CC
    assert [point.seeds for point in found.points] == [3, 3]
    assert [run.number for run in found.runs] == [1, 2, 3, 4, 5, 6]
    own = numbers(run.metrics["mean completion time"].value for run in found.runs[:3])
    mean = found.points[0].metrics["mean completion time"]
    assert mean.mean == pytest.approx(sum(own) / 3)
    low, high = numbers((mean.low, mean.high))
    assert low < min(own) and high > max(own)  # t for 3 values is 4.3: wider than the values
    assert (mean.unit, mean.n, mean.kind) == ("ns", 3, "t")
    again = statistics.interval(own)
    assert (mean.low, mean.high, mean.more_seeds) == (again.low, again.high, statistics.more_seeds(own))
    assert found.runs[0].bottleneck == LinkDirection("core", "forward")


def test_a_metric_of_an_extra_is_there_without_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = Metric("number of flows", "count", "flows of the load", MetricGroup.NETWORK)
    extras = replace(installed(), metrics={metric.name: lambda: (metric, lambda run: float(run.load.height))})
    for module in (metrics, vocabulary):
        monkeypatch.setattr(module, "installed", lambda: extras)
    place = small(tmp_path, CC, told={"metrics": ["number of flows", "number of flows of source left1"]})
    found = summary.analyse(place)
    assert {run.metrics["number of flows"].value for run in found.runs} == {2}
    assert [point.metrics["number of flows"].mean for point in found.points] == [2, 2]
    first = next(metric_tables.tables(load.experiment(place), found))
    assert [column.name for column in first.columns] == ["number of flows", "number of flows of source left1"]


def test_of_each_stands_for_all_that_are_there_in_the_first_table(tmp_path: Path) -> None:
    named = [*(f"rtt p{rank}" for rank in (50, 95, 99)), "mean rtt", "share of each source", "mean goodput of load"]
    place = small(tmp_path, CC, told={"metrics": named})
    tables = list(metric_tables.tables(load.experiment(place), summary.analyse(place)))
    columns = {table.title: [column.name for column in table.columns] for table in tables}
    assert columns["Main results"][-2:] == ["share of source left1", "share of source left2"]
    assert columns["Further results"] == ["mean goodput of load"], "what no group of metrics has"


def test_ratios_are_of_the_same_seed_and_the_same_other_parameters(tmp_path: Path) -> None:
    found = summary.analyse(small(tmp_path, [*CC, {"congestion": "cubic", "rtt": "50ms"}], told=BY_RENO))
    reno, cubic, alone = found.points
    assert reno.normalised["mean completion time"] == Ratio(1, 1, 1, 3, "t")
    times = numbers(run.metrics["mean completion time"].value for run in found.runs)
    expected = sum(times[3 + seed] / times[seed] for seed in range(3)) / 3
    assert cubic.normalised["mean completion time"].ratio == pytest.approx(expected)
    assert alone.normalised == {}  # there is no Reno at 50 ms


def test_an_interval_of_a_share_stays_a_share(tmp_path: Path) -> None:
    found = summary.analyse(small(tmp_path, CC))
    bounded = [name for name, metric in METRICS.items() if metric.bounds[1] == 1.0]
    values = [point.metrics[name] for point in found.points for name in bounded if name in point.metrics]
    bounds = [numbers((value.low, value.mean, value.high)) for value in values]
    assert len(bounds) > 10 and all(0 <= low <= mean <= high <= 1 for low, mean, high in bounds)


def test_one_seed_has_no_intervals(tmp_path: Path) -> None:
    found = summary.analyse(small(tmp_path, CC, seeds=(1,), told=BY_RENO))
    assert found.points[1].metrics["fairness per flow"].low is None
    assert found.points[1].normalised["fairness per flow"].low is None


def test_numbers_of_papers_stand_beside_those_measured(tmp_path: Path) -> None:
    told = [
        {"source": "A", "when": {"streams": "2"}, "metric": "aggregate goodput", "value": 1e8, "unit": "bit/s"},
        {"source": "B", "when": {"streams": 9}, "metric": "fairness per flow", "value": 0.99},
        {"source": "C", "when": {}, "metric": "mean completion time", "value": 5e9, "unit": "ns"},
    ]
    found = summary.analyse(small(tmp_path, [{"streams": 1}, {"streams": 2}], told={"beside": told}))
    first, missing, *everywhere = found.beside
    (measured,) = numbers([found.points[1].metrics["aggregate goodput"].mean])
    assert (first.paper, first.here, first.unit) == (100_000_000, measured, "bit/s")
    assert first.difference == pytest.approx(measured / 100_000_000 - 1)
    assert (missing.paper, missing.here, missing.difference) == (0.99, None, None)
    assert [each.parameters for each in everywhere] == [{"streams": 1}, {"streams": 2}]
    assert everywhere[0].paper == 5 * SECOND


def test_a_number_that_is_itself_a_difference(tmp_path: Path) -> None:
    told = [{"source": "NXE", "when": {"r": 1}, "than": {"r": 0}, "metric": "mean completion time", "value": 0.025}]
    found = summary.analyse(small(tmp_path, [{"r": 0}, {"r": 1}], told={"beside": told}))
    times = numbers(run.metrics["mean completion time"].value for run in found.runs)
    expected = sum(times[3 + seed] / times[seed] for seed in range(3)) / 3 - 1
    (entry,) = found.beside
    assert (entry.paper, entry.unit) == (0.025, "share")
    assert entry.here == pytest.approx(expected)
    assert entry.difference == pytest.approx(expected - 0.025)


def test_points_are_made_of_complete_runs(tmp_path: Path) -> None:
    document = json.loads((small(tmp_path, CC) / "experiment.json").read_text())
    for index in (0, 3, 4, 5):  # one of Reno's, all of CUBIC's
        document["runs"][index]["status"] = "incomplete"
    edit(tmp_path, runs=document["runs"], status="incomplete")
    reno, cubic = summary.analyse(tmp_path).points
    assert (reno.runs, reno.complete) == ((2, 3), True)
    assert (cubic.runs, cubic.complete) == ((4, 5, 6), False)


def test_runs_that_never_ran_are_points_without_values(tmp_path: Path) -> None:
    document = json.loads((small(tmp_path, CC) / "experiment.json").read_text())
    for run in document["runs"][3:]:
        run["status"], run["directory"] = "waiting", "runs/999"
    edit(tmp_path, runs=document["runs"])
    found = summary.analyse(tmp_path)
    assert [point.seeds for point in found.points] == [3, 0]
    assert found.points[1].metrics == {}


@pytest.mark.parametrize("kind", ["arrivals", "requests", "messages", "udp"])
def test_every_kind_has_its_metrics(tmp_path: Path, kind: str) -> None:
    found = summary.analyse(small(tmp_path, CC, seeds=(1,), kind=kind))
    wanted = {
        "arrivals": "coefficient of variation",
        "requests": "p95 response time",
        "messages": "mean iteration time",
        "udp": "udp jitter",
    }
    for point in found.points:
        assert wanted[kind] in point.metrics
        assert point.metrics.keys() <= METRICS.keys()


def test_points_are_named_by_what_varies(tmp_path: Path) -> None:
    points: list[Values] = [
        {"cc": "bic", "rtt": "1ms", "size": "null", "k": 1},
        {"cc": "reno", "rtt": "5ms", "size": "1kB", "k": 1},
    ]
    experiment = load.experiment(small(tmp_path, points, seeds=(1,)))
    assert [experiment.label(point) for point in points] == ["bic, rtt = 1ms", "reno, rtt = 5ms, size = 1kB"]


def test_frames_of_all_runs_carry_their_parameters(tmp_path: Path) -> None:
    frame = load.experiment(small(tmp_path, CC)).frame("flows")
    assert frame["run"].unique().sort().to_list() == [1, 2, 3, 4, 5, 6]
    assert frame.filter(frame["run"] == 4)["parameter_congestion"].unique().to_list() == ["cubic"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("8353.66Mbit/s", (8_353_660_000, "bit/s")),
        ("19.8ms", (19_800_000, "ns")),
        ("2.5%", (0.025, "share")),
        ("100kB", (100_000, "B")),
        ("30Gbit", (3_750_000_000, "B")),
        ("0.9993", (0.9993, "")),
        (3, (3, "")),
    ],
)
def test_numbers_as_people_write_them(value: Any, expected: tuple[float, str]) -> None:
    assert summary.number(value, "") == expected


def test_what_is_no_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(load.LoadError, match=r"no experiment\.json is in it"):
        summary.analyse(tmp_path)
    with pytest.raises(load.LoadError, match="there is no such directory"):
        summary.analyse(tmp_path / "none")
    (tmp_path / "experiment.json").write_text('{"format": "ewan-experiment/9"}')
    with pytest.raises(load.LoadError, match="this version reads"):
        summary.analyse(tmp_path)


def test_an_older_experiment_says_so(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text('{"format": "ewan-experiment/1"}')
    with pytest.raises(load.LoadError, match=r"experiment\.json: an older version made this experiment .*: run its"):
        summary.analyse(tmp_path)


@pytest.mark.parametrize("table", ["flows", "series", "goodput", "links"])
def test_a_flipped_bit_in_a_table_is_named(tmp_path: Path, table: str) -> None:
    small(tmp_path, CC, seeds=(1,))
    path = tmp_path / f"runs/002/{table}.parquet"
    whole, draw = path.read_bytes(), random.Random(table)
    for place in (0, len(whole) - 1, *(draw.randrange(len(whole)) for _ in range(6))):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises(load.LoadError, match=rf"^{path}: is damaged, .* --from execution` measures it anew$"):
            load.experiment(tmp_path).runs[1].table(table)
    path.unlink()
    with pytest.raises(load.LoadError, match=rf"^{path}: is missing: "):
        load.experiment(tmp_path).runs[1].table(table)


def test_the_summary_reads_no_damaged_table(tmp_path: Path) -> None:
    small(tmp_path, CC, seeds=(1,))
    (tmp_path / "runs/002/flows.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(load.LoadError, match=r"runs/002/flows\.parquet: is damaged"):
        summary.analyse(tmp_path)


def test_a_panic_of_polars_is_one_line(tmp_path: Path) -> None:
    """Each damaged file ends in an error of ours or reads as a table.

    Not of every flip: some make polars ask for more memory than there is, which ends the process. A recorded file is
    compared with its checksum before polars sees it."""
    small(tmp_path, CC, seeds=(1,))
    place, draw = tmp_path / "runs/001", random.Random(1)
    path = place / "series.parquet"
    whole = path.read_bytes()
    for _ in range(300):
        flipped = bytearray(whole)
        flipped[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        with contextlib.suppress(ValueError):
            tables.read(place, "series")


EVENT = {"at_ns": 0, "link": "core", "direction": "forward", "change": {}, "error": None}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("schedule.json", {"paths": [{"source": "a"}]}, "no key"),
        ("schedule.json", {"paths": 7}, "paths is 7, not a list"),
        ("events.json", {"events": ["x"]}, "events[0] is 'x', not an object"),
        ("events.json", {"events": 0.5}, "events is 0.5, not a list"),
        ("events.json", {"events": [{**EVENT, "applied_ns": "soon"}]}, "events[0].applied_ns is 'soon'"),
    ],
)
def test_a_file_of_a_run_with_another_content_is_named(
    tmp_path: Path, name: str, content: dict[str, object], says: str
) -> None:
    place = tmp_path / "x"
    synthetic.experiment(place, [{"congestion": "reno"}], seeds=(1,), pairs=1, seconds=2)
    file = next(place.glob(f"runs/*/{name}"))
    file.write_text(json.dumps({**json.loads(file.read_text()), **content}))
    synthetic.vouch(place)
    run = load.experiment(place).runs[0]
    with pytest.raises(load.LoadError) as refused:
        _ = run.paths
        run.changes_ns()
    assert str(refused.value).startswith(f"{file}: ") and says in str(refused.value)
