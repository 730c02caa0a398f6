"""What programs of a run's steps measure, against closed forms: labs in the virtual clock, through to the metrics."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ewan.analysis import metrics
from ewan.analysis.rundata import RunData
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.record import own_tables, tables
from ewan.labs.record.quantities import parse
from tests.test_workloads import lab, virtual

pytestmark = pytest.mark.virtual

MINIMUM_RTO_NS = 200 * NS_PER_MS


def test_a_link_that_is_down_loses_the_pings_of_its_time_and_the_timer_of_tcp_runs_out(tmp_path: Path) -> None:
    """Down for 2 s: ten pings of 0.2 s; and a timer that runs out at most at 0.2 s, 0.6 s and 1.4 s for certain."""
    run = virtual(
        f"""
{lab("20ms", "10Mbit/s", ", buffer: 20ms", pairs=2)}
steps:
  - {{name: transfer, from: left1, to: right1, for: 8s, bulk: }}
  - {{name: ping, at: 100ms, on: left2, run: ping -D -i 0.2 -c 40 right2}}
events:
  - {{at: 2s, link: core, down: true}}
  - {{at: 4s, link: core, up: true}}
""",
        tmp_path,
    )
    data = RunData(lambda name: tables.read(run, name))
    found = metrics.of_run(data, [parse("ping loss of ping")])
    assert found["ping loss"] == found["ping loss of ping"] == pytest.approx(10 / 40, abs=1 / 40)
    assert 20 * NS_PER_MS <= found["ping rtt p50"] <= found["ping rtt p99"] < 45 * NS_PER_MS
    lost = data.table("pings").filter(~pl.col("answered"))["time_ns"].to_list()
    assert all(1.95 * NS_PER_SECOND < time_ns < 4.05 * NS_PER_SECOND for time_ns in lost)
    stamped = data.table("pings").filter(pl.col("timed") == "stamp")
    assert stamped.height == 30 and stamped["time_ns"][0] == pytest.approx(100 * NS_PER_MS, abs=NS_PER_MS)
    (timeouts,) = data.table("flows")["timeouts"]
    assert 3 <= timeouts <= 2 * NS_PER_SECOND / MINIMUM_RTO_NS


def test_two_nodes_leave_files_of_one_name(tmp_path: Path) -> None:
    """A program's `time` counts from its start, 1 s after T0; a time of day comes to the same."""
    write = '(echo "time (s),who"; echo "0.25,$0") > $EWAN_OUT/a.csv; sleep 0.5;'
    write += ' (echo "unix time (s)"; date +%s.%N) > $EWAN_OUT/b.csv'
    run = virtual(
        f"""
{lab("20ms", "10Mbit/s")}
steps:
  - {{name: own, at: 1s, on: [left1, right1], run: '{write}'}}
""",
        tmp_path,
    )
    a, b = (own_tables.read(run, f"own.{name}").frame for name in "ab")
    assert a.rows() == [("left1", 1, 1_250_000_000, "sh"), ("right1", 2, 1_250_000_000, "sh")]
    assert b["time_ns"].to_list() == pytest.approx([1.5 * NS_PER_SECOND] * 2, abs=5 * NS_PER_MS)


def test_a_queue_that_marks_is_seen_in_the_links_counters(tmp_path: Path) -> None:
    run = virtual(
        f"""
{lab("20ms", "10Mbit/s", ", buffer: 100ms, queue: {codel: {ecn: true}}")}
steps:
  - {{name: marked, from: left1, to: right1, for: 5s, bulk: , ecn: true}}
""",
        tmp_path,
    )
    links = tables.read(run, "links").filter(pl.col("direction") == "forward")
    assert links["marked_packets"].is_sorted() and links["marked_packets"].to_list()[-1] > 0
    assert links["dropped_packets"].to_list()[-1] == 0
    assert tables.read(run, "flows")["timeouts"].to_list() == [0]
