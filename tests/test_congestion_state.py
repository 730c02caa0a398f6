"""The state of congestion controls is in the series of a run of the virtual clock, and says what the path is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from ewan.generator import records, traffic_request
from ewan.labs import host
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.record.tables import MORE
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

CONTROLS = ["bbr", "bbr3", "vegas", "yeah", "westwood", "dctcp", "cubic"]
RATE_BPS, RTT_NS = 20_000_000, 40 * NS_PER_MS
LASTS_NS, TURN_NS = 5 * NS_PER_SECOND, 10 * NS_PER_SECOND


def series(controls: list[str], directory: Path) -> pl.DataFrame:
    """The series of one flow of each control after the other, over an empty path."""
    words = {"name": f"cs{os.getpid()}", "rate": f"{RATE_BPS // 10**6}Mbit/s", "rtt": f"{RTT_NS // NS_PER_MS}ms"}
    plan = compile(from_template("dumbbell", words), host.virtual_facts())
    flows = [
        traffic_request.BulkTransfer("left1", "right1", control, start_ns=number * TURN_NS, duration_ns=LASTS_NS)
        for number, control in enumerate(controls)
    ]
    traffic = traffic_request.transfers(plan, flows, "virtual", sample_ns=20 * NS_PER_MS)
    program = Program(longest_ns=traffic.longest_ns, traffic=traffic)
    run = VirtualRuntime(BINARY).run(plan, program, directory, threading.Event())
    traffic_request.completed(run.directory)
    return records.csv(run.directory / "traffic/series.csv", "series")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """The rows of each control."""
    table = series(CONTROLS, tmp_path_factory.mktemp("states"))
    return {control: table.filter(pl.col("flow") == number) for number, control in enumerate(CONTROLS)}


def values(rows: pl.DataFrame, column: str) -> NDArray[np.float64]:
    """Those that are known."""
    return rows[column].drop_nulls().cast(pl.Float64).to_numpy()


@pytest.mark.parametrize("control", ["bbr", "bbr3"])
def test_bbr_estimates_the_rate_and_the_rtt_of_the_path(found: dict[str, pl.DataFrame], control: str) -> None:
    rows = found[control].filter(pl.col("time_ns") - pl.col("time_ns").min() > NS_PER_SECOND)
    # The rate counts headers and framing, the estimate payload.
    assert 0.85 * RATE_BPS < np.median(values(rows, "cc.bw_bps")) < RATE_BPS
    assert RTT_NS <= values(rows, "cc.min_rtt_ns").min() < RTT_NS + 2 * NS_PER_MS
    gains = values(rows, "cc.pacing_gain")
    assert gains.min() < 1 < gains.max()
    assert 1.5 < np.median(values(rows, "cc.cwnd_gain")) < 3


def test_bbr_paces_with_the_gain_of_its_start(found: dict[str, pl.DataFrame]) -> None:
    assert values(found["bbr"], "cc.pacing_gain").max() == pytest.approx(2.887, abs=0.01)


@pytest.mark.parametrize("control", ["vegas", "yeah"])
def test_the_base_rtt_is_that_of_the_path(found: dict[str, pl.DataFrame], control: str) -> None:
    rows = found[control]
    assert RTT_NS <= values(rows, "cc.base_rtt_ns").min() < RTT_NS + 2 * NS_PER_MS
    assert values(rows, "cc.rtt_samples").max() > 1


def test_westwood_knows_the_least_and_the_last_rtt(found: dict[str, pl.DataFrame]) -> None:
    rows = found["westwood"].drop_nulls("cc.rtt_ns")
    assert RTT_NS <= values(rows, "cc.min_rtt_ns").min() < RTT_NS + 11 * NS_PER_MS
    assert (rows["cc.rtt_ns"] >= rows["cc.min_rtt_ns"]).all()


def test_dctcp_has_an_alpha_between_nothing_and_all(found: dict[str, pl.DataFrame]) -> None:
    rows = found["dctcp"].filter(pl.col("cc.enabled") == 1)
    assert not rows.is_empty()
    assert rows["cc.alpha"].is_between(0, 1).all()


def test_a_control_that_tells_nothing_has_no_value(found: dict[str, pl.DataFrame]) -> None:
    assert all(found["cubic"][column].null_count() == found["cubic"].height for column in MORE["series"])


def test_without_such_a_control_the_series_is_as_it_was(tmp_path: Path) -> None:
    assert not [column for column in series(["cubic"], tmp_path).columns if column.startswith("cc.")]
