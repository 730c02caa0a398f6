"""Links that change while packets are in them, and their counters over time: in both clocks, by real packets."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median

import orjson
import pytest

from ewan.generator.traffic_request import addresses_of
from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.change import compile_change, wanted
from ewan.labs.compile import compile
from ewan.labs.link import Change, EveryNthLoss
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Plan
from ewan.labs.record.events import Event, link_change
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.requests import ChangesRequest
from ewan.labs.runtime.tests.lab import BINARY, StopAfter, own_state, table
from ewan.labs.runtime.virtual import Run, VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

FRAMED_BITS = 1538 * 8
FAST_BPS = 10_000_000_000
DRAIN_NS = 3 * NS_PER_SECOND

# Each packet carries when it was sent; what came, and T0, in ns.
RECEIVE = """
import json, socket, struct, time
begin = time.time_ns()
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket_.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
socket_.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
socket_.bind(("", 5000))
socket_.settimeout({wait})
came = []
try:
    while True:
        data, about, _, _ = socket_.recvmsg(2048, 64)
        seconds, ns = struct.unpack("qq", about[0][2])
        came.append([struct.unpack("q", data[:8])[0] - begin, seconds * 10**9 + ns - begin])
except TimeoutError:
    print(json.dumps(came))
"""
SEND = """
import socket, struct, time
begin = time.monotonic_ns()
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket_.setsockopt(socket.SOL_SOCKET, 32, 1 << 26)  # SO_SNDBUFFORCE
socket_.connect(("{address}", 5000))
for at_ns in {times}:
    time.sleep(max(0, begin + at_ns - time.monotonic_ns()) / 1e9)
    socket_.send(struct.pack("q", time.time_ns()) + bytes(1464))
"""


def lab(clock: str = "virtual", **settings: str) -> Plan:
    """A dumbbell of 100 Mbit/s with 50 ms each way; its hosts send at 10 Gbit/s."""
    words = {"name": f"ev{os.getpid()}", "rtt": "100ms", "rate": "100M", "access": "10G", "ip": "4", **settings}
    if clock == "virtual":
        return compile(from_template("dumbbell", {"dither": "0", **words}), host.virtual_facts())
    return compile(from_template("dumbbell", words), host.facts())


def change(plan: Plan, at_ns: int, link: str = "core", direction: Heading = "forward", **words: str) -> Event:
    found = next(each for each in plan.links if each.name == link)
    return link_change(at_ns, link, direction, compile_change(plan, found, direction, wanted(words)))


def packets(plan: Plan, times_ns: Sequence[int]) -> tuple[Command, ...]:
    """Full packets from left1 to right1, sent at their times."""
    address = addresses_of(plan)["right1"]
    receive = RECEIVE.format(wait=DRAIN_NS / NS_PER_SECOND)
    send = SEND.format(address=address, times=list(times_ns))
    return Command("right1", ("python3", "-c", receive)), Command("left1", ("python3", "-c", send))


def run(plan: Plan, place: Path, program: Program, stop: threading.Event | None = None) -> Run:
    return VirtualRuntime(BINARY).run(plan, program, place, stop)


def seen(place: Path) -> list[tuple[int, int]]:
    """When each packet was sent and when it came, from T0, in the order in which they came."""
    return [(sent, came) for sent, came in orjson.loads((place / "commands/1-right1.out").read_bytes())]


def travel(
    place: Path, plan: Plan, times_ns: Sequence[int], *events: Event, watch_ns: int = 0
) -> list[tuple[int, int]]:
    program = Program(None, packets(plan, times_ns), 60 * NS_PER_SECOND, events=events, watch_ns=watch_ns)
    run(plan, place, program)
    made = orjson.loads((place / "events.json").read_bytes())["events"] if events else []
    assert [each["applied_ns"] for each in made] == sorted(event.at_ns for event in events)
    assert not any(each["error"] for each in made)
    return seen(place)


def service_ns(rate_bps: int) -> Fraction:
    return Fraction(FRAMED_BITS * NS_PER_SECOND, rate_bps)


BACKENDS = pytest.mark.parametrize("emulator", ["kernel", "user", "tbf"])
EXACT = pytest.mark.parametrize("emulator", ["kernel", "user"])


@EXACT
def test_a_delay_changes_at_its_instant_and_not_before(tmp_path: Path, emulator: str) -> None:
    plan = lab(emulator=emulator)
    at_ns = 2 * NS_PER_SECOND
    # A packet meets the link when it has left the host, a service time at 10 Gbit/s after it was sent: one ms before
    # the change and one after, and all around.
    times = [step * NS_PER_MS for step in (500, 1000, 1999, 2001, 2500)]
    found = travel(tmp_path / "run", plan, times, change(plan, at_ns, delay="80ms"))
    own = service_ns(FAST_BPS) + service_ns(100_000_000)
    # Where the delay line comes first (kernel) a packet is delayed by what holds when it comes, where it comes last by
    # what holds when its last bit has left.
    delays = [50 if sent < at_ns else 80 for sent, _ in found]
    assert delays.count(50) == 3
    for (sent, came), delay in zip(found, delays, strict=True):
        assert 0 <= came - sent - delay * NS_PER_MS - own < 3


@BACKENDS
def test_a_shorter_delay_overtakes_nobody_and_loses_nothing(tmp_path: Path, emulator: str) -> None:
    plan = lab(emulator=emulator)
    at_ns, last = NS_PER_SECOND, NS_PER_SECOND - 10 * NS_PER_MS
    times = [step * 10 * NS_PER_MS for step in range(50, 150)]
    found = travel(tmp_path / "run", plan, times, change(plan, at_ns, delay="20ms"))
    assert [sent for sent, _ in found] == sorted(sent for sent, _ in found)
    assert len(found) == len(times), "none was lost in the delay line"
    assert found[0][1] - found[0][0] < 51 * NS_PER_MS
    leaves = last + 50 * NS_PER_MS
    # Those sent until the last old one has left come with it; those after that take the new delay.
    waited = [came for sent, came in found if at_ns < sent < leaves - 20 * NS_PER_MS]
    assert len(waited) == 1, "one packet was sent in the 20 ms in between"
    assert all(leaves <= came < leaves + 3 * NS_PER_MS for came in waited)
    assert all(came - sent < 21 * NS_PER_MS for sent, came in found if sent > leaves)


@BACKENDS
def test_packets_may_overtake_where_the_link_says_so(tmp_path: Path, emulator: str) -> None:
    plan = lab(emulator=emulator, jitter="1us", reorder="true", distribution="uniform")
    times = [step * 10 * NS_PER_MS for step in range(50, 150)]
    found = travel(tmp_path / "run", plan, times, change(plan, NS_PER_SECOND, delay="20ms"))
    assert len(found) == len(times)
    assert [sent for sent, _ in found] != sorted(sent for sent, _ in found)


@BACKENDS
def test_a_full_queue_goes_on_at_the_new_rate_and_keeps_its_packets(tmp_path: Path, emulator: str) -> None:
    plan = lab(emulator=emulator, buffer="400pkt")
    before, after = service_ns(100_000_000), service_ns(20_000_000)
    # 10 ms after the packets reached the queue, which in a link of the kernel comes after the delay line.
    at_ns = NS_PER_SECOND + (10 if emulator == "user" else 60) * NS_PER_MS
    events = change(plan, at_ns, rate="20M"), change(plan, at_ns, delay="90ms")
    found = travel(tmp_path / "run", plan, [NS_PER_SECOND] * 300, *events)
    assert len(found) == 300
    gaps = [later - sooner for (_, sooner), (_, later) in pairwise(found)]
    steady = [gap for gap in gaps if min(abs(gap - before), abs(gap - after)) <= 2]
    # tbf sends a burst when it is told a rate: its tokens are full again.
    assert len(steady) >= len(gaps) - (20 if emulator == "tbf" else 2)
    slow = sum(abs(gap - after) <= 2 for gap in gaps)
    assert 150 < slow < 290, "some went before, most after"
    first_slow = next(number for number, gap in enumerate(gaps) if abs(gap - after) <= 2)
    assert all(abs(gap - after) <= 2 for gap in gaps[first_slow:])


@EXACT
@pytest.mark.parametrize("queue", ["droptail", "codel", "pie", "red"])
def test_each_discipline_keeps_what_waits_when_its_link_changes(tmp_path: Path, emulator: str, queue: str) -> None:
    plan = lab(emulator=emulator, buffer="400pkt", **({} if queue == "droptail" else {"queue": queue}))
    at_ns = NS_PER_SECOND + 4 * NS_PER_MS
    events = [change(plan, at_ns, rate="50M"), change(plan, at_ns, delay="60ms")]
    events += [change(plan, at_ns, buffer="300pkt")] if queue != "red" else []
    found = travel(tmp_path / "run", plan, [NS_PER_SECOND] * 40, *events)
    assert len(found) == 40, "so few that no discipline drops"


def test_losses_begin_and_end(tmp_path: Path) -> None:
    plan = lab()
    times = [step * NS_PER_MS for step in range(3000)]
    events = (change(plan, NS_PER_SECOND, loss="50%"), change(plan, 2 * NS_PER_SECOND, loss="0%"))
    found = travel(tmp_path / "run", plan, times, *events)
    by_second = [sum(sent // NS_PER_SECOND == second for sent, _ in found) for second in range(3)]
    assert by_second[0] == by_second[2] == 1000
    assert 400 <= by_second[1] <= 600, "six standard deviations"


@EXACT
def test_counters_over_time_end_where_the_links_do(tmp_path: Path, emulator: str) -> None:
    plan = lab(emulator=emulator, buffer="50pkt")
    times = [NS_PER_SECOND] * 200
    event = change(plan, NS_PER_SECOND + NS_PER_MS, rate="10M")
    place = tmp_path / "run"
    found = travel(place, plan, times, event, watch_ns=10 * NS_PER_MS)
    all_rows = table(place, "links")
    assert {(row["link"], row["direction"]) for row in all_rows} == {
        (link.name, way) for link in plan.links for way in ("forward", "backward")
    }
    core = [row for row in all_rows if (row["link"], row["direction"]) == ("core", "forward")]
    assert [row["time_ns"] for row in core[:-1]] == [10 * NS_PER_MS * number for number in range(len(core) - 1)]
    for key in ("time_ns", "sent_packets", "sent_bytes", "dropped_packets", "lost_packets"):
        assert [row[key] for row in core] == sorted(row[key] for row in core)
    assert [row["rate_bps"] for row in core if row["time_ns"] <= NS_PER_SECOND] == [100_000_000] * 101
    assert {row["rate_bps"] for row in core if row["time_ns"] > NS_PER_SECOND} == {10_000_000}
    # Within the 10 ms until somebody looks, 8 of 50 leave, and of the model's, where they wait at once, 8 more in 1 ms.
    assert max(row["queue_packets"] for row in core) >= 33
    last = core[-1]
    assert (last["sent_packets"], last["dropped_packets"]) == (len(found), 200 - len(found))
    assert last["queue_packets"] == 0 and last["sent_bytes"] == 1538 * len(found)
    told = orjson.loads((place / "links.json").read_bytes())["links"]
    end = next(each for each in told if (each["name"], each["direction"]) == ("core", "forward"))
    if emulator == "kernel":
        counted = (end["sent_packets"], end["sent_bytes"], end["dropped_queue"])
    else:
        counted = (end["out_packets"], end["out_bytes"], end["drops"]["queue_full"])
    assert counted == (last["sent_packets"], last["sent_bytes"], last["dropped_packets"])


def test_two_runs_leave_the_same_counters_and_events(tmp_path: Path) -> None:
    plan = lab(dither="10us", loss="1%")
    for name in ("one", "two"):
        travel(
            tmp_path / name,
            plan,
            [step * NS_PER_MS for step in range(500)],
            change(plan, 200 * NS_PER_MS, loss="5%"),
            watch_ns=50 * NS_PER_MS,
        )
    for name in ("links.csv", "events.json", "commands/1-right1.out"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (link_change(0, "cor", "forward", Change(rate_bps=10_000_000)), "has no link cor; it has core"),
        (
            link_change(0, "core", "forward", Change(rate_bps=1)),
            "event at 0 ns on core forward: rate_bps 1: write 8000",
        ),
        (link_change(0, "core", "forward", Change()), "nothing to change"),
        (link_change(0, "core", "forward", Change(loss=EveryNthLoss(3))), "netem loses at random only"),
    ],
)
def test_what_no_link_can_do_is_refused_before_anything_runs(tmp_path: Path, event: Event, says: str) -> None:
    program = Program(None, (Command("left1", ("true",)),), NS_PER_SECOND, events=(event,))
    with pytest.raises(LabError, match=says):
        run(lab(emulator="kernel"), tmp_path / "run", program)
    assert not (tmp_path / "run" / "commands").exists()


def test_an_interrupted_run_keeps_what_was_counted_and_says_what_was_not_done(tmp_path: Path) -> None:
    plan = lab()
    endless = Command("left1", ("sh", "-c", "while :; do ping -c 100 -i 0.1 right1; done"))
    soon, never = change(plan, NS_PER_SECOND, rate="50M"), change(plan, 80_000 * NS_PER_SECOND, rate="10M")
    program = Program(None, (endless,), 90_000 * NS_PER_SECOND, events=(soon, never), watch_ns=100 * NS_PER_SECOND)
    stop = StopAfter(tmp_path / "run", 20 * NS_PER_SECOND)
    assert run(plan, tmp_path / "run", program, stop).interrupted
    made = orjson.loads((tmp_path / "run/events.json").read_bytes())["events"]
    assert [each["applied_ns"] for each in made] == [NS_PER_SECOND, None]
    assert table(tmp_path / "run", "links")[-1]["sent_packets"] > 0


@contextmanager
def live(purpose: str) -> Iterator[tuple[NetnsRuntime, Plan]]:
    """A live lab of 20 ms that is gone afterwards."""
    with own_state(purpose) as state:
        runtime, plan = NetnsRuntime(BINARY, state), lab("live", rtt="20ms")
        runtime.up(plan)
        try:
            yield runtime, plan
        finally:
            runtime.down(plan.lab)


@pytest.mark.live
def test_live_a_link_changes_when_it_is_told_to_and_is_given_back(tmp_path: Path) -> None:
    """Nothing is early; how late it may be is what a busy machine needs."""
    place = tmp_path / "run"
    place.mkdir()
    at_ns, times = 2 * NS_PER_SECOND, [step * 100 * NS_PER_MS for step in range(5, 35)]
    with live("events") as (runtime, plan):
        events = change(plan, at_ns, delay="80ms"), change(plan, at_ns, rate="50M")
        program = Program(None, packets(plan, times), 60 * NS_PER_SECOND, events=events, watch_ns=100 * NS_PER_MS)
        runtime.batch(plan.lab, program, place)
        until, before = time.monotonic() + 10, plan.links[0].forward
        while len(told := runtime.control(plan.lab, "core", ChangesRequest()).changes) < 4:
            assert time.monotonic() < until, "the changes are not taken back"
    assert {key: value for each in told[2:] for key, value in codec.data_of(each.change).items()} == {
        "delay": codec.data_of(before.delay),
        "rate_bps": before.rate_bps,
    }
    made = orjson.loads((place / "events.json").read_bytes())["events"]
    assert all(0 <= each["applied_ns"] - at_ns < 100 * NS_PER_MS and each["error"] is None for each in made)
    found = seen(place)
    assert len(found) == len(times)
    # T0 is known to the receiver from its own start, which is later.
    early = [came - sent for sent, came in found if sent < at_ns - 500 * NS_PER_MS]
    late = [came - sent for sent, came in found if sent > at_ns + 200 * NS_PER_MS]
    assert min(early) >= 10 * NS_PER_MS and min(late) >= 80 * NS_PER_MS
    assert median(early) < 15 * NS_PER_MS and median(late) < 85 * NS_PER_MS
    core = [row for row in table(place, "links") if (row["link"], row["direction"]) == ("core", "forward")]
    assert core[-1]["sent_packets"] >= len(times)
    assert core[0]["rate_bps"] == 100_000_000 and core[-1]["rate_bps"] == 50_000_000
    looks = [row["time_ns"] for row in core[:-1]]
    assert all(later - sooner > 0 for sooner, later in pairwise(looks))
    assert median(look % (100 * NS_PER_MS) for look in looks) < 20 * NS_PER_MS
    assert len(looks) > 0.8 * looks[-1] / (100 * NS_PER_MS)


@pytest.mark.live
def test_live_what_was_counted_stays_when_the_disk_is_full(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    (place / "links.csv").symlink_to("/dev/full")
    program = Program(None, (Command("left1", ("sleep", "60")),), 60 * NS_PER_SECOND, watch_ns=NS_PER_MS)
    begun = time.monotonic()
    with live("full") as (runtime, plan), pytest.raises(LabError, match=r"links\.csv: No space left on device"):
        runtime.batch(plan.lab, program, place)
    assert time.monotonic() - begun < 50, "it does not wait for what cannot be recorded"
    (entry,) = orjson.loads((place / "commands.json").read_bytes())["commands"]
    assert entry["stopped"] and entry["signal"] == "SIGTERM"


def test_a_full_disk_leaves_whole_rows(tmp_path: Path) -> None:
    """A file system that has room for the node binary and little more."""
    place = tmp_path / "small"
    place.mkdir()
    size = BINARY.stat().st_size + 512 * 1024
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        program = Program(None, (Command("left1", ("sleep", "60")),), 60 * NS_PER_SECOND, watch_ns=NS_PER_MS)
        with pytest.raises(LabError, match=f"no space left in {place / 'run'}: make room there"):
            run(lab(), place / "run", program)
        found = table(place / "run", "links")
        assert len(found) > 1000
        assert (place / "run/links.csv").read_bytes().endswith(b"\n")
    finally:
        subprocess.run(["umount", str(place)], check=True)
