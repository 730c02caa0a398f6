"""Faults in the virtual clock, where each shows to the nanosecond and nothing else disturbs: a lab is made with one
fault a direction, and verified against the plan that has none. And a good lab's certificate is always the same.

One run tells of six faults: three links in a row, two directions each.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ewan.calibration import BatchLab, hints, verify_lab
from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.compile import compile
from ewan.labs.link import BernoulliLoss, ConstantDelay, Direction, Framing, NoLoss
from ewan.labs.plan import Link, Plan
from ewan.labs.record import Certificate, Row, to_json
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import Run, VirtualRuntime
from ewan.labs.spec import from_template, parse

pytestmark = pytest.mark.virtual

LAB = """
topology: parking-lot
name: fv{pid}
ip: 4
rtt: 60ms
wan: {{rate: 20Mbit/s, buffer: 1BDP}}
dither: 0ms
links:
  hop2: {{backward: {{loss: 0.1%}}}}
  hop3: {{backward: {{rate: 30Mbit/s}}}}
"""
TIMES = 20

Fault = Callable[[Direction], Direction]


class WithFaults:
    """Makes another lab than it is asked for."""

    def __init__(self, faults: Callable[[Link], Link]) -> None:
        self.faults = faults

    def run(self, plan: Plan, program: Program, directory: Path, stop: threading.Event | None = None) -> Run:
        made = replace(plan, links=tuple(map(self.faults, plan.links)))
        return VirtualRuntime(BINARY).run(made, program, directory, stop)


def changed(**values: object) -> Fault:
    return lambda way: replace(way, **values)


def counting_the_line(way: Direction) -> Direction:
    """The queue has room for so much less as the delay line holds at the link's rate."""
    assert isinstance(way.delay, ConstantDelay) and way.queue.limit_bytes is not None
    in_line = way.rate_bps * way.delay.delay_ns // (8 * 10**9)
    return replace(way, queue=replace(way.queue, limit_bytes=way.queue.limit_bytes - in_line))


def faulty(link: Link) -> Link:
    faults: dict[str, tuple[Fault, Fault]] = {
        "hop1": (changed(delay=ConstantDelay(10_200_000)), changed(rate_bps=19_800_000)),
        "hop2": (counting_the_line, changed(loss=NoLoss())),
        "hop3": (changed(framing=Framing(0, 0)), changed(rate_bps=20_000_000)),
    }
    forward, backward = faults[link.name]
    return replace(link, forward=forward(link.forward), backward=backward(link.backward))


def row(certificate: Certificate, link: str, quantity: str, direction: str) -> Row:
    return next(r for r in certificate.rows if (r.link, r.quantity, r.direction) == (link, quantity, direction))


def test_each_fault_is_outside_and_shows_which_one_it_is(tmp_path: Path) -> None:
    plan = compile(parse(LAB.format(pid=os.getpid()), tmp_path / "x.lab.yaml"), host.virtual_facts())
    assert isinstance(next(link for link in plan.links if link.name == "hop2").backward.loss, BernoulliLoss)
    certificate = verify_lab(plan, BatchLab(WithFaults(faulty), tmp_path / "run"))
    assert not certificate.passed
    for link, quantity, direction, error, words in (
        ("hop1", "delay p50", "forward", 200_000, ""),
        ("hop1", "rate", "backward", -200_000, ""),
        ("hop2", "queue limit", "forward", -25_000, hints.LINE_COUNTED),
        ("hop2", "loss", "backward", -1_000_000, hints.NO_LOSS),
        ("hop3", "rate", "forward", 20_000_000 * 38 / 1500, "as if framing were not counted"),
        ("hop3", "rate", "backward", -10_000_000, f"{hints.SWAPPED}: forward is to have this rate"),
    ):
        found = row(certificate, link, quantity, direction)
        assert found.verdict == "outside" and words in found.note, found
        assert found.error == pytest.approx(error, rel=0.07), found
    # What has no fault has none.
    sound = [("hop1", "rate", "forward"), ("hop2", "delay p50", "forward"), ("hop2", "rate", "forward")]
    assert {row(certificate, *each).verdict for each in sound} == {"ok"}


def test_a_good_lab_has_the_same_certificate_each_time(tmp_path: Path) -> None:
    words = {"name": f"fw{os.getpid()}", "rtt": "10ms", "rate": "10Mbit/s", "buffer": "10pkt", "pairs": "1"}
    plan = compile(from_template("dumbbell", words), host.virtual_facts())

    def certified(number: int) -> bytes:
        certificate = verify_lab(plan, BatchLab(VirtualRuntime(BINARY), tmp_path / f"{number}"))
        assert certificate.passed
        return to_json(certificate)

    with ThreadPoolExecutor(len(host.virtual_facts().cpus)) as pool:
        assert len(set(pool.map(certified, range(TIMES)))) == 1
