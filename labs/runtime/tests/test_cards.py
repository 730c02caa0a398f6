"""The host's cards in a lab: taken, given back as they were, whatever is killed, or refused. Needs root.

Veths stand for cards, in a namespace of the tests' own. One cable joins the cards c1 and c2, which are the two ends of
the link between left and the router.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.labs.base.codec import replace
from ewan.labs.link import GapPacer, NoPacer, PacedClass, Sources, Tbf
from ewan.labs.plan import Card, End, Plan, from_json, to_json
from ewan.labs.runtime.tests.bench import Bench, bench
from ewan.labs.runtime.tests.lab import BINARY, own_state, small, traces

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


def test_a_card_says_what_it_can(machine: Bench) -> None:
    """A veth's line has 10 Gbit/s, and the kernel alone stamps its packets."""
    assert up(machine) == 0
    told = machine.node("cards", text=to_json(PLAN))
    facts = [(card["card"], card["node"], card["speed_bps"]) for card in orjson.loads(told.stdout)]
    assert facts == [("c1", "left", 10**10), ("c2", "router", 10**10)]
    rx_hardware, rx_software = 1 << 2, 1 << 3  # SOF_TIMESTAMPING
    stamps = orjson.loads(told.stdout)[0]["time_stamps"]
    assert stamps & rx_software and not stamps & rx_hardware


def with_gaps(line_bps: int) -> Plan:
    """PLAN, whose host sends at 100 Mbit/s by gap packets over a line of so much."""
    left = next(node for node in PLAN.nodes if node.name == "left")
    card = Tbf(burst_bytes=10_000, limit_bytes=100_000, overhead_bytes=24, rate_bps=line_bps)
    pacer = GapPacer(rate_bps=10**8, overhead_bytes=24, minimum_bytes=84)
    classes = (PacedClass(filters=(), pacer=NoPacer()), PacedClass(filters=(), pacer=pacer))
    egress = Sources(
        card=card,
        classes=classes,
        default=2,
        limit_bytes=100_000,
        limit_packets=None,
        minimum_bytes=0,
        overhead_bytes=0,
        sorter="psp_gap",
    )
    paced = replace(left, interfaces=(replace(left.interfaces[0], egress=egress), *left.interfaces[1:]))
    return replace(PLAN, nodes=tuple(paced if node is left else node for node in PLAN.nodes))


def test_gap_packets_need_psp_and_the_rate_of_the_line(machine: Bench) -> None:
    before = cards(machine)

    def refused(line_bps: int) -> bytes:
        plan = to_json(with_gaps(line_bps))
        result = machine.node("apply", "--plan", "/dev/stdin", "--state", str(machine.state / LAB), text=plan)
        if line_bps == 10**10 and result.returncode == 0:
            pytest.skip("this kernel has psp")
        assert result.returncode == 2 and result.stderr.count(b"\n") == 1
        assert cards(machine) == before
        return result.stderr

    assert b"would fill a line of 1000000000 bit/s, and this one has 10000000000 bit/s" in refused(10**9)
    assert b"build it (emulator/kernel/psp, also by DKMS), or write pacing as tbf" in refused(10**10)


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


REFUSED = {
    "default route": ("ip route add default via 192.0.2.77 dev c1", {}, "carries this machine's default route"),
    "SSH session": ("true", {"SSH_CONNECTION": "192.0.2.77 50022 192.0.2.1 22"}, "the SSH session from 192.0.2.77"),
    "bridge": ("ip link add b0 type bridge && ip link set c1 master b0", {}, "belongs to b0"),
    "macvlan": ("ip link add m0 link c1 type macvlan", {}, "m0 lies on it"),
    "absent": ("ip link set c1 down && ip link set c1 name c9", {}, "there is no such interface here: write one of"),
    "several hops": (
        "ip route add 203.0.113.0/25 nexthop via 192.0.2.77 dev c1 nexthop via 192.0.2.78 dev c1",
        {},
        "is one of the next hops of a route",
    ),
    "discipline": ("tc qdisc add dev c1 root pfifo", {}, "has the queueing discipline pfifo"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_card_that_is_needed_is_refused_before_anything_is_touched(machine: Bench, what: str) -> None:
    command, environment, words = REFUSED[what]
    machine.out("sh", "-c", command)
    name = "c9" if what == "absent" else "c1"
    before = machine.card(name)
    state = str(machine.state / LAB)
    apply = [str(BINARY), "apply", "--plan", "/dev/stdin", "--state", state]
    result = machine.run(*apply, environment=environment, text=to_json(PLAN))
    said = result.stderr.decode()
    assert (result.returncode, said.count("\n")) == (2, 1), said
    assert said.startswith("left:eth0: card c1: ")
    assert words in said
    assert not (machine.state / LAB).exists()
    assert machine.card(name) == before


def test_the_loopback_a_bridge_and_a_card_of_another_lab_are_refused(machine: Bench) -> None:
    def said(card: str) -> str:
        plan = replace(PLAN, lab=f"{LAB}b", cards=(replace(PLAN.cards[0], name=card), PLAN.cards[1]))
        apply = ["apply", "--plan", "/dev/stdin", "--state", str(machine.state / plan.lab)]
        return machine.node(*apply, text=to_json(plan)).stderr.decode()

    machine.ip("link add b0 type bridge")
    assert "is the loopback" in said("lo")
    assert "b0: cannot leave its network namespace" in said("b0")
    assert up(machine) == 0
    assert said("c1") == f"left:eth0: card c1: lab {LAB} has it: `ewan down {LAB}` gives it back\n"
    assert down(machine) == 0


DESCRIPTION = """
topology: dumbbell
name: {name}
rtt: 20ms
wan: {{rate: 50Mbit/s}}
access: {{rate: 100Mbit/s}}
mtu: 1400
nodes: {{left1: {{interface: c1}}, r1: {{interface: c2}}}}
external: {{at: r2, interface: c3}}
"""
NETNS = {"EWAN_RUNTIME": "netns"}
CLIENT = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip address add "$ip/$mask" dev "$interface"
set -- $staticroutes
while [ $# -ge 2 ]; do ip route add "$1" via "$2"; shift 2; done
ip link set "$interface" mtu "$mtu"
"""


def check_certificate(certificate: dict[str, Any], said: str) -> None:
    """The lab is measured over its cards; of the machine that is plugged in the router tells how far it is."""
    assert certificate, said
    assert {card["card"] for card in certificate["machine"]["cards"]} == {"c1", "c2", "c3"}
    rows = {(row["link"], row["direction"], row["quantity"]): row for row in certificate["rows"]}
    pair = "left1 to right1"
    for where, least, most in (
        (("core", "forward", "delay p50"), 1.0, 1.5),
        (("core", "backward", "delay p50"), 1.0, 1.5),
        ((pair, "", "base RTT"), 1.0, 1.5),
        ((pair, "", "path MTU"), 1.0, 1.0),
        ((pair, "", "TCP goodput"), 0.5, 1.05),  # a busy machine takes from it
    ):
        row = rows[where]
        assert least * row["configured"] <= row["measured"] <= most * row["configured"], row
    beside = [row for row in certificate["rows"] if row["quantity"] == "RTT from router"]
    assert {row["verdict"] for row in beside} == {"shown"}
    assert [row["link"].partition(" to ")[2][:2] for row in beside] == ["10", "fd"], beside
    assert all(0 < row["measured"] < 20e6 and "at card c3" in row["note"] for row in beside), beside


@pytest.fixture
def plugged(machine: Bench) -> Iterator[Bench]:
    """A real machine at the other end of c3's cable: it has c4, and nothing of the lab's."""
    with bench(f"{LAB}-real", machine.state) as real:
        machine.ip(f"link set c4 netns {real.name}")
        real.ip("link set c4 up")
        yield real


def test_a_machine_that_is_plugged_in_is_an_end_of_the_lab(machine: Bench, plugged: Bench, tmp_path: Path) -> None:
    """It has addresses by DHCP and router advertisements, and the lab's delay to a host at the other side."""
    description, script = tmp_path / "plugged.lab.yaml", tmp_path / "client.sh"
    description.write_text(DESCRIPTION.format(name=LAB))
    script.write_text(CLIENT)
    script.chmod(0o755)
    before, c3 = cards(machine), machine.card("c3")
    ewan = [sys.executable, "-m", "ewan"]
    result = machine.run(*ewan, "up", str(description), environment=NETNS)
    assert result.returncode == 0, result.stderr.decode()
    plan = from_json((machine.state / LAB / "plan.json").read_bytes())
    left1 = next(node for node in plan.nodes if node.name == "left1").interfaces[0].addresses
    client = plugged.run("udhcpc", "-f", "-q", "-n", "-i", "c4", "-O", "staticroutes", "-O", "mtu", "-s", str(script))
    assert client.returncode == 0, client.stderr.decode()
    shown = plugged.ip("-o address show dev c4 scope global")
    assert "inet 10." in shown
    assert plugged.ip("-o link show dev c4").split("mtu ")[1].startswith("1400 ")
    assert "default" not in plugged.ip("route"), "what else it reaches stays as it is"
    deadline = time.monotonic() + 10
    while "inet6 fd" not in plugged.ip("-o address show dev c4 scope global -tentative"):
        assert time.monotonic() < deadline, "no router advertisement"
        time.sleep(0.1)
    assert plugged.setting("c4", "ipv6/conf/{}/mtu") == "1400"
    for address in left1:
        ping = plugged.out("ping", "-c", "3", "-i", "0.2", "-W", "3", address.split("/")[0])
        fastest = float(ping.rsplit("= ", 1)[1].split("/")[0])
        assert fastest >= 20.0, ping  # a busy machine adds to it
    assert "10." in (machine.state / LAB / "nodes/r2/dnsmasq.leases").read_text()
    verified = machine.run(*ewan, "verify", LAB, "--json", environment=NETNS)
    check_certificate(orjson.loads(verified.stdout or b"{}"), verified.stderr.decode())
    removed = machine.run(*ewan, "down", LAB, environment=NETNS)
    assert b"gave back c1, c2, c3" in removed.stdout, removed.stderr
    assert (cards(machine), machine.card("c3")) == (before, c3)
    assert traces(LAB, machine.state) == []
