"""Links of the kernel's parts in a live lab: what the runtime asks of the node binary, and what that one does.

Stock kernels with netem are tried in the emulated machine (tests/vm).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.labs import change, host
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import Change
from ewan.labs.plan import to_json
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.requests import ChangesRequest, LinkRequest, LinkSeriesRequest, LinkSetRequest, SetAnswer
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

PLAN = compile(
    from_template("dumbbell", {"name": "kl", "rtt": "100ms", "emulator": "kernel"}),
    HostFacts(cpus=(0, 1), networks=()),
)
NODE = """#!/bin/sh
echo "$@" > "$3/asked"
cat > "$3/change"
"""


@pytest.fixture
def runtime(tmp_path: Path) -> NetnsRuntime:
    """A runtime whose binary writes down what it was asked, and whose state says that the lab is up."""
    assert os.geteuid() == 0, "changing a link needs root: run this as root"
    state, node = tmp_path / "state", tmp_path / "ewan-node"
    (state / "kl").mkdir(parents=True)
    (state / "kl/plan.json").write_bytes(to_json(PLAN))
    node.write_text(NODE)
    node.chmod(0o755)
    return NetnsRuntime(node, state)


def test_a_change_goes_to_the_node_binary(runtime: NetnsRuntime, tmp_path: Path) -> None:
    request = LinkSetRequest.of(Change(rate_bps=10**8), "core", "backward")
    assert runtime.control("kl", "core", request) == SetAnswer(ok=True)
    directory = tmp_path / "state/kl"
    asked = (directory / "asked").read_text().split()
    assert asked == ["change", "--state", str(directory), "--link", "core", "--direction", "backward"]
    assert orjson.loads((directory / "change").read_bytes()) == {"rate_bps": 10**8}


def test_what_was_changed_is_what_the_next_change_builds_on(runtime: NetnsRuntime, tmp_path: Path) -> None:
    assert runtime.control("kl", "core", ChangesRequest()).changes == ()
    made = {"link": "core", "direction": "forward", "change": {"rate_bps": 10**8}}
    (tmp_path / "state/kl/changes.jsonl").write_bytes(orjson.dumps(made) + b"\n")
    past = runtime.control("kl", "core", ChangesRequest()).changes
    now = change.as_it_is(PLAN.links[0], past)
    assert (now.forward.rate_bps, now.backward.rate_bps) == (10**8, PLAN.links[0].backward.rate_bps)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (LinkSetRequest.of(Change(rate_bps=10**8), "core", "forward", 5), "change at once: leave at= out"),
        (LinkSeriesRequest("core"), "tell no series"),
    ],
)
def test_what_such_a_link_cannot_do_is_said(runtime: NetnsRuntime, request_: LinkRequest[Any], says: str) -> None:
    with pytest.raises(LabError, match=says):
        runtime.control("kl", "core", request_)


def test_a_link_that_is_not_there_is_named(runtime: NetnsRuntime) -> None:
    with pytest.raises(LabError, match="has no link cor: links are core"):
        runtime.control("kl", "cor", ChangesRequest())


def test_the_node_binary_changes_a_link_with_packets_in_it(tmp_path: Path) -> None:
    """In the virtual clock, whose kernel has all the parts: the binary is called there as a live lab's would be."""
    settings = {"rtt": "100ms", "dither": "0", "ip": "4", "emulator": "kernel"}
    plan = compile(from_template("dumbbell", settings), host.virtual_facts())
    call = f"/proc/1/exe change --state /run/ewan/{plan.lab} --link core --direction forward"
    slower = """echo '{"delay": {"kind": "constant", "delay_ns": 80000000}}' | """ + call
    refused = """echo '{"loss": {"kind": "every_nth", "n": 3}}' | """ + call
    keep = f"cp /run/ewan/{plan.lab}/changes.jsonl $EWAN_OUT"
    commands = (
        Command("left1", ("ping", "-c", "20", "-i", "0.1", "right1")),
        Command("right1", ("sh", "-c", slower), 1050 * NS_PER_MS),
        Command("right1", ("sh", "-c", f"{refused} 2>&1; {keep}"), 1060 * NS_PER_MS),
    )
    VirtualRuntime(BINARY).run(plan, Program(commands=commands, longest_ns=60 * NS_PER_SECOND), tmp_path / "run")
    out = tmp_path / "run/commands"
    times = [round(float(text)) for text in re.findall(r"time=([\d.]+) ms", (out / "1-left1.out").read_text())]
    assert len(times) == 20, "none was lost"
    assert times == [100] * 11 + [130] * 9
    assert "netem loses at random only" in (out / "3-right1.out").read_text()
    (made,) = (out / "3-right1/changes.jsonl").read_text().splitlines()
    assert orjson.loads(made)["change"] == {"delay": {"kind": "constant", "delay_ns": 80_000_000}}
