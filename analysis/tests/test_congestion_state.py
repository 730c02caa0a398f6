"""The state of a congestion control over time: numbers in the unit of their name, words as steps between them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ewan.analysis import single_figure
from ewan.analysis.cli import wish
from ewan.analysis.figures.request import FigureError
from ewan.analysis.figures.style import STYLES
from ewan.analysis.tests import synthetic
from ewan.labs.record import tables
from ewan.labs.record.series import series_named


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """An experiment whose series has a mode, and an RTT in microseconds."""
    directory = synthetic.experiment(tmp_path / "e", [{"congestion": "reno"}], seeds=(1, 2), pairs=2)
    for run in directory.glob("runs/*"):
        table = tables.read(run, "series")
        mode = pl.when(pl.int_range(pl.len()) % 10 < 5).then(pl.lit("DRAIN")).otherwise(pl.lit("PROBE_BW"))
        tables.write(run, "series", table.with_columns(mode.alias("cc.mode"), pl.lit(20_000).alias("cc.min_rtt_us")))
    synthetic.vouch(directory)
    return directory


def drawn(directory: Path, line: str) -> tuple[str, str]:
    _, drawing = single_figure.drawn(directory, wish(line, "plot"), next(iter(STYLES.values())), ["svg"], None)
    return drawing.svg, drawing.csv


def test_words_stand_on_the_axis(experiment: Path) -> None:
    svg, csv = drawn(experiment, "cc.mode over time, run 1")
    assert "PROBE_BW" in svg and ",DRAIN" in csv


def test_words_have_no_mean(experiment: Path) -> None:
    with pytest.raises(FigureError, match="words have no mean"):
        drawn(experiment, "cc.mode over time")


def test_microseconds_are_drawn_as_times(experiment: Path) -> None:
    _, csv = drawn(experiment, "cc.min_rtt_us over time, run 1")
    assert ",ns," in csv and csv.splitlines()[1].split(",")[-1].startswith(("20000000", "2e+07"))


def test_a_run_without_the_column_has_no_such_series(experiment: Path) -> None:
    with pytest.raises(FigureError, match="no run has such a series"):
        drawn(experiment, "cc.none over time")


def test_units_follow_the_names() -> None:
    found = {
        name: series_named(name) for name in ("cc.bw_bps", "cc.mode", "cc.bw.s[0].t", "cc.pacing_gain", "cc.", "x")
    }
    units = {name: None if entry is None else entry.unit for name, entry in found.items()}
    assert units == {"cc.bw_bps": "bit/s", "cc.mode": "count", "cc.bw.s[0].t": "count", "cc.pacing_gain": "ratio",
                     "cc.": None, "x": None}  # fmt: skip
