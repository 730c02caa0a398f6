"""Measures of captured packets, against a handful of packets that a person can count."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ewan.analysis import load, metrics, report, summary, wire
from ewan.analysis.figures import custom, samples, series
from ewan.analysis.rundata import RunData
from ewan.analysis.tests import synthetic
from ewan.labs.record import figures, tables
from ewan.labs.record.quantities import Selection
from ewan.labs.record.series import SAMPLES, SERIES
from ewan.labs.record.summary import Summary
from tests import summaries

MS = 10**6
MSS = 1000
ADDRESSES = {"left1": frozenset({"10.0.0.1"}), "left2": frozenset({"10.0.0.3"}), "right1": frozenset({"10.0.0.2"})}
FLOWS = [("load", "load", "left1", "right1", 0, 100), ("cross", "cross", "left2", "right1", 50, 60)]
# Number in segments, when it left and when it came (ms), None: lost on the way.
LOAD = [(0, 0, 10), (1, 1, 14), (2, 2, 13), (3, 3, None), (4, 4, 15), (3, 30, 40), (5, 31, 41)]


def packet(source: str, node: str, direction: str, number: int, time_ms: int, identification: int) -> dict[str, object]:
    return {
        "node": node, "interface": "eth0", "direction": direction, "time_ns": time_ms * MS, "source": source,
        "source_port": 1, "destination": "10.0.0.2", "destination_port": 2, "protocol": "tcp", "ip_id": identification,
        "tcp_seq": number * MSS, "tcp_flags": 16, "payload_bytes": MSS, "size_bytes": MSS + 66,
    }  # fmt: skip


def rows() -> list[dict[str, object]]:
    found = []
    for identification, (number, left, came) in enumerate(LOAD):
        found.append(packet("10.0.0.1", "left1", "out", number, left, identification))
        if came is not None:
            found.append(packet("10.0.0.1", "right1", "in", number, came, identification))
    found += [packet("10.0.0.3", "left2", "out", 0, 55, 1), packet("10.0.0.3", "right1", "in", 0, 57, 1)]
    # An acknowledgment, a packet before any flow, and a packet of another node: none belongs to a flow.
    strangers = [packet("10.0.0.1", "left1", "out", 9, 40, 90) | {"payload_bytes": 0}]
    strangers += [packet("10.0.0.1", "left1", "out", 9, 200, 91), packet("10.9.9.9", "right1", "in", 9, 41, 92)]
    return found + strangers


def run(packets: list[dict[str, object]]) -> RunData:
    frame = pl.DataFrame(packets, schema=tables.TABLES["packets"])
    flows = tables.empty("flows")
    columns = {"step": 0, "role": 1, "source": 2, "sink": 3}
    told = pl.DataFrame(
        [
            {name: each[index] for name, index in columns.items()}
            | {"kind": "bulk", "flow": number, "part": 0, "name": each[0]}
            | {"started_ns": each[4] * MS, "ended_ns": each[5] * MS}
            for number, each in enumerate(FLOWS)
        ]
    )
    flows = pl.concat([flows, told.cast({name: flows.schema[name] for name in told.columns})], how="diagonal")
    return RunData(lambda name: {"packets": frame, "flows": flows}.get(name, tables.empty(name)), (), lambda: ADDRESSES)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        # Delays 10, 13, 11, 11, 10, 10 ms.
        ("mean one-way delay", 65 / 6 * MS),
        ("one-way delay p50", 10 * MS),
        ("one-way delay p95", 13 * MS),
        # The third overtook the second; the retransmission left after those that came before it.
        ("reordering", 1 / 6),
        ("matched packets", 1),
        ("wire retransmissions", 1 / 7),
        # Between 10, 13, 14, 15, 40, 41 ms.
        ("packet gap p99", 25 * MS),
    ],
)
def test_of_the_load(metric: str, value: float) -> None:
    assert metrics.of_run(run(rows()))[metric] == pytest.approx(value)


def test_how_many_packets_are_known_again_is_told() -> None:
    late = [each for each in rows() if each["direction"] == "in" or each["time_ns"] != 0]
    values = metrics.of_run(run(late))
    assert values["matched packets"] == pytest.approx(5 / 6)

    def of_run_3(own: dict[str, dict[str, float]]) -> Summary:
        return summaries.summary(runs=[{"number": 3, "metrics": own}])

    (told,) = report.unmatched(of_run_3({"matched packets": {"value": 5 / 6}}))
    assert "83.3 %" in told and "run 3" in told
    assert report.unmatched(of_run_3({"matched packets": {"value": 1.0}})) == []
    assert report.unmatched(of_run_3({})) == []


def test_of_another_step_and_over_time() -> None:
    own = run(rows()).of(Selection("step", "cross"))
    assert own.wire is not None and own.wire.delays["delay_ns"].to_list() == [2 * MS]
    lines = series.of_run(run(rows()), series.SeriesChoice(SERIES["one-way delay"], 10 * MS))
    assert lines[""].values.tolist() == [11.25 * MS, 10 * MS, 10 * MS]
    gaps = samples.of_run(run(rows()), SAMPLES["packet gap"])
    assert sorted(gaps[""].tolist()) == [MS, MS, MS, 3 * MS, 25 * MS]


def test_a_burst_is_as_long_as_the_rate_takes_for_it() -> None:
    found = wire.of(run(rows()).table("packets"), run(rows()).load, ADDRESSES)
    assert found is not None
    # Five frames of 1066 bytes, 1 ms apart, at 1 Mbit/s: all but the 4 ms of sending in between are still there.
    assert found.largest_burst_ns(10**6) == pytest.approx((5 * 1066 * 8 / 1e6 * 1000 - 4) * MS)
    assert found.largest_burst_ns(None) is None


def test_without_captures_there_is_none() -> None:
    found = metrics.of_run(run([]))
    assert not any("one-way" in name or name in ("reordering", "largest burst") for name in found)
    at_source = run([each for each in rows() if each["direction"] == "out"])
    told = metrics.of_run(at_source)
    assert "wire retransmissions" in told and "reordering" not in told and "mean one-way delay" not in told


@pytest.mark.parametrize(
    "line",
    ["one-way delay p99 by congestion", "one-way delay over time", "cdf of packet gap", "reordering against share"],
)
def test_without_captures_a_figure_says_what_to_write(tmp_path: Path, line: str) -> None:
    variants = [{"congestion": "reno"}, {"congestion": "cubic"}]
    experiment = load.experiment(synthetic.experiment(tmp_path, variants, seeds=(1,), pairs=1, seconds=2))
    spec = figures.parse(line)
    (why,) = custom.draw(experiment, summary.of(experiment, spec.quantities), [spec])
    assert isinstance(why, str) and 'must capture packets: "capture: [{node:' in why and "\n" not in why
