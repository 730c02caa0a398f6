"""What a packet passes on its way through a card's tree: one branch for each kind of packet that filters tell apart.

HTB (tc-htb(8)): a class has its `rate` whatever others do, and up to its `ceil` what its parent has to spare. A branch
is a link of its own where that comes to one rate: where no class can borrow, or where all of them always have their
ceil.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from labs.importing.findings import Findings
from labs.importing.tc import netem, shapers
from labs.importing.tc.netem import Netem
from labs.importing.tc.shapers import Held, HtbClass, Shaper
from labs.importing.tc.tree import Card, Class, Filter, Handle, Qdisc
from labs.units import Rate

MOST_LEVELS = 16
REST = "rest"
"""Whom packets go to that no filter names."""


@dataclass(slots=True)
class Branch:
    """`to`: an address or network; None for all packets. The parts are those that packets pass, None for none.

    `inner`: netem is below the shaper, so that its limit is the queue's. `stab` as tc has it on the outermost qdisc.
    """

    to: str | None
    line: int
    netem: Netem | None = None
    shaper: Shaper | None = None
    held: Held | None = None
    inner: bool = False
    stab: list[str] = field(default_factory=list)


def of(card: Card, findings: Findings) -> list[Branch]:
    """The branches of a card, none without a root."""
    root = card.root
    return list(_below(root, card, findings, 0)) if root is not None else []


def _below(qdisc: Qdisc, card: Card, findings: Findings, level: int) -> Iterator[Branch]:
    if level > MOST_LEVELS:
        raise findings.error(qdisc.command.line, qdisc.command.text, "is below itself, or too deep: write another tree")
    for branch in _of(qdisc, card, findings, level):
        if qdisc.stab:
            branch.stab = qdisc.stab
        yield branch


def _of(qdisc: Qdisc, card: Card, findings: Findings, level: int) -> Iterator[Branch]:
    command = qdisc.command
    child = card.child(qdisc) if qdisc.handle is not None else None
    below = (
        list(_below(child, card, findings, level + 1)) if child is not None and qdisc.kind in ("netem", "tbf") else []
    )
    match qdisc.kind:
        case "netem":
            part = netem.read(command, qdisc.options, findings)
            for branch in below or [Branch(None, command.line)]:
                if branch.netem is not None:
                    line = branch.netem.command.line
                    raise findings.error(
                        command.line, command.text, f"line {line} is a second netem: add them up in one"
                    )
                branch.netem = part
                yield branch
        case "tbf":
            shaper = shapers.tbf(command, qdisc.options, findings)
            if len(below) > 1:
                raise findings.error(command.line, command.text, "several branches share this rate: import one of them")
            for branch in below or [Branch(None, command.line)]:
                yield _shaped(branch, shaper, findings)
        case "htb":
            yield from _htb(qdisc, card, findings, level)
        case "prio":
            yield from _prio(qdisc, card, findings, level)
        case kind:
            if child is not None:
                why = f"is below {kind} of line {command.line}, whose packets wait in one queue: leave it out"
                raise findings.error(child.command.line, child.command.text, why)
            yield Branch(None, command.line, held=shapers.queue(command, kind, qdisc.options, findings))


def _shaped(branch: Branch, shaper: Shaper, findings: Findings) -> Branch:
    """A branch behind a rate."""
    if branch.shaper is not None:
        line, text = shaper.command.line, shaper.command.text
        raise findings.error(line, text, f"line {branch.shaper.command.line} is a rate too: leave the higher one out")
    branch.shaper, branch.inner = shaper, branch.netem is not None
    return branch


def _prio(qdisc: Qdisc, card: Card, findings: Findings, level: int) -> Iterator[Branch]:
    """Bands that filters choose; what no filter chooses is sorted by its TOS bits, which nobody here knows."""
    command = qdisc.command
    chosen = _filters(qdisc, card, findings)
    bands = {each.parent: each for each in card.qdiscs if each.parent is not None and qdisc.handle is not None
             and each.parent.major == qdisc.handle.major}  # fmt: skip
    if not chosen:
        findings.cannot(
            command.line, command.text, "no filter says which packets go to which band", "take the first netem for all"
        )
        first = next(iter(bands.values()), None)
        yield from _below(first, card, findings, level + 1) if first else [Branch(None, command.line)]
        return
    whole = [flow for to, flow, _ in chosen if to is None]
    for band, child in bands.items():
        if band not in [flow for _, flow, _ in chosen]:
            findings.cannot(child.command.line, child.command.text, "no filter sends packets to this band")
    for to, flow, line in chosen:
        below = list(_below(bands[flow], card, findings, level + 1)) if flow in bands else [Branch(None, line)]
        yield from _named(below, to, line, findings)
    if not whole:
        yield Branch(REST, command.line)


def _htb(qdisc: Qdisc, card: Card, findings: Findings, level: int) -> Iterator[Branch]:
    if qdisc.handle is None:
        raise findings.error(qdisc.command.line, qdisc.command.text, 'has no handle for its classes: write "handle 1:"')
    given = shapers.pairs([word for word in qdisc.options if word != "offload"], (), qdisc.command, findings)
    classes = {handle: each for handle, each in card.classes.items() if handle.major == qdisc.handle.major}
    read = {handle: shapers.htb(each, findings) for handle, each in classes.items()}
    chosen = _filters(qdisc, card, findings)
    default = _default(given.get("default", "0"), qdisc, findings)
    used = [flow for _, flow, _ in chosen] + ([default] if default in classes else [])
    for flow in used:
        if flow not in classes:
            raise findings.error(qdisc.command.line, str(flow), "is no class of this HTB: write its class")
    for handle, each in classes.items():
        if handle not in used and not any(other.parent == handle for other in classes.values()):
            findings.note(each.command.line, f"no filter sends packets to class {handle}, and it is not the default")
    for to, flow, line in chosen:
        yield from _class(to, line, flow, classes, read, used, card, findings, level)
    if not any(to is None for to, _, _ in chosen):
        if default in classes:
            to = REST if chosen else None
            yield from _class(to, classes[default].command.line, default, classes, read, used, card, findings, level)
        else:
            yield Branch(REST if chosen else None, qdisc.command.line)


def _default(text: str, qdisc: Qdisc, findings: Findings) -> Handle:
    """A minor number, in hexadecimal, as tc reads it."""
    try:
        minor = int(text.removeprefix("0x").rpartition(":")[2], 16)
    except ValueError:
        raise findings.error(qdisc.command.line, f"default {text}", 'is no class: write one like "10"') from None
    return Handle(qdisc.handle.major if qdisc.handle else 0, minor)


def _class(
    to: str | None, line: int, handle: Handle, classes: dict[Handle, Class], read: dict[Handle, HtbClass],
    used: list[Handle], card: Card, findings: Findings, level: int,
) -> Iterator[Branch]:  # fmt: skip
    of = read[handle]
    command = classes[handle].command
    rate = _rate(handle, classes, read, used, findings)
    child = card.below(handle)
    below = list(_below(child, card, findings, level + 1)) if child is not None else [Branch(None, command.line)]
    for branch in _named(below, to, line, findings):
        yield _shaped(branch, Shaper(command, rate, of.burst), findings)


def _rate(
    handle: Handle, classes: dict[Handle, Class], read: dict[Handle, HtbClass], used: list[Handle], findings: Findings
) -> Rate:
    """What a class always has, where that is one rate."""
    above: list[Handle] = []
    at = classes[handle].parent
    while at is not None:
        if at not in classes or at in above:
            command = classes[handle].command
            raise findings.error(command.line, command.text, f"has {at} above it, which is no class: write its class")
        above.append(at)
        at = classes[at].parent
    own = read[handle]
    if own.ceil == own.rate or not above:
        if not above and own.ceil > own.rate:
            findings.note(
                classes[handle].command.line, f"class {handle} has no parent to borrow from: ceil does nothing"
            )
        return own.rate

    def leaves(of: Handle) -> list[Handle]:
        return [each for each in dict.fromkeys(used) if _within(each, of, classes)]

    if all(sum(read[each].ceil.bps for each in leaves(of)) <= read[of].rate.bps for of in above):
        return own.ceil
    if all(leaves(of) == [handle] for of in above):
        return max(own.rate, min(own.ceil, *(read[of].ceil for of in above[:-1]), read[above[-1]].rate))
    command = classes[handle].command
    why = (
        f"class {handle} has between {own.rate} and {own.ceil}, as others leave it, which has no word in a description"
    )
    findings.cannot(command.line, command.text, why, f"take its rate of {own.rate}")
    return own.rate


def _within(handle: Handle, of: Handle, classes: dict[Handle, Class]) -> bool:
    seen: set[Handle] = set()
    at: Handle | None = handle
    while at is not None and at not in seen and at in classes:
        if at == of:
            return True
        seen.add(at)
        at = classes[at].parent
    return False


def _named(branches: list[Branch], to: str | None, line: int, findings: Findings) -> Iterator[Branch]:
    for branch in branches:
        if branch.to is not None and to is not None:
            raise findings.error(line, to, "is divided by filters a second time: write one filter for each branch")
        yield replace(branch, to=branch.to if to is None else to, line=line)


def _filters(qdisc: Qdisc, card: Card, findings: Findings) -> list[tuple[str | None, Handle, int]]:
    """Where filters send packets: address or None for all, class, line; in the order in which tc asks them."""
    found: list[tuple[str | None, Handle, int]] = []
    major = qdisc.handle.major if qdisc.handle is not None else -1
    mine = [each for each in card.filters if (each.parent.major == major if each.parent else qdisc.parent is None)]
    for each in sorted(mine, key=lambda each: each.order):
        read = _filter(each, findings)
        if read is None:
            continue
        if any(to is None for to, _, _ in found):
            findings.note(each.command.line, "is behind a filter that takes all packets: it is never asked")
        elif any(to == read[0] for to, _, _ in found):
            raise findings.error(each.command.line, each.command.text, "a filter before it takes the same packets")
        else:
            found.append((*read, each.command.line))
    return found


def _filter(of: Filter, findings: Findings) -> tuple[str | None, Handle] | None:
    line, text = of.command.line, of.command.text
    words = list(of.words)
    flow = next((words[i + 1] for i, word in enumerate(words[:-1]) if word in ("flowid", "classid")), None)
    if flow is None or ":" not in flow:
        findings.cannot(line, text, "sends packets to no class")
        return None
    target = Handle(*(int(part or "0", 16) if _is_hex(part) else 0 for part in flow.split(":")[:2]))
    matches = matched(words)
    if matches is None or (matches and not matches[0].startswith("dst ")) or len(matches) > 1:
        findings.cannot(line, text, "chooses packets by something else than one destination")
        return None
    return (matches[0].removeprefix("dst ") if matches else None), target


def _is_hex(text: str) -> bool:
    return 0 < len(text) <= 4 and all(letter in "0123456789abcdefABCDEF" for letter in text)


def matched(words: list[str]) -> list[str] | None:
    """`dst ADDRESS`, `src ADDRESS` of a filter; none for all packets; None for what cannot be read."""
    found: list[str] = []
    at = 1
    while at < len(words):
        word, rest = words[at], words[at + 1 :]
        if word in ("flowid", "classid"):
            at += 2
        elif word == "action":
            break
        elif words[0] == "u32" and word == "match" and rest[:3] == ["u32", "0", "0"]:
            at += 6 if rest[3:4] == ["at"] else 4
        elif words[0] == "u32" and word == "match" and rest[:1] in (["ip"], ["ip6"]) and len(rest) >= 3:
            if rest[1] not in ("dst", "src") or (address := _address(rest[2])) is None:
                return None
            found += [f"{rest[1]} {address}"] if address else []
            at += 4
        elif words[0] == "flower" and word in ("dst_ip", "src_ip") and rest:
            if (address := _address(rest[0])) is None:
                return None
            found += [f"{word[:3]} {address}"] if address else []
            at += 2
        else:
            return None
    return found if words and words[0] in ("u32", "flower", "matchall") else None


def _address(text: str) -> str | None:
    """An address, or a network with its length; "" for all; None for what is neither."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    if network.prefixlen == 0:
        return ""
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)
