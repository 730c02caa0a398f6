"""The whole answer of a spinner to `stats` (emulator/datapath/src/control.rs).

In: an answer. Out: its values, which are written again as they came: the keys of each part are in the order of the
alphabet. What older programs do not say has its default.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from ewan.labs.base.codec import Struct

Classes = tuple[tuple[int, int], ...]
"""(upper end in ns, count), ascending."""


class _StatsPart(Struct, forbid_unknown_fields=False, omit_defaults=False):
    """A part of the answer, all of whose keys are written."""


class Percentiles(_StatsPart, kw_only=True):
    """A histogram of times (ns)."""

    classes: Classes = ()
    max: int = 0
    p50: int = 0
    p99: int = 0
    p999: int = 0
    samples: int = 0


class Gaps(_StatsPart, kw_only=True):
    """Times in which the spinner was without its CPU, rested or slept."""

    classes: Classes = ()
    count: int = 0
    lost_ns: int = 0
    max_ns: int = 0


class VethDrops(_StatsPart, kw_only=True):
    """Packets that an interface of a port dropped."""

    receive: int
    ring_full: int
    transmit: int


class Port(_StatsPart, kw_only=True):
    """The counters of a place at which packets enter and leave a link. `too_long`: longer than the MTU."""

    checksums_completed: int = 0
    interface: str = ""
    kind: str
    refused: int
    ring_overruns: int
    too_long: int = 0
    veth_drops: VethDrops


class Drops(_StatsPart, kw_only=True):
    """Packets that did not come out, by cause; the key of a rare cause is there where it has taken any."""

    ack_filtered: int | UnsetType = UNSET
    aqm: int = 0
    blackhole: int | UnsetType = UNSET
    cut: int | UnsetType = UNSET
    loss: int = 0
    policed: int | UnsetType = UNSET
    queue_full: int = 0
    store_full: int = 0


class ClassStats(_StatsPart, kw_only=True):
    """A class of a queue."""

    ce_packets: int
    dropped_packets: int
    queue_bytes: int
    queue_packets: int
    served_packets: int
    waited_ns: int


class DirectionStats(_StatsPart, kw_only=True):
    """The counters of a direction of a link; `classes`: those of a queue that has classes."""

    ce_packets: int = 0
    classes: tuple[ClassStats, ...] | UnsetType = UNSET
    corrupted_packets: int = 0
    delay_line_packets: int = 0
    drops: Drops = Drops()
    duplicated_packets: int = 0
    hand_over_ns: Percentiles = Percentiles()
    in_bytes: int = 0
    in_packets: int = 0
    lateness_ns: Percentiles = Percentiles()
    lateness_undisturbed_ns: Percentiles = Percentiles()
    out_bytes: int = 0
    out_packets: int = 0
    queue_bytes: int = 0
    queue_max_bytes: int = 0
    queue_max_packets: int = 0
    queue_packets: int = 0
    served_packets: int = 0
    stamps_replaced: int = 0
    waited_ns: int = 0


class LinkStats(_StatsPart, kw_only=True):
    """`ended`: by which fault, None while it runs."""

    backward: DirectionStats
    ended: str | None = None
    forward: DirectionStats
    ports: tuple[Port, Port]
    running: bool = True

    def way(self, heading: Literal["forward", "backward"]) -> DirectionStats:
        """One of its directions."""
        return self.forward if heading == "forward" else self.backward


class SpinnerStats(_StatsPart, kw_only=True):
    """`wake_up_ns`: up to so much later than asked for it wakes; `naps`: its sleeps."""

    busy_ns: int = 0
    clock: str = ""
    cpu: int
    gaps: Gaps
    links: dict[str, LinkStats]
    naps: Gaps = Gaps()
    now_ms: int = 0
    ok: bool = True
    policy: str = ""
    rests: Gaps = Gaps()
    shared: bool
    wake_up_ns: int = 0
