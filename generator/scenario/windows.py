"""The number of packets that TCP carries until the clock ends it: congestion windows, a round trip at a time. Pure and
deterministic.

In: flows that share one bottleneck, its rate, its buffer and the other traffic there. Out: packets that each delivered.
The windows grow and shrink as the congestion controls of Linux do (each names its paper); a queue overflows when the
windows are larger than path and buffer, and also when the growth of one flow's window comes faster than the queue
drains. How the losses of a round are split between flows is unknown: each loses its share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

FIRST_WINDOW = 10.0  # RFC 6928
LEAST_WINDOW = 2.0
LEAST_SHARE = 0.02
"""The share of the bottleneck that TCP is left with, whatever other traffic there is."""
MOST_UPDATES = 20_000
"""Windows times rounds that are followed; from then on each flow goes on as it did in the second half of them."""

_CUBIC_C = 0.4
_HIGHSPEED = ("highspeed", "hstcp", "ghstcp", "ghstcp0")
_LOW_WINDOW = {**dict.fromkeys(_HIGHSPEED, 38.0), "bic": 14.0, "scalable": 50.0}
_BETA = {"cubic": 717 / 1024, "bic": 819 / 1024, "scalable": 0.875, "bbr": 1.0, "bbr3": 1.0}
_UNTOUCHED = ("bbr", "bbr3", "fast")


@dataclass(slots=True)
class Stream:
    """One sender. Times in s; `packets`: those of its volume; `line_pps`: the rate of its own card; `most_window`: the
    most packets that its sockets let be in flight."""

    start_s: float
    stop_s: float
    rtt_s: float
    congestion: str
    packets: float = math.inf
    line_pps: float = math.inf
    most_window: float = math.inf
    delivered: float = 0.0
    done_s: float | None = None
    _window: float = FIRST_WINDOW
    _slow: bool = True
    _largest: float = 0.0
    _epoch_s: float = 0.0
    _plateau_s: float = 0.0
    _lost: float = 0.0
    _deaf_s: float = 0.0
    _half: float = 0.0


@dataclass(frozen=True, slots=True)
class Cross:
    """Other traffic at the bottleneck, at its own pace: `pps` on average, all of it in bursts where there are
    `bursts_per_s` that the buffer cannot hold, else one by one."""

    start_s: float
    stop_s: float
    pps: float
    bursts_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Packets a second, packets that may wait, and the share that is lost at random."""

    pps: float
    buffer: float
    loss: float = 0.0


def deliver(streams: Sequence[Stream], at: Bottleneck, cross: Sequence[Cross] = ()) -> None:
    """Fills in the packets that each stream delivers, and the time when one with a volume is done."""
    updates, half_s, now = 0, None, min((stream.start_s for stream in streams), default=0.0)
    while (active := [each for each in streams if each.start_s <= now < each.stop_s and each.done_s is None]) or any(
        each.start_s > now for each in streams
    ):
        if not active:
            now = min(each.start_s for each in streams if each.start_s > now)
            continue
        updates += len(active)
        if half_s is None and 2 * updates > MOST_UPDATES:
            half_s = now
            for each in streams:
                each._half = each.delivered
        if updates > MOST_UPDATES and half_s is not None and now > half_s:
            _go_on(streams, now, half_s, at)
            return
        now = _round(active, at, [each for each in cross if each.start_s <= now < each.stop_s], now)


def _round(active: Sequence[Stream], at: Bottleneck, cross: Sequence[Cross], now: float) -> float:
    """One round trip of the nearest flow; when the next one begins."""
    free_pps = max(at.pps - sum(each.pps for each in cross), LEAST_SHARE * at.pps)
    # What a sender's own card holds back is not in the network.
    windows = [min(each._window, each.most_window, each.line_pps * _longest_s(each, at)) for each in active]
    rtt_s = sum(window * each.rtt_s for window, each in zip(windows, active, strict=True)) / sum(windows)
    waiting = min(max(sum(windows) - free_pps * rtt_s, 0.0), at.buffer)
    over = sum(windows) - free_pps * rtt_s - at.buffer
    queue_s = waiting / at.pps
    step_s = min(each.rtt_s for each in active) + queue_s
    step_s = min([step_s, *(each.stop_s - now for each in active)]) if step_s else 1e-3
    step_s = max(step_s, 1e-6)
    offered = [
        min(window / (each.rtt_s + queue_s or 1e-6), each.line_pps) * step_s
        for window, each in zip(windows, active, strict=True)
    ]
    served = min(1.0, free_pps * step_s / max(sum(offered), 1e-9))
    for each, window, sent in zip(active, windows, offered, strict=True):
        each.delivered += sent * served
        if each.delivered >= each.packets:
            each.delivered, each.done_s = each.packets, now + step_s
        lost = at.loss * sent * served
        if over > 0:
            lost += over * window / sum(windows)
        if window > at.buffer and step_s > 0:  # a burst meets another one: either of the two loses
            busy = min(window / (at.pps * each.rtt_s or 1.0), 1.0)
            lost += sum(other.bursts_per_s for other in cross) * step_s * busy / 2
        _react(each, window, lost, step_s, queue_s, now, at, sum(o.pps for o in cross if not o.bursts_per_s))
    return now + step_s


def _longest_s(each: Stream, at: Bottleneck) -> float:
    """The round trip (s) of a stream through a full buffer."""
    return each.rtt_s + at.buffer / at.pps


def _react(
    each: Stream, window: float, lost: float, step_s: float, queue_s: float, now: float, at: Bottleneck, cross: float
) -> None:
    """A flow's window after a round."""
    rtt_s = each.rtt_s + queue_s
    turns = step_s / rtt_s if rtt_s else 1.0
    if now < each._deaf_s or each.congestion in _UNTOUCHED:
        _steady(each, at, turns)
        return
    each._lost += lost
    growth = window if each._slow else max(_growth(each, window, rtt_s, now + step_s) - window, 0.0)
    # What comes faster than it leaves: the growth itself, unless the sender's own card already spaces it.
    faster = max(1 - (at.pps - cross) / each.line_pps, 0.0) if math.isfinite(each.line_pps) else 1.0
    burst = min(growth, (window + growth) * faster)
    if burst > at.buffer > 0 and each._slow:
        # Acknowledgements of what went before the first loss let the window grow until it is heard of.
        _lose(each, (window + growth) * (1 + at.buffer / burst), now + rtt_s, at)
    elif each._lost >= 1 or burst > at.buffer > 0:
        _lose(each, 2 * window if each._slow else window, now + rtt_s, at)
    elif each._slow:
        each._window = min(window * 2**turns, each.most_window)
        # HyStart (Ha and Rhee 2011): a train of ACKs of half a round trip.
        if each.congestion == "cubic" and each._window > max(16.0, at.pps * each.rtt_s / 2):
            each._slow, each._largest, each._epoch_s = False, each._window, now + step_s
    else:
        each._window = min(window + growth * turns, each.most_window)


def _steady(each: Stream, at: Bottleneck, turns: float) -> None:
    """A control that does not answer to loss goes up to its path's capacity; others wait for their recovery's end."""
    if each.congestion in _UNTOUCHED:
        each._window = min(each._window * 2**turns, max(at.pps * each.rtt_s, FIRST_WINDOW), each.most_window)


def _lose(each: Stream, window: float, until_s: float, at: Bottleneck) -> None:
    window = min(window, 2 * (at.pps * each.rtt_s + at.buffer))
    # What highspeed knows of its window comes from congestion avoidance: the first loss halves.
    beta = 0.5 if each._slow and each.congestion in _HIGHSPEED else _beta(each.congestion, window)
    # Fast convergence (Ha, Rhee and Xu 2008; Xu, Harfoush and Rhee 2004).
    fast = each.congestion in ("cubic", "bic") and window < each._largest
    each._largest = window * (1 + beta) / 2 if fast else window
    each._window, each._slow = max(window * beta, LEAST_WINDOW), False
    each._lost, each._deaf_s, each._epoch_s = 0.0, until_s, until_s
    each._plateau_s = math.cbrt(max(each._largest - each._window, 0.0) / _CUBIC_C)


def _beta(congestion: str, window: float) -> float:
    """The share of a window that is left after a loss."""
    if window < _LOW_WINDOW.get(congestion, 0.0):
        return 0.5
    if congestion in _HIGHSPEED:
        return 1 - _highspeed_b(window)
    return _BETA.get(congestion, 0.5)


def _growth(each: Stream, window: float, rtt_s: float, now: float) -> float:
    """The window a round trip later, in congestion avoidance."""
    law: Callable[[Stream, float, float, float], float] = _LAWS.get(each.congestion, _reno)
    return law(each, window, rtt_s, now) if window >= _LOW_WINDOW.get(each.congestion, 0.0) else window + 1


def _reno(each: Stream, window: float, rtt_s: float, now: float) -> float:
    """RFC 5681."""
    return window + 1


def _cubic(each: Stream, window: float, rtt_s: float, now: float) -> float:
    """RFC 9438; never slower than its estimate of Reno."""
    beta = _BETA["cubic"]
    target = _CUBIC_C * (now - each._epoch_s - each._plateau_s) ** 3 + each._largest
    return min(max(target, window + 3 * (1 - beta) / (1 + beta)), 1.5 * window)


def _bic(each: Stream, window: float, rtt_s: float, now: float) -> float:
    """Xu, Harfoush and Rhee 2004, with the constants of Linux: a quarter of the way, at most 16 segments."""
    away = each._largest - window
    if away > 0:
        return window + min(max(away / 4, 0.2), 16)
    return window + min(max(-away / 3, 0.2), 16)


def _highspeed(each: Stream, window: float, rtt_s: float, now: float) -> float:
    """RFC 3649, section 5."""
    b = _highspeed_b(window)
    return window + max(0.078 * float(window**0.8) * 2 * b / (2 - b), 1)


def _highspeed_b(window: float) -> float:
    share = math.log(max(window, 38) / 38) / math.log(83_000 / 38)
    return max(0.5 - 0.4 * share, 0.1)


def _scalable(each: Stream, window: float, rtt_s: float, now: float) -> float:
    """Kelly 2003, with a hundredth of a window a round trip."""
    return window * 1.01


def _htcp(each: Stream, window: float, rtt_s: float, now: float) -> float:
    """Leith and Shorten 2004; a second after a loss the growth begins to grow."""
    since_s = now - each._epoch_s - 1
    return window + (1 if since_s < 0 else 1 + 10 * since_s + (since_s / 2) ** 2)


_LAWS = {"cubic": _cubic, "bic": _bic, **dict.fromkeys(_HIGHSPEED, _highspeed), "scalable": _scalable, "htcp": _htcp}


def _go_on(streams: Sequence[Stream], now: float, half_s: float, at: Bottleneck) -> None:
    """Extends the streams to their ends, at the pace of the part that was followed; later streams get an equal
    share."""
    fair = at.pps / len(streams)
    for each in streams:
        if each.done_s is not None or each.stop_s <= now:
            continue
        went_s = now - max(half_s, each.start_s)
        pps = (each.delivered - each._half) / went_s if went_s > 0 else fair
        each.delivered = min(each.delivered + max(pps, 1.0) * (each.stop_s - max(now, each.start_s)), each.packets)
