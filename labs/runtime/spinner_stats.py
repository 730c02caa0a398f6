"""What a spinner answers to `stats`, of that which is read of it by its names (emulator/datapath/src/control.rs).

In: an answer, which has more keys: records hold it as it came. Out: its values; ValueError for an answer of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct

Classes = tuple[tuple[int, int], ...]
"""(upper end in ns, count), ascending."""


class Lengths(Struct, forbid_unknown_fields=False):
    """A histogram."""

    classes: Classes


class Gaps(Struct, forbid_unknown_fields=False):
    """Times in which the spinner was without its CPU."""

    classes: Classes
    lost_ns: int


class _Naps(Struct, forbid_unknown_fields=False):
    count: int = 0


class VethDrops(Struct, forbid_unknown_fields=False):
    """What an interface of a port dropped."""

    receive: int
    ring_full: int
    transmit: int


class Port(Struct, forbid_unknown_fields=False):
    """Where packets come into a link and leave it. `too_long`: longer than the MTU, which older programs do not say."""

    kind: str
    ring_overruns: int
    refused: int
    veth_drops: VethDrops
    too_long: int = 0


class _Drops(Struct, forbid_unknown_fields=False):
    store_full: int


class Way(Struct, forbid_unknown_fields=False):
    """A direction."""

    lateness_ns: Lengths
    drops: _Drops


class LinkStats(Struct, forbid_unknown_fields=False):
    """`ended`: by which fault, None while it runs."""

    ports: tuple[Port, Port]
    forward: Way
    backward: Way
    ended: str | None = None

    def way(self, heading: Literal["forward", "backward"]) -> Way:
        """One of its directions."""
        return self.forward if heading == "forward" else self.backward


class SpinnerStats(Struct, forbid_unknown_fields=False):
    """`wake_up_ns`: up to so much later than asked for it wakes."""

    cpu: int
    shared: bool
    gaps: Gaps
    links: dict[str, LinkStats]
    now_ms: int = 0
    wake_up_ns: int = 0
    naps: _Naps = _Naps()


def stats_of(answer: Mapping[str, Any]) -> SpinnerStats | None:
    """None where the spinner could not be asked."""
    return codec.from_data(SpinnerStats, answer, "stats") if answer.get("ok") else None
