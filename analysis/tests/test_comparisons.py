"""Comparisons by `compare:`, on synthetic values: pairs by seed, Holm over all, harm, quantities of each step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ewan.analysis import comparisons, load, report, report_tables, summary
from ewan.analysis.tests import synthetic
from ewan.experiments.engine import show
from ewan.labs.base.codec import replace
from ewan.labs.record import tables
from ewan.labs.record.scenario_requests import Comparison

pytestmark = pytest.mark.slow

BY = Comparison("cc", "reno", ("mean goodput",), False)


def values(*goodputs: float, name: str = "mean goodput") -> dict[int, dict[str, float]]:
    return {seed: {name: value} for seed, value in enumerate(goodputs, 1)}


def point(**parameters: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(parameters.items())


def test_every_other_value_against_the_one_by_seed() -> None:
    # Differences 1, 2, 3: mean 2, half width 4.3027/√3; p = 0.0742. The other point is 10 less each: p = 2·2⁻³.
    by_seed = {
        point(cc="reno", rtt="1ms"): values(10, 20, 30),
        point(cc="bbr", rtt="1ms"): values(11, 22, 33),
        point(cc="cubic", rtt="1ms"): values(0, 10, 20),
        point(cc="bbr", rtt="9ms"): values(1, 2, 3),
    }
    bbr, cubic = comparisons.of([BY], by_seed, [], 0.95)
    assert (bbr["value"], bbr["difference"], bbr["test"], bbr["size"]) == ("bbr", 2, "paired t", 2)
    assert [bbr["low"], bbr["high"]] == pytest.approx([-0.484, 4.484], abs=1e-3)
    assert bbr["p"] is not None and bbr["p"] == pytest.approx(0.0742, abs=1e-4)
    assert bbr["p_holm"] == pytest.approx(2 * bbr["p"]) and cubic["p_holm"] == 0.25
    assert bbr["outcome"] == cubic["outcome"] == "no difference shown"


def test_an_outcome_says_whether_it_is_better() -> None:
    by_seed = {
        point(cc="reno"): {seed: {"mean goodput": 10.0 + seed, "queue loss": 0.1} for seed in range(5)},
        point(cc="bbr"): {
            seed: {"mean goodput": 20.0 + seed + 0.1 * (seed % 2), "queue loss": 0.2 + 0.001 * seed}
            for seed in range(5)
        },
    }
    rows = comparisons.of([replace(BY, metrics=("mean goodput", "queue loss"))], by_seed, [], 0.95)
    assert [row["outcome"] for row in rows] == ["more, better", "more, worse"]


def test_a_share_of_one_party_is_neither_better_nor_worse() -> None:
    by_seed = {
        point(cc=cc): {seed: {"share of web": least + 0.001 * seed} for seed in range(6)}
        for cc, least in (("reno", 0.4), ("bbr", 0.1))
    }
    (row,) = comparisons.of([replace(BY, metrics=("share of web",))], by_seed, [], 0.95)
    assert row["outcome"] == "less"


def test_harm_is_what_is_lost_of_what_the_reference_has() -> None:
    # 10 without another flow, 4, 5, 6 beside one: 60, 50, 40 % are lost.
    by_seed = {point(cc="reno"): values(10, 10, 10), point(cc="bbr"): values(4, 5, 6)}
    (row,) = comparisons.of([replace(BY, harm=True)], by_seed, [], 0.95)
    assert row["difference"] == pytest.approx(0.5) and row["low"] == pytest.approx(
        0.5 - 4.3027 * 0.1 / 3**0.5, rel=1e-4
    )
    assert row["outcome"] == "harmed"
    assert comparisons.harm([20.0], [10.0], "less") == [0.5], "twice the delay: half of it is the other's"
    assert comparisons.harm([20.0], [0.0], "more") is None
    assert comparisons.harm([20.0], [10.0], None) is None


def test_one_seed_is_not_tested() -> None:
    (row,) = comparisons.of([BY], {point(cc="reno"): values(1), point(cc="bbr"): values(2)}, [], 0.95)
    assert (row["difference"], row["p"], row["p_holm"], row["outcome"]) == (1, None, None, "not tested")


def test_of_each_step_is_of_all_that_are_there() -> None:
    both = {1: {"share of web": 0.2, "share of bulk": 0.8}}
    entry = replace(BY, metrics=("share of each step",))
    rows = comparisons.of([entry], {point(cc="reno"): both, point(cc="bbr"): both}, [], 0.95)
    assert [row["metric"] for row in rows] == ["share of web", "share of bulk"]


def test_comparisons_and_steps_are_in_the_summary_the_report_and_the_terminals_tables(tmp_path: Path) -> None:
    points = [{"congestion": name} for name in ("reno", "cubic")]
    asked = {"by": "congestion", "to": "reno", "metrics": ["mean completion time"], "harm": False}
    synthetic.experiment(tmp_path, points, pairs=2, seconds=4, reverse=1, told={"compare": [asked]})
    found = summary.analyse(tmp_path)
    (row,) = found.comparisons
    own = [run.metrics["mean completion time"].value or 0 for run in found.runs]
    assert row["difference"] == pytest.approx(sum(own[3:]) / 3 - sum(own[:3]) / 3)
    assert found.points[0].steps.keys() == {"load", "reverse"}
    reverse = found.points[0].steps["reverse"]["aggregate goodput"].mean
    assert reverse == pytest.approx(found.points[0].metrics["reverse goodput"].mean)
    experiment = load.experiment(tmp_path)
    steps = report_tables.steps(experiment, found)
    assert steps is not None and [words for words, _ in steps.rows] == [
        ["reno", "load"], ["reno", "reverse"], ["cubic", "load"], ["cubic", "reverse"]
    ]  # fmt: skip
    page = report.write(tmp_path).read_text()
    assert "<h3>Steps</h3>" in page and "cubic against reno" in page and "Student&#39;s t" in page
    sheet = show.comparisons(found)
    assert sheet is not None and sheet.rows[0][:2] == ["mean completion time", "cubic against reno"]


def test_more_than_the_link_carries_is_marked(tmp_path: Path) -> None:
    """The links of an experiment of 1 Gbit/s are recorded with a tenth of it."""
    synthetic.experiment(tmp_path, [{"congestion": "reno"}], seeds=(1, 2), pairs=2, seconds=4)
    for place in tmp_path.glob("runs/*"):
        links = tables.read(place, "links")
        tables.write(place, "links", links.with_columns(rate_bps=pl.lit(100_000_000)))
    synthetic.vouch(tmp_path)
    found = summary.analyse(tmp_path)
    assert found.points[0].beyond["aggregate goodput"] == (1, 2)
    page = report.write(tmp_path).read_text()
    assert report_tables.BEYOND in page and "more than the links carry" in page
    (table,) = show.points(found, "t", ["aggregate goodput"])
    assert show.BEYOND in table.rows[0][1] and show.BEYOND == report_tables.BEYOND
