"""Stage 2, the queue: how much may wait for the rate, and which discipline drops or marks before that.

Times in ns, sizes in bytes as the link's framing counts them, probabilities in parts per billion, gains in thousandths
of a hertz.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from labs.units import Size


@dataclass(frozen=True, slots=True)
class DropTail:
    """Drops what finds the queue full."""

    kind: Literal["drop_tail"] = field(default="drop_tail", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """Floyd and Jacobson 1993, gentle; the average moves by 2^-weight_log2 a packet."""

    ecn: bool
    kind: Literal["red"] = field(default="red", init=False)
    max_bytes: int
    max_p_ppb: int
    min_bytes: int
    weight_log2: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Codel:
    """RFC 8289."""

    ecn: bool
    interval_ns: int
    kind: Literal["codel"] = field(default="codel", init=False)
    target_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pie:
    """RFC 8033."""

    alpha_mhz: int
    beta_mhz: int
    ecn: bool
    kind: Literal["pie"] = field(default="pie", init=False)
    target_ns: int
    update_ns: int


Discipline = DropTail | Red | Codel | Pie


@dataclass(frozen=True, slots=True)
class Queue:
    """Limits count packets that wait, not the one in service; at least one of the two is set."""

    limit_packets: int | None
    limit_bytes: int | None
    discipline: Discipline


def limit_words(queue: Queue) -> str:
    """`12.5MB`, `1000pkt`, or both."""
    limits = [str(Size(queue.limit_bytes))] if queue.limit_bytes is not None else []
    limits += [f"{queue.limit_packets}pkt"] if queue.limit_packets is not None else []
    return " ".join(limits)


def discipline_words(discipline: Discipline) -> str:
    """The discipline's name as a description writes it."""
    match discipline:
        case DropTail():
            return "drop-tail"
        case Red() | Codel() | Pie():
            return discipline.kind
        case _:
            assert_never(discipline)
