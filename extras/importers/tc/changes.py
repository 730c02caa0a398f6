"""tc's commands as the tree that each card ends up with. See tc(8).

Comes in: commands in their order. Goes out: a `TcDevice` for each device. What Linux refuses is refused here
(net/sched/sch_api.c, cls_api.c, sch_htb.c): such a line did nothing.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from ewan.extras.importers.findings import CommandOutcome, Findings, ImportingError
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc import netem, shapers
from ewan.extras.importers.tc.tree import Class, Qdisc, TcDevice, TcFilter
from ewan.extras.importers.tc.words import (
    EGRESS,
    INGRESS,
    INGRESS_KINDS,
    Handle,
    OptionWords,
    handle_of,
    in_words,
    known_options,
    without_options,
)
from ewan.labs.base.units.tools import tc_whole

_CARD = re.compile(r"[^\s/:*?\[\]{}<>'\"\u201c\u201d\u2018\u2019]{1,15}")
"""Names that Linux gives to cards, without those that a shell or an editor made something else of."""
_SEPARATED = re.compile(r"[0-9.]+ (?:[mun]?s|[mun]?secs?|%|[kmgt]?i?(?:bit|bps|b)|[kmg]bits?/s)", re.IGNORECASE)
"""A number, and a unit that should be part of the same word."""
_HOLDS_ONE = ("netem", "tbf", "red")
"""Kinds with one place below them, which every minor number names."""
_UNCHANGED = ("htb", "pfifo_fast", "noqueue", "mq", *INGRESS_KINDS)
"""Kinds without an operation to change them."""
_WHOLE = ("netem", "tbf", "red", "prio", "pfifo", "bfifo")
"""Kinds whose `change` sets all options anew; netem keeps `_KEPT_BY_CHANGE`."""
_FILTERED = ("htb", "prio", *INGRESS_KINDS)
_KEPT_BY_CHANGE = ("corrupt", "rate", "slot", "distribution")
"""Options of netem that stay if `change` does not name them (netem_change in net/sched/sch_netem.c)."""
_AUTOMATIC, _LAST_AUTOMATIC = 0x8000, 0xC000
"""A filter that says no priority is asked before those from the first number on, and after all below it."""


def cards(commands: Iterable[ScriptCommand], findings: Findings) -> dict[str, TcDevice]:
    """The cards by the device's name, with its namespace before it if there is one."""
    found: dict[str, TcDevice] = {}
    for command in commands:
        words, options = without_options(command.words), known_options(command, findings)
        if file := options.get("-batch"):
            instead = "write them here" if file == "-" else f"import {file} itself"
            raise findings.error(command.line, command.text, f"is a file of commands: {instead}")
        if namespace := options.get("-netns"):
            command = replace(command, namespace=namespace)
        if len(words) < 2:
            findings.settle(command, CommandOutcome.NOTHING)
        else:
            _take(words[0], words[1], words[2:], command, found, findings)
    return found


def _take(
    what: str, verb: str, words: list[str], command: ScriptCommand, found: dict[str, TcDevice], findings: Findings
) -> None:
    if "qdisc".startswith(what):
        take: type[_Change] = _OfQdisc
    elif "class".startswith(what):
        take = _OfClass
    elif "filter".startswith(what):
        take = _OfFilter
    else:
        findings.cannot(command, command.text, f'tc\'s "{what}" has no word in a description')
        return
    if separated := next((pair for pair in pairwise(words) if _SEPARATED.fullmatch(" ".join(pair))), None):
        message = f'a quantity and its unit are one word, or tc refuses it: write "{"".join(separated)}"'
        raise findings.error(command.line, " ".join(separated), message)
    if "dev" not in words or words.index("dev") + 1 == len(words):
        raise findings.error(command.line, command.text, 'names no device: write "dev eth0"')
    device = words[words.index("dev") + 1]
    if not _CARD.fullmatch(device):
        why = "is no name of a card: what the shell makes of a pattern is not known here: write a command for each card"
        raise findings.error(command.line, device, why)
    name = device if command.namespace is None else f"{command.namespace}/{device}"
    verb = next((full for full in ("add", "change", "replace", "delete", "link") if full.startswith(verb)), verb)
    if verb not in ("add", "change", "replace", "delete"):
        raise findings.error(command.line, command.text, f'"{verb}" is no verb of tc that can be imported: write add')
    if block := next((word for word in words if word in ("ingress_block", "egress_block")), ""):
        why = f"{block} gives several cards the same filters, which has no word in a description: write those of each"
        raise findings.error(command.line, command.text, why)
    read = in_words(words, take is _OfFilter, command, findings)
    take(read, command, found.setdefault(name, TcDevice(name)), findings).do(verb)


class _Change(ABC):
    """One command on one card."""

    def __init__(self, words: OptionWords, command: ScriptCommand, card: TcDevice, findings: Findings) -> None:
        self.words, self.command, self.card, self.findings = words, command, card, findings

    @abstractmethod
    def do(self, verb: str) -> None:
        """Executes the verb: add, change, replace or delete."""

    def refused(self, why: str) -> ImportingError:
        """Linux did not do it, so no lab has it."""
        return self.findings.error(self.command.line, self.command.text, why)

    def handle(self, key: str, like: str) -> Handle | None:
        text = self.words.head.get(key)
        return None if text is None else handle_of(text, like, self.command, self.findings)

    def go_on(self) -> None:
        """A card that was emptied is empty, where something is done to it again."""
        if self.card.ended is not None and self.card.root is not None:
            self.findings.settle(self.card.ended, CommandOutcome.LAB)
            self.remove(self.card.root)
        self.card.ended = None

    def undo(self, *commands: ScriptCommand) -> None:
        for each in commands:
            self.findings.settle(each, CommandOutcome.UNDONE)

    def remove(self, qdisc: Qdisc) -> None:
        """Removes a qdisc with all below it."""
        self.card.qdiscs.remove(qdisc)
        self.undo(qdisc.command)
        if qdisc.handle is None:
            return
        major = qdisc.handle.major
        gone = [each for handle, each in self.card.classes.items() if handle.major == major]
        self.card.classes = {handle: each for handle, each in self.card.classes.items() if handle.major != major}
        self.undo(*(each.command for each in gone))
        self.remove_filters(lambda each: each.parent.major == major)
        for each in [each for each in self.card.qdiscs if each.parent is not None and each.parent.major == major]:
            if each in self.card.qdiscs:
                self.remove(each)

    def remove_filters(self, chosen: Callable[[TcFilter], bool]) -> None:
        self.undo(*(each.command for each in self.card.filters if chosen(each)))
        self.card.filters = [each for each in self.card.filters if not chosen(each)]


class _OfQdisc(_Change):
    def do(self, verb: str) -> None:
        rest = self.words.rest
        kind, options = (rest[0], rest[1:]) if rest else ("", [])
        handle = self.handle("handle", "1:")
        handle = handle._replace(minor=0) if handle is not None and handle.major else None
        parent = self.handle("parent", "1:10")
        if kind in INGRESS_KINDS or (parent is not None and parent.major == INGRESS.major):
            self.entrance(verb, kind, options)
            return
        self.go_on()
        if verb == "delete":
            self.delete(parent, handle, kind)
            return
        if not kind and verb != "add" and self.card.root is not None and "root" in self.words.head:
            self.findings.settle(self.command, CommandOutcome.NOTHING)
            return
        if not kind:
            raise self.refused('names no discipline: write one, like "netem"')
        if parent is None and "root" not in self.words.head:
            self.by_handle(verb, handle, Qdisc(self.command, kind, handle, None, options, self.words.stab))
            return
        parent = self.place(parent) if parent is not None else None
        here = next((each for each in self.card.qdiscs if each.parent == parent and each.handle != INGRESS), None)
        self.put(verb, here, Qdisc(self.command, kind, handle, parent, options, self.words.stab))

    def place(self, parent: Handle) -> Handle:
        """The place of a qdisc with this parent: the parent must exist."""
        above = self.card.with_handle(parent.major)
        if above is None:
            raise self.refused(
                f"there is no qdisc {parent.major:x}: on {self.card.name} at this line, so tc refuses it"
            )
        if above.kind in _HOLDS_ONE:
            return Handle(parent.major, 1)
        if above.kind == "htb":
            if parent not in self.card.classes:
                raise self.refused(f"there is no class {parent} at this line, so tc refuses it: write its class before")
            if self.card.has_below(parent):
                raise self.refused(f"class {parent} has classes below it, so tc refuses it: name one of them")
            return parent
        if above.kind == "prio":
            if not 1 <= parent.minor <= shapers.bands(above.command, above.options, self.findings).count:
                raise self.refused(f"{above.kind} of line {above.command.line} has no band {parent}, so tc refuses it")
            return parent
        line = above.command.line
        raise self.refused(f"is below {above.kind} of line {line}, whose packets wait in one queue: leave it out")

    def by_handle(self, verb: str, handle: Handle | None, new: Qdisc) -> None:
        """Changes the qdisc that is named only by its handle."""
        here = self.card.with_handle(handle.major) if handle is not None else None
        if here is None:
            raise self.refused('says neither root nor parent, so tc refuses it: write "root"')
        if verb == "add" or here.kind != new.kind:
            message = (
                f"line {here.command.line} put {here.kind} there, so tc refuses it: write replace, and root or parent"
            )
            raise self.refused(message)
        new.parent = here.parent
        self.change(here, new)

    def put(self, verb: str, here: Qdisc | None, new: Qdisc) -> None:
        """Puts a qdisc there, as tc_modify_qdisc does."""
        other = self.card.with_handle(new.handle.major) if new.handle is not None else None
        if verb == "add" and here is not None:
            line = here.command.line
            raise self.refused(f"line {line} put one there, so tc refuses this one: write replace, or leave it out")
        if verb == "change" and here is None:
            raise self.refused("there is nothing to change: write add")
        if other is not None and other is not here:
            raise self.refused(f"line {other.command.line} has that handle already: write another one")
        if here is None:
            self.card.qdiscs.append(new)
        elif here.kind == new.kind and new.handle in (None, here.handle):
            self.change(here, new)
        elif other is here or (verb == "change" and new.handle is not None):
            raise self.refused(f"line {here.command.line} put {here.kind} there: write replace and another handle")
        else:
            self.remove(here)
            self.card.qdiscs.append(new)

    def change(self, here: Qdisc, new: Qdisc) -> None:
        """Changes a qdisc in its place, with all below it."""
        line = here.command.line
        if here.kind in _UNCHANGED:
            raise self.refused(f"{here.kind} of line {line} cannot be changed, so tc refuses it: leave one of them out")
        if here.kind not in _WHOLE and here.options:
            raise self.refused(f"keeps options of {here.kind} of line {line} that it does not name: write one line")
        if new.stab:
            raise self.refused(f"changes the size table of line {line} or not, by the kernel's version: write one line")
        new.handle, new.stab = here.handle, here.stab
        if here.kind == "netem":
            netem.read(here.command, here.options, self.findings)  # what has no word stays too, so it is refused here
            jitter = netem.read(new.command, new.options, self.findings).jitter
            new.options = [*_kept(here.options, new.options, spreads=jitter.ns > 0), *new.options]
        self.undo(here.command)
        self.card.qdiscs[self.card.qdiscs.index(here)] = new

    def entrance(self, verb: str, kind: str, options: list[str]) -> None:
        here = self.card.entrance
        if options:
            instead = "a qdisc shapes what leaves: send what comes in to an ifb, and write it there"
            raise self.refused(f'{kind} has no options, so tc refuses "{options[0]}": {instead}')
        if verb == "delete":
            self.findings.settle(self.command, CommandOutcome.NOTHING if here is None else CommandOutcome.LAB)
            if here is not None and kind not in ("", here.kind):
                raise self.refused(
                    f"line {here.command.line} put {here.kind} there, so tc refuses it: write {here.kind}"
                )
            if here is not None:
                self.remove(here)
        elif here is not None and verb == "add":
            raise self.refused(f"line {here.command.line} put {here.kind} there, so tc refuses this one: leave it out")
        elif here is not None:
            raise self.refused(f"{here.kind} of line {here.command.line} cannot be changed: leave one of them out")
        elif verb == "change":
            raise self.refused("there is nothing to change: write add")
        else:
            self.card.qdiscs.append(Qdisc(self.command, kind, INGRESS, None, options, []))

    def delete(self, parent: Handle | None, handle: Handle | None, kind: str) -> None:
        """Deletes a qdisc, as tc_get_qdisc finds it; where there is none, tc refuses it, and nothing changes."""
        if parent is not None:
            above = self.card.with_handle(parent.major)
            parent = Handle(parent.major, 1) if above is not None and above.kind in _HOLDS_ONE else parent
            here = self.card.below(parent)
        elif "root" in self.words.head:
            here = self.card.root
        elif here := (self.card.with_handle(handle.major) if handle is not None else self.card.root):
            raise self.refused(f"says neither root nor parent, so tc refuses it and {here.kind} stays: write one")
        if here is None:
            self.findings.settle(self.command, CommandOutcome.NOTHING)
            return
        if handle is not None and here.handle != handle:
            own = f"has the handle {here.handle}" if here.handle is not None else "has another handle"
            raise self.refused(
                f"{here.kind} of line {here.command.line} {own}, so tc refuses it and it stays: leave it out"
            )
        if kind not in ("", here.kind):
            raise self.refused(
                f"line {here.command.line} put {here.kind} there, so tc refuses it and it stays: leave {kind} out"
            )
        if here.parent is None:
            self.card.ended = self.command
        else:
            self.findings.settle(self.command, CommandOutcome.LAB)
            self.remove(here)


def _kept(before: list[str], now: list[str], *, spreads: bool) -> Iterator[str]:
    """The options, with their values, that stay when a netem is changed; a distribution where delays are spread."""
    taking = False
    named = {netem.full(word) for word in now}
    for word in before:
        if option := netem.full(word):
            taking = option in _KEPT_BY_CHANGE and option not in named
            taking &= option != "distribution" or spreads
        if taking:
            yield word


class _OfClass(_Change):
    def do(self, verb: str) -> None:
        self.go_on()
        handle = self.completed(self.handle("classid", "10"))
        before = self.card.classes.get(handle)
        if verb == "delete":
            self.delete(handle, before)
            return
        kind = self.words.rest[0] if self.words.rest else "?"
        if kind != "htb":
            self.findings.cannot(self.command, self.command.text, f"classes of {kind} have no word in a description")
            return
        above = self.card.with_handle(handle.major)
        if above is None or above.kind != "htb" or not handle.minor:
            raise self.refused(f"there is no htb {handle.major:x}: on {self.card.name} at this line, so tc refuses it")
        if before is not None and verb == "add":
            raise self.refused(f"line {before.command.line} made this class, so tc refuses it: write replace")
        if before is None and verb == "change":
            raise self.refused("there is no such class to change: write add")
        parent = before.parent if before is not None else self.above(handle)
        if before is not None:
            self.undo(before.command)
        self.card.classes[handle] = Class(self.command, handle, parent, self.words.rest[1:])

    def completed(self, handle: Handle | None) -> Handle:
        """The handle with the number of its qdisc, which may stand only in its parent, or nowhere for that at the
        root."""
        if handle is None or not handle.minor:
            raise self.refused('names no class: write "classid 1:10"')
        parent, root = self.handle("parent", "1"), self.card.root
        if parent is not None and parent.major and handle.major not in (0, parent.major):
            raise self.refused("its parent is of another qdisc, so tc refuses it: write the same number before the :")
        own = root.handle.major if root is not None and root.handle is not None else 0
        return Handle(handle.major or (parent.major if parent is not None else 0) or own, handle.minor)

    def above(self, handle: Handle) -> Handle | None:
        """The class above, or None for a root class."""
        parent = self.handle("parent", "1")
        if parent is None or not parent.minor:
            return None
        parent = Handle(handle.major, parent.minor)
        if parent not in self.card.classes:
            why = f"there is no class {parent} at this line, so Linux makes {handle} a class without a parent"
            self.findings.note(self.command, why)
            return None
        if (here := self.card.below(parent)) is not None:
            line = self.command.line
            self.findings.warn(
                here.command, f"class {parent} has classes from line {line} on: what was below it is gone"
            )
            self.remove(here)
        return parent

    def delete(self, handle: Handle, before: Class | None) -> None:
        if before is None:
            self.findings.settle(self.command, CommandOutcome.NOTHING)
            return
        if self.card.has_below(handle) or any(str(handle) in each.words for each in self.card.filters):
            raise self.refused(f"class {handle} is in use, so tc refuses it: leave out what uses it")
        self.findings.settle(self.command, CommandOutcome.LAB)
        self.undo(before.command)
        del self.card.classes[handle]
        if (here := self.card.below(handle)) is not None:
            self.remove(here)


class _OfFilter(_Change):
    def do(self, verb: str) -> None:
        self.go_on()
        head = self.words.head
        if verb == "delete" and not self.card.qdiscs:
            self.findings.settle(self.command, CommandOutcome.NOTHING)
            return
        parent = self.parent()
        if verb == "delete":
            self.delete(parent)
            return
        if verb != "add" and any(each.parent == parent for each in self.card.filters):
            raise self.refused("changes a filter: write the filters as they are at the end")
        above = self.card.with_handle(parent.major)
        if above is None or (above.kind == "ingress" and parent == EGRESS):
            raise self.refused(f"there is no qdisc for it on {self.card.name} at this line, so tc refuses it")
        if above.kind == "clsact" and head.get("parent", "ffff:fff2") not in ("ffff:fff2", "ffff:fff3"):
            raise self.refused('clsact has filters of two directions, so tc refuses it: write "ingress" or "egress"')
        if above.kind not in _FILTERED:
            self.findings.cannot(self.command, self.command.text, f"is of {above.kind}, which has no classes to choose")
            return
        if parent.minor and parent.major != INGRESS.major:
            why = f'is asked only about packets that another filter sent to {parent}: write "parent {parent.major:x}:"'
            self.findings.cannot(self.command, self.command.text, why)
            return
        if head.get("chain", "0") != "0":
            self.findings.cannot(self.command, self.command.text, "is in a chain of its own, where no packet comes")
            return
        protocol = head.get("protocol", "all")
        mine = [each for each in self.card.filters if each.parent == parent]
        order = self.order(mine)
        new = TcFilter(self.command, parent, order, protocol, head.get("handle", ""), tuple(self.words.rest))
        for each in mine:
            if each.order == order and (each.protocol, each.kind) != (protocol, new.kind):
                message = f"line {each.command.line} has another kind or protocol at the same prio, so tc refuses it"
                raise self.refused(message)
            if each.order == order and new.kind == "matchall":
                raise self.refused(f"line {each.command.line} is a matchall of the same prio, so tc refuses it")
        self.card.filters.append(new)

    def parent(self) -> Handle:
        head = self.words.head
        if "ingress" in head or "egress" in head:
            if "parent" in head:
                raise self.refused("says its parent twice: leave one out")
            return INGRESS if "ingress" in head else EGRESS
        parent = self.handle("parent", "1:")
        if parent is not None:
            return INGRESS if parent == (INGRESS.major, 0xFFF2) else parent
        root = self.card.root
        if root is None or root.handle is None:
            raise self.refused('says no parent: write "parent 1:"')
        return root.handle

    def order(self, mine: list[TcFilter]) -> int:
        """The priority: the lowest is asked first."""
        text = next((self.words.head[key] for key in ("prio", "pref") if key in self.words.head), "0")
        if order := self.findings.read(self.command, "prio", tc_whole, text):
            return order & 0xFFFF
        return min((each.order for each in mine if each.order >= _AUTOMATIC), default=_LAST_AUTOMATIC + 1) - 1

    def delete(self, parent: Handle) -> None:
        head = self.words.head
        if self.words.rest or "handle" in head:
            raise self.refused("takes away one filter of several: write the filters as they are at the end")
        order = self.order([]) if "prio" in head or "pref" in head else None
        chosen = [each for each in self.card.filters if each.parent == parent and order in (None, each.order)]
        self.findings.settle(self.command, CommandOutcome.LAB if chosen else CommandOutcome.NOTHING)
        self.remove_filters(lambda each: each in chosen)
