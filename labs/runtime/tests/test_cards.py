"""The host's cards in a lab: taken, given back as they were, whatever is killed, or refused. Needs root.

Veths stand for cards, in a namespace of the tests' own. One cable joins the cards c1 and c2, which are the two ends of
the link between left and the router.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest

from labs.plan import Card, End, Plan, to_json
from labs.runtime.tests.bench import Bench, bench
from labs.runtime.tests.lab import own_state, small, traces

pytestmark = pytest.mark.untimed

LAB = f"rc{os.getpid()}"
MOST_STEPS, STRIDE = 1000, 8


def with_cards(plan: Plan) -> Plan:
    """The link `near` is a cable between the cards c1, at left, and c2, at the router."""
    return replace(plan, cards=(Card("c1", End("left", "eth0"), False), Card("c2", End("router", "eth0"), False)))


PLAN = with_cards(small(LAB))


@pytest.fixture
def machine() -> Iterator[Bench]:
    with own_state("cards") as state, bench(f"{LAB}-host", state) as machine:
        machine.cable("c1", "c2")
        machine.cable("c3", "c4")
        machine.ip("link set c2 address 02:aa:00:00:00:02 mtu 9000 txqueuelen 77 up")
        machine.ip("link set c1 address 02:aa:00:00:00:01 mtu 1400 up promisc on")
        machine.ip("address add 192.0.2.1/24 brd + dev c1 valid_lft 4000 preferred_lft 3000")
        machine.ip("address add 192.0.2.9/24 dev c1")
        machine.ip("address add 2001:db8::1/64 dev c1 nodad")
        machine.ip("route add 198.51.100.0/24 via 192.0.2.77 dev c1 metric 7 mtu 1300 src 192.0.2.9")
        machine.ip("route add 203.0.113.0/24 dev c1 table 100")
        machine.ip("-6 route add 2001:db8:1::/48 via 2001:db8::77 dev c1")
        machine.ip("neighbour add 192.0.2.77 lladdr 02:aa:00:00:00:77 dev c1")
        machine.out("ethtool", "-K", "c1", "tso", "off", "tx-nocache-copy", "on")
        machine.setting("c1", "ipv4/conf/{}/rp_filter", "2")
        machine.setting("c1", "ipv6/conf/{}/accept_ra", "0")
        yield machine
        down(machine)


def up(machine: Bench, fault: int | None = None, plan: Plan = PLAN) -> int:
    command = ("apply", "--plan", "/dev/stdin", "--state", str(machine.state / plan.lab))
    result = machine.node(*command, fault=fault, text=to_json(plan))
    assert result.returncode <= 0, result.stderr
    return result.returncode


def down(machine: Bench, fault: int | None = None) -> int:
    return machine.node("down", "--state", str(machine.state / LAB), fault=fault).returncode


def cards(machine: Bench) -> list[object]:
    """All that a card may have lost, of both."""
    sysctls = [machine.setting("c1", key) for key in ("ipv4/conf/{}/rp_filter", "ipv6/conf/{}/accept_ra")]
    return [machine.card("c1"), machine.card("c2"), sysctls]


def test_cards_carry_a_link_and_come_back_as_they_were(machine: Bench) -> None:
    before = cards(machine)
    assert up(machine) == 0
    manifest = orjson.loads((machine.state / LAB / "manifest.json").read_bytes())
    assert [card["name"] for card in manifest["cards"]["cards"]] == ["c1", "c2"]
    assert machine.run("ip", "link", "show", "c1").returncode != 0, "it is in its node"
    ping = ["ip", "netns", "exec", f"ewan-{LAB}-left", "ping", "-c", "1", "-W", "2", "10.99.2.1"]
    assert subprocess.run(ping, capture_output=True).returncode == 0
    (inside,) = orjson.loads(
        subprocess.run(
            ["ip", "netns", "exec", f"ewan-{LAB}-left", "ip", "-d", "-j", "link", "show", "eth0"],
            capture_output=True,
            check=True,
        ).stdout
    )
    assert (inside["mtu"], inside["address"], inside["gso_max_segs"]) == (1500, "02:00:00:00:00:01", 1)
    assert down(machine) == 0
    assert cards(machine) == before
    assert down(machine) == 0
    assert cards(machine) == before
    assert traces(LAB, machine.state) == []


def test_an_up_that_fails_leaves_the_cards_as_they_were(machine: Bench) -> None:
    before = cards(machine)
    wrong = replace(PLAN, nodes=(*PLAN.nodes[:2], replace(PLAN.nodes[2], sysctls={"net/ipv4/ip_forward": "x"})))
    result = machine.node("apply", "--plan", "/dev/stdin", "--state", str(machine.state / LAB), text=to_json(wrong))
    assert result.returncode == 2
    assert b"ip_forward" in result.stderr
    assert cards(machine) == before
    assert traces(LAB, machine.state) == []


@pytest.mark.parametrize("command", ["up", "down"])
def test_killed_before_steps_of(machine: Bench, command: str) -> None:
    """Before every eighth step, begun at another one each time these tests run."""
    before = cards(machine)
    first = random.randrange(STRIDE)
    for step in range(first, MOST_STEPS, STRIDE):
        if command == "down":
            assert up(machine) == 0
        status = (up if command == "up" else down)(machine, step)
        assert status in (0, -signal.SIGKILL)
        assert down(machine) == 0, f"step {step}"
        assert cards(machine) == before, f"step {step}"
        assert traces(LAB, machine.state) == [], f"step {step}"
        if status == 0:
            break
    assert step > 3 * STRIDE, f"{step} steps"


def test_a_card_whose_namespace_ended(machine: Bench) -> None:
    """A veth is gone then, and so is its other end; the rest of the lab goes, and nobody waits for it for ever."""
    assert up(machine) == 0
    subprocess.run(["ip", "netns", "del", f"ewan-{LAB}-left"], check=True)
    result = machine.node("down", "--state", str(machine.state / LAB))
    assert result.returncode == 0, result.stderr
    notes = {card["card"]: card["notes"] for card in orjson.loads(result.stdout)["cards"]}
    assert "there is nothing to give back" in notes["c1"][0]
    assert traces(LAB, machine.state) == []
