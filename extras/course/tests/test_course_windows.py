"""Measures of congestion windows and of captured packets, on constructed tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest

from ewan.extras.course.measures import passages, windows
from ewan.extras.course.measures.base import MeasuredRun, NoValueError, TimeSeries, Value


class Constructed:
    """A run whose tables and series are given."""

    number, name, seed = 1, "constructed", 1
    parameters: Mapping[str, Value] = {}

    def __init__(self, tables: Mapping[str, pl.DataFrame], series: Mapping[str, TimeSeries] | None = None) -> None:
        self._tables, self._series = tables, series or {}

    def metric(self, words: str) -> float:
        raise NoValueError(words)

    def series(self, name: str, *, step: str = "", flow: str = "", link: str = "", window: float = 0.0) -> TimeSeries:
        return self._series[name]

    def table(self, name: str) -> pl.DataFrame:
        return self._tables[name]

    def text(self, name: str) -> str:
        raise NoValueError(name)


def sampled(
    cwnd: Sequence[float], every_s: float = 0.1, rtt_s: float = 0.1, threshold: Sequence[int] | None = None
) -> MeasuredRun:
    """A run of one flow that was sampled so; each sample has a hundred segments more delivered."""
    count = len(cwnd)
    series = pl.DataFrame(
        {
            "flow": [0] * count,
            "part": [0] * count,
            "time_ns": [round(number * every_s * 1e9) for number in range(count)],
            "cwnd_segments": [round(each) for each in cwnd],
            "ssthresh_segments": threshold or [windows.NO_THRESHOLD] * count,
            "srtt_ns": [round(rtt_s * 1e9)] * count,
            "delivered_segments": [100 * number for number in range(count)],
        }
    )
    flows = pl.DataFrame({"flow": [0], "step": ["load"], "role": ["load"], "connected_ns": [100_000_000]})
    return Constructed({"series": series, "flows": flows})


def sawtooth(low: int, high: int, times: int) -> list[float]:
    return [*range(high), *[*range(high, high + 1), *range(low, high)] * times, high, low, low + 1]


def test_teeth_of_a_sawtooth_have_their_ends_where_it_falls() -> None:
    found = windows.teeth([10, 20, 10, 15, 20, 10, 12])
    assert found == [windows.SawtoothCycle(cut=1, low=2, end=4)]


def test_a_small_dip_ends_no_tooth() -> None:
    assert not windows.teeth([100, 200, 190, 195, 200, 185, 200])


def test_a_sawtooth_of_one_segment_a_sample() -> None:
    run = sampled(sawtooth(50, 100, 4))
    assert windows.peak_window(run) == 100
    assert windows.decrease(run) == 0.5
    assert windows.tooth_length(run) == pytest.approx(5.1)
    assert windows.growth(run) == pytest.approx(10)
    assert windows.growth_per_rtt(run) == pytest.approx(1)
    assert windows.acknowledged(run) == pytest.approx(5100)
    assert windows.window_after_cut(run, 2.0) == 70


def test_a_window_without_a_cut_is_no_sawtooth() -> None:
    with pytest.raises(NoValueError, match="no whole tooth"):
        windows.peak_window(sampled([10, 20, 40]))


def test_the_window_at_which_it_stays_longest() -> None:
    assert windows.longest_window(sampled([10, 20, 30, 30, 30, 40, 20]), from_=0.1) == 30


def test_rounds_of_slow_start_begin_with_the_connection() -> None:
    run = sampled([10, 10, 20, 40, 80], every_s=0.1)
    assert [windows.window_in_round(run, number, 0.1) for number in (1, 2, 3, 4)] == [10, 20, 40, 80]


def test_slow_start_ends_with_a_threshold() -> None:
    run = sampled([10, 20, 40, 80, 60, 40, 40], threshold=[windows.NO_THRESHOLD] * 4 + [40] * 3)
    assert windows.slow_start_peak(run) == 80
    assert windows.slow_start_end(run) == pytest.approx(0.4)
    assert windows.threshold(run) == 40


def test_slow_start_that_does_not_end_has_no_threshold() -> None:
    for measure in (windows.slow_start_peak, windows.slow_start_end, windows.threshold):
        with pytest.raises(NoValueError, match="does not end"):
            measure(sampled([10, 20, 40]))


def test_when_a_series_is_above_a_value() -> None:
    ping = TimeSeries(np.array([1.0, 2.0, 3.0]), np.array([0.06, 0.31, 0.62]))
    run = Constructed({}, {"ping rtt": ping})
    assert windows.first_above(run, "ping rtt", 0.3) == 2
    assert windows.first_above(sampled([10, 20, 40]), "cwnd", 15) == pytest.approx(0.1)
    with pytest.raises(NoValueError, match="never above"):
        windows.first_above(run, "ping rtt", 1)


def test_two_flows_have_no_common_window() -> None:
    run = sampled([10, 20])
    flows = pl.concat([run.table("flows"), run.table("flows").with_columns(flow=pl.lit(1, pl.Int64))])
    both = Constructed({"series": run.table("series"), "flows": flows})
    with pytest.raises(NoValueError, match="there are 2"):
        windows.peak_window(both)


def captured(rows: Sequence[tuple[str, str, float, int]]) -> MeasuredRun:
    """Packets by node, direction, time (s) and identification."""
    packets = pl.DataFrame(
        {
            "node": [row[0] for row in rows],
            "direction": [row[1] for row in rows],
            "time_ns": [round(row[2] * 1e9) for row in rows],
            "ip_id": [row[3] for row in rows],
            "payload_bytes": [1472] * len(rows),
            **{name: ["x"] * len(rows) for name in ("source", "destination", "protocol")},
            **{name: [1] * len(rows) for name in ("source_port", "destination_port")},
        }
    )
    return Constructed({"packets": packets})


def test_packets_on_the_way_have_left_and_come_later() -> None:
    sent = [("a", "out", number / 10, number) for number in range(6)]
    came = [("b", "in", number / 10 + 0.25, number) for number in range(6) if number != 2]
    run = captured([*sent, *came])
    assert passages.on_the_way(run, "a", "b", at=0.31) == 2  # 1 and 3; 0 has come, 2 is lost


def test_nodes_without_captured_packets_are_named() -> None:
    with pytest.raises(NoValueError, match="none was captured at b"):
        passages.on_the_way(captured([("a", "out", 0, 1)]), "a", "b", at=1)
