"""The root queueing discipline of a host's, router's or switch's interface: a network card's rate and queue, and what
paces the sources behind it.

Sizes in bytes, times in ns. `overhead_bytes` is what the framing adds to an Ethernet frame without its FCS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from ewan.labs.base.units import Size


@dataclass(frozen=True, slots=True)
class Bare:
    """The kernel's own: nothing is set."""

    kind: Literal["none"] = field(default="none", init=False)


@dataclass(frozen=True, slots=True)
class Fifo:
    """A queue without a rate."""

    kind: Literal["fifo"] = field(default="fifo", init=False)
    limit_packets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tbf:
    """A token bucket, which passes a burst at once."""

    burst_bytes: int
    kind: Literal["tbf"] = field(default="tbf", init=False)
    limit_bytes: int
    overhead_bytes: int
    rate_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Psp:
    """An exact rate (0: none), and before it a time uniform from 0 to `dither_ns` for each packet."""

    dither_ns: int
    kind: Literal["psp"] = field(default="psp", init=False)
    limit_bytes: int
    limit_packets: int | None
    minimum_bytes: int
    overhead_bytes: int
    rate_bps: int
    seed: int


Card = Bare | Fifo | Tbf | Psp


@dataclass(frozen=True, slots=True)
class NoPacer:
    """Packets join the card's queue as they come."""

    kind: Literal["none"] = field(default="none", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PspPacer:
    """Packets leave evenly spaced, none before its time; a packet counts as in `Psp`."""

    kind: Literal["psp"] = field(default="psp", init=False)
    minimum_bytes: int
    overhead_bytes: int
    rate_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GapPacer:
    """The same, by PAUSE frames (IEEE 802.3x) that fill the line between packets; needs the sorter `psp_gap`."""

    kind: Literal["gap"] = field(default="gap", init=False)
    minimum_bytes: int
    overhead_bytes: int
    rate_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TbfPacer:
    """A token bucket; a packet counts as at the card."""

    burst_bytes: int
    kind: Literal["tbf"] = field(default="tbf", init=False)
    rate_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FqPacer:
    """The kernel's fq: so much of each connection; a packet counts as at the card."""

    kind: Literal["fq"] = field(default="fq", init=False)
    rate_bps: int


Pacer = NoPacer | PspPacer | GapPacer | TbfPacer | FqPacer


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Packets to an address, of a protocol and to a port if they are given (both or neither)."""

    address: str
    port: int | None = None
    protocol: Literal["tcp", "udp"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedClass:
    """Packets that are paced together: those whose socket names the class (SO_PRIORITY), or that a filter finds."""

    filters: tuple[Filter, ...]
    pacer: Pacer


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """A card, and before it the classes of what is paced; they are numbered from 1, and the first is not paced.

    `default` is the class of what names none and no filter finds. `sorter` is the queueing discipline that has the
    classes. In each class `limit_packets` may wait, or `limit_bytes` where there is no such limit. A card without a
    rate counts packets by `overhead_bytes` and `minimum_bytes`. With the sorter `psp_gap` the interface is a real card,
    whose line has the rate of `card` and holds packets to it by itself.
    """

    card: Card
    classes: tuple[PacedClass, ...]
    default: int
    kind: Literal["sources"] = field(default="sources", init=False)
    limit_bytes: int
    limit_packets: int | None
    minimum_bytes: int
    overhead_bytes: int
    sorter: Literal["prio", "psp", "psp_gap"]


UNPACED = 1
"""The class of what is not paced."""

Egress = Card | Sources


def card_of(egress: Egress) -> Card:
    """The card behind whatever paces its sources."""
    return egress.card if isinstance(egress, Sources) else egress


def paced(egress: Egress) -> Tbf | Psp | None:
    """The card if it has a rate; None where packets leave at once. What paces its sources is not asked."""
    card = card_of(egress)
    match card:
        case Tbf():
            return card
        case Psp():
            return card if card.rate_bps else None
        case Bare() | Fifo():
            return None
        case _:
            assert_never(card)


def limit_words(card: Tbf | Psp) -> str:
    """What may wait at a card's exit."""
    packets = card.limit_packets if isinstance(card, Psp) else None
    return str(Size(card.limit_bytes)) if packets is None else f"{packets}pkt"
