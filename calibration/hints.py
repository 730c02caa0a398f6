"""Recognises faults that leave their own mark in a wrong value. Pure.

In: the expectation of a direction, and a value that is outside its tolerance. Out: words that say which fault gives
this very value; empty where none does. Two faults may give the same value: a hint says "as if".
"""

from __future__ import annotations

from collections.abc import Iterator

from ewan.calibration.expectation import BYTE_NS, LinkExpectation, framed_bytes, own_ns
from ewan.calibration.spinner import OFFLOADED
from ewan.labs.base.units.shown import written
from ewan.labs.link import Framing

NO_LOSS = "no packet was lost on purpose: the loss is not in force"
PUNCTUAL = (
    "the link let its packets go when they were due: it has another delay than the plan says, or they waited beside "
    "it: is other traffic on it?"
)
SMALLER = "a hop on the way has a smaller MTU than the plan says, or drops large packets"
BURSTS = "several packets cross as one, in bursts"
LINE_COUNTED = "as if the queue's limit counted what is in the delay line too"
SWAPPED = "the directions may be swapped"
FRAMINGS = (
    (Framing(0, 0), "framing were not counted"),
    (Framing(14, 60), "of all framing only Ethernet's header were counted"),
    (Framing(18, 64), "of all framing only Ethernet's header and FCS were counted"),
    (Framing(24, 24), "of all framing only FCS, preamble and gap were counted"),
    (Framing(38, 84), "Ethernet's framing were counted"),
)
"""Other framings that a link may count around an IP packet."""


def named(note: str) -> bool:
    """Return whether the note of a row names a fault of the lab itself, which a further measurement does not remove."""
    return any(words in note for words in (NO_LOSS, SMALLER, BURSTS, OFFLOADED, SWAPPED, "as if "))


def delay(link: LinkExpectation, other: LinkExpectation | None, packet_bytes: int, measured: float, near: float) -> str:
    """A hint on a constant delay in ns. `other`: the link's other direction. `near`: the largest difference that is
    ignored."""
    base, own = link.delay_ns(packet_bytes), own_ns(link.backend, link.direction, packet_bytes)
    candidates: list[tuple[float, str]] = []
    if other is not None and other.line.constant:
        candidates.append((other.delay_ns(packet_bytes), f"{SWAPPED}: {other.name} is to have this delay"))
    candidates += [
        (base - own, "as if a packet's own time at the rate were not counted"),
        (base + own, "as if a packet's own time at the rate were counted twice"),
        (base + link.line.mean_ns, "as if both ways had the delay that one is to have twice"),
        (base - link.line.mean_ns / 2, "as if the delay were meant for both ways together"),
        (base - link.line.mean_ns, "as if there were no delay line"),
    ]
    return _nearest(candidates, base, measured, near)


def rate(link: LinkExpectation, other: LinkExpectation | None, packet_bytes: int, measured: float, near: float) -> str:
    """A hint on a rate in bit/s, with framing counted as the plan says."""
    configured = float(link.direction.rate_bps)
    framed = framed_bytes(link.direction.framing, packet_bytes)
    candidates: list[tuple[float, str]] = []
    if other is not None:
        told = f"{SWAPPED}: {other.name} is to have this rate"
        candidates.append((float(other.direction.rate_bps), told))
    if (line_limited := _line_limited_bps(link, packet_bytes)) is not None:
        candidates.append((line_limited, f"{LINE_COUNTED}, which then never fills the link"))
    for framing, words in FRAMINGS:
        counted = framed_bytes(framing, packet_bytes)
        candidates.append((configured * framed / counted, f"as if {words} ({counted} bytes a packet, not {framed})"))
    return _nearest(candidates, configured, measured, near)


def queue(link: LinkExpectation, packet_bytes: int, measured: float, near: float) -> str:
    """A hint on a queue's limit in bytes, with framing counted."""
    framed = framed_bytes(link.direction.framing, packet_bytes)
    configured = float(link.queue_packets(packet_bytes) * framed)
    in_line = link.line.mean_ns * link.direction.rate_bps / BYTE_NS
    told = f"{LINE_COUNTED}: {written(in_line, 'bytes')} (rate × delay) are missing"
    return _nearest([(configured - in_line, told)], configured, measured, near)


def loss(configured: float, lost: int) -> str:
    """A hint on a configured loss of which nothing was measured."""
    return NO_LOSS if configured > 0 and lost == 0 else ""


def _line_limited_bps(link: LinkExpectation, packet_bytes: int) -> float | None:
    """The rate at which a limit is full of what the delay line holds; None where the link is full before."""
    framed = framed_bytes(link.direction.framing, packet_bytes)
    if not link.line.mean_ns:
        return None
    limited = link.queue_packets(packet_bytes) * framed * BYTE_NS / link.line.mean_ns
    return limited if limited < link.direction.rate_bps else None


def _nearest(candidates: list[tuple[float, str]], configured: float, measured: float, near: float) -> str:
    """The words of the nearest value; values that cannot be distinguished from the configured one do not count."""
    return min(_fitting(candidates, configured, measured, near), default=(0.0, ""))[1]


def _fitting(
    candidates: list[tuple[float, str]], configured: float, measured: float, near: float
) -> Iterator[tuple[float, str]]:
    for value, words in candidates:
        if abs(value - measured) <= near < abs(value - configured):
            yield abs(value - measured), words
