"""Flows of commands: what links are told to count, and what is refused."""

from __future__ import annotations

import re

import pytest

from ewan.generator.scenario.command_flows import MOST_FLOWS, MOST_PLACES, MOST_PORTS, OWN_SOCKETS
from ewan.generator.tests.scenarios import only
from ewan.labs.base.product import ROOT
from ewan.labs.record.schedule import CountedTool
from ewan.labs.runtime.program import CountedFlows
from ewan.labs.spec import DescriptionError

STEP = "{name: a, on: left1, run: ping right1, flows: {port: 4433, from: right1}}"


def test_a_flow_is_counted_at_the_last_link_on_its_way() -> None:
    schedule = only(f"steps: [{STEP}]")
    (flow,) = schedule.document.flows
    assert (flow.kind, flow.source, flow.sink, flow.command) == ("program", "right1", "left1", 0)
    assert isinstance(flow.tool, CountedTool)
    assert (flow.tool.link, flow.tool.direction, flow.tool.ports) == ("core", "backward", (4433,))
    assert flow.tool.sources != flow.tool.sinks
    assert schedule.program.flows == CountedFlows(("core",), 66, (4433,))
    assert [path.source for path in schedule.document.paths] == ["right1"]


OWN = STEP.replace("port: 4433", "sockets: own")


def test_a_command_may_have_the_flow_of_its_own_sockets() -> None:
    schedule = only(f"steps: [{OWN}]")
    (flow,) = schedule.document.flows
    assert isinstance(flow.tool, CountedTool)
    assert (flow.tool.sockets, flow.tool.ports) == ("sink", ())
    assert schedule.program.flows == CountedFlows(("core",), 64 + 512)
    assert [command.own_sockets for command in schedule.program.commands] == [True]


def test_the_bounds_are_those_of_links() -> None:
    source = (ROOT / "emulator/model/src/flow_table.rs").read_text()
    of_links = dict(re.findall(r"^const (MOST_\w+): \w+ = (\d+);$", source, re.MULTILINE))
    assert of_links == {"MOST_FLOWS": str(MOST_PLACES), "MOST_PORTS": str(MOST_PORTS)}
    assert MOST_FLOWS + OWN_SOCKETS <= MOST_PLACES


def test_links_count_flows_where_they_are_asked_to() -> None:
    bulk = "steps: [{name: a, from: left1, to: right1, bulk: 1MB}]"
    assert only(bulk).program.flows is None
    schedule = only(f"count_flows: true\n{bulk}")
    assert schedule.program.flows == CountedFlows(("core",), 64)
    assert len(schedule.document.flows[0].addresses) == 2


REFUSED = [
    (STEP.replace(", from: right1", ""), r"flows: lacks the other end: write who sends"),
    (STEP.replace("4433", "0"), "ports are 1 to 65535"),
    (STEP.replace("4433", "http"), 'write a port, or a list of them, like "4433"'),
    (STEP.replace("from: right1", "from: left1"), "left1 sends to itself"),
    (STEP.replace("from: right1", "from: right9"), r"flows.from .*there is no node right9"),
    (STEP.replace("}}", "}, repeat: {times: 2, every: 1s}}"), "repeat: would be one flow"),
    (f"{STEP}, {STEP.replace('name: a', 'name: b')}", "port 4433 from right1 to left1 is a on left1 too"),
    ("{name: a, from: left1, to: right1, bulk: 1MB, flows: {port: 1, to: right1}}", "is a flow anyway: leave it out"),
    ("{name: a, on: left1, run: x, flows: {to: right1}}, {name: b, from: left1, to: right1, bulk: 1MB}",
     r"steps\[1\]: a on left1 is all that left1 sends to right1: write the port of a on left1"),
    (OWN.replace("own", "mine"), 'sockets "mine": .*own'),
    (OWN.replace("own,", "own, port: 80,"), "port .*is of all sockets that have it"),
    (OWN.replace("from: right1", "from: right1, to: left2"), "own sockets are in the node of the command"),
    (f"{OWN}, {{name: b, on: right1, run: x, flows: {{to: left1}}}}",
     "a on left1 what its own sockets do: write ports, or own sockets for both"),
    ("{name: a, on: left1, run: x, ready: 80}", 'ready "80": is for services: leave it out'),
    ("{name: a, on: left1, service: true, run: x}, {name: b, after: a, on: left1, run: y}",
     "a is a service, which ends with the run: write the port at which it listens"),
    ("{name: a, on: left1, run: x, role: load}", "role .*: a step of kind run has none"),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "message"), REFUSED)
def test_what_cannot_be_counted_is_refused(steps: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        only(f"steps: [{steps}]")


def test_flows_are_counted_when_links_are_looked_at() -> None:
    with pytest.raises(DescriptionError, match='watch "0": is 0, and flows are counted at these times'):
        only(f"watch: 0\nsteps: [{STEP}]")
