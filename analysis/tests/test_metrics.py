"""Metrics, against cases worked out by hand."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from ewan.analysis import metrics
from ewan.analysis.flows import active, aggregate_goodput, completion_times, deviation, jain, percentile
from ewan.analysis.rundata import RunData
from ewan.analysis.tests.synthetic import SECOND, flow, frame
from ewan.labs.record import tables
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.quantities import parse
from ewan.labs.record.schedule import CrossedLink, CrossedPath

MS = 1_000_000


def run(flows: list[dict[str, Any]], **others: list[dict[str, Any]]) -> RunData:
    """A run with these tables, those not given without rows."""
    given = {name: frame(name, rows) for name, rows in {"flows": flows, **others}.items()}
    return RunData(lambda name: given[name] if name in given else tables.empty(name))


def done(number: int, seconds: float, start: float = 0, **values: Any) -> dict[str, Any]:
    """A bulk flow of 1 MB that took so long."""
    begun, took = int(start * SECOND), int(seconds * SECOND)
    base = {"scheduled_ns": begun, "started_ns": begun, "ended_ns": begun + took, "completion_ns": took}
    return flow(number, **{**base, "volume_bytes": 1_000_000, "received_bytes": 1_000_000, **values})


def test_jain_is_one_for_equals_and_one_nth_when_one_has_all() -> None:
    assert jain([5.0, 5.0, 5.0, 5.0]) == 1
    assert jain([8.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([1.0, 2.0, 3.0]) == pytest.approx(36 / 42)  # 6² / (3 · 14)
    assert jain([0.0, 0.0]) == 1


def test_deviation_divides_by_n_as_the_poster_does() -> None:
    # Mean 5; squares 9 1 1 1 0 0 4 16 = 32; 32/8 = 4.
    assert deviation([2, 4, 4, 4, 5, 5, 7, 9]) == 2
    assert deviation([3.0]) == 0


def test_percentile_is_a_value_that_so_many_do_not_exceed() -> None:
    assert percentile(range(1, 101), 0.95) == 95
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile([7], 0.99) == 7
    assert percentile([1, 2, 3], 0.5) == 2


def test_completion_times_of_three_transfers() -> None:
    found = metrics.of_run(run([done(0, 2), done(1, 4), done(2, 6)]))
    assert found["mean completion time"] == 4 * SECOND
    assert (found["min completion time"], found["max completion time"]) == (2 * SECOND, 6 * SECOND)
    assert found["deviation of completion time"] == pytest.approx((8 / 3) ** 0.5 * SECOND)
    assert found["coefficient of variation"] == pytest.approx((8 / 3) ** 0.5 / 4)
    assert found["incomplete transfers"] == 0


def test_streams_of_a_transfer_complete_when_the_last_does() -> None:
    streams = [done(0, 2, transfer=7), done(1, 5, transfer=7), done(2, 3, transfer=8)]
    assert sorted(completion_times(frame("flows", streams))[0]) == [3 * SECOND, 5 * SECOND]


def test_files_that_arrive_and_directions_of_a_transfer_count_each() -> None:
    parts = [done(0, 1, part=0), done(0, 3, 10, part=1)]
    assert sorted(completion_times(frame("flows", parts))[0]) == [SECOND, 3 * SECOND]


def test_what_did_not_deliver_its_volume_is_counted_and_not_averaged() -> None:
    flows = [
        done(0, 2),
        done(1, 9, completion_ns=None),  # ended before its volume was through
        done(2, 9, completion_ns=None, volume_bytes=None),  # was to last 9 s, and did
        done(3, 0, completion_ns=None, volume_bytes=None, error="refused"),
    ]
    assert completion_times(frame("flows", flows)) == ([2 * SECOND], 2)


def test_reverse_and_background_flows_are_not_the_load() -> None:
    found = metrics.of_run(run([done(0, 2), done(1, 8, role="reverse"), done(2, 4, role="background")]))
    assert found["mean completion time"] == 2 * SECOND
    assert found["aggregate goodput"] == 4_000_000  # 1 MB in 2 s
    assert (found["reverse goodput"], found["background goodput"]) == (1_000_000, 2_000_000)


def test_aggregate_goodput_counts_the_time_in_which_any_flow_was_active() -> None:
    # 3 MB; active from 0 to 4 s and from 6 to 8 s.
    flows = [done(0, 2), done(1, 3, 1), done(2, 2, 6)]
    assert active(frame("flows", flows)) == [(0, 4 * SECOND), (6 * SECOND, 8 * SECOND)]
    assert aggregate_goodput(frame("flows", flows)) == 4_000_000


def test_transfer_throughput_is_sizes_by_times_and_not_a_mean_of_rates() -> None:
    # 1 MB in 1 s and 3 MB in 7 s: 4 MB by 8 s is 4 Mbit/s, where the mean of 8 and of 24/7 Mbit/s is 5.71.
    flows = [
        done(0, 1),
        done(1, 7, volume_bytes=3_000_000, received_bytes=3_000_000),
        done(2, 9, completion_ns=None, volume_bytes=50_000_000),  # did not complete
        done(3, 9, completion_ns=None, volume_bytes=None),  # has no size
        done(4, 1, role="background", step="files", volume_bytes=500_000),
    ]
    found = metrics.of_run(run(flows), [parse("transfer throughput of files")])
    assert found["transfer throughput"] == 4_000_000
    assert found["transfer throughput of files"] == 4_000_000
    assert metrics.of_run(run([flows[0]]))["transfer throughput"] == 8_000_000
    assert "transfer throughput" not in metrics.of_run(run(flows[2:4]))


def watched(name: str, *rates_bps: int, size: int = 1) -> list[dict[str, Any]]:
    """A link that was watched each second, `size` bytes sent in each."""
    rest = {"direction": "forward", "dropped_packets": 0, "lost_packets": 0, "waited_ns": 0}
    return [
        {"link": name, "time_ns": n * SECOND, "rate_bps": rate, "sent_bytes": n * size, "served_packets": n, **rest}
        for n, rate in enumerate(rates_bps, start=1)
    ]


def over(link: str, rate_bps: int, *, counted: str | None = None) -> list[CrossedPath]:
    """The load's way from a to b over a link, and perhaps one that counts."""
    hops = (CrossedLink(link, "forward", rate_bps), *([CrossedLink(counted, "forward", None)] if counted else []))
    return [CrossedPath("a", "b", "load", hops)]


def test_deficiency_is_what_the_aggregate_lacks_of_the_bottlenecks_rate() -> None:
    # NXE, table 4: 9207.78 of 10000 Mbit/s lack 7.9 %.
    load = [done(0, 1, source="a", sink="b", received_bytes=1_150_972_500)]
    links = watched("core", 10_000_000_000, size=1_200_000_000)
    found = metrics.of_run(RunData(run(load, links=links).table, over("core", 10_000_000_000)))
    assert found["aggregate goodput"] == 9_207_780_000
    assert found["deficiency"] == pytest.approx(0.0792, abs=5e-5)
    # 3 MB in 2 s are 12 Mbit/s of a link that had 10 Mbit/s in the first second and 20 in the second.
    load = [done(0, 2, source="a", sink="b", received_bytes=3_000_000)]
    links = watched("core", 10_000_000, 20_000_000, 10_000_000, size=1_250_000)
    found = metrics.of_run(RunData(run(load, links=links).table, over("core", 10_000_000)))
    assert found["deficiency"] == pytest.approx(1 - 12 / 15)


def test_deficiency_is_of_the_flows_that_cross_the_bottleneck() -> None:
    # Two directions of a link of 10 Mbit/s, 8 and 9 Mbit/s of payload: the second one is the bottleneck.
    ends: tuple[tuple[str, str, Literal["forward", "backward"], int], ...]
    ends = (("a", "b", "forward", 1_000_000), ("b", "a", "backward", 1_125_000))
    load = [
        done(0, 1, part=part, source=source, sink=sink, received_bytes=size)
        for part, (source, sink, _, size) in enumerate(ends)
    ]
    links = [
        {**row, "direction": way} for _, _, way, size in ends for row in watched("core", 10_000_000, size=size + 50_000)
    ]
    paths = [
        CrossedPath(source, sink, "load", (CrossedLink("core", way, 10_000_000),)) for source, sink, way, _ in ends
    ]
    assert metrics.of_run(RunData(run(load, links=links).table, paths))["deficiency"] == pytest.approx(0.1)
    # One flow over two links, and one that takes only the less busy link, and longer.
    load = [done(0, 1, source="a", sink="b"), done(1, 2, source="c", sink="d", received_bytes=1_000_000)]
    links = [*watched("one", 10_000_000, 20_000_000, size=1_200_000), *watched("two", 100_000_000, 100_000_000)]
    hops = {name: CrossedLink(name, "forward", None) for name in ("one", "two")}
    paths = [CrossedPath("a", "b", "load", tuple(hops.values())), CrossedPath("c", "d", "load", (hops["two"],))]
    found = metrics.of_run(RunData(run(load, links=links).table, paths))
    assert found["deficiency"] == pytest.approx(0.2), "of the first second"


def test_ranks_have_no_deficiency() -> None:
    load = [done(0, 1, kind="messages", part=part, source=source, sink=None) for part, source in enumerate("ab")]
    path = CrossedPath(None, None, "load", (CrossedLink("core", "forward", 10_000_000),))
    found = metrics.of_run(RunData(run(load, links=watched("core", 10_000_000, size=10)).table, [path]))
    assert "utilisation" in found and "deficiency" not in found


def test_deficiency_knows_the_rate_of_a_bottleneck_that_counts_nothing() -> None:
    # 1 MB in 1 s over a plain link of 10 Mbit/s, in front of a link of 1 Gbit/s that is nearly empty.
    load = [done(0, 1, source="a", sink="b")]
    data = run(load, links=watched("core", 1_000_000_000, size=1_000_000))
    found = metrics.of_run(RunData(data.table, over("port", 10_000_000, counted="core")))
    assert found["deficiency"] == pytest.approx(0.2)
    assert "utilisation" not in found
    assert "deficiency" not in metrics.of_run(run(load)), "no link was watched: no bottleneck is known"


def test_mean_goodput_and_fairness_are_over_flows() -> None:
    found = metrics.of_run(run([done(n, 2, goodput_bps=rate) for n, rate in enumerate((1e6 + 0.0, 2e6, 3e6))]))
    assert found["mean goodput"] == 2_000_000
    assert found["fairness per flow"] == pytest.approx(36 / 42)


def test_parallel_streams_are_one_source() -> None:
    # Four streams of one node beside two single ones, each with the same goodput: fair to flows, 4 to 1 between nodes.
    nodes = ["left1"] * 4 + ["left2", "left3"]
    flows = [done(n, 2, goodput_bps=4e6, source=node, sink="right1") for n, node in enumerate(nodes)]
    found = metrics.of_run(run(flows))
    assert found["fairness per flow"] == 1
    assert found["fairness per source"] == pytest.approx(6**2 / (3 * (4**2 + 1 + 1)))


def test_files_one_after_the_other_are_not_more_than_side_by_side() -> None:
    # One node sends two files of 1 MB in 2 s each one after the other, another one in 2 s: 4 Mbit/s each.
    flows = [done(0, 2, source="a"), done(1, 2, start=2, source="a"), done(2, 2, source="b")]
    assert metrics.of_run(run(flows))["fairness per source"] == 1


def test_one_flow_has_no_fairness_and_no_deviation() -> None:
    found = metrics.of_run(run([done(0, 2, goodput_bps=1.0, source="a")]))
    assert not {"fairness per flow", "fairness per source", "deviation of completion time"} & found.keys()


def test_retransmissions_are_a_share_of_all_segments() -> None:
    # 95 000 bytes in segments of 1000 are 95; 5 more were sent again.
    flows = [done(0, 2, received_bytes=95_000, segment_bytes=1000, retransmitted_segments=5)]
    assert metrics.of_run(run(flows))["retransmissions"] == pytest.approx(0.05)


def exchange(number: int, duration_ms: int, **values: Any) -> dict[str, Any]:
    return {"flow": 0, "part": 0, "number": number, "start_ns": 0, "duration_ns": duration_ms * MS, **values}


def test_response_times_are_those_of_sessions_and_iterations_those_of_messages() -> None:
    flows = [done(0, 2, kind="requests"), done(1, 2, kind="messages"), done(2, 2, kind="requests", role="background")]
    exchanges = [exchange(n, n + 1) for n in range(20)] + [exchange(0, 7, flow=1), exchange(0, 999, flow=2)]
    found = metrics.of_run(run(flows, exchanges=exchanges))
    assert found["mean response time"] == 10.5 * MS
    assert found["p95 response time"] == 19 * MS
    assert found["mean iteration time"] == 7 * MS


def test_lateness_is_of_all_flows() -> None:
    flows = [done(n, 2, role="background", started_ns=n) for n in range(100)]
    assert metrics.of_run(run(flows)) == {**metrics.of_run(run(flows)), "start lateness p99": 98}


def test_udp() -> None:
    sent: dict[str, Any] = {"kind": "udp", "completion_ns": None, "delay_p99_ns": 4 * MS}
    flows = [
        done(0, 2, **sent, sent_packets=900, lost_packets=9, jitter_ns=10.0),
        done(1, 2, **sent, sent_packets=100, lost_packets=1, jitter_ns=30.0),
    ]
    found = metrics.of_run(run(flows))
    assert found["udp loss"] == pytest.approx(0.01)
    assert found["udp jitter"] == 20
    assert found["udp delay p99"] == 4 * MS
    assert "mean completion time" not in found


def test_a_call_is_judged_by_its_late_packets_and_its_lost_ones() -> None:
    sent: dict[str, Any] = {"kind": "udp", "completion_ns": None, "sent_packets": 1000}
    call = done(0, 2, **sent, lost_packets=0, delay_p99_ns=180 * MS)
    # Idd at 200 ms is 3.04; of 1 % late packets Ie,eff is 95/26.1 = 3.64; R is 86.52.
    assert metrics.of_run(run([call]))["voice mos"] == pytest.approx(4.24, abs=0.005)
    # A tenth lost, of the rest 1 % late: Ppl 10.9, Ie,eff 28.76; R is 64.44.
    lossy = done(1, 2, **sent, lost_packets=100, delay_p99_ns=80 * MS)
    assert metrics.of_run(run([lossy]))["voice mos"] == pytest.approx(3.33, abs=0.005)
    assert metrics.of_run(run([call, lossy]))["voice mos"] == pytest.approx((4.24 + 3.33) / 2, abs=0.005)
    dead = done(2, 2, **sent, lost_packets=1000, delay_p99_ns=None)
    assert metrics.of_run(run([dead]))["voice mos"] == 1
    assert "voice mos" not in metrics.of_run(run([done(0, 2)]))
    untold = done(3, 2, **sent, lost_packets=0, delay_p99_ns=None)
    assert "voice mos" not in metrics.of_run(run([untold])), "iperf3 tells no delays"


def test_datagrams_of_which_nobody_knows_what_came_are_not_taken_for_none() -> None:
    sent: dict[str, Any] = {"kind": "udp", "completion_ns": None, "volume_bytes": None, "sent_packets": 100}
    known = done(0, 2, **sent, lost_packets=1, source="a")
    untold = done(1, 2, **sent, lost_packets=None, received_bytes=None, source="b")
    found = metrics.of_run(run([known, untold]))
    assert not {"udp loss", "aggregate goodput", "fairness per source", "steady goodput", "deficiency"} & found.keys()
    assert {"udp loss", "aggregate goodput"} <= metrics.of_run(run([known])).keys()
    failed = done(1, 0, kind="udp", volume_bytes=None, received_bytes=None, error="refused")
    assert metrics.of_run(run([known, failed]))["udp loss"] == 0.01


def test_a_run_without_rows_has_no_metrics() -> None:
    assert metrics.of_run(run([])) == {}


def test_every_metric_of_the_vocabulary_is_computed_and_no_other() -> None:
    missing = METRICS.keys() - metrics.COMPUTATIONS.keys()
    assert not missing, f"nothing in analysis/metrics.py computes {sorted(missing)}"
    unknown = metrics.COMPUTATIONS.keys() - METRICS.keys()
    assert not unknown, f"labs/record/metrics.py does not know {sorted(unknown)}"


def test_a_metric_is_computed_once() -> None:
    with pytest.raises(ValueError, match="'utilisation' is computed twice"):
        metrics.computes("utilisation")(lambda run: None)


def test_metrics_of_other_flows_than_the_loads() -> None:
    flows = [
        done(0, 2, source="a"),
        done(1, 8, role="cross", step="beside", source="b"),
        done(2, 4, role="cross", step="beside", source="c"),
    ]
    asked = [
        parse(f"mean completion time of {who}")
        for who in ("beside", "cross", "source c", "flow flow 1", "each step", "nobody")
    ]
    found = metrics.of_run(run(flows), asked)
    assert found["mean completion time"] == 2 * SECOND
    assert found["mean completion time of beside"] == found["mean completion time of cross"] == 6 * SECOND
    assert found["mean completion time of source c"] == 4 * SECOND
    assert found["mean completion time of flow flow 1"] == 8 * SECOND
    assert found["mean completion time of forward"] == 2 * SECOND  # of each step
    assert "mean completion time of nobody" not in found


@pytest.mark.parametrize(
    ("answered", "outage_s"),
    [([1, 1, 1, 1], 0), ([1, 0, 0, 1], 2), ([1, 1, 0, 0], 2), ([0, 1, 0, 1], 1), ([0, 0, 0, 0], 4)],
)
def test_the_longest_outage_lasts_from_the_first_lost_request_to_the_next_answer(
    answered: list[int], outage_s: int
) -> None:
    requests = [
        {
            "step": "ping",
            "node": "a",
            "target": "b",
            "duplicate": False,
            "time_ns": number * SECOND,
            "answered": came > 0,
        }
        for number, came in enumerate(answered)
    ]
    rows = [{**each, "rtt_ns": MS if each["answered"] else None} for each in requests]
    found = metrics.of_run(run([], pings=rows), [parse("longest ping outage of ping")])
    assert found["longest ping outage of ping"] == outage_s * SECOND


def test_the_bottleneck_of_other_flows_is_on_their_own_way() -> None:
    """Two links, each crossed by one step's flow; the one is full, the other half."""
    flows = [done(0, 1, source="a", sink="b"), done(1, 1, role="cross", step="beside", source="c", sink="d")]
    rows = [
        {"link": link, "direction": "forward", "time_ns": SECOND, "rate_bps": 8_000_000, "sent_bytes": size}
        for link, size in (("one", 1_000_000), ("two", 500_000))
    ]
    links = [{**row, "served_packets": 1, "dropped_packets": 0, "lost_packets": 0, "waited_ns": 0} for row in rows]
    crossed = [
        CrossedPath(source, sink, role, (CrossedLink(link, "forward", 8_000_000),))
        for source, sink, role, link in (("a", "b", "load", "one"), ("c", "d", "cross", "two"))
    ]
    data = RunData(run(flows, links=links).table, crossed)
    found = metrics.of_run(data, [parse("utilisation of cross")])
    assert (found["utilisation"], found["utilisation of cross"]) == (1.0, 0.5)


def test_marks_and_timeouts_are_absent_where_no_table_counts_them() -> None:
    data = run([done(0, 2)])
    assert not {"marks", "timeouts"} & metrics.of_run(data).keys()


def test_timeouts_are_those_of_all_flows_that_count_them() -> None:
    # A generator that does not count them leaves null.
    assert metrics.of_run(run([done(0, 2, timeouts=3), done(1, 2, timeouts=4), done(2, 2)]))["timeouts"] == 7


def test_pings_by_the_first_replies_of_all_steps_of_one_and_of_a_node() -> None:
    def pings(step: str, node: str, *rtts_ms: int | None) -> list[dict[str, Any]]:
        base = {"step": step, "node": node, "duplicate": False}
        return [{**base, "answered": rtt is not None, "rtt_ns": None if rtt is None else rtt * MS} for rtt in rtts_ms]

    def told(step: str, node: str, sent: int, received: int, mean_ns: float | None) -> dict[str, Any]:
        base = {"step": step, "node": node, "tool": "ping", "rtt_mean_ns": mean_ns}
        return {**base, "sent_packets": sent, "received_packets": received}

    again = {**pings("far", "left1", 90)[0], "duplicate": True}
    tables_of = {
        "pings": [*pings("far", "left1", 10, 20, None, 30), again, *pings("near", "left2", 1, 2)],
        "readings": [
            told("far", "left1", 4, 3, 20.0 * MS),
            told("near", "left2", 2, 2, 1.5 * MS),
            told("quiet", "left2", 10, 9, 5.0 * MS),
        ],
    }
    there = run([], **tables_of)
    within = "answers within 50ms of near"
    wanted = (
        within,
        "ping loss of far",
        "ping rtt p50 of far",
        "ping rtt mean of quiet",
        "ping rtt p99 of source left2",
    )
    found = metrics.of_run(there, [parse(each) for each in (*wanted, "ping loss of each step", "ping loss of nobody")])
    assert found["ping rtt mean"] == pytest.approx((10 + 20 + 30 + 1 + 2) / 5 * MS)
    assert (found["ping rtt p50"], found["ping rtt p95"], found["ping rtt p99"]) == (10 * MS, 30 * MS, 30 * MS)
    assert (found["ping rtt max"], metrics.of_run(run([]), [parse("ping rtt max")])) == (30 * MS, {})
    assert found["ping loss"] == pytest.approx(2 / 16)
    assert found["answers within 50ms"] == pytest.approx(5 / 6), "one of six requests has no answer"
    assert found[within] == 1
    assert (found["ping loss of far"], found["ping rtt p50 of far"]) == (0.25, 20 * MS)
    assert (found["ping rtt mean of quiet"], found["ping rtt p99 of source left2"]) == (5 * MS, 2 * MS)
    assert found["ping loss of quiet"] == pytest.approx(0.1) and found["ping loss of near"] == 0
    assert "ping rtt p50 of quiet" not in found and "ping loss of nobody" not in found
