"""A script of tc (netem, tbf, htb, prio and queues) as ways between ends.

A size counts a packet with its Ethernet header, 14 bytes, as Linux's queueing disciplines do (qdisc_skb_cb.pkt_len).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labs.importing.findings import Findings
from labs.importing.legs import CARD_PACKETS, Leg, OfDevice, Way, of_devices
from labs.importing.script import Command
from labs.importing.tc import branches
from labs.importing.tc.branches import Branch
from labs.importing.tc.netem import Netem
from labs.importing.tc.tree import Card, Filter, Handle, cards
from labs.units import Buffer, Duration, Rate, Size, bytes_in

FRAMING = ("header", "tc counts a packet with its Ethernet header")
FULL_FRAME = Size.parse("1514B")
_FRAMINGS = {0: "header", 4: "ethernet", 24: "wire", -14: "ip"}
"""Bytes that a size table or netem adds to a packet → what counts them so."""


def legs(commands: Sequence[Command], line_rate: Rate, findings: Findings) -> list[Leg]:
    """All of a script; ImportingError for what no lab has."""
    found = cards(commands, findings)
    redirects = _redirects(found.values(), findings)
    made: list[OfDevice | Leg] = []
    for card in found.values():
        if card.ended is not None and card.root is not None:
            findings.note(card.ended.line, f"empties {card.name} again: the lab is what was there before")
        of = redirects.get(card.name)
        for branch in branches.of(card, findings):
            way = _way(branch, line_rate, findings)
            if branch.to is not None:
                if of is not None:
                    raise findings.error(
                        branch.line, branch.to, "chooses among what comes in: import what leaves alone"
                    )
                made.append(Leg(branch.line, "here", branch.to, f"what leaves {card.name} to {branch.to}", way))
            else:
                made.append(OfDevice(branch.line, of or card.name, of is None, way))
    of_cards = [each for each in made if isinstance(each, OfDevice)]
    chosen = [each for each in made if isinstance(each, Leg)]
    if chosen and len({card.name for card in found.values() if card.root is not None}) > 1:
        first = next(each for each in of_cards or chosen)
        message = "some cards choose packets by their destination, and there are others: import each card alone"
        raise findings.error(first.line, first.what, message)
    return chosen or of_devices(of_cards, findings)


def _redirects(found: Iterable[Card], findings: Findings) -> dict[str, str]:
    """Devices to which all that comes in by another one is sent (ifb): their names → that other one."""
    redirects: dict[str, str] = {}
    for card in found:
        for each in card.filters:
            if each.parent == Handle(0xFFFF, 0):
                target = _redirected(each)
                if target is None or branches.matched([*each.words]) not in ([],):
                    findings.cannot(each.command.line, each.command.text, "does something to packets that come in")
                else:
                    redirects[target] = card.name
    return redirects


def _redirected(of: Filter) -> str | None:
    words = of.words
    for at, word in enumerate(words):
        if word == "mirred" and words[at + 1 : at + 4] == ("egress", "redirect", "dev") and len(words) > at + 4:
            return words[at + 4]
    return None


def _way(branch: Branch, line_rate: Rate, findings: Findings) -> Way:
    way = Way()
    netem, shaper, held = branch.netem, branch.shaper, branch.held
    framing, reason = _framing(branch, findings)
    way.put("framing", framing, reason)
    rate, of = line_rate, "the script does not say: the card's"
    if shaper is not None:
        rate, of = shaper.rate, f"line {shaper.command.line}"
        if netem is not None and netem.rate is not None:
            text, why = f"rate {netem.rate}", f"is a second rate, behind {shaper.rate} of line {shaper.command.line}"
            findings.cannot(netem.command.line, text, why, "take the lower one")
            rate = min(rate, netem.rate)
    elif netem is not None and netem.rate is not None:
        rate, of = netem.rate, f"line {netem.command.line}"
    way.put("rate", rate, of)
    if shaper is not None and shaper.burst is not None and rate == shaper.rate:
        way.put("burst", shaper.burst, f"line {shaper.command.line}: so much passes at once")
        if shaper.peak is not None:
            way.put("peak", shaper.peak, f"line {shaper.command.line}")
    _buffer(way, branch, rate, findings)
    if held is not None and held.queue is not None:
        way.put("queue", held.queue, f"line {held.command.line}")
        if held.bandwidth is not None and held.bandwidth != rate:
            why = (
                f"tells red how fast its average sinks in an empty queue (10Mbit if absent), which is the link's "
                f"{rate} in a description: write bandwidth {rate.bps}bit"
            )
            findings.cannot(held.command.line, f"bandwidth {held.bandwidth}", why, "take the link's rate")
    if netem is not None:
        _impairments(way, netem, findings)
    return way


def _framing(branch: Branch, findings: Findings) -> tuple[str, str]:
    table = dict(zip(branch.stab[::2], branch.stab[1::2], strict=True))
    line = branch.line
    for key, value in table.items():
        if key in ("mpu", "linklayer") and value not in ("0", "ethernet"):
            findings.cannot(line, f"stab {key} {value}", "counts packets in a way that has no word in a description")
    text = table.get("overhead", "0")
    whole = int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdecimal() and len(text) < 6 else 0
    netem = branch.netem
    added = whole + (netem.overhead if netem is not None and netem.rate is not None else 0)
    if added in _FRAMINGS:
        if not added:
            return FRAMING
        return _FRAMINGS[added], f"tc counts a packet with its Ethernet header and {added} B more"
    why = f"adds {added} bytes to a packet's length: a description knows 0 (header), 4 (ethernet), 24 (wire), -14 (ip)"
    findings.cannot(line, f"overhead {added}", why)
    return FRAMING


def _buffer(way: Way, branch: Branch, rate: Rate, findings: Findings) -> None:
    netem, shaper, held = branch.netem, branch.shaper, branch.held
    if held is not None and not (netem is not None and netem.rate is not None):
        way.put("buffer", held.buffer, f"line {held.command.line}: {held.words}")
    elif netem is not None and (branch.inner or shaper is None):
        way.put(
            "buffer",
            Buffer("packets", _left(netem, rate, shaper is not None, findings)),
            f"line {netem.command.line}: limit",
        )
        return
    elif shaper is not None and shaper.limit is not None:
        way.put("buffer", Buffer("bytes", shaper.limit.bytes), f"line {shaper.command.line}")
    else:
        way.put("buffer", Buffer("packets", CARD_PACKETS), "the class's own queue: as long as the card's")
    if netem is not None:
        _left(netem, rate, shaper is not None, findings, behind_it=True)


def _left(netem: Netem, rate: Rate, shaped: bool, findings: Findings, *, behind_it: bool = False) -> int:
    """Packets of netem's limit that the delay line leaves to the queue, at the rate and in full packets."""
    under_way = bytes_in(rate.bps, netem.delay.ns) // FULL_FRAME.bytes
    line = netem.command.line
    if not under_way:
        return max(1, netem.limit)
    holds = f"limit {netem.limit} counts the delay line too, which has {under_way} full packets at {rate}"
    if netem.limit > under_way:
        if not behind_it:
            findings.note(line, f"{holds}: the rest is the buffer; the delay line has no limit here")
        return netem.limit - under_way
    if shaped or netem.rate is not None:
        why = f"{holds}: the rate is not reached"
        findings.cannot(line, f"limit {netem.limit}", why, "leave it out" if behind_it else "take it as the buffer")
    else:
        findings.note(line, f"{holds}: netem loses what is more, here the delay line has no limit")
    return max(1, netem.limit)


def _pareto(netem: Netem, findings: Findings) -> tuple[Duration, Duration]:
    """A description's delay and jitter of the same tail.

    netem/pareto.c of iproute2 has 4/3 (U^(-1/3) - 3/2) jitter around the delay: the mean is the delay, the standard
    deviation 2/sqrt(3) jitter. A description's begins at delay - jitter, and its standard deviation is jitter.
    """
    jitter = round(netem.jitter.ns * 2 / 3**0.5)
    if jitter:
        why = "netem's pareto has another mean and spread than a description's: delay and jitter are"
        findings.note(netem.command.line, f"{why} written so that the tail is the same, which netem cuts at 4 jitter")
    return Duration(netem.delay.ns + jitter - round(netem.jitter.ns * 2 / 3)), Duration(jitter)


def _impairments(way: Way, netem: Netem, findings: Findings) -> None:
    where = f"line {netem.command.line}"
    delay, jitter = _pareto(netem, findings) if netem.distribution == "pareto" else (netem.delay, netem.jitter)
    way.put("delay", delay, where)
    if jitter.ns:
        way.put("jitter", jitter, where)
        plain = "without distribution netem's jitter is uniform, whatever tc-netem(8) says"
        way.put("distribution", netem.distribution, where if netem.distribution != "uniform" else plain)
        if netem.rate is None:
            way.put("reorder", "true", "netem lets packets overtake")
        else:
            findings.note(
                netem.command.line, "with a rate netem keeps packets in order: jitter comes before the rate there"
            )
    if netem.loss is not None:
        way.put("loss", netem.loss[0], where)
    if netem.corrupt is not None and netem.corrupt.ppb:
        way.put("corrupt", netem.corrupt, where)
    if netem.duplicate is not None and netem.duplicate.ppb:
        way.put("duplicate", netem.duplicate, where)
