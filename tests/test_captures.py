"""Captured packets where timing is exact, in the virtual clock without dither: what the link's description says."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import polars as pl
import pytest

from ewan.analysis import load, metrics, packets
from ewan.analysis.rundata import RunData
from ewan.generator import records, scenario
from ewan.generator.scenario import ScheduledRun
from ewan.labs import host
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record import tables
from ewan.labs.record.experiment import checksum
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

TEXT = """
lab: {{name: vp{process}, topology: {{dumbbell: {{pairs: 1}}}}, rtt: 20ms, dither: 0,
      wan: {{rate: 10Mbit/s, buffer: 1000pkt{wan}}}}}
steps: [{{name: load, from: left1, to: right1, congestion: reno, bulk: {volume}}}]
capture: [{{node: left1}}, {{node: right1}}, {{node: r1, link: core}}{more}]
"""
BOTH_SIDES = ", {point: 'core:forward'}"
ONE_WAY_NS = 10_000_000
# Of 10 Mbit/s; Ethernet on the wire has 24 bytes besides the frame, FCS included.
BYTE_NS, BESIDE_FRAME = 800, 24
ACCESS_NS = 100_000
FULL_FRAME = 1514
SYN = 2


def ran(place: Path, wan: str = "", volume: str = "1MB", more: str = "") -> ScheduledRun:
    """A run's directory with its tables."""
    text = TEXT.format(process=os.getpid(), wan=wan, volume=volume, more=more)
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    plan = compile_spec(run.spec, host.virtual_facts())
    schedule = run.schedule(plan, "virtual")
    assert not VirtualRuntime(BINARY).run(plan, schedule.program, place).interrupted
    assert records.collect(place, schedule.document) is None
    return schedule


def only_run(place: Path) -> load.RunResults:
    """A run's directory as the analysis sees one of an experiment."""
    files = {f"{place.name}/{path.name}": checksum(path) for path in place.iterdir() if path.is_file()}
    return load.RunResults(1, "", {}, 1, "complete", None, place, None, None, place.parent, files)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("captures") / "clean"
    ran(place, more=BOTH_SIDES)
    return place


def test_an_empty_path_delays_by_propagation_and_serialisation(clean: Path) -> None:
    caught = tables.read(clean, "packets")
    assert tables.read(clean, "readings")["problem"].drop_nulls().is_empty()
    opening = caught.filter(pl.col("tcp_flags") == SYN)
    (found,) = packets.one_way_delays(opening, "left1", "right1").to_dicts()
    expected = ONE_WAY_NS + (found["size_bytes"] + BESIDE_FRAME) * BYTE_NS
    assert found["delay_ns"] == pytest.approx(expected, abs=1000)
    begun = orjson.loads((clean / "program.json").read_bytes())["traffic"]["flows"][0]["start_ns"]
    assert 0 <= found["sent_ns"] - begun < ACCESS_NS, "the first packet is there, at its instant"


def test_a_link_is_captured_where_a_packet_enters_and_where_it_leaves(clean: Path) -> None:
    core = tables.read(clean, "packets").filter(pl.col("node") == "core", pl.col("tcp_flags") == SYN)
    entered, left = core.sort("time_ns").to_dicts()
    assert [(each["interface"], each["direction"]) for each in (entered, left)] == [("r1", "in"), ("r2", "out")]
    assert left["time_ns"] - entered["time_ns"] == ONE_WAY_NS + (entered["size_bytes"] + BESIDE_FRAME) * BYTE_NS


def test_packets_leave_the_bottleneck_apart_by_their_time_at_its_rate(clean: Path) -> None:
    full = tables.read(clean, "packets").filter(pl.col("size_bytes") == FULL_FRAME)
    (row,) = packets.gaps(full.filter(pl.col("node") == "right1")).to_dicts()
    each_ns = (FULL_FRAME + BESIDE_FRAME) * BYTE_NS
    assert row["gap_p50_ns"] == pytest.approx(each_ns, abs=1000)
    assert row["gap_min_ns"] >= each_ns - 1000
    counts = packets.sequences(full)
    assert counts["segments"].n_unique() == 1, "each of them left, passed the router and came"
    assert counts.select("repeated_segments", "late_segments").sum().row(0) == (0, 0)


def test_retransmissions_are_those_that_the_sender_counts(tmp_path: Path) -> None:
    part = ", {node: r2, link: core, at: 300ms, for: 400ms}"
    schedule = ran(tmp_path / "lossy", wan=", loss: {every: 50}", more=part)
    caught = tables.read(tmp_path / "lossy", "packets")
    counted = int(tables.read(tmp_path / "lossy", "flows")["retransmitted_segments"].item())
    out = (pl.col("node") == "left1") & (pl.col("direction") == "out")
    (sent,) = packets.sequences(caught.filter(out)).to_dicts()
    assert sent["repeated_segments"] == counted > 0
    assert sent["late_segments"] == 0
    came = packets.sequences(caught.filter(pl.col("node") == "right1")).filter(pl.col("direction") == "in")
    assert came["late_segments"].item() > 0
    forward = tables.read(tmp_path / "lossy", "links").filter(pl.col("direction") == "forward")
    lost = forward.filter(pl.col("link") == "core")["lost_packets"].max()
    missing = caught.filter(out).height - caught.filter(pl.col("node") == "right1", pl.col("direction") == "in").height
    # The last acknowledgment may be on its way when all is over.
    assert isinstance(lost, int) and lost > 0
    assert missing - lost in (0, 1)
    measured = metrics.of_run(RunData.read(only_run(tmp_path / "lossy")))
    assert measured["wire retransmissions"] == counted / sent["segments"]
    assert measured["reordering"] == 0.0
    assert ONE_WAY_NS < measured["one-way delay p50"] < measured["one-way delay p99"]
    # Behind the bottleneck nothing waits: what r2 got in its time, right1 got a tenth of a millisecond later.
    begin_ns = schedule.document.begin_ns + 300_000_000
    at_r2 = caught.filter(pl.col("node") == "r2")["time_ns"]
    meanwhile = caught.filter(
        pl.col("node") == "right1", pl.col("time_ns").is_between(begin_ns, begin_ns + 400_000_000)
    )
    assert abs(at_r2.len() - meanwhile.height) <= 2
    assert begin_ns <= at_r2.min() < at_r2.max() < begin_ns + 400_000_000  # type: ignore[operator]


def test_a_file_keeps_to_its_bound_and_says_what_it_left_out(tmp_path: Path) -> None:
    schedule = ran(tmp_path / "bound", more=", {node: r2, link: core, most: 64kB}")
    (index,) = (each.index for each in schedule.document.commands if each.node == "r2")
    file = tmp_path / f"bound/commands/{index + 1}-r2/packets.pcapng"
    assert 63_000 < file.stat().st_size <= 64_000
    said = tables.read(tmp_path / "bound", "readings").filter(pl.col("node") == "r2")["problem"].item()
    caught = tables.read(tmp_path / "bound", "packets").group_by("node").len()
    kept = dict(caught.iter_rows())
    left_out = int(said.split()[0])
    assert kept["r2"] + left_out == kept["right1"], "all that comes over the link goes to right1, and back"


def test_the_same_run_gives_the_same_bytes(clean: Path, tmp_path: Path) -> None:
    schedule = ran(tmp_path / "again", more=BOTH_SIDES)
    for each in schedule.document.commands:
        name = f"commands/{each.index + 1}-{each.node}/packets.pcapng"
        assert (clean / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert (clean / "packets.parquet").read_bytes() == (tmp_path / "again/packets.parquet").read_bytes()
