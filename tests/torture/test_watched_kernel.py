"""What the torture reads in a kernel's log.

The logs are those of the kernel with KASAN, lockdep and UBSAN: one that ran well, shortened, and those of a psp that
had been made to take locks in two orders, to shift too far, and to read memory that it had freed.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.torture.watched_kernel import asleep, changes, draw, reports

LOGS = Path(__file__).parent / "reports"
QUIET = (LOGS / "quiet.log").read_text()
LOCKDEP = " max lock class index:                  419\n debug_locks:                             1\n"


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("lockdep", "WARNING: possible circular locking dependency detected"),
        ("ubsan", "UBSAN: shift-out-of-bounds in net/sched/sch_psp.c:418:17"),
        ("kasan", "BUG: KASAN: slab-use-after-free in psp_sent+0x26c/0x290"),
    ],
)
def test_a_report_is_seen(name: str, first: str) -> None:
    found = reports(QUIET + (LOGS / f"{name}.log").read_text())
    assert found[0].endswith(first)


def test_a_kernel_that_has_nothing_to_report_is_not_accused() -> None:
    assert reports(QUIET) == []
    assert asleep(QUIET, LOCKDEP) == []


@pytest.mark.parametrize(
    ("log", "lockdep", "why"),
    [
        (QUIET.partition("\n")[2], LOCKDEP, "the log has lost its beginning"),
        (QUIET.replace("Good, all 355", "BUG:   3 unexpected failures (out of 355)"), LOCKDEP, "its own test"),
        (QUIET, LOCKDEP.replace("1\n", "0\n"), "lockdep has ended"),
        (QUIET, "", "lockdep has ended"),
    ],
)
def test_a_kernel_that_would_report_nothing_is_told(log: str, lockdep: str, why: str) -> None:
    (said,) = asleep(log, lockdep)
    assert why in said


@pytest.mark.parametrize("seed", range(10))
def test_every_description_that_is_drawn_can_be_run(seed: int) -> None:
    random_ = random.Random(seed)
    words, plan = draw(random_)
    backend = "ewan" if words["emulator"] == "user" else words["emulator"]
    assert {link.backend for link in plan.links if link.role == "wan"} == {backend}
    for event in changes(plan, random_):
        assert (event.change.rate_bps is None) != (event.change.half_duplex is None)
