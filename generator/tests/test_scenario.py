"""Scenarios: what a file stands for, in runs and in what is sent; every refusal in one line with file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from generator import scenario
from generator.scenario import DescriptionError, Scenario, ScenarioRun, Schedule
from generator.scenario.manual import markdown
from labs.compile import HostFacts
from labs.compile import compile as compile_spec
from labs.stages import Change, ConstantDelay

ROOT = Path(__file__).parents[2]
LIBRARY = sorted((ROOT / "labs/library").glob("*.scenario.yaml"))
FACTS = HostFacts((0, 1), (), "virtual")

HEAD = """lab: {topology: {dumbbell: {pairs: 3, reverse_pairs: 2}}, rtt: 20ms, wan: {rate: 10Mbit/s}}
"""


def parse(text: str) -> Scenario:
    return scenario.parse(text, Path("x.scenario.yaml"))


def planned(run: ScenarioRun) -> Schedule:
    return run.schedule(compile_spec(run.spec, FACTS), "virtual")


def check(text: str, settings: dict[str, str] | None = None, scale: str | None = None) -> None:
    """Makes every run and its schedule, as an experiment does before the first one starts."""
    assert list(parse(text).runs(settings, scale).scheduled(FACTS, "virtual"))


def only(text: str) -> Schedule:
    (run,) = parse(HEAD + text).runs()
    return planned(run)


def flows(schedule: Schedule) -> list[Any]:
    assert schedule.program.traffic is not None
    return list(schedule.program.traffic["flows"])


# Runs


def test_a_sweep_is_every_combination_of_each_seed_in_order() -> None:
    result = parse(
        HEAD
        + """
parameters: {streams: 1, congestion: cubic}
sweep: {streams: [1, 2], congestion: [reno, cubic]}
seeds: 2
steps: [{name: a, from: left1, to: right1, streams: "${streams}", congestion: "${congestion}", bulk: 1MB}]
"""
    )
    runs = result.runs()
    assert [run.number for run in runs] == list(range(1, 9))
    assert [run.name for run in runs][:3] == [
        "streams=1 congestion=reno seed=1",
        "streams=1 congestion=reno seed=2",
        "streams=1 congestion=cubic seed=1",
    ]
    assert runs[7].parameters == {"streams": 2, "congestion": "cubic"}
    assert [run.spec.description.seed for run in runs[:2]] == [1, 2]
    assert len(flows(planned(runs[7]))) == 2
    repeated = runs.of(runs[0].parameters, 9, 5)
    assert (repeated.number, repeated.name) == (9, "streams=1 congestion=reno seed=5")
    assert repeated.spec.description.seed == 5


def test_a_repetition_has_the_seed_of_its_own_in_its_steps() -> None:
    """A stop condition asks for further seeds; `${seed}` is the run's, not that of the point's first run."""
    runs = parse(HEAD + "seeds: 2\nsteps: [{name: a, on: left1, run: 'echo ${seed}'}]").runs()
    (command,) = planned(runs.of(runs[0].parameters, 3, 7)).program.commands
    assert command.argv[-1].endswith("echo 7") or command.argv[-1] == "7"


SWEPT = (
    HEAD
    + """
parameters: {streams: 1, length: 5s}
sweep: [{streams: 1, length: 5s}, {streams: [2, 3], length: 10s}]
scales: {quick: {parameters: {length: 1s}, sweep: {streams: [1, 4]}, seeds: [7, 9]}}
stop: {metric: mean goodput, within: 5%}
steps: [{name: a, from: left1, to: right1, streams: "${streams}", for: "${length}", bulk: }]
"""
)


def test_groups_of_a_sweep_come_one_after_the_other() -> None:
    points = [(run.parameters["streams"], run.parameters["length"]) for run in parse(SWEPT).runs()]
    assert points == [(1, "5s"), (2, "10s"), (3, "10s")]


def test_a_scale_replaces_parameters_sweep_and_seeds() -> None:
    runs = parse(SWEPT).runs(scale="quick")
    assert [run.name for run in runs] == [
        "streams=1 seed=7", "streams=1 seed=9", "streams=4 seed=7", "streams=4 seed=9",
    ]  # fmt: skip
    assert {run.parameters["length"] for run in runs} == {"1s"}


def test_words_of_the_command_line_replace_values_and_sweeps() -> None:
    runs = parse(SWEPT).runs({"streams": "5,6", "length": "2s"}, seeds=2)
    assert [run.name for run in runs] == [
        f"streams={streams} length=2s seed={seed}" for streams in (5, 6) for seed in (1, 2)
    ]


def test_the_stop_condition_is_as_written_or_usual() -> None:
    stop = parse(SWEPT).stop_at("quick")
    assert stop == scenario.Stop("mean goodput", 0.05, 0.95, 3, 20)


def test_without_seeds_a_lab_keeps_its_own() -> None:
    text = "lab: {topology: dumbbell, seed: 42}\nsteps: [{name: a, from: left1, to: right1, bulk: 1MB}]"
    assert [run.seed for run in parse(text).runs()] == [42]


def test_parameters_stand_within_braces_and_words_and_are_numbers_again() -> None:
    text = """
parameters: {pairs: 2, rate: 5, n: 1}
lab: {topology: {dumbbell: {pairs: ${pairs}}}, wan: {rate: ${rate}Mbit/s}}
steps:
  - {name: a, from: "left[1-${pairs}]", to: "right[1-${pairs}]", streams: ${n}, bulk: 1MB}
  - {name: b, on: left1, run: 'echo $EWAN_OUT ${seed} >/dev/null'}
"""
    (run,) = parse(text).runs()
    assert run.spec.description.topology.choice.pairs == 2
    assert planned(run).program.commands[0].argv == ("sh", "-c", "echo $EWAN_OUT 1 >/dev/null")


# What is sent


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
    told = schedule.document["flows"]
    assert [flow["transfer"] for flow in told] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [flow["number"] for flow in told] == [flow["request"] for flow in told] == list(range(12))
    assert told[3] | {"name": ""} == {
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
    ends = [(flow["source"], flow["sink"]) for flow in schedule.document["flows"]]
    assert ends == [
        ("left1", "right1"), ("left2", "right1"), ("left3", "right1"), ("left1", "right2"), ("left1", "right3"),
        ("right4", "left4"), ("right5", "left5"),
    ]  # fmt: skip
    assert schedule.document["flows"][-1]["role"] == "reverse"
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
    assert work["a"] == {"kind": "bulk", "bytes": None, "bidirectional": True}
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
    assert [told["step"] for told in schedule.document["commands"]] == ["ping", "ping", "watch"]


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
    assert schedule.document["begin_ns"] == 80_000_000
    assert flows(schedule)[0]["start_ns"] == 80_000_000
    assert schedule.program.events[0].at_ns == 2_080_000_000
    server, client = schedule.program.commands
    assert (server.at_ns, server.service, client.at_ns, client.service) == (0, True, 100_000_000, False)
    assert [flow["generator"] for flow in schedule.document["flows"]] == ["ewan", "iperf3"]


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


# Refusals

STEP = "{name: a, from: left1, to: right1, bulk: 1MB}"
REFUSED = [
    # a step's own words
    ("steps: [{name: a, from: left1, to: right1, bluk: 1MB}]", '2: steps[0].bluk "1MB": unknown key of a step'),
    ("steps: [{name: a, from: left1, to: right1}]", "2: steps[0]: write exactly one of bulk, bidirectional"),
    ("steps: [{name: a, to: right1, bulk: 1MB}]", '2: steps[0].from: is missing: write "from:" too'),
    ("steps: [{name: a, from: left1, to: right1, bulk: }]", '2: steps[0].bulk "": never ends: write its volume'),
    ("steps: [{name: a, from: left1, to: right1, bulk: 0MB}]", 'steps[0].bulk "0MB": is nothing: write a volume'),
    ("steps: [{name: a, from: left1, to: right1, bulk: 100}]", 'write a volume as "100MB" or "100Gbit"'),
    ("steps: [{name: a, at: 5, from: left1, to: right1, bulk: 1MB}]", 'write a duration as "5ms"'),
    ("steps: [{name: a, from: left7, to: right1, bulk: 1MB}]", '2: steps[0].from "left7": there is no node left7'),
    ("steps: [{name: a, from: core, to: right1, bulk: 1MB}]", 'steps[0].from "core": there is no node core'),
    ('steps: [{name: a, from: "left[1-3]", to: "right[1-2]", bulk: 1MB}]', "3 send to 2: write as many as send"),
    ('steps: [{name: a, from: "left[1-2]", to: "right[1-0]", bulk: 1MB}]', "2 send to 0: write as many as send"),
    ("steps: [{name: a, from: left1, to: left1, bulk: 1MB}]", "left1 sends to itself: write another node"),
    ('steps: [{name: a, from: "left1,left1", to: "right1,right1", bulk: 1MB}]', "left1 sends to right1 twice"),
    ("steps: [{name: a, from: left1, to: right1, streams: 0, bulk: 1MB}]", "write a whole number from 1 to 1000"),
    ("steps: [{name: a, from: left1, to: right1, streams: 3, bulk: 2B}]", "is less than a byte for each of 3 streams"),
    ("steps: [{name: a, from: left1, to: right1, window: 10B, bulk: 1MB}]", "sockets take 1.152kB to"),
    ("steps: [{name: a, from: left1, to: right1, congestion: Bad Name, bulk: 1MB}]", "kernel's name of a congestion"),
    ("steps: [{name: a, from: left1, to: right1, for: 1s, congestion: reno, udp: {rate: 1M, size: 1kB}}]",
     "2: steps[0].congestion \"reno\": a step of kind udp has none: leave it out"),
    ("steps: [{name: a, from: left1, to: right1, for: 1s, udp: {size: 1kB}}]", 'write one of "rate:" and "interval:"'),
    ("steps: [{name: a, from: left1, to: right1, udp: {rate: 1M, size: 1kB}}]", 'never ends: write a "count:"'),
    ("steps: [{name: a, from: left1, to: right1, for: 1s, udp: {rate: 1M, size: 10B}}]", "a packet holds 24 to 65507"),
    ("steps: [{name: a, from: left1, to: right1, for: 1s, udp: {rate: 1M, size: 1kB, on: 1s}}]", '"on:" and "off:"'),
    ("steps: [{name: a, from: left1, to: right1, arrivals: {count: 2, interval: 0s, size: 1kB}}]", "is 0: write more"),
    ("steps: [{name: a, from: left1, to: right1, arrivals: {count: 2, interval: {parto: {mean: 1s}}, size: 1kB}}]",
     "steps[0].arrivals.interval"),
    ("steps: [{name: a, ranks: left1, messages: {pattern: barrier, iterations: 2}}]", "is one node alone: write"),
    ("steps: [{name: a, ranks: 'left[1-3]', messages: {pattern: ping-pong, iterations: 2, size: 1kB}}]", "are 3, and"),
    ("steps: [{name: a, ranks: 'left[1-2]', messages: {pattern: ring, iterations: 2, size: 1B}}]", 'write "ping-pong"'),
    ("steps: [{name: a, on: left1, run: 'ping \"x'}]", "no closing quotation: close the quotes"),
    ("steps: [{name: a, on: left1, for: 2s, run: ping}]", "steps[0].for \"2s\": a step of kind run has none"),
    (f"steps: [{STEP}, {STEP}]", "two steps are called a: write another name"),
    ("steps: []", "has no steps: write at least one"),
    ('steps: [{name: a, from: "left[1-0]", to: "right[1-0]", bulk: 1MB}]', "nothing is sent"),
    (f"longest: 10s\nsteps: [{STEP[:-1]}, at: 10s}}]", '3: steps[0].at "10s": its last member starts at 10s, and all'),
    # other generators
    ("steps: [{name: a, generator: iperf3, from: left1, to: right1, requests: {count: 2, request: 1B, response: 1B}}]",
     'iperf3 knows no requests: write "generator: ewan"'),
    ("steps: [{name: a, generator: iperf3, from: left1, to: right1, for: 1.5s, bulk: }]", "iperf3 counts whole"),
    ("steps: [{name: a, generator: iperf3, from: left1, to: right1, ecn: true, bulk: 1MB}]", "iperf3 does not set ECN"),
    ("steps: [{name: a, generator: ditg, from: left1, to: right1, bulk: 1MB}]", "ditg sends only udp here, not bulk"),
    ("steps: [{name: a, generator: ditg, from: left1, to: right1, for: 1s, "
     "udp: {size: 1kB, interval: {weibull: {mean: 1ms, shape: 2}}}}]", "ditg has no weibull law that holds"),
    # events
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: cor, delay: 1ms}}]", '3: events[0].link "cor": is no emulated link'),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: access-left1, rate: 1Mbit/s}}]", "is no emulated link"),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: core}}]", "3: events[0]: changes nothing"),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: core, delay: 5}}]", 'events[0].delay "5": write a duration as "5ms"'),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: core, framing: ip}}]", "does not change while a lab runs"),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: core, delay: 9s}}]", "would hold"),
    (f"longest: 5s\nsteps: [{STEP}]\nevents: [{{at: 6s, link: core, delay: 1ms}}]", "4: events[0].at"),
    # parameters
    (f"sweep: {{streams: [1, 2]}}\nsteps: [{STEP}]", 'write it into "parameters:" too'),
    (f"parameters: {{streams: 1}}\nsweep: {{streams: []}}\nsteps: [{STEP}]", "3: sweep.streams: is empty"),
    (f"sweep: []\nsteps: [{STEP}]", "2: sweep: is empty"),
    (f"parameters: {{a: [1]}}\nsteps: [{STEP}]", "2: parameters.a: is one value: write a word or a number"),
    (f"parameters: {{seed: 1}}\nsteps: [{STEP}]", "is always there: write another name"),
    ('steps: [{name: a, from: left1, to: right1, bulk: "${volum}"}]', "2: steps[0].bulk: ${volum}: unknown parameter"),
    ("parameters: {volume: 1MB}\nsteps: [{name: a, from: left1, to: right1, bulk: ${volum}}]", 'write "volume"'),
    ("parameters: {n: nine}\nsteps: [{name: a, from: left1, to: right1, streams: ${n}, bulk: 1MB}]",
     '3: steps[0].streams ${n} "nine": write a whole number'),
    (f"parameters: {{a: ${{b}}}}\nsteps: [{STEP}]", "is used where values are given: write the value"),
    (f"seeds: 0\nsteps: [{STEP}]", '2: seeds "0": write a whole number from 1'),
    (f"seeds: [1, 1]\nsteps: [{STEP}]", "write seeds that differ"),
    # the rest
    (f"stop: {{metric: speed, within: 5%}}\nsteps: [{STEP}]", '2: stop.metric "speed": unknown metric, write one of'),
    (
        f"stop: {{metric: mean response time, within: 5%}}\nsteps: [{STEP}]",
        '2: stop.metric "mean response time": is of steps with "requests:", and there is none',
    ),
    (f"stop: {{metric: mean goodput, within: 0%}}\nsteps: [{STEP}]", "no number of repetitions gets there"),
    (f"normalise: {{by: congestion, to: reno}}\nsteps: [{STEP}]", '2: normalise.by "congestion": unknown parameter'),
    (f"beside: [{{source: x, when: {{streams: 1}}, metric: mean goodput, value: 1}}]\nsteps: [{STEP}]", "when.streams"),
    (f"metrics: [loss]\nsteps: [{STEP}]", "write queue loss, link loss or total loss"),
    (f"metrics: [fairness]\nsteps: [{STEP}]", "write fairness per flow or fairness per source"),
    (f"beside: [{{source: x, metric: fairness per flow, value: good}}]\nsteps: [{STEP}]", "write a value like"),
    (f"sample: 10us\nsteps: [{STEP}]", 'is too short: write at least "100us"'),
    (f"stpes: [{STEP}]", '2: stpes: unknown key, write "steps"'),
    (f"scales: {{quick: {{volume: 1MB}}}}\nsteps: [{STEP}]", '2: scales.quick.volume "1MB": unknown key of a scale'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_is_wrong_is_refused_in_one_line_with_its_place(text: str, said: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        check(HEAD + text + "\n")
    line = str(refused.value)
    assert said in line
    assert line.startswith("x.scenario.yaml:")
    assert "\n" not in line
    assert "\ue000" not in line


def test_a_mistake_in_any_run_of_a_sweep_is_found_before_the_first_one() -> None:
    text = HEAD + (
        'parameters: {pairs: 1}\nsweep: {pairs: [1, 2, 99]}\nsteps: [{name: a, from: "left[1-${pairs}]", '
        'to: "right[1-${pairs}]", bulk: 1MB}]'
    )
    with pytest.raises(
        DescriptionError, match=r'^x.scenario.yaml:4: steps\[0\].from left\[1-\$\{pairs\}\] "left\[1-99\]": .*left6'
    ):
        check(text)


def test_a_mistake_in_the_lab_is_shown_where_it_is_written() -> None:
    text = "parameters: {rtt: 20ms}\nlab:\n  topology: dumbbell\n  rtt: ${rtt}\n  wann: {}\n" + f"steps: [{STEP}]"
    with pytest.raises(DescriptionError, match=r'^x.scenario.yaml:5: lab.wann: unknown key, write "wan"'):
        check(text)
    with pytest.raises(DescriptionError, match=r'^x.scenario.yaml:4: lab.rtt \$\{rtt\} "20": write a duration'):
        check(text.replace("wann", "wan"), {"rtt": "20"})


@pytest.mark.parametrize(
    ("settings", "scale", "said"),
    [
        ({"strems": "2"}, None, '--set strems=2: unknown parameter, write "streams"'),
        ({"streams": ""}, None, "--set streams=: is empty"),
        ({}, "quik", '--scale "quik": unknown scale, write "quick"'),
    ],
)
def test_words_of_the_command_line_are_refused_as_such(settings: dict[str, str], scale: str | None, said: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        check(SWEPT, settings, scale)
    assert str(refused.value).startswith(said)


def test_a_lab_may_be_named_or_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "own.lab.yaml").write_text("topology: {star: {arms: 3}}\nrtt: 10ms\n")
    steps = "steps: [{name: a, from: host1, to: host2, bulk: 1MB}]"
    for lab, name in (("own.lab.yaml", "own"), ("star", "star")):
        (tmp_path / "s.scenario.yaml").write_text(f"lab: {lab}\n{steps}\n")
        (run,) = scenario.load(tmp_path / "s.scenario.yaml").runs()
        assert run.spec.description.name == name
    for lab, said in (("other.lab.yaml", "there is no such file"), ("strr", 'there is no such lab, write "star"')):
        with pytest.raises(DescriptionError, match=f"^x.scenario.yaml:1: lab .*{said}"):
            check(f"lab: {lab}\n{steps}\n")


def test_a_scenario_that_is_not_there_is_refused() -> None:
    with pytest.raises(DescriptionError, match=r'^paralel-streams: there .* write "parallel-streams"'):
        scenario.load("paralel-streams")
    with pytest.raises(DescriptionError, match=r"^no/such.scenario.yaml: No such file"):
        scenario.load("no/such.scenario.yaml")


# The library


def test_there_are_scenarios() -> None:
    assert len(LIBRARY) >= 12


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: file.name)
def test_every_ready_scenario_compiles_in_all_of_its_scales(file: Path) -> None:
    result = scenario.load(file)
    assert result.name == file.name.removesuffix(".scenario.yaml")
    for scale in (None, *result.scales):
        runs = result.runs(scale=scale)
        assert len({run.name for run in runs}) == len(runs)
        last = runs[-1]
        one, two = planned(last), planned(replace(last))
        assert one.program.to_json() == two.program.to_json()
        assert orjson.dumps(one.document) == orjson.dumps(two.document)
        assert 0 < one.program.expected_ns <= one.program.longest_ns


def test_papers_numbers_stand_beside() -> None:
    streams = scenario.load("parallel-streams")
    values = [each for each in streams.beside if each["metric"] == "aggregate goodput"]
    assert [(each["when"], each["value"], each["unit"]) for each in values] == [
        ({"streams": 1}, 8353.66e6, "bit/s"), ({"streams": 2}, 8793.92e6, "bit/s"),
        ({"streams": 5}, 8987.49e6, "bit/s"), ({"streams": 10}, 9207.78e6, "bit/s"),
    ]  # fmt: skip
    reverse = scenario.load("reverse-traffic")
    assert reverse.beside[-1]["than"] == {"reverse": 0}
    assert reverse.beside[-1]["value"] == pytest.approx(0.1)
    assert len(planned(reverse.runs(scale="quick")[-1]).document["flows"]) == 15 + 11


def test_the_page_in_docs_is_current() -> None:
    assert (ROOT / "docs/scenario.md").read_text() == markdown(), "make docs"
