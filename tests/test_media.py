"""Interactive video through the virtual clock: exact where nothing varies, and the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ewan.analysis import media
from ewan.labs.record import tables
from tests.conftest import Ewan
from tests.experiments import only

pytestmark = pytest.mark.virtual

MS = 1_000_000
LAB = "lab: {topology: {dumbbell: {pairs: 2}}, rtt: 40ms, dither: 0, wan: {rate: 2Mbit/s, buffer: 300ms}}\n"
EVEN = "{control: none, rate: 240kbit/s, fps: 25, model: constant}"


def run_of(ewan: Ewan, folder: Path, steps: str, lab: str = LAB) -> Path:
    """The directory of a scenario's only run."""
    folder.mkdir()
    (folder / "call.scenario.yaml").write_text(f"name: call\n{lab}steps:\n{steps}")
    ended = ewan("run", "call.scenario.yaml", "--runtime", "virtual", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    (place,) = (only(folder) / "runs").iterdir()
    return place


def test_a_frame_is_complete_when_the_path_has_carried_it(tmp_path: Path, ewan: Ewan) -> None:
    step = f"  - {{name: a, from: left1, to: right1, for: 2s, media: {EVEN}}}\n"
    place = run_of(ewan, tmp_path / "even", step)
    frames = tables.read(place, "frames")
    assert frames.height == 50
    assert frames["captured_ns"].to_list() == [number * 40 * MS for number in range(50)]
    # 240 kbit/s in 25 frames a second: 1200 bytes, in two packets of 600 bytes and 24 of the header; IPv6 or IPv4, UDP
    # and Ethernet with preamble and gap add 66 or 86 each. 20 ms on the way; the access links have 1 Gbit/s or more.
    assert frames["size_bytes"].unique().to_list() == [1200]
    delays = (frames["completed_ns"] - frames["captured_ns"]).unique().to_list()
    (delay,) = delays
    framed = min((66, 86), key=lambda more: abs(delay - 20 * MS - 2 * (624 + more) * 8 * 500))
    assert 0 <= delay - 20 * MS - 2 * (624 + framed) * 8 * 500 < 100_000, "the rest is that of the access links"
    assert frames["shown_ns"].equals(frames["completed_ns"])
    (flow,) = tables.read(place, "flows").to_dicts()
    assert (flow["kind"], flow["sent_packets"], flow["lost_packets"], flow["error"]) == ("media", 100, 0, None)


def test_a_pause_is_no_freeze_and_ends_with_a_key_frame(tmp_path: Path, ewan: Ewan) -> None:
    paused = EVEN.replace("}", ", pause: {at: 1s, for: 2s}}")
    place = run_of(ewan, tmp_path / "pause", f"  - {{name: a, from: left1, to: right1, for: 4s, media: {paused}}}\n")
    frames = tables.read(place, "frames").sort("number")
    assert frames["captured_ns"].to_list() == [at * 40 * MS for at in (*range(25), *range(75, 100))]
    assert frames.filter(pl.col("key"))["captured_ns"].to_list() == [0, 3000 * MS]
    assert media.watched(frames) == [((0, 0), 960 * MS), ((0, 0), 960 * MS)]


def test_a_lost_packet_holds_frames_up_until_a_key_frame_that_is_asked_for(tmp_path: Path, ewan: Ewan) -> None:
    lossy = LAB.replace("buffer: 300ms", "buffer: 300ms, forward: {loss: {every: 60}}")
    step = f"  - {{name: a, from: left1, to: right1, for: 2s, media: {EVEN}}}\n"
    place = run_of(ewan, tmp_path / "loss", step, lossy)
    frames = tables.read(place, "frames")
    lost = frames.filter(pl.col("completed_ns").is_null())["number"].to_list()
    assert lost and lost[0] > 0
    after = frames.filter(pl.col("number") > lost[0])
    key = after.filter(pl.col("key"))["number"].to_list()[0]
    # The next frame comes 40 ms later, 20 ms more make sure, a report waits for at most 50 ms, its way takes 20 ms.
    assert 2 <= key - lost[0] <= 5
    hidden = frames.filter(pl.col("shown_ns").is_null())["number"].to_list()
    assert hidden[: key - lost[0]] == list(range(lost[0], key))


@pytest.mark.parametrize("control", ["gcc", "scream"])
def test_the_same_call_leaves_the_same_bytes(control: str, tmp_path: Path, ewan: Ewan) -> None:
    step = f"  - {{name: a, from: left1, to: right1, for: 4s, media: {{control: {control}}}}}\n"
    step += "  - {name: b, role: background, at: 1s, from: left2, to: right2, for: 3s, bulk: }\n"
    places = [run_of(ewan, tmp_path / name, step) for name in ("first", "second")]
    for table in ("flows", "frames", "media", "goodput"):
        first, second = ((place / f"{table}.parquet").read_bytes() for place in places)
        assert first == second, table
    looked = tables.read(places[0], "media")
    assert looked.height >= 40 and looked.filter(pl.col("srtt_ns") < 40 * MS).is_empty()
    assert looked["window_bytes"].null_count() == (looked.height if control == "gcc" else 0)


def test_marks_of_l4s_slow_a_call_down_before_packets_are_lost(tmp_path: Path, ewan: Ewan) -> None:
    lab = "lab: {topology: {dumbbell: {pairs: 1}}, rtt: 20ms, wan: {rate: 2Mbit/s, buffer: 300ms, queue: dualpi2}}\n"
    media = "{control: scream, rate: 1Mbit/s, l4s: true, most: 9Mbit/s}"
    step = f"  - {{name: a, from: left1, to: right1, for: 8s, media: {media}}}\n"
    place = run_of(ewan, tmp_path / "l4s", step, lab)
    (flow,) = tables.read(place, "flows").to_dicts()
    assert flow["lost_packets"] < 0.01 * flow["sent_packets"] and 0.8e6 < flow["goodput_bps"] < 2e6
    core = tables.read(place, "links").filter((pl.col("link") == "core") & (pl.col("direction") == "forward"))
    assert core.filter(pl.col("marked_packets") > 20).height
