"""Results in Python: frames with units in their columns' names, intervals by any choice of parameters."""

from __future__ import annotations

import polars as pl
import pytest

import ewan
from analysis import statistics
from analysis.api import Results
from analysis.load import LoadError
from analysis.tests import synthetic

POINTS = [{"congestion": cc, "rtt": rtt} for cc in ("reno", "cubic") for rtt in ("10ms", "20ms")]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return ewan.load(synthetic.experiment(tmp_path_factory.mktemp("api") / "x", POINTS, seconds=5))


def test_a_metric_has_a_row_a_run_with_its_parameters_and_unit(study: Results) -> None:
    frame = study.metric("aggregate goodput").frame
    assert frame.columns == ["run", "seed", "congestion", "rtt", "quantity", "value (bit/s)"]
    assert frame.height == len(POINTS) * 3
    assert study.parameters == ("congestion", "rtt")


def test_by_puts_all_runs_of_a_choice_together(study: Results) -> None:
    values = study.metric("aggregate goodput")
    found = values.by("congestion")
    assert found["congestion"].to_list() == ["reno", "cubic"]
    own = values.frame.filter(pl.col("congestion") == "cubic")["value (bit/s)"].to_list()
    expected = statistics.interval(own)
    columns = ["mean (bit/s)", "low (bit/s)", "high (bit/s)", "n"]
    row = found.filter(pl.col("congestion") == "cubic").select(columns).row(0)
    assert row == pytest.approx((expected.mean, expected.low, expected.high, 6))


def test_each_flow_has_a_row(study: Results) -> None:
    found = study.metric("mean goodput of each flow").by("congestion")
    names = [f"mean goodput of flow load left{n} to right{n}" for n in range(1, 5)]
    assert found["quantity"].unique().sort().to_list() == names


def test_tables_of_all_runs_are_one_frame(study: Results) -> None:
    flows = study.table("flows")
    assert flows["run"].n_unique() == 12
    assert {"rtt", "parameter_congestion", "congestion"} <= set(flows.columns), "a table has a column congestion itself"


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(LoadError, match="there is no such directory"):
        ewan.load("/nowhere")


def test_wrong_words_are_refused(study: Results) -> None:
    with pytest.raises(ValueError, match="unknown metric"):
        study.metric("speed")
    with pytest.raises(ValueError, match="unknown parameter 'buffer': write one of congestion, rtt"):
        study.metric("utilisation").by("buffer")
    with pytest.raises(ValueError, match="unknown table 'flow'"):
        study.table("flow")


def test_a_figure_is_asked_for_in_one_line(study: Results) -> None:
    drawing = study.figure("goodput by rtt", style="paper-1col", kinds=("pdf",))
    assert drawing.files["pdf"].startswith(b"%PDF") and drawing.csv.count("\n") == len(POINTS) + 1
    assert "n = 3" in drawing.caption and drawing._repr_svg_().startswith("<?xml")
    with pytest.raises(ValueError, match='"lines cc": there is no such parameter'):
        study.figure("goodput by rtt, lines cc")
