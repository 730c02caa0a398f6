"""A script of tc (netem, tbf, htb, prio, policers and queues) as ways between ends.

A size counts a packet with its Ethernet header, 14 bytes, as Linux's queueing disciplines do (qdisc_skb_cb.pkt_len).
"""

from __future__ import annotations

from collections.abc import Sequence

from ewan.extras.importers.directions import (
    CARD_PACKETS,
    DeviceTraffic,
    ImportedDirection,
    ImportedSettings,
    Setting,
    of_devices,
)
from ewan.extras.importers.findings import CommandOutcome, Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc import branches, netfilter
from ewan.extras.importers.tc import upper_cards as stacked
from ewan.extras.importers.tc.branches import Branch
from ewan.extras.importers.tc.changes import cards
from ewan.extras.importers.tc.filters import Police, choice, police, redirected
from ewan.extras.importers.tc.netem import Netem
from ewan.extras.importers.tc.shapers import FULL_FRAME
from ewan.extras.importers.tc.tree import TcDevice, TcFilter
from ewan.extras.importers.tc.words import EGRESS, INGRESS, Handle
from ewan.labs.base.units import Buffer, Duration, Rate, bytes_in

FRAMING = ("header", "tc counts a packet with its Ethernet header")
_FRAMINGS = {0: "header", 4: "ethernet", 24: "wire", -14: "ip"}
"""Bytes that a size table or netem adds to a packet → what counts them so."""


def legs(
    commands: Sequence[ScriptCommand], line_rate: Rate, findings: Findings, others: Sequence[ScriptCommand] = ()
) -> list[ImportedDirection]:
    """All directions of a script; ImportingError for a setting that no lab has. `others`: its commands of other
    programs."""
    rules = netfilter.rules([command for command in commands if command.name in netfilter.TOOLS], findings)
    found = cards([command for command in commands if command.name not in netfilter.TOOLS], findings)
    made: list[DeviceTraffic | ImportedDirection] = []
    choosers: set[str] = set()
    entrances = {name: _entrance(card, findings) for name, card in found.items()}
    redirects: dict[str, str] = {}
    for name, (to, _) in entrances.items():
        if to is not None and redirects.setdefault(to, name) != name:
            command = found[name].filters[-1].command
            raise findings.error(command.line, command.text, f"{redirects[to]} goes to {to} too: give each an ifb")
    _loopback(found, findings)
    stacked.refuse(found, others, findings)
    for name, card in found.items():
        if card.root is not None and name not in redirects and name.rpartition("/")[2].startswith("ifb"):
            why = f"no filter redirects packets to {name}, so nothing passes it"
            findings.cannot(card.root.command, card.root.command.text, why, "take it as a card")
        card.rules = [rule for rule in rules if rule.device in (None, name) and card.is_of(rule.command.namespace)]
        if card.ended is not None and card.root is not None:
            findings.warn(card.ended, f"empties {name} again: the lab is what was there before")
        of = redirects.get(name)
        there = branches.of(card, findings)
        policed = _policed(card, EGRESS, findings)
        if policed is not None and len(there) > 1:
            text = policed.command.text
            raise findings.error(policed.command.line, text, "several branches share this policer: import one of them")
        if policed is not None and not there:
            there = [Branch(None, policed.command)]
        for branch in there:
            way = _way(branch, line_rate, policed, findings)
            if card.is_loopback:
                made += _both(branch, name, way, policed, findings)
            elif branch.to is None:
                made.append(DeviceTraffic(branch.line, of or name, of is None, way))
            elif of is None:
                choosers.add(name)
                made.append(
                    ImportedDirection(branch.line, "here", branch.to, f"what leaves {name} to {branch.to}", way)
                )
            else:
                raise findings.error(branch.line, branch.to, "chooses among what comes in: import what leaves alone")
        if (entering := entrances[name][1]) is not None:
            way = _way(Branch(None, entering.command), line_rate, entering, findings)
            way.put("framing", "ip", "a policer of what comes in counts packets without their Ethernet header")
            made.append(DeviceTraffic(entering.command.line, name, False, way))
    for device in [device for device in redirects if device not in found]:
        filters = found[redirects[device]].filters
        findings.warn(filters[0].command, f"sends what comes in to {device}, which does nothing")
    of_cards = [each for each in made if isinstance(each, DeviceTraffic)]
    chosen = [each for each in made if isinstance(each, ImportedDirection)]
    if chosen and (of_cards or len(choosers) > 1):
        first = next(each for each in of_cards or chosen)
        alone = (
            "each card by itself"
            if len({*choosers, *(each.device for each in of_cards)}) > 1
            else "one direction by itself"
        )
        message = f"some packets are chosen by their destination, and others are not: import {alone}"
        raise findings.error(first.line, first.what, message)
    return chosen or of_devices(of_cards, findings)


def _loopback(found: dict[str, TcDevice], findings: Findings) -> None:
    """Settles commands for lo: of packets that a machine sends to itself, lo has both directions, and other cards
    none."""
    used = [card for card in found.values() if card.qdiscs]
    for card in [card for card in used if card.is_loopback]:
        command = card.qdiscs[0].command
        if card.ended is not None and len(used) > 1:
            for each in card.commands:
                findings.settle(each, CommandOutcome.UNDONE)
            findings.settle(card.ended, CommandOutcome.LAB)
            del found[card.name]
            continue
        if card.entrance is not None:
            why = "is about what comes in by lo, which has left by it before: write what leaves alone"
            raise findings.error(command.line, command.text, why)
        if len(used) > 1:
            why = f"is about packets of the machine to itself, which pass no other card: import {card.name} alone"
            findings.cannot(command, command.text, why)
            del found[card.name]


def _both(
    branch: Branch, name: str, way: ImportedSettings, policed: Police | None, findings: Findings
) -> list[DeviceTraffic]:
    """The two directions of lo: each meets the same, one after the other."""
    command = branch.command
    if branch.to is not None:
        raise findings.error(command.line, command.text, "chooses packets of lo, which has both directions of them")
    rated = branch.shaper is not None or (branch.netem is not None and branch.netem.rate is not None)
    if rated or policed is not None or branch.held is not None:
        why = "is shared by both directions, which leave by lo, and a description's directions share nothing"
        findings.cannot(command, command.text, why, "give each direction one of its own")
    findings.note(command, f"both directions leave by {name}, so each has what this line does")
    return [DeviceTraffic(branch.line, name, outward, way) for outward in (True, False)]


def _entrance(card: TcDevice, findings: Findings) -> tuple[str | None, Police | None]:
    """The treatment of packets that come in by a card: the device (ifb) to which all are sent, or a policer of all."""
    found: tuple[str | None, Police | None] = (None, None)
    for each in sorted((each for each in card.filters if each.parent == INGRESS), key=lambda each: each.order):
        read = choice(each)
        target, policer = redirected(read.actions), police(each, read.actions, findings)
        if found != (None, None):
            why = "comes behind a filter that takes all packets" if found[1] is None else "comes behind a policer"
            findings.cannot(each.command, each.command.text, f"{why}: write one filter of what comes in")
        elif not read.takes_all or (target is None and policer is None):
            findings.cannot(each.command, each.command.text, read.strange or "does something to packets that come in")
        else:
            found = (card.beside(target) if target is not None else None, policer)
            if target is not None and not target.startswith("ifb"):
                why = f"sends what comes in by {card.name} out by {target}, and the lab has nothing else that leaves"
                findings.warn(each.command, f"{why} {target}: {each.command.text}")
            _settle(each, card, findings)
    return found


def _policed(card: TcDevice, parent: Handle, findings: Findings) -> Police | None:
    """The policer of all that leaves, before its qdisc."""
    found: Police | None = None
    for each in sorted((each for each in card.filters if each.parent == parent), key=lambda each: each.order):
        read = choice(each)
        policer = police(each, read.actions, findings)
        if policer is None or not read.takes_all or found is not None:
            why = "does something to packets that leave, besides one policer of all of them"
            findings.cannot(each.command, each.command.text, read.strange or why)
        else:
            found = policer
            _settle(each, card, findings)
    return found


def _settle(of: TcFilter, card: TcDevice, findings: Findings) -> None:
    findings.settle(of.command, CommandOutcome.LAB)
    if card.entrance is not None:
        findings.settle(card.entrance.command, CommandOutcome.LAB)


def _way(branch: Branch, line_rate: Rate, policed: Police | None, findings: Findings) -> ImportedSettings:
    way = ImportedSettings()
    netem, shaper, held = branch.netem, branch.shaper, branch.held
    framing, reason = _framing(branch, findings)
    way.put("framing", framing, reason)
    if policed is not None:
        words: dict[str, Setting] = {"rate": str(policed.rate), "burst": str(policed.burst)}
        way.put("police", words, f"line {policed.command.line}")
    rate, of = line_rate, "the script does not say: the card's"
    if shaper is not None:
        rate, of = shaper.rate, f"line {shaper.command.line}"
        if netem is not None and netem.rate is not None:
            text, why = f"rate {netem.rate}", f"is a second rate, behind {shaper.rate} of line {shaper.command.line}"
            findings.cannot(netem.command, text, why, "take the lower one")
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
            findings.cannot(held.command, f"bandwidth {held.bandwidth}", why, "take the link's rate")
    if netem is not None:
        _impairments(way, netem, findings)
    return way


def _framing(branch: Branch, findings: Findings) -> tuple[str, str]:
    table = dict(zip(branch.stab[::2], branch.stab[1::2], strict=True))
    for key, value in table.items():
        if key in ("mpu", "linklayer") and value not in ("0", "ethernet"):
            findings.cannot(
                branch.command, f"stab {key} {value}", "counts packets in a way that has no word in a description"
            )
    text = table.get("overhead", "0")
    whole = int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdecimal() and len(text) < 6 else 0
    netem = branch.netem
    added = whole + (netem.overhead if netem is not None and netem.rate is not None else 0)
    if added in _FRAMINGS:
        if not added:
            return FRAMING
        return _FRAMINGS[added], f"tc counts a packet with its Ethernet header and {added} B more"
    why = f"adds {added} bytes to a packet's length: a description knows 0 (header), 4 (ethernet), 24 (wire), -14 (ip)"
    findings.cannot(branch.command, f"overhead {added}", why)
    return FRAMING


def _buffer(way: ImportedSettings, branch: Branch, rate: Rate, findings: Findings) -> None:
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
        why = (
            "the script does not say: the card's" if shaper is None else "the class's own queue: as long as the card's"
        )
        way.put("buffer", Buffer("packets", CARD_PACKETS), why)
    if netem is not None:
        _left(netem, rate, shaper is not None, findings, behind_it=True)


def _left(netem: Netem, rate: Rate, shaped: bool, findings: Findings, *, behind_it: bool = False) -> int:
    """Packets of netem's limit that the delay line leaves to the queue, at the rate and in full packets."""
    under_way = bytes_in(rate.bps, netem.delay.ns) // FULL_FRAME.bytes
    command = netem.command
    if not under_way:
        return max(1, netem.limit)
    holds = f"limit {netem.limit} counts the delay line too, which has {under_way} full packets at {rate}"
    if netem.limit > under_way:
        if not behind_it:
            findings.note(command, f"{holds}: the rest is the buffer; the delay line has no limit here")
        return netem.limit - under_way
    if shaped or netem.rate is not None:
        why = f"{holds}: the rate is not reached"
        findings.cannot(command, f"limit {netem.limit}", why, "leave it out" if behind_it else "take it as the buffer")
    else:
        findings.note(command, f"{holds}: netem loses what is more, here the delay line has no limit")
    return max(1, netem.limit)


def _pareto(netem: Netem, findings: Findings) -> tuple[Duration, Duration]:
    """A description's delay and jitter of the same tail.

    netem/pareto.c of iproute2 has 4/3 (U^(-1/3) - 3/2) jitter around the delay: the mean is the delay, the standard
    deviation 2/sqrt(3) jitter. A description's begins at delay - jitter, and its standard deviation is jitter.
    """
    jitter = round(netem.jitter.ns * 2 / 3**0.5)
    if jitter:
        why = "netem's pareto has another mean and spread than a description's: delay and jitter are"
        findings.note(netem.command, f"{why} written so that the tail is the same, which netem cuts at 4 jitter")
    return Duration(netem.delay.ns + jitter - round(netem.jitter.ns * 2 / 3)), Duration(jitter)


def _impairments(way: ImportedSettings, netem: Netem, findings: Findings) -> None:
    where = f"line {netem.command.line}"
    delay, jitter = _pareto(netem, findings) if netem.distribution == "pareto" else (netem.delay, netem.jitter)
    way.put("delay", delay, where)
    if jitter > delay:
        why = f"spreads delays by {jitter} around {delay}, and a description's spread is no more than the delay"
        findings.cannot(netem.command, f"delay {netem.delay} {netem.jitter}", why, f"take {delay}")
        jitter = delay
    if jitter.ns:
        way.put("jitter", jitter, where)
        plain = "without distribution netem's jitter is uniform, whatever tc-netem(8) says"
        way.put("distribution", netem.distribution, where if netem.distribution != "uniform" else plain)
        if netem.rate is None:
            way.put("reorder", "true", "netem lets packets overtake")
        else:
            findings.note(netem.command, "with a rate netem keeps packets in order: jitter comes before the rate there")
    if netem.loss is not None and netem.loss[0] != "0%":
        way.put("loss", netem.loss[0], where)
    if netem.corrupt is not None and netem.corrupt.ppb:
        way.put("corrupt", netem.corrupt, where)
    if netem.duplicate is not None and netem.duplicate.ppb:
        way.put("duplicate", netem.duplicate, where)
