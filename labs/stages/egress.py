"""The root queueing discipline of a host's, router's or switch's interface: a network card's rate and queue.

Sizes in bytes, times in ns. `overhead_bytes` is what the framing adds to an Ethernet frame without its FCS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from labs.units import Size


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


Egress = Bare | Fifo | Tbf | Psp


def paced(egress: Egress) -> Tbf | Psp | None:
    """The egress if it has a rate; None where packets leave at once."""
    match egress:
        case Tbf():
            return egress
        case Psp():
            return egress if egress.rate_bps else None
        case Bare() | Fifo():
            return None
        case _:
            assert_never(egress)


def limit_words(card: Tbf | Psp) -> str:
    """What may wait at a card's exit."""
    packets = card.limit_packets if isinstance(card, Psp) else None
    return str(Size(card.limit_bytes)) if packets is None else f"{packets}pkt"
