"""What disturbed a live lab: from /proc and the spinners' answers to the advice that a person gets."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from ewan.calibration import hints, machine, report, spinner
from ewan.calibration.compare import compare
from ewan.calibration.machine import MachineLoad, Process, Snapshot
from ewan.calibration.tests.plans import answer, plan, prepared, told
from ewan.calibration.tolerances import Tolerances
from ewan.experiments.engine import verification
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.link import Change
from ewan.labs.record import Certificate, MachineFacts, Row
from ewan.labs.record.machine_load import CpuInterruptions
from ewan.labs.runtime.requests import AppliedChange
from ewan.labs.runtime.spinner_stats import Gaps, SpinnerStats

HZ = os.sysconf("SC_CLK_TCK")
QUIET = MachineLoad(
    2,
    0.5,
    0.0,
    (("dockerd", 0.02),),
    (CpuInterruptions(9, 1, 90_000, 9, False),),
)
TAKEN = CpuInterruptions(512, 1, 4 * NS_PER_MS, 141 * NS_PER_MS, False)


def certificate(load: MachineLoad, *, note: str = "", verdict: str = "outside", clock: str = "live") -> Certificate:
    row = Row("core", "forward", "rate", "bit/s", 1e9, 9e8, -1e8, 1e6, verdict, note)  # type: ignore[arg-type]
    host = MachineFacts("6.18", "x86_64", "a CPU", 2, 4 << 30, "tsc", True, {})
    return Certificate("", "campus", "", host, {}, (row,), {}, {}, 1, clock=clock, machine=load.recorded())  # type: ignore[arg-type]


def test_a_quiet_machine_says_nothing() -> None:
    assert QUIET.words() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"taken": (TAKEN,)}, "CPU 1: the links' thread was interrupted 512 times (141ms in total, 4ms longest)"),
        (
            {"taken": (codec.replace(TAKEN, longest_ns=0, shared=True),)},
            "CPU 1 serves the links of several labs or spinners",
        ),
        ({"steal_ratio": 0.04}, "the hypervisor gave 4% of the CPU time to others (steal)"),
        ({"programs": (("cargo", 1.4), ("sh", 0.02))}, "other programs ran: cargo (140% of a CPU)"),
        (
            {"programs": tuple((name, 0.5) for name in "abcde")},
            "a (50% of a CPU), b (50% of a CPU), c (50% of a CPU) and 2 more",
        ),
    ],
)
def test_what_disturbs_is_told_with_the_load_and_what_to_do(changes: dict[str, Any], said: str) -> None:
    load = dataclasses.replace(QUIET, load_average=5.2, **changes)
    assert any(said in words for words in load.words()) and load.words()[-1] == "load 5.2 on 2 CPUs"
    seen, advice = report.advice(certificate(load))
    assert said in seen
    assert "close other programs" in advice and "ewan lab verify campus" in advice and "RUNTIME=virtual" in advice
    assert "ewan lab set" not in seen + advice
    assert said in verification.refusal(certificate(load)) and "close other programs" in verification.refusal(
        certificate(load)
    )


def test_only_a_changed_link_is_advised_to_be_set_back() -> None:
    (quiet,) = report.advice(certificate(QUIET))
    assert "ewan lab set" not in quiet and "other traffic" in quiet
    (changed,) = report.advice(certificate(QUIET, note=spinner.CHANGED))
    assert "ewan lab set" in changed and "ewan ps" in changed
    (faulty,) = report.advice(certificate(QUIET, note=hints.SMALLER))
    assert "a fault of the lab" in faulty and "other traffic" not in faulty
    busy = dataclasses.replace(QUIET, taken=(TAKEN,))
    assert len(report.advice(certificate(busy, note=spinner.CHANGED))) == 3


def test_who_passed_or_has_no_clock_of_this_machine_is_not_advised() -> None:
    busy = dataclasses.replace(QUIET, taken=(TAKEN,))
    assert report.advice(certificate(busy, verdict="ok")) == []
    assert report.advice(certificate(busy, clock="virtual")) == []


def test_the_note_of_a_row_names_what_is_known_and_guesses_only_where_nothing_is() -> None:
    lab = plan()
    expected, probing = prepared(lab)
    slow = told(answer(probing, rate_bps=0.98e9))

    def note(busy: bool = False, changes: tuple[AppliedChange, ...] = (), bounds: Tolerances | None = None) -> str:
        facts = spinner.with_changes({}, changes)
        rows = compare(expected, probing, slow, facts, bounds, machine=machine.BUSY if busy else "")
        return next(
            row.note for row in rows if (row.direction, row.quantity, row.verdict) == ("forward", "rate", "outside")
        )

    assert "is other traffic on it?" in note()
    assert "machine was busy" in note(busy=True) and "other traffic" not in note(busy=True)
    forward, backward = AppliedChange("core", "forward", Change()), AppliedChange("core", "backward", Change())
    assert spinner.CHANGED in note(changes=(forward,)) and "other traffic" not in note(changes=(forward,))
    assert spinner.CHANGED not in note(changes=(backward,))


def snapshot(seconds: float, processes: dict[int, tuple[str, int, float]], stolen: float = 0.0) -> Snapshot:
    """Processes by number: name, parent, CPU seconds. Two CPUs, of whose time `stolen` seconds are gone."""
    listed = {(pid, pid): Process(name, parent, round(used * HZ)) for pid, (name, parent, used) in processes.items()}
    return Snapshot(round(seconds * NS_PER_SECOND), round(2 * seconds * HZ), round(stolen * HZ), 3.0, listed)


def test_shares_are_of_the_time_between() -> None:
    before = snapshot(
        100, {10: ("make", 1, 5), 11: ("cc", 10, 250), 15: ("as", 11, 50), 12: ("firefox", 1, 1000)}, stolen=7
    )
    # The compiler had used 300 s before; now it has ended after 4 s more, which are in its parent's account.
    after = snapshot(110, {10: ("make", 1, 5 + 304), 12: ("firefox", 1, 1002), 13: ("python", 1, 9)}, stolen=8)
    load = machine.between(before, after, [])
    assert dict(load.programs) == {"python": 0.9, "make": 0.4, "firefox": 0.2}
    assert [name for name, _ in load.programs] == ["python", "make", "firefox"]
    assert load.steal_ratio == pytest.approx(1 / 20)


def test_gaps_are_of_the_time_between() -> None:
    def stats(classes: list[tuple[int, int]], lost_ns: int) -> SpinnerStats:
        return SpinnerStats(cpu=1, shared=False, gaps=Gaps(classes=tuple(classes), lost_ns=lost_ns), links={})

    before = stats([(1000, 7), (9 * NS_PER_MS, 1)], 9 * NS_PER_MS)
    after = stats([(1000, 9), (2 * NS_PER_MS, 3), (9 * NS_PER_MS, 1)], 14 * NS_PER_MS)
    load = machine.between(snapshot(0, {}), snapshot(1, {}), [(before, after), (before, None), (None, after)])
    first, second = load.taken
    assert first == CpuInterruptions(5, 1, 2 * NS_PER_MS, 5 * NS_PER_MS, False)
    assert second.count == 13


def test_proc_is_read_without_the_lab_and_the_kernel(tmp_path: Path) -> None:
    def process(pid: int, name: str, parent: int, ticks: str, *words: str) -> None:
        place = tmp_path / str(pid)
        place.mkdir()
        (place / "stat").write_text(f"{pid} ({name}) R {parent} 0 0 0 0 0 0 0 0 0 {ticks} 20 0 1 0 {pid * 10} 0 0\n")
        (place / "cmdline").write_text("\0".join(words))

    (tmp_path / "stat").write_text("cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    (tmp_path / "loadavg").write_text("1.50 1.00 0.50 2/300 4000\n")
    process(5, "a (b) c", 1, "1 2 3 4")
    process(6, "kworker/0:1", 2, "9 9 9 9")
    process(7, "ewan-node", 1, "9 9 9 9", "ewan-node", "link", "--state", "/run/ewan/campus", "--spinner", "0")
    process(8, "ewan-node", 1, "1 1 1 1", "ewan-node", "link", "--state", "/run/ewan/other", "--spinner", "0")
    process(9, "ewan-node", 1, "9 9 9 9", "ewan-node", "container")
    process(os.getpid(), "python", 1, "9 9 9 9")
    (tmp_path / "77").mkdir()
    found = machine.snapshot("campus", tmp_path)
    assert found.processes == {(5, 50): Process("a (b) c", 1, 10), (8, 80): Process("ewan-node", 1, 4)}
    assert (found.ticks, found.stolen_ticks, found.load_average) == (360, 80, 1.5)


def test_this_machine_can_be_read() -> None:
    before, after = machine.snapshot("none"), machine.snapshot("none")
    load = machine.between(before, after, [])
    assert before.processes and 0 <= load.steal_ratio <= 1 and load.cpus >= 1
