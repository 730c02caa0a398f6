"""The ways of packets through a card's tree: one branch for each kind of packet that filters distinguish.

HTB (tc-htb(8)): a class has its `rate` whatever others do, and up to its `ceil` what its parent has to spare. A branch
is a link of its own where that comes to one rate: where no class can borrow, or where all of them always have their
ceil."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ewan.extras.importers.findings import CommandOutcome, Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc import netem, queues, shapers
from ewan.extras.importers.tc.filters import choice, flow_of
from ewan.extras.importers.tc.netem import Netem
from ewan.extras.importers.tc.netfilter import mark_of, marks_with
from ewan.extras.importers.tc.queues import QueueSettings
from ewan.extras.importers.tc.shapers import Bands, HtbClass, Shaper
from ewan.extras.importers.tc.tree import Class, Qdisc, TcDevice, TcFilter
from ewan.extras.importers.tc.words import Handle, covers, is_ipv6
from ewan.labs.base.units import Rate

MOST_LEVELS = 16
REST = "rest"
"""Whom packets go to that no filter names."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Packets to an address or network, to all (None) or to the rest, go to a class or band."""

    to: str | None
    flow: Handle
    command: ScriptCommand


@dataclass(slots=True)
class Branch:
    """`to`: an address or network; None for all packets. The parts are those that packets pass, None for none.

    `inner`: netem is below the shaper, so that its limit is the queue's. `stab` as tc has it on the outermost qdisc.
    """

    to: str | None
    command: ScriptCommand
    netem: Netem | None = None
    shaper: Shaper | None = None
    held: QueueSettings | None = None
    inner: bool = False
    stab: list[str] = field(default_factory=list)

    @property
    def line(self) -> int:
        """The line of the command that leads packets here."""
        return self.command.line


def of(card: TcDevice, findings: Findings) -> list[Branch]:
    """The branches of a card, none without a root."""
    root = card.root
    return list(_below(root, card, findings, 0)) if root is not None else []


def _below(qdisc: Qdisc, card: TcDevice, findings: Findings, level: int) -> Iterator[Branch]:
    if level > MOST_LEVELS:
        raise findings.error(qdisc.command.line, qdisc.command.text, "is below itself, or too deep: write another tree")
    for branch in _of(qdisc, card, findings, level):
        if qdisc.stab:
            branch.stab = qdisc.stab
        yield branch


def _of(qdisc: Qdisc, card: TcDevice, findings: Findings, level: int) -> Iterator[Branch]:
    command = qdisc.command
    findings.settle(command, CommandOutcome.LAB)
    child = card.child(qdisc) if qdisc.handle is not None else None
    below = (
        list(_below(child, card, findings, level + 1)) if child is not None and qdisc.kind in ("netem", "tbf") else []
    )
    match qdisc.kind:
        case "netem":
            part = netem.read(command, qdisc.options, findings)
            if part.rate is not None and len(below) > 1:
                raise findings.error(command.line, command.text, "several branches share this rate: import one of them")
            for branch in below or [Branch(None, command)]:
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
            for branch in below or [Branch(None, command)]:
                yield _shaped(branch, shaper, findings)
        case "htb":
            yield from _htb(qdisc, card, findings, level)
        case "prio":
            yield from _prio(qdisc, card, findings, level)
        case kind:
            if child is not None:
                why = f"is below {kind} of line {command.line}, whose packets wait in one queue: leave it out"
                raise findings.error(child.command.line, child.command.text, why)
            yield Branch(None, command, held=queues.queue(command, kind, qdisc.options, findings))


def _shaped(branch: Branch, shaper: Shaper, findings: Findings) -> Branch:
    """A branch behind a rate."""
    if branch.shaper is not None:
        line, text = shaper.command.line, shaper.command.text
        raise findings.error(line, text, f"line {branch.shaper.command.line} is a rate too: leave the higher one out")
    branch.shaper, branch.inner = shaper, branch.netem is not None
    return branch


def _prio(qdisc: Qdisc, card: TcDevice, findings: Findings, level: int) -> Iterator[Branch]:
    """The bands that filters choose; packets that no filter chooses go to the band of packets without TOS bits."""
    command = qdisc.command
    bands = shapers.bands(command, qdisc.options, findings)
    major = qdisc.handle.major if qdisc.handle is not None else -1
    chosen = _chosen(qdisc, card, findings)
    for each in chosen:
        if not 1 <= each.flow.minor <= bands.count:
            raise findings.error(each.command.line, each.command.text, f'there is no band "{each.flow}": write another')
    children = {each.parent: each for each in card.qdiscs if each.parent is not None and each.parent.major == major}
    if all(each.to is not None for each in chosen):
        ordinary = Handle(major, bands.ordinary)
        chosen.append(_Chosen(REST if chosen else None, ordinary, children.get(ordinary, qdisc).command))
    _name_unused(bands, children, [each.flow for each in chosen], findings)
    for each in chosen:
        child = children.get(each.flow)
        below = list(_below(child, card, findings, level + 1)) if child is not None else [Branch(None, each.command)]
        if any(branch.shaper is not None for branch in below):
            _alone(each, chosen, findings)
        yield from _named(below, each, findings)


def _name_unused(bands: Bands, children: Mapping[Handle, Qdisc], used: Sequence[Handle], findings: Findings) -> None:
    """Names the tree below a band that only packets use which no lab has, as they have TOS bits."""
    for band, child in children.items():
        others = band.minor in bands.of_tos - {bands.ordinary}
        if band in used:
            if others:
                why = "takes packets with certain TOS bits too, by the priomap: here only those that filters name"
                findings.note(child.command, f"band {band} {why}")
            continue
        if others:
            why = f"takes only packets with certain TOS bits, by the priomap: all others go to band {bands.ordinary}"
        else:
            why = f"gets no packets: no filter names band {band}, nor does the priomap for any TOS bits"
        findings.cannot(child.command, child.command.text, why)


def _htb(qdisc: Qdisc, card: TcDevice, findings: Findings, level: int) -> Iterator[Branch]:
    command = qdisc.command
    if qdisc.handle is None:
        raise findings.error(command.line, command.text, 'has no handle for its classes: write "handle 1:"')
    default_minor, direct = shapers.htb_root(command, qdisc.options, findings)
    default = Handle(qdisc.handle.major, default_minor)
    classes = {handle: each for handle, each in card.classes.items() if handle.major == qdisc.handle.major}
    read = {handle: shapers.htb(each, findings) for handle, each in classes.items()}
    leaves = [handle for handle in classes if not card.has_below(handle)]
    chosen = _chosen(qdisc, card, findings)
    for each in chosen:
        if each.flow not in leaves:
            why = "has classes below it" if each.flow in classes else "is no class"
            instead = f"class {default}" if default in leaves else "no class, and are not limited"
            message = f"{each.flow} {why}, so its packets go to {instead}: write a class without others below it"
            raise findings.error(each.command.line, each.command.text, message)
    of_all = any(each.to is None for each in chosen)
    if default in leaves and not of_all:
        chosen.append(_Chosen(REST if chosen else None, default, classes[default].command))
    elif not of_all and default.minor:
        why = f"default {default.minor:x} is no class without others below it: packets that no filter chooses"
        findings.note(command, f"{why} are not limited")
    used = [each.flow for each in chosen]
    for handle in leaves:
        if handle not in used:
            lost = f"its rate of {read[handle].rate} is lost"
            why = f"no packets are sent to class {handle}, by a filter, iptables or default: {lost}"
            findings.warn(classes[handle].command, why)
    for each in chosen:
        _alone(each, chosen, findings)
        yield from _class(each, classes, read, used, card, findings, level)
    if all(each.to not in (None, REST) for each in chosen):
        yield Branch(REST if chosen else None, command, held=direct)


def _alone(of: _Chosen, chosen: list[_Chosen], findings: Findings) -> None:
    """Refuses a second destination of a class or band, which would share its rate."""
    first = next(each for each in chosen if each.flow == of.flow)
    if first is not of:
        why = f"leads to {of.flow} as line {first.command.line} does, so both share its rate"
        findings.cannot(of.command, of.command.text, why, "give each a link of its own")


def _class(
    of: _Chosen, classes: dict[Handle, Class], read: dict[Handle, HtbClass], used: list[Handle], card: TcDevice,
    findings: Findings, level: int,
) -> Iterator[Branch]:  # fmt: skip
    command = classes[of.flow].command
    rate = _rate(of.flow, classes, read, used, findings)
    if rate.bps < Rate.LOWEST:
        message = f"is {rate}, and links have {Rate(Rate.LOWEST)} or more: write a higher rate"
        raise findings.error(command.line, command.text, message)
    at: Handle | None = of.flow
    while at is not None:
        findings.settle(classes[at].command, CommandOutcome.LAB)
        at = classes[at].parent
    child = card.below(of.flow)
    below = list(_below(child, card, findings, level + 1)) if child is not None else [Branch(None, command)]
    for branch in _named(below, of, findings):
        yield _shaped(branch, Shaper(command, rate, read[of.flow].burst), findings)


def _rate(
    handle: Handle, classes: dict[Handle, Class], read: dict[Handle, HtbClass], used: list[Handle], findings: Findings
) -> Rate:
    """The rate that a class always has, where that is one rate."""
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
            findings.note(classes[handle].command, f"class {handle} has no parent to borrow from: ceil does nothing")
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
    findings.cannot(command, command.text, why, f"take its rate of {own.rate}")
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


def _named(branches: list[Branch], of: _Chosen, findings: Findings) -> Iterator[Branch]:
    for branch in branches:
        if branch.to is not None and of.to is not None:
            why = "is divided by filters a second time: write one filter for each branch"
            raise findings.error(of.command.line, of.to, why)
        yield replace(branch, to=branch.to if of.to is None else of.to, command=of.command)


def _chosen(qdisc: Qdisc, card: TcDevice, findings: Findings) -> list[_Chosen]:
    """The classes to which packets are sent: by iptables first, then by filters in the order in which tc asks them."""
    found: list[_Chosen] = []
    handle = qdisc.handle or Handle(-1, 0)
    for rule in card.rules:
        if rule.flow is not None and rule.flow.major == handle.major:
            _add(_Chosen(rule.to, rule.flow, rule.command), found, findings)
    for each in sorted((each for each in card.filters if each.parent == handle), key=lambda each: each.order):
        read = choice(each)
        if read.actions:
            findings.cannot(each.command, each.command.text, "does something to packets besides choosing their class")
            continue
        flow = flow_of(each, read.flow, findings)
        if flow is None:
            continue
        if read.strange:
            findings.cannot(each.command, each.command.text, read.strange)
        elif each.kind == "fw":
            _add_marked(each, flow, card, found, findings)
        elif read.matches is None or len(read.matches) > 1 or any(not to.startswith("dst ") for to in read.matches):
            several = len(read.matches or ()) > 1
            why = "chooses packets by several addresses" if several else "chooses packets by something else"
            findings.cannot(each.command, each.command.text, f"{why} than one destination")
        else:
            to = read.matches[0].removeprefix("dst ") if read.matches else None
            _add(_Chosen(to, flow, each.command), found, findings)
    return found


def _add_marked(of: TcFilter, flow: Handle, card: TcDevice, found: list[_Chosen], findings: Findings) -> None:
    """Adds the packets of a filter of kind `fw`, which takes those that a line of iptables marks."""
    if not of.mark:
        findings.cannot(of.command, of.command.text, "takes marks for classes: write a filter for each mark")
        return
    rules = marks_with(mark_of(of.mark, of.command, findings), card.rules)
    rules = [rule for rule in rules if of.protocol != "ip" or rule.to is None or not is_ipv6(rule.to)]
    if not rules:
        findings.warn(of.command, f"no line of iptables marks packets with {of.mark}: {of.command.text}")
    for rule in rules:
        if _add(_Chosen(rule.to, flow, of.command), found, findings):
            findings.settle(rule.command, CommandOutcome.LAB)


def _add(new: _Chosen, found: list[_Chosen], findings: Findings) -> bool:
    """Adds a choice, unless an earlier one takes its packets; return whether it was added."""
    before = next((each for each in found if covers(each.to, new.to)), None)
    if before is not None:
        findings.warn(new.command, f"line {before.command.line} takes these packets before: {new.command.text}")
        return False
    findings.settle(new.command, CommandOutcome.LAB)
    found.append(new)
    return True
