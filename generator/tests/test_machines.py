"""Flows from and to hosts that are machines with kernels of their own: whose they are, and when servers start."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.generator import scenario
from ewan.generator.scenario.schedule import ScheduledRun
from ewan.labs.compile import HostFacts, compile
from ewan.labs.spec import DescriptionError

LIVE = HostFacts(cpus=(0, 1), networks=(), clock="live")


def scheduled(step: str, machine: str = "right1") -> ScheduledRun:
    text = f"""
lab:
  topology: {{dumbbell: {{pairs: 2}}}}
  rtt: 40ms
  hosts: {{{machine}: {{machine: debian-12}}}}
steps:
  - {{name: load, {step}}}
"""
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    return run.schedule(compile(run.spec, LIVE), "live")


@pytest.mark.parametrize("ends", ["from: left1, to: right1", "from: right1, to: left1"])
@pytest.mark.parametrize("more", ["", ", generator: ditg"])
def test_only_iperf3_sends_from_and_to_a_machine(ends: str, more: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        scheduled(f"{ends}, for: 5s, bulk: {more}")
    assert 'right1 is a machine of its own: write "generator: iperf3"' in str(refused.value)
    assert "\n" not in str(refused.value)


def test_our_own_flows_go_between_other_hosts() -> None:
    assert scheduled("from: left2, to: right2, for: 5s, bulk: ").program.traffic is not None


def test_a_server_in_a_machine_starts_early() -> None:
    def times(machine: str) -> tuple[int, int]:
        made = scheduled("from: left1, to: right1, for: 5s, bulk: , generator: iperf3", machine)
        server, client = made.program.commands
        assert (server.node, server.argv[:2], client.node) == ("right1", ("iperf3", "-s"), "left1")
        return server.at_ns, client.at_ns

    assert times("right2") == (0, 100_000_000)
    assert times("left1") == (0, 100_000_000)
    assert times("right1") == (0, 5_100_000_000)


def test_commands_run_in_machines() -> None:
    (command,) = scheduled('on: right1, run: "uname -r"').program.commands
    assert (command.node, command.argv, command.at_ns) == ("right1", ("uname", "-r"), 0)
