"""Shares, convergence, smoothness and the warm-up, against cases worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from ewan.analysis import metrics
from ewan.analysis.rundata import RunData
from ewan.analysis.tests.synthetic import SECOND, flow, frame
from ewan.labs.record import tables
from ewan.labs.record.quantities import parse
from ewan.labs.record.schedule import CrossedLink, CrossedPath

BIN = SECOND // 10
CORE = CrossedLink("core", "forward", 8_000_000)


def lasting(number: int, start: float, end: float, sizes: Sequence[int], width: int = SECOND, **values: Any) -> Any:
    """A flow, and its bins from its start on."""
    begin, until = int(start * SECOND), int(end * SECOND)
    row = flow(
        number, **{"source": f"a{number}", "sink": f"b{number}", "scheduled_ns": begin, "started_ns": begin} | values,
        ended_ns=until, received_bytes=sum(sizes), goodput_bps=sum(sizes) * 8 * SECOND / (until - begin),
    )  # fmt: skip
    bins = [
        {"flow": number, "part": 0, "time_ns": begin + (index + 1) * width, "bin_ns": width,
         "arrived_bytes": size, "delivered_bytes": size}
        for index, size in enumerate(sizes)
    ]  # fmt: skip
    return row, bins


def run(*made: Any, **others: Any) -> RunData:
    """Flows that all cross one link of 8 Mbit/s, the core."""
    rows = [row for row, _ in made]
    given = {"flows": frame("flows", rows), "goodput": frame("goodput", [each for _, bins in made for each in bins])}
    given |= {name: frame(name, values) for name, values in others.items()}
    paths = [CrossedPath(row["source"], row["sink"], row["role"], (CORE,)) for row in rows]
    return RunData(lambda name: given[name] if name in given else tables.empty(name), paths)


def counters(*sizes: int, queue: Sequence[int] = ()) -> list[dict[str, Any]]:
    """Rows of the core link, a sample a second: bytes sent in each, bytes that wait at its end."""
    sent = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    return [
        {"link": "core", "direction": "forward", "time_ns": (index + 1) * SECOND, "rate_bps": 8_000_000,
         "sent_bytes": size, "served_packets": index + 1, "dropped_packets": 0, "lost_packets": 0, "waited_ns": 0,
         "queue_packets": 0, "queue_bytes": queue[index] if queue else 0}
        for index, size in enumerate(sent)
    ]  # fmt: skip


def test_a_share_is_of_what_came_while_the_flows_were_active() -> None:
    """The load has 600 and 300 kB in two seconds; the other 500 kB a second from 1 s on: 900 of 900 + 500 kB."""
    load = lasting(0, 0, 2, [600_000, 300_000])
    cross = lasting(1, 1, 4, [500_000] * 3, role="cross", step="beside")
    found = metrics.of_run(
        run(load, cross, links=counters(600_000, 800_000, 500_000, 500_000)), [parse("share of each step")]
    )
    assert found["share"] == found["share of forward"] == pytest.approx(900 / 1400)
    assert found["share of beside"] == pytest.approx(1500 / 1800)


def test_a_share_does_not_count_what_goes_another_way() -> None:
    load, cross = lasting(0, 0, 2, [400_000] * 2), lasting(1, 0, 2, [400_000] * 2, role="cross")
    data = run(load, cross, links=counters(400_000, 400_000))
    elsewhere = CrossedPath("a1", "b1", "cross", (CrossedLink("other", "forward", 8_000_000),))
    found = metrics.of_run(RunData(data.table, [data.paths[0], elsewhere]))
    assert found["share"] == 1


def test_a_flow_without_bins_got_its_bytes_evenly() -> None:
    """A file of 100 kB from 1 s to 3 s: half of it while the load was active."""
    load, (row, _) = lasting(0, 0, 2, [50_000] * 2), lasting(1, 1, 3, [50_000] * 2, role="cross", kind="arrivals")
    found = metrics.of_run(run(load, (row, []), links=counters(50_000, 100_000, 50_000)))
    assert found["share"] == pytest.approx(100 / 150)


def test_arrived_goodput_counts_what_waits_for_a_missing_segment() -> None:
    row, bins = lasting(0, 0, 2, [1_000_000] * 2)
    bins[1]["delivered_bytes"] = 0
    row |= {"received_bytes": 1_000_000, "goodput_bps": 4e6, "copied_segments": 0, "segment_bytes": 1000}
    found = metrics.of_run(run((row, bins)))
    assert (found["arrived goodput"], found["aggregate goodput"]) == (8_000_000, 4_000_000)


def test_what_is_more_than_the_link_carries_is_marked() -> None:
    """1.1 MB in a second in order over 8 Mbit/s; two flows over two such links may have it together."""
    row, bins = lasting(0, 0, 1, [1_100_000])
    data = run((row, bins), links=counters(1_000_000))
    assert metrics.beyond(data, metrics.of_run(data)) == ["mean goodput", "aggregate goodput", "arrived goodput"]
    other, others = lasting(1, 0, 1, [700_000])
    data = run((row | {"received_bytes": 700_000, "goodput_bps": 5.6e6}, []), (other, others))
    two = [CrossedPath(f"a{n}", f"b{n}", "load", (CrossedLink(f"way{n}", "forward", 8_000_000),)) for n in range(2)]
    assert metrics.of_run(data)["aggregate goodput"] == 11_200_000
    assert metrics.beyond(data, metrics.of_run(data)) == ["aggregate goodput"]
    assert metrics.beyond(RunData(data.table, two), metrics.of_run(data)) == []


def test_convergence_is_the_first_second_in_which_shares_are_near_equal() -> None:
    """The second flow starts at 2 s. Shares of the seconds after: 10 of 100, 30, 44, 46, 50. Fair is 45 to 55."""
    first = lasting(0, 0, 7, [100, 100, 90, 70, 56, 54, 50])
    second = lasting(1, 2, 7, [10, 30, 44, 46, 50])
    assert metrics.of_run(run(first, second))["convergence time"] == 4 * SECOND
    assert "convergence time" not in metrics.of_run(run(first)), "one flow"
    unfair = lasting(1, 2, 7, [10] * 5)
    assert "convergence time" not in metrics.of_run(run(first, unfair)), "never"


def test_windows_of_convergence_move_with_the_bins() -> None:
    """Equal from 1.5 s on, bins of 0.1 s: the second from 1.5 s to 2.5 s is not the first near enough."""
    first = lasting(0, 0, 4, [20] * 15 + [10] * 25, BIN)
    second = lasting(1, 0, 4, [0] * 15 + [10] * 25, BIN)
    # With k bins of the ten equal the shares are (200 − 10k) and 10k: within 10 % from 10k ≥ 0.9·100 on: k = 9.
    assert metrics.of_run(run(first, second))["convergence time"] == round(2.4 * SECOND)


def test_smoothness_is_the_deviation_by_the_mean_after_the_warm_up() -> None:
    """Eight seconds, less than fifty bins: the first quarter is left out. 1 and 3 by turns: σ/mean = 1/2."""
    found = metrics.of_run(run(lasting(0, 0, 8, [99, 99, 1, 3, 1, 3, 1, 3])))
    assert found["warm-up"] == 2 * SECOND
    assert found["smoothness"] == pytest.approx(0.5)
    assert "smoothness" not in metrics.of_run(run(lasting(0, 0, 4, [1, 3, 1, 3])))


def test_the_warm_up_is_found_and_left_out_of_steady_goodput() -> None:
    """A second of nothing, then nine of 10 kB in each tenth with a sawtooth: MSER-5 cuts the second, not a quarter."""
    sizes = [0] * 10 + [9_000, 11_000] * 45
    found = metrics.of_run(run(lasting(0, 0, 10, sizes, BIN)))
    assert found["warm-up"] == SECOND
    assert found["steady goodput"] == pytest.approx(10_000 * 10 * 8)
    assert found["aggregate goodput"] == pytest.approx(0.9 * 10_000 * 10 * 8)


def test_queueing_delays_are_weighed_by_time() -> None:
    """Queues of 0, 1, 2, 3 kB at 8 Mbit/s: 0 to 3 ms, a quarter of the time each."""
    data = run(lasting(0, 0, 4, [1000] * 4), links=counters(*[1000] * 4, queue=[0, 1000, 2000, 3000]))
    found = metrics.of_run(data)
    assert [found[f"queueing delay {part}"] for part in ("p50", "p95", "p99")] == [1_000_000, 3_000_000, 3_000_000]


def test_queueing_delays_are_of_the_time_in_which_the_flows_were_active() -> None:
    data = run(lasting(0, 2, 4, [1000] * 2), links=counters(*[1000] * 4, queue=[9000, 9000, 1000, 1000]))
    assert metrics.of_run(data)["queueing delay p99"] == 1_000_000


def test_rtts_are_of_the_senders_samples() -> None:
    samples = [{"flow": 0, "part": 0, "time_ns": n * BIN, "srtt_ns": n * 1_000_000} for n in range(1, 101)]
    other = [{"flow": 9, "part": 0, "time_ns": BIN, "srtt_ns": 10**9}]
    found = metrics.of_run(run(lasting(0, 0, 10, [1] * 10), series=samples + other))
    assert found["mean rtt"] == 50_500_000
    assert [found[f"rtt {part}"] for part in ("p50", "p95", "p99")] == [50_000_000, 95_000_000, 99_000_000]


def transfer(number: int, size: int, seconds: float, **values: Any) -> Any:
    done = {"volume_bytes": size, "completion_ns": int(seconds * SECOND), "min_rtt_ns": SECOND // 10, **values}
    return lasting(number, 0, seconds, [size], int(seconds * SECOND), **done)


def test_completion_times_by_size() -> None:
    sizes = {100_000: 1.0, 100_001: 2.0, 9_999_999: 4.0, 10_000_000: 20.0}
    found = metrics.of_run(run(*(transfer(n, *each) for n, each in enumerate(sizes.items()))))
    assert found["short completion time"] == SECOND
    assert found["medium completion time"] == 3 * SECOND
    assert found["long completion time"] == 20 * SECOND


def test_a_slowdown_is_against_an_empty_path() -> None:
    """1 MB over 8 Mbit/s with an RTT of 0.1 s takes 1.1 s at best; it took 2.2 s. 0.1 MB took 0.2 s of 0.2 s."""
    found = metrics.of_run(run(transfer(0, 1_000_000, 2.2), transfer(1, 100_000, 0.2)))
    assert found["mean slowdown"] == pytest.approx(1.5) and found["p99 slowdown"] == pytest.approx(2)
    unknown = transfer(0, 1_000_000, 2.2, min_rtt_ns=None)
    assert "mean slowdown" not in metrics.of_run(run(unknown))


def test_the_base_rtt_is_the_least_between_the_two_nodes() -> None:
    late = transfer(1, 1_000_000, 2.2, source="a0", sink="b0", min_rtt_ns=SECOND, role="cross")
    found = metrics.of_run(run(transfer(0, 1_000_000, 2.2), late), [parse("mean slowdown of cross")])
    assert found["mean slowdown of cross"] == pytest.approx(2)


def test_marks_are_of_what_left_the_queue() -> None:
    rows = counters(*[1000] * 4)
    data = run(lasting(0, 0, 4, [1000] * 4), links=rows)
    marked = data.table("links").with_columns(marked_packets=pl.Series([0, 0, 1, 2]))
    with_marks = RunData(lambda name: marked if name == "links" else data.table(name), data.paths)
    assert metrics.of_run(with_marks)["marks"] == pytest.approx(2 / 4)
    assert math.isclose(metrics.of_run(with_marks)["utilisation"], 0.001)


def test_requests_whose_arrivals_were_not_counted_count_as_they_were_delivered() -> None:
    load = lasting(0, 0, 2, [300_000] * 2)
    row, bins = lasting(1, 0, 2, [100_000] * 2, role="background")
    uncounted = [each | {"arrived_bytes": 0} for each in bins]
    assert metrics.of_run(run(load, (row, uncounted), links=counters(400_000, 400_000)))["share"] == pytest.approx(0.75)
