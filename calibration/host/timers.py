"""Reports the abilities of this host's clocks and timers, as `ewan-node timers` measures them.

In: the node binary and how long measuring may take. Out: `Timers`: resolution and cost of a read of each clock; how
late deadlines are met by spinning, by sleeping and by the kernel's own timers, CPUs idle and busy; how often and how
long a spinning thread was without its CPU; how the clock of links and probes keeps to CLOCK_MONOTONIC_RAW. And, pure,
what that means for a lab.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from ewan.calibration.host.finding import Finding
from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.base.units.shown import about
from ewan.labs.runtime.base import LabError

Budget = Literal["quick", "default", "full"]
SECONDS: Mapping[Budget, float] = {"quick": 2, "default": 8, "full": 60}
"""The duration of a measurement."""
PATIENCE_S = 60
"""On a busy machine it takes longer, but not by more."""

Method = Literal["spin", "nanosleep", "timerfd", "qdisc"]
METHODS: Mapping[Method, str] = {
    "spin": "spinning (as links do)",
    "nanosleep": "clock_nanosleep",
    "timerfd": "timerfd",
    "qdisc": "hrtimer of a token bucket",
}
SHOWN_INTERVAL_NS = NS_PER_MS
"""Between deadlines, of those that one line tells of."""

SPIN_GOOD_NS = 1_000
"""A link that spins and is later at the median is not exact enough to be believed at all."""
LONGEST_GAP_NS = NS_PER_MS
STEAL_RATIO = 0.01
RATE_GOOD_PPB = 1_000
"""A millionth: 1 µs in a second's measurement."""


class ClockSource(Struct):
    """The clock that links and probes read. `residual_ns`: how far the middle of its calibration lay from the line
    through the ends; `recalibration_ppb`: the frequency of a second calibration against the first; `against_raw_ppb`:
    over the whole measurement, against CLOCK_MONOTONIC_RAW, as uncertain as `uncertain_ppb` by the readings;
    `monotonic_against_raw_ppb`: by how much the time service turns CLOCK_MONOTONIC.

    Where CLOCK_MONOTONIC_RAW is kept by the TSC too, this is the error of our scale, and not of the crystal.
    """

    source: Literal["tsc", "clock_gettime"]
    frequency_hz: int | None
    residual_ns: int
    recalibration_ppb: int | None
    against_raw_ppb: int
    uncertain_ppb: int
    monotonic_against_raw_ppb: int


class ClockRead(Struct):
    """The cost of a read (the least of several means), and the least difference between two reads that differ."""

    clock: str
    cost_ns: float
    resolution_ns: int


class Lateness(Struct):
    """The lateness at deadlines `interval_ns` apart. Percentiles are of nearest rank, and None if there are too few
    samples (100 for p99, 1000 for p99.9). `classes`: the upper end of a class and the number of its samples, ascending,
    16 classes for each power of two. `spin` ran on the CPU of links, as they do: with their priority, in a session of
    its own; the others on a CPU of the hosts with the priority of probes. `loaded`: a busy thread on every CPU of the
    hosts. The values of `qdisc` include the jitter of two time stamps.
    """

    method: Method
    loaded: bool
    interval_ns: int
    samples: int
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None
    classes: tuple[tuple[int, int], ...]


class SpinningThread(Struct):
    """A thread that read the clock all the time on the CPU of links: pauses above 10 µs, when another had the CPU.

    `steal_ns`: what the hypervisor took of this CPU meanwhile, in the kernel's ticks; None where it does not tell.
    """

    loaded: bool
    cpu: int
    nice: int
    duration_ns: int
    gaps: int
    gaps_ns: int
    longest_gap_ns: int
    steal_ns: int | None


class Timers(Document, tag="ewan-timers/1"):
    """All of it. `hypervisor`: what it calls itself, where there is one that does; `not_measured`: why, by method."""

    elapsed_ns: int
    link_cpu: int
    host_cpus: tuple[int, ...]
    hypervisor: str | None
    clock: ClockSource
    reads: tuple[ClockRead, ...]
    lateness: tuple[Lateness, ...]
    spinning: tuple[SpinningThread, ...]
    not_measured: Mapping[str, str]

    def late(self, method: Method, loaded: bool, interval_ns: int = SHOWN_INTERVAL_NS) -> Lateness | None:
        """The lateness of one method; None if it was not measured."""
        key = (method, loaded, interval_ns)
        return next((each for each in self.lateness if (each.method, each.loaded, each.interval_ns) == key), None)


def measure(
    binary: Path,
    budget: Budget | float,
    progress: Callable[[str], None],
    *,
    link_cpu: int | None = None,
    host_cpus: Sequence[int] = (),
) -> Timers:
    """Measures for so many seconds, or those of a budget. CPUs that are not given are a lab's: the last one spins.

    LabError, one line, where it cannot be done. Without root there is no token bucket, and priorities are lower.
    """
    seconds = SECONDS[budget] if isinstance(budget, str) else budget
    command = [str(binary), "timers", "--seconds", f"{seconds:g}"]
    command += [] if link_cpu is None else ["--link-cpu", str(link_cpu)]
    command += ["--host-cpus", ",".join(map(str, host_cpus))] if host_cpus else []
    said = "no answer"
    with (
        tempfile.TemporaryFile() as answer,
        subprocess.Popen(command, stdout=answer, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        limit = threading.Timer(seconds + PATIENCE_S, process.kill)
        limit.start()
        try:
            for line in process.stderr:
                said = line.strip()
                progress(said)
            status = process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            limit.cancel()
        if status == -signal.SIGKILL:
            raise LabError(
                f"{binary.name} timers: it was ended, or took {seconds + PATIENCE_S:g} s; its last line: {said}"
            )
        if status:
            raise LabError(f"{binary.name} timers: {said}")
        answer.seek(0)
        return codec.decode(Timers, answer.read(), "timers")


def findings(timers: Timers) -> Iterator[Finding]:
    """Findings on the clocks and timers that a lab on this host can expect."""
    yield from _clock(timers)
    told: tuple[tuple[Method, str, str], ...] = (
        ("spin", "spinning to a deadline", "how exactly a link releases packets"),
        ("nanosleep", "sleeping to a deadline", "why links do not sleep; how late programs start"),
        ("qdisc", "timers of the kernel", "how late a queueing discipline releases packets"),
    )
    for method, what, meaning in told:
        yield _lateness(timers, method, what, meaning)
    yield from (_spinning(each) for each in timers.spinning if not each.loaded)


def _clock(timers: Timers) -> Iterator[Finding]:
    clock, own = timers.clock, timers.reads[0]
    error, least = abs(clock.against_raw_ppb), clock.uncertain_ppb
    found = f"{clock.source}, {own.cost_ns:.0f} ns a read, resolves {own.resolution_ns} ns"
    found += f"; {clock.against_raw_ppb:+d} ± {least} ppb against CLOCK_MONOTONIC_RAW"
    if error > max(RATE_GOOD_PPB, least):
        yield Finding("clock", found, "limited", "delays and rates are wrong by this")
    elif clock.source != "tsc":
        yield Finding("clock", found, "limited", "each look at the clock is dearer; releases are later")
    else:
        yield Finding("clock", found, "good", "read without a system call")


def _lateness(timers: Timers, method: Method, what: str, meaning: str) -> Finding:
    idle, loaded = timers.late(method, False), timers.late(method, True)
    if idle is None or idle.p50_ns is None or idle.max_ns is None:
        return Finding(what, "not measured", "limited", timers.not_measured.get(method, "no sample"))
    found = f"late by {about(idle.p50_ns, 'time', 3)} at the median"
    if idle.p99_ns is not None:
        found += f", {about(idle.p99_ns, 'time', 3)} at p99"
    found += f", {about(idle.max_ns, 'time', 3)} at worst"
    if loaded is not None and loaded.p50_ns is not None:
        found += f"; with busy CPUs {about(loaded.p50_ns, 'time', 3)} at the median"
    good = method != "spin" or idle.p50_ns <= SPIN_GOOD_NS
    return Finding(what, found, "good" if good else "limited", meaning)


def _spinning(spun: SpinningThread) -> Finding:
    what = f"CPU {spun.cpu}, where links spin"
    duration = about(spun.duration_ns, "time", 2)
    if not spun.gaps:
        return Finding(what, f"never taken in {duration}", "good", "no packet is late because of another program")
    longest, lost = about(spun.longest_gap_ns, "time", 3), about(spun.gaps_ns, "time", 3)
    found = f"taken {spun.gaps} times in {duration}, for {lost} in all, {longest} at once"
    if spun.steal_ns is not None and spun.steal_ns >= STEAL_RATIO * spun.duration_ns:
        found += f"; the hypervisor took {about(spun.steal_ns, 'time', 2)} (steal)"
    good = spun.longest_gap_ns <= LONGEST_GAP_NS
    meaning = "packets that are due then are late by as much"
    return Finding(what, found, "good" if good else "limited", meaning)
