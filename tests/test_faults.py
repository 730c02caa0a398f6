"""Faults that are put into a live lab, one after the other, and undone: the verification sees each and names it.

One lab for nearly all, and probes as short as tell what is asked: a delay of 20 ms, 20 Mbit/s. A neighbour on this
machine may disturb other rows than those that are looked at.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.calibration import LiveLab, hints, spinner, verify_lab
from ewan.calibration.host import calibrations
from ewan.calibration.judge import OTHER_TRAFFIC
from ewan.calibration.probe import TimeBudget
from ewan.labs import host, record
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.change import compile_change, wanted
from ewan.labs.compile import compile
from ewan.labs.context import Context
from ewan.labs.link import ConstantDelay, Framing
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Plan, to_json
from ewan.labs.record import Certificate, Policy, Row
from ewan.labs.runtime.base import LabError, LiveClockRuntime
from ewan.labs.runtime.requests import LinkSetRequest
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.spec import from_template

pytestmark = pytest.mark.live

BUDGET = TimeBudget(
    delay_ns=500 * NS_PER_MS,
    loss_ns=100 * NS_PER_MS,
    rtt_ns=200 * NS_PER_MS,
    rates_ns=2_000 * NS_PER_MS,
    steady_ns=600 * NS_PER_MS,
    tcp_ns=200 * NS_PER_MS,
)
SHORT = dataclasses.replace(BUDGET, delay_ns=200 * NS_PER_MS, steady_ns=100 * NS_PER_MS, rates_ns=400 * NS_PER_MS)
# Of all CPU time the half, before whoever else is there, 3 ms at a time.
BUSY = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
print("busy", flush=True)
end = time.monotonic() + 30
while (begin := time.monotonic()) < end:
    while time.monotonic() - begin < 0.003:
        pass
    time.sleep(0.003)
"""


class Dumbbell:
    """The lab, its state root, and how it is verified."""

    def __init__(self, state: Path) -> None:
        environment = {**os.environ, "EWAN_RUNTIME": "netns", "EWAN_STATE": str(state), "EWAN_NODE": str(BINARY)}
        self.context = Context.of(environment)
        self.labs: LiveClockRuntime = self.context.live("netns")
        self.plan = self.other(f"tf{os.getpid()}")

    def other(self, name: str) -> Plan:
        words = {"name": name, "rtt": "40ms", "rate": "20Mbit/s", "buffer": "2BDP", "pairs": "1"}
        return compile(from_template("dumbbell", words), host.facts())

    def verified(
        self, plan: Plan | None = None, budget: TimeBudget = BUDGET, policy: Policy = "default"
    ) -> Certificate:
        return verify_lab(plan or self.plan, LiveLab(self.labs, BINARY), budget=budget, policy=policy)

    def set(self, way: Heading, **words: str) -> None:
        link = self.plan.links[0]
        change = compile_change(self.plan, link, way, wanted(words))
        self.labs.control(self.plan.lab, link.name, LinkSetRequest.of(change, link.name, way))

    def offloads(self, word: str) -> None:
        command = [str(BINARY), "offloads", "--state", str(self.context.state / self.plan.lab), word]
        subprocess.run(command, check=True, capture_output=True)

    def mtu(self, node: str, interface: str, mtu: int) -> None:
        inside = ["ip", "netns", "exec", f"ewan-{self.plan.lab}-{node}"]
        subprocess.run([*inside, "ip", "link", "set", interface, "mtu", str(mtu)], check=True)


@pytest.fixture(scope="module")
def place() -> Iterator[Dumbbell]:
    """Where labs may be, and none is yet."""
    found = Dumbbell(Path(f"/run/ewan-test-faults-{os.getpid()}"))
    yield found
    assert not found.context.state.exists(), "all labs are down"


@pytest.fixture(scope="module")
def lab(place: Dumbbell) -> Iterator[Dumbbell]:
    place.labs.up(place.plan)
    yield place
    place.labs.down(place.plan.lab)


def row(certificate: Certificate, quantity: str, direction: str = "forward") -> Row:
    return next(r for r in certificate.rows if r.quantity == quantity and r.direction in (direction, ""))


def quantities(certificate: Certificate) -> set[str]:
    return {each.quantity for each in certificate.rows}


def test_a_link_that_nobody_changed_and_that_is_another_shows_which_fault_it_has(place: Dumbbell) -> None:
    """A lab is up whose links are not what its own plan says, and no record tells of it: the numbers alone do."""
    told = place.plan
    (link,) = told.links
    ahead, limit = link.forward, link.forward.queue.limit_bytes
    assert limit is not None
    in_line = ahead.rate_bps // 8 * 20 // 1000
    forward = codec.replace(
        ahead, delay=ConstantDelay(20_400_000), queue=codec.replace(ahead.queue, limit_bytes=limit - in_line)
    )
    backward = codec.replace(link.backward, framing=Framing(0, 0))
    made = codec.replace(link, forward=forward, backward=backward)
    place.labs.up(codec.replace(told, links=(made,)))
    try:
        (place.context.state / told.lab / "plan.json").write_bytes(to_json(told))
        certificate = place.verified()
    finally:
        place.labs.down(told.lab)
    # Of a link that is late itself the CPU is named where it was taken away; a hint is not given.
    punctual = row(certificate, "release error p50").verdict == "ok"
    for quantity, direction, words in (
        ("delay p50", "forward", hints.PUNCTUAL if punctual else ""),
        ("queue limit", "forward", hints.LINE_COUNTED),
        ("rate", "backward", "as if framing were not counted (1500 bytes a packet, not 1538)"),
    ):
        found = row(certificate, quantity, direction)
        assert found.verdict == "outside" and words in found.note, found
    note = row(certificate, "delay p50").note
    assert ("CPU" in note or note == OTHER_TRAFFIC) is not punctual


def test_without_a_fault_none_is_seen(lab: Dumbbell) -> None:
    certificate = lab.verified()
    assert row(certificate, "path MTU").verdict == "ok"
    assert not quantities(certificate) & {"offloads on", "frames above the MTU"}
    for quantity in ("delay p50", "rate"):
        for direction in ("forward", "backward"):
            assert row(certificate, quantity, direction).verdict != "outside", row(certificate, quantity, direction)


def test_a_delay_two_and_a_rate_one_percent_off_are_a_change(lab: Dumbbell) -> None:
    lab.set("forward", delay="20.4ms")
    lab.set("backward", rate="19.8Mbit/s")
    try:
        certificate = lab.verified()
    finally:
        lab.set("forward", delay="20ms")
        lab.set("backward", rate="20Mbit/s")
    delay, rate = row(certificate, "delay p50"), row(certificate, "rate", "backward")
    for each in (delay, rate):
        assert each.verdict == "outside" and spinner.CHANGED in each.note, each
    assert delay.error == pytest.approx(0.4e6, abs=0.3e6)
    assert rate.error == pytest.approx(-0.2e6, abs=0.1e6)


def test_a_hop_with_a_smaller_mtu_is_named_wherever_large_packets_vanish(lab: Dumbbell) -> None:
    end = lab.plan.links[0].a
    lab.mtu(end.node, end.interface, 1400)
    try:
        certificate = lab.verified(budget=SHORT)
    finally:
        lab.mtu(end.node, end.interface, 1500)
    found = row(certificate, "path MTU")
    assert (found.verdict, found.measured) == ("outside", 1400)
    assert hints.SMALLER in found.note and "CPU" not in found.note
    for direction in ("forward", "backward"):
        rate = row(certificate, "rate", direction)
        assert rate.verdict == "not measured" and hints.SMALLER in rate.note, rate


def test_offloads_that_are_on_are_named_with_their_interface(lab: Dumbbell) -> None:
    lab.offloads("--on")
    try:
        certificate = lab.verified(budget=SHORT)
    finally:
        lab.offloads("--off")
    rows = [each for each in certificate.rows if each.quantity == "offloads on"]
    interfaces = {f"{node.name}:{each.name}" for node in lab.plan.nodes for each in node.interfaces}
    assert {each.link for each in rows} == interfaces
    for each in rows:
        assert each.verdict == "outside" and "tx-generic-segmentation" in each.note and "gso off" in each.note, each


def test_a_spinner_that_a_busy_process_starves_says_so(lab: Dumbbell) -> None:
    cpu = lab.plan.spinners[0].cpu
    with subprocess.Popen([sys.executable, "-c", BUSY, str(cpu)], stdout=subprocess.PIPE, text=True) as busy:
        assert busy.stdout is not None and busy.stdout.readline() == "busy\n"
        try:
            certificate = lab.verified(budget=SHORT)
        finally:
            busy.kill()
    late = row(certificate, "release error p99")
    assert late.verdict == "outside" and "the link's thread was interrupted" in late.note, late
    disturbed = " ".join(certificate.machine.disturbed or ())
    assert f"CPU {cpu}: the links' thread was interrupted" in disturbed and "other programs ran" in disturbed


def test_a_second_lab_on_the_links_cpu_and_another_clock_source_are_said(
    lab: Dumbbell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, clock = lab.other(f"tg{os.getpid()}"), tmp_path / "current_clocksource"
    assert other.spinners[0].cpu == lab.plan.spinners[0].cpu
    before = calibrations.fingerprint(calibrations.circumstances(BINARY))
    clock.write_text("hpet\n")
    monkeypatch.setattr(record, "CLOCK_SOURCE", clock)
    with contextlib.ExitStack() as stack:
        lab.labs.up(other)
        stack.callback(lab.labs.down, other.lab)
        certificate = lab.verified(budget=SHORT, policy="strict")
    shared = row(certificate, "CPU shared")
    assert shared.verdict == "not decidable" and "another lab" in shared.note
    assert not certificate.passed, "by the strict policy nothing may be unknown"
    disturbed = " ".join(certificate.machine.disturbed or ())
    assert f"CPU {lab.plan.spinners[0].cpu} serves the links of several labs" in disturbed
    assert "the clock source is hpet" in disturbed and certificate.host.clock_source == "hpet"
    assert calibrations.fingerprint(calibrations.circumstances(BINARY)) != before, (
        "what was measured of the host no longer holds"
    )


def test_a_lab_of_another_plan_is_not_measured(lab: Dumbbell) -> None:
    link = lab.plan.links[0]
    swapped = codec.replace(lab.plan, links=(codec.replace(link, backend="tbf"),))
    with pytest.raises(LabError, match=r"made of another plan \(core: back end user in place of tbf\): ewan down"):
        lab.verified(swapped)
    nearer = codec.replace(link, forward=link.backward, backward=link.forward)
    with pytest.raises(LabError, match="made of another plan"):
        lab.verified(codec.replace(lab.plan, links=(nearer,)))
