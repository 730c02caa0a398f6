"""The links that this host can make: how many packets per second each back end carries, and how late they are.

In: a runtime of the live clock, a budget. Out: a `Frontier` for each back end, packet size and number
of links. All links of a point are loaded at once, in one direction, as `ewan lab verify` loads one: by probes that
offer more than the rate. The rate is changed while the links run, so a trial takes a quarter of a second. The labs that
this makes are taken down, also when it is interrupted.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ewan.calibration import expect, spinner, uncertainty
from ewan.calibration.envelope import Frontier, Limit, LinkDemand, LoadLateness
from ewan.calibration.expectation import BYTE_NS, ENOUGH, LinkExpectation, framed_bytes
from ewan.calibration.judge import offered_bps
from ewan.calibration.path import streams_of
from ewan.calibration.probing import MS, ProbePlan, packet_stream
from ewan.calibration.spinner import HistogramClasses
from ewan.calibration.tolerances import Tolerances
from ewan.labs import change, host
from ewan.labs.base import codec
from ewan.labs.base.source import DescriptionError
from ewan.labs.base.units import BITS_PER_BYTE, Rate
from ewan.labs.compile import compile
from ewan.labs.link import Change, Framing
from ewan.labs.plan import Link, Plan
from ewan.labs.record import COVERAGE_FACTOR
from ewan.labs.runtime.base import LabError, LabLifecycle, LinkControl, ProbeSender
from ewan.labs.runtime.probe_documents import FailedResult, StreamResult
from ewan.labs.runtime.requests import LinkSetRequest, StatsRequest
from ewan.labs.runtime.spinner_stats import SpinnerStats
from ewan.labs.spec import from_template

MTU_BYTES = 1500
BUFFER = "2MB"
"""So much that a sender that pauses for some ms does not empty it."""
STARTING_PACKETS_PER_S = 40_000
FINEST = 1.1
"""The highest rate that was carried and the lowest that was not are no further apart."""
MOST_RATE_BPS = 40_000_000_000
ABOVE = 1.25
"""Times the rate that probes offer."""
TRIES = 3
"""The number of tries of a load that failed: a CPU may have been away."""
SENDING_NS, SKIP_NS, DRAIN_NS = 150 * MS, 30 * MS, 40 * MS
LOADS = (0.5, 0.9)
"""Shares of the frontier at which delays are measured."""
BOUNDS = Tolerances()
ENDS_NS = math.sqrt(2) * uncertainty.rectangular(uncertainty.Instrument().instant_ns)
"""Standard uncertainty of the two ends of a window of counting."""


@dataclass(frozen=True, slots=True)
class LinkBudget:
    """The number of points to measure. `sizes` and `links` are crossed for our own link; other back ends have the first
    and the last size on one link."""

    sizes: tuple[int, ...]
    links: tuple[int, ...]
    loads: tuple[float, ...] = LOADS
    others: bool = True


QUICK = LinkBudget(sizes=(64, 1500), links=(1,), loads=(0.9,), others=False)
DEFAULT = LinkBudget(sizes=(64, 512, 1500), links=(1, 4, 16))
FULL = LinkBudget(sizes=(64, 256, 512, 1024, 1500), links=(1, 2, 4, 8, 16, 64), loads=(0.1, 0.25, 0.5, 0.75, 0.9, 1.0))


class MeasurableLabs(LabLifecycle, LinkControl, ProbeSender, Protocol):
    """Labs that can be made, changed, measured and removed."""


@dataclass(slots=True)
class Bench:
    """Links that are up, each from a host of its own to the hub."""

    runtime: MeasurableLabs
    plan: Plan
    expected: Sequence[LinkExpectation] = field(init=False)
    rate_bps: int = field(init=False)
    """The forward rate of each link, as it was set last."""

    now: dict[str, Link] = field(init=False)
    """The links as they were changed last."""

    def __post_init__(self) -> None:
        self.now = {link.name: link for link in self.plan.links}
        self.rate_bps = self.plan.links[0].forward.rate_bps
        self.expected = [each for each in expect.expectations(self.plan).links if each.name == "forward"]

    def set_rate(self, rate_bps: int) -> None:
        """Set the forward rate of all links."""
        self.change(rate=f"{max(rate_bps, Rate.LOWEST)}bit/s")
        self.rate_bps = rate_bps

    def change(self, **words: str) -> Change:
        """Changes the forward direction of all links by the words of a description; returns the last link's change."""
        asked, made = change.wanted(words), Change()
        for name, now in self.now.items():
            made = change.compile_change(self.plan, now, "forward", asked)
            self.runtime.control(self.plan.lab, name, LinkSetRequest.of(made, name, "forward"))
            self.now[name] = change.after(now, "forward", made)
        self.rate_bps = self.rate_bps if made.rate_bps is None else made.rate_bps
        return made

    @property
    def framing(self) -> Framing:
        """The framing of packets on the links."""
        return self.expected[0].direction.framing

    def statistics(self) -> list[SpinnerStats]:
        """The counters of the links, one answer for each spinner."""
        asked = [each for each in self.plan.spinners if each.links]
        return [self.runtime.control(self.plan.lab, each.links[0], StatsRequest()) for each in asked]

    def send(
        self, packet_bytes: int, interval_ns: float, *, raw: bool = False, extra_ns: int = 0
    ) -> tuple[Sequence[StreamResult], list[spinner.LinkFacts]]:
        """One stream through each link at once; their results, and what the links counted meanwhile.

        `extra_ns`: so much longer than for 2 ms of delay packets are waited for.
        """
        count = max(int(SENDING_NS / interval_ns), 8)
        streams = [
            codec.replace(
                packet_stream(link.key, link.ends, self.plan.lab, packet_bytes, interval_ns, count),
                skip_ns=SKIP_NS,
                raw=raw,
            )
            for link in self.expected
        ]
        probing = ProbePlan()
        probing.add("saturate" if not raw else "delay", "envelope", streams, DRAIN_NS + extra_ns)
        before = self.statistics()
        answer = self.runtime.probe(self.plan.lab, probing.probes, lambda text: None)
        facts = spinner.facts(before, self.statistics())
        (result,) = answer.results
        if isinstance(result, FailedResult):
            raise LabError(f"the probe of the host's links failed: {result.error}")
        found = [facts.get(link.key, spinner.LinkFacts()) for link in self.expected]
        return streams_of(result), found


@contextlib.contextmanager
def bench(runtime: MeasurableLabs, backend: str, count: int) -> Iterator[Bench]:
    """So many links of a back end, up meanwhile, each between nodes of its own.

    LabError or DescriptionError where this host has no such links.
    """
    name = f"envelope{os.getpid()}"
    topology, number = ("dumbbell", {"pairs": "1"}) if count == 1 else ("star", {"arms": str(count)})
    words = {
        **number,
        "name": name,
        "rate": "1Gbit/s",
        "rtt": "8ms",
        "buffer": BUFFER,
        "emulator": backend,
        "mtu": str(MTU_BYTES),
    }
    plan = compile(from_template(topology, words), host.facts())
    runtime.up(plan)
    try:
        yield Bench(runtime, plan)
    finally:
        runtime.down(name)


def measure(
    runtime: MeasurableLabs, budget: LinkBudget, progress: Callable[[str], None] = lambda text: None
) -> tuple[tuple[Frontier, ...], dict[str, str]]:
    """Frontiers of all back ends that this host has, and of those that it has not, why (one line each)."""
    frontiers: list[Frontier] = []
    absent: dict[str, str] = {}
    for backend in ("user", "kernel", "tbf"):
        own = backend == "user"
        if not own and not budget.others:
            continue
        sizes = budget.sizes if own else (budget.sizes[0], budget.sizes[-1])
        try:
            for count in budget.links if own else (1,):
                with bench(runtime, backend, count) as made:
                    guess = STARTING_PACKETS_PER_S
                    for size in sizes:
                        progress(f"links: {backend}, {count} at once, {size} bytes")
                        frontier = _frontier(made, backend, size, guess, budget.loads)
                        guess = max(round(frontier.packets_per_s / 2), 1_000)
                        frontiers.append(frontier)
        except (LabError, DescriptionError) as error:
            if own:
                raise
            absent[backend] = str(error)
    return tuple(frontiers), absent


def _frontier(made: Bench, backend: str, packet_bytes: int, guess: float, loads: Sequence[float]) -> Frontier:
    """Twice as many packets until something breaks, then halves of what lies between, as ratios."""
    count = len(made.expected)
    framed = framed_bytes(made.expected[0].direction.framing, packet_bytes)
    most = MOST_RATE_BPS / framed / BITS_PER_BYTE * count
    good, bad, error = 0.0, 0.0, 0.0
    limit: Limit = "none"
    broke: Limit | None = None
    at, found = guess, 0.0
    while not good or (not bad and good < most) or (bad and bad > FINEST * good):
        for _ in range(TRIES):
            broke, found = _trial(made, packet_bytes, at)
            if not broke:
                break
        if broke:
            bad, limit = at, broke
        else:
            good, error = at, found
        if not good and at < 1_000:
            break
        at = (good * bad) ** 0.5 if good and bad else min(2 * at, most) if good else at / 2
    measured = tuple(_loaded(made, packet_bytes, good, share) for share in loads) if good else ()
    return Frontier(backend, packet_bytes, count, float(good), limit, float(error), measured)


def carries(runtime: MeasurableLabs, demand: LinkDemand, most_links: int) -> bool:
    """Return whether this host carries a demand now. Of more links than `most_links`, that many are tried."""
    count = min(demand.links, most_links)
    try:
        with bench(runtime, demand.backend or "user", count) as made:
            for _ in range(TRIES):
                broke, _ = _trial(made, demand.packet_bytes, demand.packets_per_s * count / demand.links)
                if not broke:
                    return True
    except DescriptionError:
        pass  # this host has no such links without a delay, say: what was measured stands
    return False


def _rate_bps(packets_per_s: float, framed: int, links: int) -> int:
    return max(round(packets_per_s / links * framed * BITS_PER_BYTE), 1_000)


def _trial(made: Bench, packet_bytes: int, packets_per_s: float) -> tuple[Limit | None, float]:
    """Send more than `packets_per_s` over all links and return which limit broke if they did not carry their share of
    that rate, and the largest rate error (a ratio)."""
    framed = framed_bytes(made.expected[0].direction.framing, packet_bytes)
    rate = _rate_bps(packets_per_s, framed, len(made.expected))
    made.set_rate(rate)
    interval = framed * BYTE_NS / rate / ABOVE
    streams, facts = made.send(packet_bytes, interval)
    worst = 0.0
    for stream, own in zip(streams, facts, strict=True):
        steady = stream.steady
        offered = offered_bps(stream, framed)
        if offered < ENOUGH * rate or steady is None or steady.packets < 8 or stream.socket_drops_packets:
            return "probe", 1.0
        measured = steady.packets * framed * BYTE_NS / steady.fitted_window_ns
        error = measured / rate - 1
        worst = max(worst, abs(error))
        known = COVERAGE_FACTOR * ENDS_NS / steady.fitted_window_ns
        if abs(error) > BOUNDS.rate_share + known:
            return "rate", worst
        if own.release_p99_ns is not None and own.release_p99_ns > BOUNDS.release_p99_ns:
            return "lateness", worst
        if own.overrun_packets:
            return "drops", worst
    return None, worst


def _loaded(made: Bench, packet_bytes: int, packets_per_s: float, share: float) -> LoadLateness:
    """While each link carries a share of its rate, evenly spaced.

    One-way delays tell of the sender's bunches, too, which wait for each other: only of links that do not count their
    own errors, and at a tenth of the load.
    """
    framed = framed_bytes(made.expected[0].direction.framing, packet_bytes)
    rate = _rate_bps(packets_per_s, framed, len(made.expected))
    made.set_rate(rate)
    own_ns = framed * BYTE_NS / rate
    counts = bool(made.plan.spinners)
    streams, facts = made.send(packet_bytes, own_ns / share * (1 if counts else 10), raw=not counts)
    if counts:
        classes = _together([each.release for each in facts if each.release is not None])
        errors = uncertainty.ordered_of(classes.counts, most=max(classes.count, 1))
    else:
        configured = made.expected[0].line.mean_ns + own_ns
        errors = sorted(delay - configured for stream in streams for delay in stream.delays_ns or ())
    if not errors:
        raise LabError("no packet of the host's links arrived: is something else on them?")
    return LoadLateness(
        load_ratio=share if counts else share / 10,
        packets=len(errors),
        own=counts,
        error_p50_ns=uncertainty.quantile(errors, 0.5),
        error_p99_ns=uncertainty.quantile(errors, 0.99),
        error_p999_ns=uncertainty.quantile(errors, 0.999),
        error_max_ns=errors[-1],
        lost_packets=sum(stream.lost_packets for stream in streams),
        reordered_packets=sum(stream.reordered_packets for stream in streams),
    )


def _together(classes: Sequence[HistogramClasses]) -> HistogramClasses:
    counts: dict[int, int] = {}
    for each in classes:
        for upper, count in each.counts:
            counts[upper] = counts.get(upper, 0) + count
    return HistogramClasses(tuple(sorted(counts.items())))
