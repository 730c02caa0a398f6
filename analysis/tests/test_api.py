"""Results in Python: frames with units in their columns' names, intervals by any choice of parameters."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import ewan
from ewan.analysis import measurement_cache, statistics
from ewan.analysis.api import Results
from ewan.analysis.load import LoadError
from ewan.analysis.tests import synthetic

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
    assert repr(drawing) == f"{drawing.title}: {drawing.caption}", "a notebook keeps it beside the picture"
    assert drawing.files["pdf"].startswith(b"%PDF") and drawing.csv.count("\n") == len(POINTS) + 1
    assert "n = 3" in drawing.caption and drawing._repr_svg_().startswith("<?xml")
    with pytest.raises(ValueError, match='"lines cc": there is no such parameter'):
        study.figure("goodput by rtt, lines cc")


def test_a_table_is_read_as_far_as_it_is_asked_for(study: Results) -> None:
    query = study.scan("goodput", runs=[2, 5]).group_by("run", "rtt").agg(pl.col("delivered_bytes").sum())
    found = query.sort("run").collect()
    expected = study.table("goodput").filter(pl.col("run").is_in([2, 5]))
    assert found["run"].to_list() == [2, 5] and found["rtt"].to_list() == ["10ms", "20ms"]
    assert found["delivered_bytes"].sum() == expected["delivered_bytes"].sum()
    assert study.scan("pings").collect().is_empty()


def test_a_damaged_file_is_named_before_anything_is_read(tmp_path: Path) -> None:
    place = synthetic.experiment(tmp_path, POINTS[:1], seconds=2)
    (place / "runs/002/links.parquet").write_bytes(b"damaged")
    with pytest.raises(LoadError, match=r"002/links\.parquet: is damaged"):
        ewan.load(place).scan("links")
    assert ewan.load(place).scan("flows").collect().height


def test_parameters_that_some_runs_have_come_last(tmp_path: Path) -> None:
    place = synthetic.experiment(tmp_path, [{"congestion": "reno"}, {"congestion": "cubic", "rtt": "9ms"}], seconds=2)
    found = ewan.load(place).table("links")
    assert found.columns[:3] == ["run", "seed", "congestion"] and found.columns[-1] == "rtt"
    assert found.filter(pl.col("run") == 1)["rtt"].null_count() == found.filter(pl.col("run") == 1).height > 0


def test_tables_are_listed_without_opening_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement_cache, "FEWEST_KEPT", 2)
    study = ewan.load(synthetic.experiment(tmp_path, POINTS[:1], seconds=2))
    links = study.tables.filter(pl.col("table") == "links").row(0, named=True)
    assert links["runs"] == 3 and links["rows"] is None and links["columns"][:2] == ["link", "direction"]
    values = study.metric("utilisation").frame
    (tmp_path / "runs/001/links.parquet").unlink()
    assert study.tables.filter(pl.col("table") == "links")["rows"].item() > 0
    assert study.metric("utilisation").frame.equals(values), "kept"


def test_of_what_still_runs_there_is_what_is_complete(tmp_path: Path) -> None:
    place = synthetic.experiment(tmp_path, POINTS[:2], seconds=2)
    path = place / "experiment.json"
    document = json.loads(path.read_text())
    document["status"], document["ended"] = "running", None
    for run in document["runs"][4:]:
        run["status"] = "waiting"
    files = {name: known for name, known in document["files"].items() if name[:8] not in ("runs/005", "runs/006")}
    path.write_text(json.dumps({**document, "files": files}))
    study = ewan.load(place)
    assert study.so_far == "4 of 6 runs complete"
    assert study.table("flows")["run"].unique().sort().to_list() == [1, 2, 3, 4]
    assert study.metric("mean goodput").by("rtt")["n"].to_list() == [3, 1]
    assert "runs 1–4" in study.figure("mean goodput by rtt").caption
