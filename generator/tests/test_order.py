"""Steps that start when others have ended: their order, refusals, and approximate times."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from ewan.generator import records
from ewan.generator.tests.scenarios import HEAD, check, flows, only, parse
from ewan.labs import host
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile as compile_spec
from ewan.labs.runtime import program as programs
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import DescriptionError

STEPS = """
steps:
  - {name: last, after: [first, ping], at: 2s, for: 5s, from: left1, to: right1, bulk: }
  - {name: first, from: left1, to: right1, streams: 2, bulk: 1MB}
  - {name: ping, after: first, on: left1, run: ping -c 3 right1}
  - {name: alone, at: 1s, from: left2, to: right2, bulk: 1MB}
"""


def test_times_count_from_the_end_of_the_steps_that_are_waited_for() -> None:
    schedule = only(STEPS)
    asked = {flow["name"]: (flow["step"], flow["after"], flow["start_ns"], flow["stop_ns"]) for flow in flows(schedule)}
    assert asked == {
        "first left1 to right1 stream 1": (1, [], 0, None),
        "first left1 to right1 stream 2": (1, [], 0, None),
        "last left1 to right1": (0, [1, 2], 2 * NS_PER_SECOND, 7 * NS_PER_SECOND),
        "alone left2 to right2": (3, [], NS_PER_SECOND, None),
    }
    (ping,) = schedule.program.commands
    assert (ping.step, ping.after, ping.at_ns) == (2, (1,), 0)
    # Each process tells the other of the steps that it waits for.
    assert schedule.program.traffic is not None
    assert (schedule.program.traffic.told, schedule.program.traffic.elsewhere) == ((1,), (2,))
    told = {flow.name: (flow.scheduled_ns, flow.after) for flow in schedule.document.flows}
    assert told["last left1 to right1"] == (None, ("first", "ping"))
    assert told["alone left2 to right2"] == (NS_PER_SECOND, ())
    assert schedule.document.commands[0].after == ("first",)
    # 1 MB at 10 Mbit/s takes more than 0.8 s; then 2 s and 5 s.
    assert 7.8 * NS_PER_SECOND < schedule.program.expected_ns < 8.2 * NS_PER_SECOND


def test_without_after_nothing_is_said_of_steps() -> None:
    schedule = only("steps: [{name: a, after: none, from: left1, to: right1, bulk: 1B}, {name: b, on: left1, run: ls}]")
    assert "step" not in flows(schedule)[0] and b'"step"' not in schedule.program.to_json()


def test_a_step_without_members_hands_on_what_it_waits_for() -> None:
    sent = flows(
        only(
            """
steps:
  - {name: a, from: left1, to: right1, bulk: 1MB}
  - {name: nobody, after: a, from: "left[1-0]", to: "right[1-0]", bulk: 1MB}
  - {name: c, after: nobody, from: left1, to: right1, bulk: 1MB}
"""
        )
    )
    assert [flow["after"] for flow in sent] == [[], [0]]


def test_servers_of_other_tools_listen_before_their_clients_turn_comes() -> None:
    schedule = only(
        """
steps:
  - {name: a, from: left1, to: right1, bulk: 1MB}
  - {name: b, after: a, generator: iperf3, from: left1, to: right1, bulk: 1MB}
  - {name: c, after: b, from: left1, to: right1, bulk: 1MB}
"""
    )
    server, client = schedule.program.commands
    assert (server.service, server.at_ns, server.after) == (True, 0, ())
    assert (client.service, client.step, client.after) == (False, 1, (0,))
    assert schedule.program.traffic is not None
    assert (schedule.program.traffic.told, schedule.program.traffic.elsewhere) == ((0,), (1,))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("{name: a, after: b, %s}, {name: b, after: c, %s}, {name: c, after: b, %s}", "b after c after b: a circle"),
        ("{name: a, after: a, %s}", 'after "a": a waits for itself'),
        ("{name: first, %s}, {name: b, after: frist, %s}", 'after "frist": there is no such step, write "first"'),
        ("{name: a, on: left1, run: ls, service: true}, {name: b, after: a, %s}", "a is a service"),
        ("{name: a, %s}, {name: b, after: a, on: left1, run: ls, service: true}", "leave one of the two out"),
        ("{name: a, %s}, {name: b, after: 7, %s}", "write the name of a step"),
        ("{name: a, for: 50s, %s}, {name: b, after: a, %s}", "starts at 50s, and all ends at 20s"),
    ],
)
def test_what_cannot_wait_is_refused_in_one_line(steps: str, said: str) -> None:
    text = f"{HEAD}longest: 20s\nsteps: [{steps.replace('%s', 'from: left1, to: right1, bulk: ')}]"
    text = re.sub(r"bulk: (?=})", "bulk: 1MB", text)
    with pytest.raises(DescriptionError, match=re.escape(said)) as error:
        check(text)
    assert "\n" not in str(error.value) and "x.scenario.yaml:" in str(error.value)


def test_a_flow_that_never_had_its_turn_says_so() -> None:
    document = only(STEPS).document
    rows = records.flow_rows(document.flows, [])
    said = {row["name"]: (row["scheduled_ns"], row["error"]) for row in rows}
    assert said["last left1 to right1"] == (None, "did not start: it waited for first, ping")
    assert said["alone left2 to right2"] == (NS_PER_SECOND, "it left no record")


def test_a_stored_program_still_knows_who_waits_for_whom() -> None:
    program = only(STEPS).program
    assert programs.from_json(program.to_json(), program.expected_ns) == program
    damaged = program.to_json().replace(b'"node": ', b'"mode": ')
    with pytest.raises(ValueError, match=r"commands\[0\] has an unknown key 'mode'"):
        programs.from_json(damaged, 0)


@pytest.mark.virtual
def test_flows_and_commands_wait_for_each_other_to_the_instant(tmp_path: Path) -> None:
    """In the virtual clock a message to the other process takes no time."""
    text = (
        HEAD
        + """
steps:
  - {name: first, from: "left[1-2]", to: "right[1-2]", bulk: 20kB}
  - {name: wait, after: first, at: 100ms, on: left1, run: sleep 0.3}
  - {name: fails, after: wait, on: left2, run: "false"}
  - {name: second, after: fails, at: 50ms, from: left1, to: right1, bulk: 20kB}
  - {name: third, after: [second, wait], from: left2, to: right2, for: 100ms, udp: {rate: 1Mbit/s, size: 1000B}}
"""
    )
    (run,) = parse(text).runs()
    plan = compile_spec(run.spec, host.virtual_facts())
    VirtualRuntime(BINARY).run(plan, run.schedule(plan, "virtual").program, tmp_path)
    sent = orjson.loads((tmp_path / "traffic/traffic.json").read_bytes())["flows"]
    wait, fails = orjson.loads((tmp_path / "commands.json").read_bytes())["commands"]
    first, second, third = sent[:2], sent[2], sent[3]
    assert max(flow["ended_ns"] for flow in first) + 100 * NS_PER_MS == wait["at_ns"] == wait["started_ns"]
    assert 300 * NS_PER_MS <= wait["ended_ns"] - wait["started_ns"] < 310 * NS_PER_MS
    assert (fails["at_ns"], fails["status"]) == (wait["ended_ns"], 1)
    assert fails["ended_ns"] + 50 * NS_PER_MS == second["scheduled_ns"] == second["started_ns"]
    # 20 kB and their headers at 10 Mbit/s, the connection and the last ACKs: a bit more than a RTT and 17 ms.
    assert 30 * NS_PER_MS < second["completion_ns"] < 90 * NS_PER_MS
    assert third["scheduled_ns"] == third["started_ns"] == second["ended_ns"]
    assert (third["received_packets"], third["error"]) == (13, None)
