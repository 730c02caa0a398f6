"""CoDel (RFC 8289)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ewan.labs.base.units import NS_PER_US, Duration, time_for
from ewan.labs.base.values import DurationText
from ewan.labs.link.disciplines.kind import Discipline, DisciplineKeys, Kind, QueueRequest
from ewan.labs.link.framing import SLOWEST_PACKET

INTERVAL = Duration.parse("100ms")
LONGEST_INTERVAL_NS = 10 * SLOWEST_PACKET.ns


class CodelKeys(DisciplineKeys):
    """RFC 8289."""

    target: DurationText | None = Field(
        None, description="a twentieth of the interval, at least a packet's time, if absent"
    )
    interval: DurationText | None = Field(
        None, description="the longest RTT, at least 100ms and ten packets' time, at most 100s, if absent"
    )
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class Codel(Discipline, tag="codel", kw_only=True):
    """RFC 8289."""

    one_list: ClassVar[bool] = True
    of_kernel: ClassVar[bool] = True
    ecn: bool
    interval_ns: int
    target_ns: int

    def kernel_lacks(self) -> str:
        """The kernel's times are in microseconds."""
        return kernel_lacks(self.target_ns)


def kernel_lacks(target_ns: int) -> str:
    """Empty, or the remedy for a target that the kernel cannot have."""
    return "" if target_ns >= NS_PER_US else 'CoDel\'s target is at least 1us: write "target: 5ms"'


def times(target: Duration | None, interval: Duration | None, asked: QueueRequest) -> tuple[int, int]:
    """Target and interval in ns; DescriptionError for a target beyond the interval."""
    one = time_for(asked.packet, asked.way.rate.bps)  # RFC 8289, 4.2 and 4.3: a target is a packet's time at least
    longest = max(INTERVAL.ns, asked.at.longest_rtt_ns, 10 * one)
    interval_ns = interval.ns if interval else min(longest, LONGEST_INTERVAL_NS)
    target_ns = target.ns if target else max(interval_ns // 20, one)
    if not 0 < target_ns <= interval_ns:
        raise asked.error(f'CoDel\'s target {Duration(target_ns)} is not within its interval: write "interval: 100ms"')
    return target_ns, interval_ns


def compile_codel(keys: CodelKeys, asked: QueueRequest) -> Codel:
    """With its times."""
    target_ns, interval_ns = times(keys.target, keys.interval, asked)
    return Codel(target_ns=target_ns, interval_ns=interval_ns, ecn=keys.ecn)


KINDS = {"codel": Kind(2, "CoDel (RFC 8289)", CodelKeys, Codel, compile_codel)}
