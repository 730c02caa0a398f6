"""The effect of a tunnel between two machines on packets, measured before a lab is made over it. Pure.

In: the measurement of the tunnel by `ewan-node stretch`, a plan, the places of its nodes. Out: the time by which the
links over a tunnel shorten their delays; LabError for a link that cannot lie over it, warnings for properties that it
may lack."""

from __future__ import annotations

from collections.abc import Sequence

from ewan.extras.machines.answers import DelaySpread, TunnelMeasurement
from ewan.extras.machines.shares import TunnelWire
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import NS_PER_SECOND, Duration, Rate
from ewan.labs.base.units.shown import about
from ewan.labs.link import Change, Direction, TraceRows
from ewan.labs.link.delay import least_ns
from ewan.labs.plan import Link, Plan
from ewan.labs.runtime.base import LabError

CLOCKS_APART_NS = NS_PER_SECOND
"""Machines whose clocks differ by more have clocks that are not set."""
_ROWS_DELAY = 2
"""The place of the delay in a trace's row."""


class TunnelDirection(Struct):
    """One direction of a tunnel. Delays are one-way, by the two clocks as they were compared."""

    min_ns: int
    p50_ns: int
    p99_ns: int
    mtu: int
    rate_bps: int | None
    """Payload of a short burst; None where too little of it came."""
    sent: int
    lost: int


class TunnelQuality(Struct):
    """The tunnel between two machines: `there` from the first to the second, `back` from the second to the first.

    `round_trip_ns`: median. `offset_ns`: the second's clock minus the first's, which is off by `offset_uncertainty_ns`
    at most; so much may be counted to one way of the tunnel that is of the other.
    """

    first: str
    second: str
    there: TunnelDirection
    back: TunnelDirection
    round_trip_ns: int
    offset_ns: int
    offset_uncertainty_ns: int

    def way(self, start: str) -> TunnelDirection:
        """The direction that begins at a machine."""
        return self.there if start == self.first else self.back


def read(first: str, second: str, told: TunnelMeasurement) -> TunnelQuality:
    """Read the output of `ewan-node stretch measure` on the first machine."""

    def way(delay: DelaySpread, sign: int, mtu: int, rate_bps: int | None, lost: int) -> TunnelDirection:
        # The later clock's offset is in what was read of both.
        least, half, most = (max(0, each - sign * told.offset_ns) for each in (delay.min, delay.p50, delay.p99))
        return TunnelDirection(least, half, most, mtu, rate_bps, told.sent, lost)

    return TunnelQuality(
        first,
        second,
        way(told.there_ns, 1, told.mtu_there, told.rate_there_bps, told.lost_there),
        way(told.back_ns, -1, told.mtu_back, told.rate_back_bps, told.lost_back),
        told.round_trip_ns.p50,
        told.offset_ns,
        told.offset_uncertainty_ns,
    )


def words(tunnel: TunnelQuality) -> str:
    """The properties of a tunnel in a line, for people."""
    there, back = (
        f"{about(way.p50_ns, 'time', 3)} ({about(way.p99_ns, 'time', 3)})" for way in (tunnel.there, tunnel.back)
    )
    clocks = about(tunnel.offset_uncertainty_ns, "time", 3)
    return f"{there} there, {back} back, median (99 %); clocks known to {clocks}"


def taken_ns(tunnels: Sequence[TunnelQuality]) -> dict[tuple[str, str], int]:
    """(from, to) → how long the tunnel takes in the median, which links over it leave out."""
    found = {}
    for each in tunnels:
        found[each.first, each.second] = each.there.p50_ns
        found[each.second, each.first] = each.back.p50_ns
    return found


def check(plan: Plan, crossing: Sequence[TunnelWire], tunnels: Sequence[TunnelQuality]) -> list[str]:
    """LabError for a link that cannot lie over its tunnel; warnings about effects on its packets."""
    of = {frozenset((each.first, each.second)): each for each in tunnels}
    links = {link.name: link for link in plan.links}
    warnings = [
        f"the clocks of {each.first} and {each.second} are {about(abs(each.offset_ns), 'time', 3)} apart: set them "
        "(chrony, ntpd)"
        for each in tunnels
        if abs(each.offset_ns) > CLOCKS_APART_NS
    ]
    over: dict[tuple[str, str], list[tuple[Link, Direction]]] = {}
    for each in crossing:
        tunnel, link = of[frozenset((each.near_machine, each.far_machine))], links[each.link]
        for start, end, heading in _ways(each):
            direction = link.forward if heading == "forward" else link.backward
            named = _named(start, end)
            _check_delay(link, heading, direction, tunnel.way(start), named)
            _check_size(plan, link, tunnel.way(start), named)
            over.setdefault((start, end), []).append((link, direction))
    for (start, end), crossed in over.items():
        warnings += _warnings(crossed, of[frozenset((start, end))].way(start), _named(start, end))
    return warnings


def check_change(
    link: Link, heading: str, change: Change, crossing: Sequence[TunnelWire], tunnels: Sequence[TunnelQuality]
) -> None:
    """LabError for a change of a running link to a delay that its tunnel exceeds; `heading` as `ewan lab set` has
    it."""
    each = next((each for each in crossing if each.link == link.name), None)
    if each is None or change.delay is None:
        return
    tunnel = next(t for t in tunnels if {t.first, t.second} == {each.near_machine, each.far_machine})
    for start, end, way in _ways(each):
        if heading in (way, "both"):
            then = change.applied(link.forward if way == "forward" else link.backward)
            _check_delay(link, way, then, tunnel.way(start), _named(start, end))


def _ways(each: TunnelWire) -> list[tuple[str, str, str]]:
    """The sending machine, the receiving machine, and the direction of the link, for both ways."""
    near, far = each.near_machine, each.far_machine
    return [(near, far, each.towards_far), (far, near, _other(each.towards_far))]


def _other(heading: str) -> str:
    return "backward" if heading == "forward" else "forward"


def _check_delay(link: Link, heading: str, direction: Direction, way: TunnelDirection, tunnel: str) -> None:
    least = shortest_ns(direction)
    if least < way.p99_ns:
        raise LabError(
            f"link {link.name} delays {Duration(least)} {heading}, and {tunnel} already takes up to "
            f"{about(way.p99_ns, 'time', 3)} (99 of 100 packets): write a longer delay, or put {link.a.node} and "
            f"{link.b.node} on one machine (placement)"
        )


def _check_size(plan: Plan, link: Link, way: TunnelDirection, tunnel: str) -> None:
    mtu = mtu_of(plan, link)
    if way.mtu < mtu:
        raise LabError(
            f"link {link.name} carries packets of {mtu} bytes, and {tunnel} of {way.mtu} at most: "
            f'write "mtu: {way.mtu}", or give the network between the machines a larger one'
        )


def _warnings(over: Sequence[tuple[Link, Direction]], way: TunnelDirection, tunnel: str) -> list[str]:
    """Warnings about the effect of one direction of a tunnel on packets of the links over it."""
    found = []
    if way.lost:
        found.append(f"{tunnel} lost {way.lost} of {way.sent} packets: so will {_several([link for link, _ in over])}")
    rate = way.rate_bps
    if rate is not None:
        faster = [link for link, direction in over if direction.rate_bps > rate]
        together = sum(direction.rate_bps for _, direction in over)
        if faster:
            most = max(direction.rate_bps for _, direction in over)
            found.append(f"{tunnel} carried {about(rate, 'rate')}, and {_several(faster)} has {Rate(most)}")
        elif together > rate:
            links = _several([link for link, _ in over])
            found.append(f"{tunnel} carried {about(rate, 'rate')}, and {links} together have {Rate(together)}")
    return found


def _several(links: Sequence[Link]) -> str:
    more = len(links) - 1
    return links[0].name if not more else f"each of {len(links)} links over it ({links[0].name} …)"


def _named(start: str, end: str) -> str:
    return f"the tunnel from {start} to {end}"


def shortest_ns(direction: Direction) -> int:
    """The shortest delay that a direction has, or has at times."""
    if isinstance(direction.trace, TraceRows):
        rows = [row[_ROWS_DELAY] for row in direction.trace.rows]
        traced = [delay for delay in rows if delay is not None]
        if traced:
            return min(traced)
    return least_ns(direction.delay)


def mtu_of(plan: Plan, link: Link) -> int:
    """The largest packet of a link, in bytes."""
    port = next(
        port for node in plan.nodes if node.name == link.node for port in node.interfaces if port.name == link.port_a
    )
    return port.mtu
