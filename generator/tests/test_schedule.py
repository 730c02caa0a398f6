"""The schedule of a run: flows, commands, events, other tools, and the time that it takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ewan.generator.tests.scenarios import HEAD, flows, only, parse, planned
from ewan.labs.base import codec
from ewan.labs.base.source import DescriptionError
from ewan.labs.link import BernoulliLoss, Change, ConstantDelay, NoLoss
from ewan.labs.record.bounds import RELEASE_P99_NS
from ewan.labs.runtime import program as programs


def test_members_start_one_after_the_other_in_rounds_with_streams_that_share_the_volume() -> None:
    schedule = only(
        """
steps:
  - name: files
    at: 1s
    offset: 500ms
    from: "left[1-2]"
    to: "right[1-2]"
    repeat: {times: 2, every: 10s}
    streams: 3
    congestion: bic
    bulk: {volume: 1000B}
"""
    )
    sent = flows(schedule)
    assert [flow["start_ns"] for flow in sent[::3]] == [10**9, 11 * 10**9, 1_500_000_000, 11_500_000_000]
    assert [flow["work"]["bytes"] for flow in sent[:3]] == [334, 333, 333]
    assert sent[0]["name"] == "files left1 to right1 round 1 stream 1"
    assert len({flow["name"] for flow in sent}) == 12
    assert {flow["socket"]["congestion"] for flow in sent} == {"bic"}
    told = schedule.document.flows
    assert [flow.transfer for flow in told] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [flow.number for flow in told] == [flow.request for flow in told] == list(range(12))
    assert codec.data_of(told[3]) | {"name": ""} == {
        "number": 3, "name": "", "step": "files", "role": "load", "transfer": 1, "kind": "bulk", "generator": "ewan",
        "source": "left1", "sink": "right1", "congestion": "bic", "scheduled_ns": 11 * 10**9, "volume_bytes": 334,
        "request": 3,
    }  # fmt: skip


def test_ends_are_zipped_and_one_may_stand_for_many() -> None:
    schedule = only(
        """
roles: {senders: "left[1-3]"}
steps:
  - {name: a, from: senders, to: right1, bulk: 1MB}
  - {name: b, from: left1, to: "right[2,3]", bulk: 1MB}
  - {name: c, role: reverse, from: "right[4+2]", to: "left[4+2]", bulk: 1MB}
  - {name: d, from: "right[4+0]", to: "left[4+0]", bulk: 1MB}
"""
    )
    ends = [(flow.source, flow.sink) for flow in schedule.document.flows]
    assert ends == [
        ("left1", "right1"), ("left2", "right1"), ("left3", "right1"), ("left1", "right2"), ("left1", "right3"),
        ("right4", "left4"), ("right5", "left5"),
    ]  # fmt: skip
    assert schedule.document.flows[-1].role == "reverse"
    assert flows(schedule)[0]["from"]["netns"] == "/run/netns/ewan-x-left1"


def test_every_kind_becomes_what_the_generator_reads() -> None:
    sent = flows(
        only(
            """
steps:
  - {name: a, from: left1, to: right1, for: 5s, bidirectional: }
  - name: b
    from: left1
    to: right1
    arrivals: {count: 10, interval: {exponential: {mean: 100ms}}, size: {pareto: {mean: 100kB, shape: 1.3}}}
  - {name: c, from: left1, to: right1, requests: {count: 5, request: 300B, response: 10kB, think: 1s}}
  - {name: d, from: left1, to: right1, for: 2s, dscp: 46, udp: {rate: 8Mbit/s, size: 1470B, on: 1s, off: 500ms}}
  - {name: e, ranks: "left[1-2],right[1-2]", messages: {pattern: all-to-all, size: 10kB, iterations: 7, compute: 1ms}}
  - {name: f, ranks: "left[1-2]", messages: {pattern: barrier, iterations: 3}}
  - {name: g, from: left1, to: right1, ecn: true, mss: 1000, window: 64KiB, send_buffer: 4MB, for: 1s, bulk: 1MB}
"""
        )
    )
    work = {flow["name"].split()[0]: flow["work"] for flow in sent}
    assert work["a"] == {"kind": "bulk", "bytes": None, "bidirectional": True, "writes": None}
    assert sent[0]["stop_ns"] == 5 * 10**9
    assert work["b"] == {
        "kind": "arrivals",
        "count": 10,
        "interval_ns": {"law": "exponential", "mean": 100_000_000},
        "size_bytes": {"law": "pareto", "mean": 100_000, "shape": 1.3},
    }
    assert work["c"]["think_ns"] == {"law": "constant", "value": 10**9}
    assert work["c"]["new_connection"] is False
    assert work["d"]["interval_ns"] == {"law": "constant", "value": 1_470_000}
    assert work["d"]["off_ns"] == {"law": "constant", "value": 500_000_000}
    assert sent[3]["socket"]["congestion"] is None
    assert sent[3]["socket"]["dscp"] == 46
    assert [rank["netns"].rsplit("-", 1)[1] for rank in work["e"]["ranks"]] == ["left1", "left2", "right1", "right2"]
    assert "from" not in sent[4]
    assert work["f"]["size_bytes"] == {"law": "constant", "value": 1}
    assert sent[6]["socket"] == {
        "congestion": "cubic", "send_buffer_bytes": 4_000_000, "receive_buffer_bytes": None, "window_bytes": 65536,
        "mss_bytes": 1000, "dscp": 0, "ecn": True, "nodelay": False,
    }  # fmt: skip


def test_starts_by_a_law_come_from_the_seed_alone() -> None:
    text = HEAD + (
        'seeds: 2\nsteps: [{name: a, from: "left[1-3]", to: "right[1-3]", '
        "offset: {exponential: {mean: 1s}}, bulk: 1MB}]"
    )
    first, second = parse(text).runs()
    starts = [[flow["start_ns"] for flow in flows(planned(run))] for run in (first, second, first)]
    assert starts[0] == starts[2]
    assert starts[0] != starts[1]
    assert starts[0][0] == 0 and starts[0] == sorted(starts[0])
    assert planned(first).program.to_json() == planned(first).program.to_json()


def test_an_event_is_a_change_of_each_direction_in_order_of_time() -> None:
    schedule = only(
        """
steps: [{name: a, from: left1, to: right1, for: 20s, bulk: }]
events:
  - {at: 9s, link: core, direction: backward, rate: 5Mbit/s}
  - {at: 5s, link: core, delay: 20ms}
"""
    )
    told = [(event.at_ns, event.direction, event.change) for event in schedule.program.events]
    assert told == [
        (5 * 10**9, "forward", Change(delay=ConstantDelay(20_000_000))),
        (5 * 10**9, "backward", Change(delay=ConstantDelay(20_000_000))),
        (9 * 10**9, "backward", Change(rate_bps=5_000_000)),
    ]


def test_an_event_that_lasts_gives_back_what_the_link_had_just_before() -> None:
    schedule = only(
        """
steps: [{name: a, from: left1, to: right1, for: 20s, bulk: }]
events:
  - {at: 5s, link: core, delay: 20ms}
  - {at: 6s, for: 50ms, link: core, direction: forward, delay: 90ms, loss: 30%}
  - {at: 7s, for: 1s, link: core, down: true}
  - {at: 6050ms, link: core, direction: forward, rate: 5Mbit/s}
"""
    )
    told = [(event.at_ns, event.direction, event.change, event.down) for event in schedule.program.events][2:]
    lossy, before = Change(delay=ConstantDelay(90_000_000), loss=BernoulliLoss(300_000_000)), NoLoss()
    assert told == [
        (6 * 10**9, "forward", lossy, None),
        (6_050_000_000, "forward", Change(delay=ConstantDelay(20_000_000), loss=before), None),
        (6_050_000_000, "forward", Change(rate_bps=5_000_000), None),
        (7 * 10**9, "forward", Change(), True),
        (8 * 10**9, "forward", Change(), False),
    ]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ("{at: 2s, link: core, up: true, for: 2s}", 'for "2s": is of a change, or of "down: true": leave it out'),
        ("{at: 2s, link: core, down: true, for: 4s}, {at: 3s, link: core, down: true}", "until 6s: write it later"),
        ("{at: 2s, link: core, rate: 5Mbit/s, for: 4s}, {at: 3s, link: core, rate: 1Mbit/s}", "changes rate while"),
        ("{at: 2s, link: core, delay: 5ms, for: 0s}", 'is no time: write for example "50ms"'),
    ],
)
def test_what_lasts_is_changed_by_nothing_else(events: str, message: str) -> None:
    steps = "steps: [{name: a, from: left1, to: right1, for: 20s, bulk: }]"
    with pytest.raises(DescriptionError, match=re.escape(message)):
        only(f"{steps}\nevents: [{events}]\n")


def test_commands_run_beside_traffic_and_end_with_it_if_they_are_services() -> None:
    schedule = only(
        """
steps:
  - {name: ping, at: 1s, on: "left[1-2]", run: ping -c 3 right1}
  - {name: watch, on: core, run: "cat /proc/net/dev; sleep 100", service: true}
"""
    )
    assert schedule.program.traffic is None
    commands = schedule.program.commands
    assert [(command.node, command.at_ns, command.service) for command in commands] == [
        ("left1", 10**9, False), ("left2", 10**9, False), ("core", 0, True),
    ]  # fmt: skip
    assert commands[0].argv == ("ping", "-c", "3", "right1")
    assert commands[2].argv[:2] == ("sh", "-c")
    assert [told.step for told in schedule.document.commands] == ["ping", "ping", "watch"]


def test_values_in_a_command_are_words_and_reach_no_shell() -> None:
    text = HEAD + 'parameters: {a: 1}\nsteps: [{name: a, on: left1, run: "echo ${a} > $EWAN_OUT/x"}]\n'
    (run,) = parse(text).runs({"a": "$(id); 2"})
    assert planned(run).program.commands[0].argv == ("sh", "-c", "echo '$(id);' 2 > $EWAN_OUT/x")
    (run,) = parse(text.replace("echo ${a} > $EWAN_OUT/x", "${a}")).runs({"a": "5"})
    assert planned(run).program.commands[0].argv == ("5",)


def test_a_schedule_with_other_tools_begins_when_their_servers_listen() -> None:
    schedule = only(
        """
steps:
  - {name: own, from: left1, to: right1, for: 4s, bulk: }
  - {name: other, at: 20ms, generator: iperf3, from: left2, to: right2, for: 4s, bulk: }
events: [{at: 2s, link: core, loss: 1%}]
"""
    )
    assert schedule.document.begin_ns == 80_000_000
    assert flows(schedule)[0]["start_ns"] == 80_000_000
    assert schedule.program.events[0].at_ns == 2_080_000_000
    server, client = schedule.program.commands
    assert (server.at_ns, server.service, client.at_ns, client.service) == (0, True, 100_000_000, False)
    assert [flow.generator for flow in schedule.document.flows] == ["ewan", "iperf3"]


def test_how_long_it_takes_follows_from_volumes_and_rates() -> None:
    three = only('steps: [{name: a, from: "left[1-3]", to: "right[1-3]", bulk: 10Mbit}]')
    assert three.program.expected_ns == 3 * 10**9
    timed = only("steps: [{name: a, at: 1s, from: left1, to: right1, for: 6s, bulk: }]")
    assert timed.program.expected_ns == 7 * 10**9
    assert timed.program.longest_ns == 12 * 10**9


@pytest.mark.parametrize("limit", ["window", "send_buffer", "receive_buffer"])
def test_a_small_window_makes_a_transfer_long(limit: str) -> None:
    """A window a round trip, however fast the links are, and so much the longer until it is given up."""
    wide = "lab: {topology: {dumbbell: {pairs: 1}}, rtt: 50ms, wan: {rate: 1Gbit/s}}"
    step = "name: a, from: left1, to: right1, streams: 2, bulk: 400MB"
    (free,), (held,) = (
        parse(f"{wide}\ndefaults: {defaults}\nsteps: [{{{step}}}]").runs() for defaults in ("{}", f"{{{limit}: 64KiB}}")
    )
    assert planned(free).program.expected_ns < 4 * 10**9
    program = planned(held).program
    alone_ns = 400_000_000 / (2 * 65536 / 0.050) * 10**9
    assert alone_ns <= program.expected_ns < 1.01 * alone_ns
    assert program.longest_ns == 10 * program.expected_ns


def test_the_live_clock_alone_is_watched_for_disturbances() -> None:
    (run,) = parse(HEAD + "steps: [{name: a, from: left1, to: right1, bulk: 1MB}]").runs()
    virtual, live = planned(run).program, planned(run, "live").program
    assert virtual.disturbances is None and b"disturbances" not in virtual.to_json()
    assert live.disturbances is not None and live.disturbances.late_ns == RELEASE_P99_NS
    assert programs.from_json(live.to_json(), live.expected_ns) == live


def test_what_a_scenario_needs_is_for_commands_of_the_virtual_clock() -> None:
    text = 'needs: [data/../trace, /srv/videos]\nsteps: [{name: a, on: left1, run: "cat trace"}]'
    (run,) = parse(HEAD + text).runs()
    virtual, live = planned(run).program, planned(run, "live").program
    folder = Path(str(run.scenario.file)).absolute().parent
    assert virtual.needs == (str(folder / "trace"), "/srv/videos") and live.needs == ()
    assert programs.from_json(virtual.to_json(), virtual.expected_ns) == virtual


def test_a_call_has_the_usual_rates_and_packets_and_both_ends_are_of_one_process() -> None:
    call = flows(only("steps: [{name: a, from: left1, to: right1, for: 2s, dscp: 46, ecn: false, media: }]"))[0]
    assert call["work"] == {
        "kind": "media",
        "control": "gcc",
        "initial_bps": 300_000,
        "least_bps": 150_000,
        "most_bps": 2_500_000,
        "frames_per_second": 30,
        "packet_bytes": 1200,
        "key_interval_ns": None,
        "even": False,
        "l4s": False,
        "pause": None,
        "transit_ns": call["work"]["transit_ns"],
    }
    assert call["work"]["transit_ns"] > 10_000_000
    assert (call["socket"]["dscp"], call["socket"]["congestion"], call["stop_ns"]) == (46, None, 2_000_000_000)


def test_a_source_may_pause_for_two_seconds_and_more() -> None:
    step = "steps: [{{name: a, from: left1, to: right1, for: 9s, media: {{pause: {{at: 1s, for: {}}}}}}}]"
    assert flows(only(step.format("2s")))[0]["work"]["pause"] == {"at_ns": 1_000_000_000, "for_ns": 2_000_000_000}


@pytest.mark.parametrize(
    ("media", "ecn"), [("{}", False), ("{control: scream}", True), ("{control: scream, l4s: true}", False)]
)
def test_packets_of_a_call_may_be_marked_where_its_control_knows_marks(media: str, ecn: bool) -> None:
    text = f"defaults: {{ecn: true}}\nsteps: [{{name: a, from: left1, to: right1, for: 2s, media: {media}}}]"
    assert flows(only(text))[0]["socket"]["ecn"] == ecn
