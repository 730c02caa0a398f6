"""The root queueing discipline of a host's, router's or switch's interface: a network card's rate and queue, and what
paces the sources behind it.

Sizes in bytes, times in ns. `overhead_bytes` is what the framing adds to an Ethernet frame without its FCS.
"""

from __future__ import annotations

from typing import Literal, assert_never

from ewan.labs.base.codec import Struct, Variant
from ewan.labs.base.units import Size


class Bare(Variant, tag="none"):
    """The kernel's own: nothing is set."""


class Fifo(Variant, tag="fifo"):
    """A queue without a rate."""

    limit_packets: int


class Tbf(Variant, tag="tbf", kw_only=True):
    """A token bucket, which passes a burst at once."""

    burst_bytes: int
    limit_bytes: int
    overhead_bytes: int
    rate_bps: int


class Psp(Variant, tag="psp", kw_only=True):
    """An exact rate (0: none), and before it a time uniform from 0 to `dither_ns` for each packet."""

    dither_ns: int
    limit_bytes: int
    limit_packets: int | None
    minimum_bytes: int
    overhead_bytes: int
    rate_bps: int
    seed: int


Card = Bare | Fifo | Tbf | Psp


class NoPacer(Variant, tag="none"):
    """Packets join the card's queue as they come."""


class PspPacer(Variant, tag="psp", kw_only=True):
    """Packets leave evenly spaced, none before its time; a packet counts as in `Psp`."""

    minimum_bytes: int
    overhead_bytes: int
    rate_bps: int


class GapPacer(Variant, tag="gap", kw_only=True):
    """The same, by PAUSE frames (IEEE 802.3x) that fill the line between packets; needs the sorter `psp_gap`."""

    minimum_bytes: int
    overhead_bytes: int
    rate_bps: int


class TbfPacer(Variant, tag="tbf", kw_only=True):
    """A token bucket; a packet counts as at the card."""

    burst_bytes: int
    rate_bps: int


class FqPacer(Variant, tag="fq", kw_only=True):
    """The kernel's fq: so much of each connection; a packet counts as at the card."""

    rate_bps: int


Pacer = NoPacer | PspPacer | GapPacer | TbfPacer | FqPacer


class Filter(Struct, kw_only=True):
    """Packets to an address, of a protocol and to a port if they are given (both or neither)."""

    address: str
    port: int | None
    protocol: Literal["tcp", "udp"] | None


class PacedClass(Struct, kw_only=True):
    """Packets that are paced together: those whose socket names the class (SO_PRIORITY), or that a filter finds."""

    filters: tuple[Filter, ...]
    pacer: Pacer


class Sources(Variant, tag="sources", kw_only=True):
    """A card, and before it the classes of what is paced; they are numbered from 1, and the first is not paced.

    `default` is the class of what names none and no filter finds. `sorter` is the queueing discipline that has the
    classes. In each class `limit_packets` may wait, or `limit_bytes` where there is no such limit. A card without a
    rate counts packets by `overhead_bytes` and `minimum_bytes`. With the sorter `psp_gap` the interface is a real card,
    whose line has the rate of `card` and holds packets to it by itself.
    """

    card: Card
    classes: tuple[PacedClass, ...]
    default: int
    limit_bytes: int
    limit_packets: int | None
    minimum_bytes: int
    overhead_bytes: int
    sorter: Literal["prio", "psp", "psp_gap"]


UNPACED = 1
"""The class of packets that are not paced."""

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
    """The limit of the queue at a card's exit, in words."""
    packets = card.limit_packets if isinstance(card, Psp) else None
    return str(Size(card.limit_bytes)) if packets is None else f"{packets}pkt"
