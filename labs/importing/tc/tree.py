"""tc's commands as the tree that each card ends up with: qdiscs, classes, filters. See tc(8).

Comes in: commands in their order. Goes out: a `Card` for each device, as `tc qdisc show` would tell it.
Options of a kind stay words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from labs.importing.findings import Findings
from labs.importing.script import Command

_HANDLE = re.compile(r"([0-9a-fA-F]{0,4}):([0-9a-fA-F]{0,4})")
_WITH_VALUE = ("handle", "parent", "dev", "estimator")
_KEPT_BY_CHANGE = ("corrupt", "rate", "reorder", "slot")
"""Of netem: what `change` does not name stays (netem_change in net/sched/sch_netem.c)."""


class Handle(NamedTuple):
    """`10:1` in its two hexadecimal parts; a qdisc's own has the second one 0."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major:x}:{self.minor:x}" if self.minor else f"{self.major:x}:"


@dataclass(slots=True)
class Qdisc:
    """`parent`: None at the root. `stab`: words of the size table."""

    command: Command
    kind: str
    handle: Handle | None
    parent: Handle | None
    options: list[str]
    stab: list[str]


@dataclass(slots=True)
class Class:
    """Of HTB. `parent` is a class, or None at the qdisc."""

    command: Command
    handle: Handle
    parent: Handle | None
    options: list[str]


@dataclass(frozen=True, slots=True)
class Filter:
    """`words` from its kind on."""

    command: Command
    parent: Handle | None
    order: int
    words: tuple[str, ...]


@dataclass(slots=True)
class Card:
    """A device, with all that was put on it."""

    name: str
    qdiscs: list[Qdisc] = field(default_factory=list)
    classes: dict[Handle, Class] = field(default_factory=dict)
    filters: list[Filter] = field(default_factory=list)
    ended: Command | None = None

    @property
    def root(self) -> Qdisc | None:
        """The qdisc at the root."""
        return next(
            (qdisc for qdisc in self.qdiscs if qdisc.parent is None and qdisc.kind not in ("ingress", "clsact")), None
        )

    def child(self, parent: Qdisc) -> Qdisc | None:
        """Of a qdisc with one child."""
        major = parent.handle.major if parent.handle else -1
        return next((each for each in self.qdiscs if each.parent is not None and each.parent.major == major), None)

    def below(self, handle: Handle) -> Qdisc | None:
        """Of a class."""
        return next((each for each in self.qdiscs if each.parent == handle), None)


def cards(commands: Iterable[Command], findings: Findings) -> dict[str, Card]:
    """By the device's name, with its namespace before it if there is one."""
    found: dict[str, Card] = {}
    for command in commands:
        words = list(command.words)
        while words and words[0].startswith("-"):
            option = words.pop(0)
            if option in ("-b", "-batch", "-n", "-netns") and words:
                value = words.pop(0)
                if option in ("-b", "-batch"):
                    raise findings.error(command.line, command.text, f"is a file of commands: import {value} itself")
        if len(words) < 2:
            continue
        if "show".startswith(words[1]) or "list".startswith(words[1]) or words[1] in ("ls", "lst", "get"):
            continue
        _take(words[0], words[1], words[2:], command, found, findings)
    return found


def _take(what: str, verb: str, words: list[str], command: Command, found: dict[str, Card], findings: Findings) -> None:
    if "qdisc".startswith(what):
        take = _qdisc
    elif "class".startswith(what):
        take = _class
    elif "filter".startswith(what):
        take = _filter
    else:
        findings.cannot(command.line, command.text, f'tc\'s "{what}" has no word in a description')
        return
    if "dev" not in words or words.index("dev") + 1 == len(words):
        raise findings.error(command.line, command.text, 'names no device: write "dev eth0"')
    device = words[words.index("dev") + 1]
    name = device if command.namespace is None else f"{command.namespace}/{device}"
    verb = next((full for full in ("add", "change", "replace", "delete", "link") if full.startswith(verb)), verb)
    if verb not in ("add", "change", "replace", "delete"):
        raise findings.error(command.line, command.text, f'"{verb}" is no verb of tc that can be imported: write add')
    take(verb, words, command, found.setdefault(name, Card(name)), findings)


def _head(words: list[str], command: Command, findings: Findings) -> tuple[dict[str, str], list[str], list[str]]:
    """What stands before the kind, the size table's words, and the rest from the kind on."""
    head: dict[str, str] = {}
    stab: list[str] = []
    rest = list(words)
    while rest:
        if rest[0] in _WITH_VALUE:
            if len(rest) < 2:
                raise findings.error(command.line, command.text, f"{rest[0]} has no value: write one")
            head[rest[0]] = rest[1]
            rest = rest[2:]
        elif rest[0] == "classid" and len(rest) > 1:
            head["handle"] = rest[1]
            rest = rest[2:]
        elif rest[0] == "root":
            head["root"] = ""
            rest = rest[1:]
        elif rest[0] == "stab":
            rest = rest[1:]
            while len(rest) > 1 and rest[0] in ("overhead", "mpu", "linklayer", "mtu", "tsize"):
                stab += rest[:2]
                rest = rest[2:]
        else:
            break
    return head, stab, rest


def _handle(text: str, command: Command, findings: Findings) -> Handle:
    match = _HANDLE.fullmatch(text if ":" in text else f"{text}:")
    if match is None:
        raise findings.error(command.line, command.text, f'"{text}" is no handle: write one like "1:" or "1:10"')
    return Handle(int(match[1] or "0", 16), int(match[2] or "0", 16))


def _qdisc(verb: str, words: list[str], command: Command, card: Card, findings: Findings) -> None:
    head, stab, rest = _head(words, command, findings)
    handle = _handle(head["handle"], command, findings)._replace(minor=0) if "handle" in head else None
    parent = _handle(head["parent"], command, findings) if "parent" in head else None
    kind, options = (rest[0], rest[1:]) if rest else ("", [])
    if kind in ("ingress", "clsact") or handle == (0xFFFF, 0):
        if verb != "delete":
            card.qdiscs.append(Qdisc(command, kind or "ingress", Handle(0xFFFF, 0), None, options, stab))
        return
    here = next((each for each in card.qdiscs if each.parent == parent and each.handle != (0xFFFF, 0)), None)
    if verb == "delete":
        _delete(here, command, card)
        return
    if card.ended is not None:
        what = f"the card was emptied in line {card.ended.line}: a description has one state of a network"
        findings.cannot(command.line, command.text, f"{what}, write later ones as events of a scenario")
        return
    if not kind:
        raise findings.error(command.line, command.text, 'names no discipline: write one, like "netem"')
    if verb == "add" and here is not None:
        message = f"line {here.command.line} put one there, so tc refuses this one: write replace, or leave it out"
        raise findings.error(command.line, command.text, message)
    if verb == "change" and here is None:
        raise findings.error(command.line, command.text, "there is nothing to change: write add")
    new = Qdisc(command, kind, handle, parent, options, stab)
    if here is not None:
        same = here.kind == kind and (handle is None or handle == here.handle)
        if same:
            new.handle = here.handle
            new.stab = stab or here.stab
            if kind == "netem":
                new.options = [*_kept(here.options, options), *options]
            card.qdiscs[card.qdiscs.index(here)] = new
            return
        if verb == "change":
            raise findings.error(
                command.line, command.text, f"line {here.command.line} put {here.kind} there: write replace"
            )
        _remove(here, card)
    card.qdiscs.append(new)


def _kept(before: list[str], now: list[str]) -> list[str]:
    """Of a netem that is changed: the options with their values that stay."""
    kept: list[str] = []
    taking = False
    for word in before:
        if word[:1].isalpha() and not word.endswith("%"):
            taking = word in _KEPT_BY_CHANGE and word not in now
        if taking:
            kept.append(word)
    return kept


def _delete(here: Qdisc | None, command: Command, card: Card) -> None:
    if here is None or here.parent is not None:
        if here is not None:
            _remove(here, card)
        return
    card.ended = command


def _remove(qdisc: Qdisc, card: Card) -> None:
    """With all below it."""
    major = qdisc.handle.major if qdisc.handle else None
    card.qdiscs.remove(qdisc)
    if major is None:
        return
    card.classes = {handle: each for handle, each in card.classes.items() if handle.major != major}
    card.filters = [each for each in card.filters if each.parent is None or each.parent.major != major]
    for each in [each for each in card.qdiscs if each.parent is not None and each.parent.major == major]:
        if each in card.qdiscs:
            _remove(each, card)


def _class(verb: str, words: list[str], command: Command, card: Card, findings: Findings) -> None:
    head, _, rest = _head(words, command, findings)
    if card.ended is not None:
        return
    if "handle" not in head:
        raise findings.error(command.line, command.text, 'names no class: write "classid 1:10"')
    handle = _handle(head["handle"], command, findings)
    if verb == "delete":
        card.classes.pop(handle, None)
        return
    if not rest or rest[0] != "htb":
        kind = rest[0] if rest else "?"
        findings.cannot(command.line, command.text, f"classes of {kind} have no word in a description")
        return
    if verb == "add" and handle in card.classes:
        raise findings.error(command.line, command.text, f"line {card.classes[handle].command.line} made this class")
    parent = _handle(head["parent"], command, findings) if "parent" in head else None
    card.classes[handle] = Class(command, handle, parent if parent is not None and parent.minor else None, rest[1:])


def _filter(verb: str, words: list[str], command: Command, card: Card, findings: Findings) -> None:
    if verb == "delete" or card.ended is not None:
        return
    head: dict[str, str] = {}
    rest = list(words)
    known = ("dev", "parent", "protocol", "prio", "pref", "preference", "priority", "handle", "estimator", "chain")
    while rest and (rest[0] in known or rest[0] in ("root", "ingress", "egress")):
        if rest[0] in known and len(rest) > 1:
            head[rest[0]] = rest[1]
            rest = rest[2:]
        else:
            head[rest[0]] = ""
            rest = rest[1:]
    parent = _handle(head["parent"], command, findings) if "parent" in head else None
    if "ingress" in head:
        parent = Handle(0xFFFF, 0)
    order = next((head[key] for key in ("prio", "pref", "preference", "priority") if key in head), "0")
    number = int(order) if order.isascii() and order.isdecimal() and len(order) < 6 else 0
    card.filters.append(Filter(command, parent, number, tuple(rest)))
