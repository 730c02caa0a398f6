"""Evaluates the counters of a link itself, from its spinner's `stats` answers. Pure.

In: the answers before and after the probes. Out: per direction the release error, and what went wrong meanwhile:
packets that found a ring full, CPU time taken from the spinner, a CPU that is shared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ewan.labs.base.units import NS_PER_MS
from ewan.labs.record.bounds import LONGEST_GAP_NS
from ewan.labs.runtime.requests import AppliedChange
from ewan.labs.runtime.spinner_stats import Classes, Gaps, LinkStats, SpinnerStats

HEADINGS: tuple[Literal["forward", "backward"], ...] = ("forward", "backward")
CHANGED = "changed since the lab came up (ewan ps)"
OFFLOADED = "an offload is on in the lab, and several packets come as one"


@dataclass(frozen=True, slots=True)
class HistogramClasses:
    """Counts by class of nanoseconds, as a spinner's histograms give them: (upper end, count), ascending."""

    counts: tuple[tuple[int, int], ...]

    @classmethod
    def between(cls, before: Classes, after: Classes) -> HistogramClasses:
        """The values that were added between two readings of one histogram."""
        past = dict(before)
        counts = ((upper, count - past.get(upper, 0)) for upper, count in after)
        return cls(tuple((upper, count) for upper, count in counts if count))

    @property
    def count(self) -> int:
        """The number of values in all classes."""
        return sum(count for _, count in self.counts)

    def percentile(self, percent: int) -> int | None:
        """The upper end of the class that holds it; None if there is nothing."""
        rank = -(-self.count * percent // 100)
        for upper, count in self.counts:
            rank -= count
            if rank <= 0:
                return upper
        return None


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """The counters of one direction of one link; None if the link gave no statistics."""

    release_p50_ns: float | None = None
    release_p99_ns: float | None = None
    release_max_ns: float | None = None
    release: HistogramClasses | None = None
    gaps: int = 0
    gaps_ns: int = 0
    longest_gap_ns: int = 0
    shares_cpu: bool = False
    overrun_packets: int = 0
    too_long_packets: int = 0
    """Longer than the MTU, and therefore dropped: several packets in one, by an offload that is on."""
    port: str = ""
    ended: str = ""
    """Why the link carries nothing any more; empty while it runs."""
    changed: bool = False
    """Since the lab came up, by `ewan lab set`."""
    wake_up_ns: int = 0
    """Up to so much later than asked for its spinner wakes; 0 where it never sleeps."""

    def cause(self) -> str:
        """The likely cause of an error; empty when nothing is known."""
        changed = CHANGED if self.changed else ""
        return "; ".join(cause for cause in (changed, self.disturbance()) if cause)

    def disturbance(self) -> str:
        """The causes that disturbed the link, the most important first; empty if it noticed none."""
        causes = []
        if self.ended:
            causes.append(f"the link has ended: a fault in the program: {self.ended}")
        if self.shares_cpu:
            causes.append("CPU shared")
        if self.longest_gap_ns > LONGEST_GAP_NS:
            lost, longest = self.gaps_ns / NS_PER_MS, self.longest_gap_ns / NS_PER_MS
            times = f"{self.gaps} times ({lost:.0f} ms in total, {longest:.0f} ms longest)"
            causes.append(f"the link's thread was interrupted {times}")
        if self.overrun_packets > 0:
            causes.append(f"{self.overrun_packets} packets found no room at the link")
        if self.too_long_packets > 0:
            causes.append(f"{self.too_long_packets} frames were longer than the MTU: {OFFLOADED}")
        return "; ".join(causes)


def facts(before: Sequence[SpinnerStats | None], after: Sequence[SpinnerStats | None]) -> dict[str, LinkFacts]:
    """Facts by the link's key ("core forward"), of the time between the two answers.

    `before`, `after`: one answer per spinner, in the same order; spinners whose answer failed are skipped.
    """
    found: dict[str, LinkFacts] = {}
    for old, new in zip(before, after, strict=True):
        if new is None:
            continue
        gaps, gaps_before = new.gaps, Gaps() if old is None else old.gaps
        lengths = HistogramClasses.between(gaps_before.classes, gaps.classes)
        wake_up_ns = new.wake_up_ns if new.naps.count else 0
        for name, link in new.links.items():
            past = None if old is None else old.links.get(name)
            for index, way in enumerate(HEADINGS):
                late = HistogramClasses.between(
                    past.way(way).lateness_ns.classes if past else (), link.way(way).lateness_ns.classes
                )
                if link.ended is not None:
                    found[f"{name} {way}"] = LinkFacts(ended=link.ended)
                    continue
                found[f"{name} {way}"] = LinkFacts(
                    release_p50_ns=late.percentile(50),
                    release_p99_ns=late.percentile(99),
                    release_max_ns=late.percentile(100),
                    release=late,
                    gaps=lengths.count,
                    gaps_ns=gaps.lost_ns - gaps_before.lost_ns,
                    longest_gap_ns=lengths.percentile(100) or 0,
                    shares_cpu=new.shared,
                    overrun_packets=_overruns(link, index) - (_overruns(past, index) if past else 0),
                    too_long_packets=link.ports[index].too_long - (past.ports[index].too_long if past else 0),
                    port=link.ports[index].kind,
                    wake_up_ns=wake_up_ns,
                )
    return found


def with_changes(found: Mapping[str, LinkFacts], changes: Iterable[AppliedChange]) -> dict[str, LinkFacts]:
    """The same with `changed` in those directions of links that these changes are of."""
    ways = {f"{change.link} {change.direction}" for change in changes}
    marked = {key: dataclasses.replace(found.get(key, LinkFacts()), changed=True) for key in ways}
    return {**found, **marked}


def _overruns(link: LinkStats, index: int) -> int:
    """Packets of one direction that were dropped around the link: in at port `index`, out at the other."""
    entry, exit_ = link.ports[index], link.ports[1 - index]
    # The interface counts what did not fit the ring among what it dropped on receipt.
    came = max(entry.ring_overruns, entry.veth_drops.receive) + entry.veth_drops.ring_full
    went = exit_.refused + exit_.veth_drops.transmit
    return came + went + link.way(HEADINGS[index]).drops.store_full
