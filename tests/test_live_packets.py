"""Live links treat each packet as the model does, and so as the virtual clock does (test_one_model.py).

The same packets arrive, in the same order and with the same marks, each when it is due or late by what a live link is
late.

All links of a star at once: each host sends over a link of its own to the last host, and everything that crosses an
emulator is captured with the kernel's stamps, by which the link goes too.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from ewan.calibration.link_model import Departure, departures
from ewan.generator.traffic_request import addresses_of
from ewan.labs import host
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.plan import Link, Plan
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY, own_state
from ewan.labs.spec import parse
from tests import test_one_model
from tests.test_one_model import SEND, Seen, frames, watch

pytestmark = pytest.mark.live

LINKS = {name: words for name, words in test_one_model.LINKS.items() if "slot" not in words}
"""Slots begin at multiples of their length on the link's own clock, which a capture does not tell."""
PACKETS, LONGEST_S = 1500, 10
SEND_FEWER = SEND.replace(f"range({test_one_model.PACKETS})", f"range({PACKETS})")
assert SEND_FEWER != SEND
ALIKE, TIMES = 0.9, 3
"""The share of packets that must be treated alike, and how often all is sent for that. A link that was kept from its
CPU judges an arrival after packets that left meanwhile. So it drops another one, and from then on numbers that were
drawn at random are other packets'."""


def lab() -> Plan:
    """A link a case, and a fast one to the host that receives."""
    # Delays and displacement are drawn for each packet that is not dropped, so none is dropped by their queues.
    drawn = ("jitter", "displace", "harq")
    undropped = [re.sub(r", buffer: \w+", "", words) + ", buffer: 10MB" for words in LINKS.values()]
    settings = [
        large if any(key in words for key in drawn) else words
        for words, large in zip(LINKS.values(), undropped, strict=True)
    ]
    arms = "\n".join(f"  arm{number}: {{forward: {{{words}}}}}" for number, words in enumerate(settings, 1))
    text = f"""
name: lp{os.getpid()}
topology: {{star: {{arms: {len(LINKS) + 1}}}}}
ip: 4
wan: {{rate: 20Mbit/s, delay: 10ms}}
links:
{arms}
  arm{len(LINKS) + 1}: {{rate: 10Gbit/s, buffer: 10MB}}
"""
    return compile(parse(text, Path("live-packets.lab.yaml")), host.facts())


@cache
def captured(time: int) -> dict[str, tuple[Link, list[Seen], list[Seen]]]:
    """Of each case its link, what came into it and what went out; sent anew for each `time`."""
    with TemporaryDirectory(prefix=f"ewan-packets{time}-") as place:
        return captured_in(Path(place))


def captured_in(place: Path) -> dict[str, tuple[Link, list[Seen], list[Seen]]]:
    plan = lab()
    address = addresses_of(plan)[f"host{len(LINKS) + 1}"]
    links = plan.links[: len(LINKS)]
    # What a link sends is seen at the port that it sends to: it passes by whoever captures at its own.
    commands = [Command(link.node, watch(link.port_a, "in", LONGEST_S, 4096)) for link in links]
    commands += [Command(link.b.node, watch(link.b.interface, "in", LONGEST_S, 4096)) for link in links]
    commands += [
        Command(link.a.node, ("python3", "-c", SEND_FEWER, address, str(number)), 3 * NS_PER_SECOND)
        for number, link in enumerate(links)
    ]
    told = [frames(each) for each in outputs(plan, commands, place)[: 2 * len(LINKS)]]
    return {
        case: (link, told[number], told[number + len(LINKS)])
        for number, (case, link) in enumerate(zip(LINKS, links, strict=True))
    }


def outputs(plan: Plan, commands: Sequence[Command], place: Path) -> list[bytes]:
    """What each command wrote in the lab, which is up meanwhile."""
    place.mkdir(exist_ok=True)
    with own_state("packets") as state:
        runtime = NetnsRuntime(BINARY, state)
        runtime.up(plan)
        try:
            runtime.batch(plan.lab, Program(commands=tuple(commands), longest_ns=60 * NS_PER_SECOND), place)
        finally:
            runtime.down(plan.lab)
    numbers = range(1, len(commands) + 1)
    return [next((place / "commands").glob(f"{number}-*.out")).read_bytes() for number in numbers]


@pytest.mark.parametrize("case", LINKS)
def test_each_packet_is_treated_as_the_model_treats_it(case: str) -> None:
    def differ(time: int) -> str:
        link, arrived, left = captured(time)[case]
        assert link.backend == "user" and len(arrived) >= PACKETS
        return differences(arrived, departures(link.forward, arrived), left)

    assert_alike(differ)


def test_directions_that_share_a_medium_take_the_same_turns(tmp_path: Path) -> None:
    text = f"""
name: lm{os.getpid()}
topology: dumbbell
ip: 4
wan: {{rate: 20Mbit/s, delay: 10ms, duplex: half, buffer: 30pkt}}
"""
    plan = compile(parse(text, Path("live-medium.lab.yaml")), host.facts())
    link, addresses = plan.links[0], addresses_of(plan)
    ways = (("left1", "right1", link.port_a, link.b), ("right1", "left1", link.port_b, link.a))
    commands = [Command(link.node, watch(entry, "in", LONGEST_S, 4096)) for _, _, entry, _ in ways]
    commands += [Command(exit_.node, watch(exit_.interface, "in", LONGEST_S, 4096)) for *_, exit_ in ways]
    for number, (source, sink, *_) in enumerate(ways):
        send = ("python3", "-c", SEND_FEWER, addresses[sink], str(number))
        commands.append(Command(source, send, 2 * NS_PER_SECOND))

    def differ(time: int) -> str:
        seen = [frames(each) for each in outputs(plan, commands, tmp_path / str(time))[:4]]
        arrived = [each._replace(backward=way == 1) for way in (0, 1) for each in seen[way]]
        arrived.sort(key=lambda each: each.at_ns)
        wanted = departures(link.forward, arrived, backward=link.backward)
        of = [[each for each in wanted if arrived[each.packet].backward == way] for way in (False, True)]
        assert all(len(each) < len(seen[way]) for way, each in enumerate(of)), "nothing is dropped"
        return " ".join(filter(None, (differences(arrived, of[way], seen[2 + way]) for way in (0, 1))))

    assert_alike(differ)


def assert_alike(differ: Callable[[int], str]) -> None:
    """At one of some times; `differ` says what differs."""
    said = [differ(0)]
    while said[-1] and len(said) < TIMES:
        said.append(differ(len(said)))
    assert not said[-1], said


def differences(arrived: list[Seen], wanted: Sequence[Departure], left: list[Seen]) -> str:
    """How what left differs from what the model lets out; empty where they are alike."""
    due = numbered((arrived[each.packet].number, each.due_ns, bool(each.mark_ce)) for each in wanted)
    sent = numbered((each.number, each.at_ns, each.traffic_class & 3 == 3) for each in left)
    both = due.keys() & sent.keys()
    if len(both) < ALIKE * max(len(due), len(sent)):
        return f"{len(both)} of {len(due)} left, and {len(sent) - len(both)} others"
    if (marked := sum(due[key].marked == sent[key].marked for key in both)) < ALIKE * len(both):
        return f"{marked} of {len(both)} have the right mark"
    ranks = {key: rank for rank, key in enumerate(due)}
    order = [ranks[key] for key in sent if key in both]
    if (late := sum(one > other for one, other in pairwise(order))) > (1 - ALIKE) * len(both):
        return f"{late} of {len(both)} left after a later one"
    # With the way to the next port, where it was captured.
    late_ns = median(sent[key].at_ns - due[key].at_ns for key in both)
    return "" if 0 <= late_ns < 200_000 else f"late by {late_ns} ns"


class Left(NamedTuple):
    """When a packet left or should have, and whether it was marked."""

    at_ns: int
    marked: bool


def numbered(packets: Iterable[tuple[str, int, bool]]) -> dict[tuple[str, int], Left]:
    """By the packet's number, and which of its copies it is."""
    found: dict[tuple[str, int], Left] = {}
    copies: Counter[str] = Counter()
    for number, at_ns, marked in packets:
        found[number, copies[number]] = Left(at_ns, marked)
        copies[number] += 1
    return found
