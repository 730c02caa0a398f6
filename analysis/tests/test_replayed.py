"""The replay of a run: bins summarise samples, and the size of any run is bounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ewan.analysis import load, replay
from ewan.analysis.load import LoadError
from ewan.analysis.replay import Replay
from ewan.analysis.tests.synthetic import BIN, SECOND, experiment, frame, vouch
from ewan.labs.record import tables

MS = 1_000_000


def samples(*rows: tuple[int, int, int, int], direction: str = "forward", **more: int) -> pl.DataFrame:
    """Rows of a link of 8 Mbit/s, which carries 1000 bytes in a ms: time (ms), bytes sent, in the queue, drops so
    far."""
    common = {"link": "core", "direction": direction, "rate_bps": 8_000_000, "lost_packets": 0, "marked_packets": 0}
    keys = ("time_ns", "sent_bytes", "queue_bytes", "dropped_packets")
    return frame("links", [{**common, **dict(zip(keys, (row[0] * MS, *row[1:]), strict=True)), **more} for row in rows])


def one(rows: pl.DataFrame, begin_ms: int, bin_ms: int, bins: int) -> replay.LinkBins:
    found = list(replay.binned(rows.lazy(), begin_ms * MS, bin_ms * MS, bins))
    assert len(found) == 1
    return found[0]


def test_a_bin_has_the_largest_queue_the_mean_rate_and_the_sum_of_drops() -> None:
    rows = samples((0, 0, 0, 0), (1, 1000, 500, 0), (2, 1000, 900, 2), (3, 2000, 100, 5), (4, 3000, 0, 5))
    found = one(rows, 0, 2, 2)
    assert found.queue_bytes == (900, 100)
    assert found.rate_bps == (4_000_000, 8_000_000)
    assert found.dropped_packets == (2, 3)
    assert found.capacity_bps == (8_000_000,)


def test_a_sample_at_the_end_of_a_bin_belongs_to_it_and_pieces_join() -> None:
    """Two pieces of one bin each are the two bins of one piece: samples before the second do not count in it."""
    rows = samples((0, 0, 0, 0), (10, 10_000, 7, 3), (20, 12_000, 9, 4))
    whole = one(rows, 0, 10, 2)
    second = one(rows.filter(pl.col("time_ns") >= 10 * MS), 10, 10, 1)
    assert whole.rate_bps == (8_000_000, 1_600_000) and second.rate_bps == whole.rate_bps[1:]
    assert second.queue_bytes == whole.queue_bytes[1:] == (9,)
    assert second.dropped_packets == whole.dropped_packets[1:] == (1,)


def test_what_was_counted_before_the_first_sample_came_since_the_start() -> None:
    assert one(samples((10, 10_000, 0, 6)), 0, 10, 1) == one(samples((0, 0, 0, 0), (10, 10_000, 0, 6)), 0, 10, 1)


def test_a_bin_without_a_sample_is_as_the_one_before_it_and_drops_nothing() -> None:
    found = one(samples((0, 0, 0, 0), (1, 1000, 700, 4), (4, 4000, 0, 4)), 0, 1, 6)
    assert found.queue_bytes == (700, 700, 700, 0, 0, 0)
    assert found.rate_bps == (8_000_000,) * 6
    assert found.dropped_packets == (4, 0, 0, 0, 0, 0)


def test_before_the_first_sample_nothing_waits_and_the_rate_is_its() -> None:
    found = one(samples((3, 3000, 600, 0), (4, 4000, 0, 0)), 0, 1, 4)
    assert found.queue_bytes == (0, 0, 600, 0)
    assert found.rate_bps == (8_000_000,) * 4


def test_of_a_piece_without_samples_of_its_own_what_was_last_is_shown() -> None:
    found = one(samples((0, 0, 0, 0), (1, 1000, 900, 1), (2, 2000, 500, 1)), 2, 1, 2)
    assert found.queue_bytes == (500, 500)
    assert found.rate_bps == (0, 0) and found.dropped_packets == (0, 0)


def test_a_link_whose_rate_was_changed_has_a_capacity_for_each_bin() -> None:
    rows = pl.concat([samples((0, 0, 0, 0), (1, 1000, 0, 0)), samples((2, 1500, 0, 0), rate_bps=4_000_000)])
    assert one(rows, 0, 1, 2).capacity_bps == (8_000_000, 4_000_000)


def test_directions_that_did_nothing_are_left_out() -> None:
    rows = pl.concat([samples((0, 0, 0, 0), (1, 0, 0, 0)), samples((0, 5, 0, 0), (1, 9, 0, 0), direction="backward")])
    assert [each.direction for each in replay.binned(rows.lazy(), 0, MS, 1)] == ["backward"]
    assert list(replay.binned(rows.clear().lazy(), 0, MS, 1)) == []


def test_marks_that_the_link_does_not_count_are_none() -> None:
    rows = samples((0, 0, 0, 0), (1, 1000, 0, 0)).with_columns(marked_packets=pl.lit(None, dtype=pl.Int64))
    assert one(rows, 0, 1, 1).marked_packets == (0,)


@pytest.mark.parametrize(
    ("every_ms", "end_s", "bins", "longest_ms"),
    [(1, 60, 1000, 100), (1, 1, 1000, 1), (100, 1, 1000, 100), (1, 3600, 50, 100_000), (1, 0, 50, 1)],
)
def test_one_piece_of_the_coarsest_bins_is_the_whole_run(every_ms: int, end_s: int, bins: int, longest_ms: int) -> None:
    found = replay.levels_ns(every_ms * MS, end_s * SECOND, bins)
    assert found[0] == every_ms * MS and found[-1] == longest_ms * MS
    assert found[-1] * bins >= end_s * SECOND and all(each * bins < end_s * SECOND for each in found[:-1])


def test_of_many_links_an_answer_has_fewer_bins() -> None:
    assert replay.bins_of(2) == replay.MOST_BINS
    assert replay.bins_of(600) * 600 == replay.MOST_VALUES
    assert replay.bins_of(10**6) == replay.LEAST_BINS


def test_a_flow_has_means_of_its_samples_and_payload_per_time() -> None:
    series = frame(
        "series",
        [
            {"flow": 0, "part": 0, "time_ns": at * MS, "cwnd_segments": cwnd, "srtt_ns": rtt}
            for at, cwnd, rtt in ((50, 10, 20), (100, 20, 40), (250, 5, 0))
        ],
    )
    got = [{"flow": 0, "part": 0, "time_ns": 100 * MS, "bin_ns": 100 * MS, "bytes": 125_000}]
    goodput = pl.DataFrame(got)
    (found,) = replay.flow_binned([(0, 0), (1, 0)], series, goodput, 100 * MS, 3)
    assert found.cwnd_segments == (15, None, 5)
    assert found.rtt_ns == (30, None, None)  # 0: no RTT is known
    assert found.goodput_bps == (10_000_000, None, None)


@pytest.fixture
def run(tmp_path: Path) -> load.RunResults:
    place = experiment(tmp_path / "x", [{"congestion": "cubic"}], seeds=[1], pairs=2, seconds=4)
    return load.experiment(place).runs[0]


def test_a_run_in_pieces_is_the_run(run: load.RunResults) -> None:
    replay = Replay(run)
    assert replay.every_ns == BIN and replay.directions == 2
    links = run.table("links").filter(pl.col("direction") == "forward")
    whole = replay.piece(len(replay.levels_ns) - 1, 0)
    core = next(each for each in whole.links if each.direction == "forward")
    assert sum(core.dropped_packets) == links["dropped_packets"].max()
    sent = sum(core.rate_bps[: len(links)]) * BIN // 8 // SECOND
    assert sent == pytest.approx(links["sent_bytes"].max(), rel=0.05)
    assert max(core.queue_bytes) == links["queue_bytes"].max()
    assert [each.name for each in replay.flows] == ["load left1 to right1", "load left2 to right2"]
    assert replay.flows[0].links == (("core", "forward"),) and replay.more_flows == 0
    flows = replay.flow_bins()
    assert [each.flow for each in flows.flows] == [0, 1]
    assert {len(each.rtt_ns) for each in flows.flows} == {flows.bins}


@pytest.mark.parametrize(("level", "number"), [(-1, 0), (99, 0), (0, -1), (0, 10**9)])
def test_a_piece_that_there_is_not_is_refused(run: load.RunResults, level: int, number: int) -> None:
    with pytest.raises(ValueError, match="there are"):
        Replay(run).piece(level, number)


def without(run: load.RunResults, *names: str) -> Replay:
    for name in names:
        (run.directory / f"{name}.parquet").unlink()
    vouch(run.root)
    return Replay(load.experiment(run.root).runs[0])


def test_a_run_without_series_has_a_length_and_nothing_more(run: load.RunResults) -> None:
    replay = without(run, "links", "series", "goodput")
    assert (replay.every_ns, replay.levels_ns, replay.directions) == (0, (), 0) and replay.end_ns > 0
    assert replay.flow_bins().flows == ()


def test_a_run_that_was_not_measured_has_no_length(run: load.RunResults) -> None:
    replay = without(run, "links", "series", "goodput", "flows")
    assert (replay.end_ns, replay.flows, replay.more_flows) == (0, (), 0)
    with pytest.raises(LoadError, match=r"has no plan\.json"):
        assert replay.plan


def test_an_empty_series_is_none(run: load.RunResults) -> None:
    tables.write(run.directory, "links", tables.empty("links"))
    vouch(run.root)
    replay = Replay(load.experiment(run.root).runs[0])
    assert (replay.every_ns, replay.directions, replay.levels_ns) == (0, 0, ())


def events(run: load.RunResults, *made: dict[str, Any]) -> Replay:
    told = [{"link": "core", "direction": "forward", "at_ns": 0, "change": {}, "error": None, **each} for each in made]
    (run.directory / "events.json").write_text(json.dumps({"format": "ewan-events/1", "events": told}))
    vouch(run.root)
    return Replay(load.experiment(run.root).runs[0])


def test_events_are_what_was_made_each_once(run: load.RunResults) -> None:
    """A change of both directions is one event, also where the second follows later; what was not made is none."""
    change = {"change": {"rate_bps": 5_000_000}}
    replay = events(
        run,
        {"at_ns": 9, "applied_ns": SECOND, "down": True},
        {"at_ns": 4, "applied_ns": 5, **change},
        {"at_ns": 4, "applied_ns": 6, "direction": "backward", **change},
        {"at_ns": 5, "applied_ns": None, **change},
        {"at_ns": 6, "applied_ns": 7, **change},
        {"at_ns": 9, "applied_ns": 2 * SECOND, "down": False},
    )
    assert [(each.at_ns, each.kind, each.words) for each in replay.events] == [
        (5, "set", "core: rate 5 Mbit/s"),
        (7, "set", "core: rate 5 Mbit/s, forward"),
        (SECOND, "fail", "core down"),
        (2 * SECOND, "mend", "core up"),
    ]


def test_a_damaged_table_is_said_in_a_line(run: load.RunResults) -> None:
    (run.directory / "links.parquet").write_bytes(b"no table")
    with pytest.raises(LoadError, match=r"links\.parquet"):
        Replay(run).piece(0, 0)
