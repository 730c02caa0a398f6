"""Lines that `tc qdisc show` and `tc class show` print, as the commands that would make the listed objects. See tc(8).

Comes in: commands, some of which are such lines. Goes out: commands of tc, parents before their children."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ewan.extras.importers.findings import CommandOutcome, Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc.words import INGRESS_KINDS

_OWN = re.compile(r"[0-9a-f]{1,4}:")
_CLASS = re.compile(r"[0-9a-f]{0,4}:[0-9a-f]{1,4}")
_CARD = "card"
"""The device, where `tc qdisc show dev …` leaves it out."""
_TOLD_BY_QDISC = ("tbf", "netem", "prio", "red", "fq_codel", "sfq", "mq", "fq", "cake")
"""Kinds whose classes say what their qdisc says too."""
_DROPPED = {"refcnt": 2, "offloaded": 1, "direct_packets_stat": 2, "ver": 2, "level": 2, "Scell_log": 2}
_ROUNDED = "tc shows times and rates with three digits or so: a command has them exactly"


def is_shown(command: ScriptCommand) -> bool:
    """Return whether a line is of `tc qdisc show`, `tc class show` or `tc filter show`."""
    words = command.words
    if command.name == "qdisc":
        return len(words) > 1 and _OWN.fullmatch(words[1]) is not None
    if command.name == "class":
        return len(words) > 1 and _CLASS.fullmatch(words[1]) is not None
    return command.name == "filter" and words[:1] in (("parent",), ("protocol",), ("block",)) and "pref" in words


def of_card(command: ScriptCommand, card: str) -> ScriptCommand:
    """A line of `tc qdisc show dev CARD` or `tc class show dev CARD`, which leave the card out, with the card; other
    commands as they are."""
    if not card or command.name == "filter" or not is_shown(command) or "dev" in command.words:
        return command
    return replace(command, words=(*command.words[:2], "dev", card, *command.words[2:]))


def as_commands(commands: Sequence[ScriptCommand], findings: Findings) -> list[ScriptCommand]:
    """All of them, those that were shown as commands."""
    shown = [command for command in commands if is_shown(command)]
    if not shown:
        return list(commands)
    findings.note(shown[0], _ROUNDED)
    mine = [command for command in shown if command.name == "qdisc" and _configures(command, findings)]
    roots = [
        each
        for each in mine
        if "dev" not in each.words and "parent" not in each.words and each.words[0] not in INGRESS_KINDS
    ]
    if len(roots) > 1:
        why = f'names no card, nor does line {roots[0].line}: write the card behind the handle of both, like "dev eth0"'
        raise findings.error(roots[1].line, roots[1].text, why)
    written = {value(each.words, "dev"): each for each in reversed(commands) if not is_shown(each)}
    for each in mine:
        if (maker := written.get(value(each.words, "dev"))) is not None:
            why = (
                f"shows what line {maker.line} is about too: leave out the commands, or what tc shows of their outcome"
            )
            raise findings.error(each.line, each.text, why)
    _are_whole(mine, [command for command in commands if command.name != "qdisc"], findings)
    devices: dict[str, set[str]] = {}
    for command in mine:
        devices.setdefault(command.words[1], set()).add(value(command.words, "dev") or _CARD)
    made = [_qdisc(command, value(command.words, "dev") or _CARD, findings) for command in mine]
    every = set().union(*devices.values())
    for command in shown:
        if command.name == "class":
            if command.words[0] in _TOLD_BY_QDISC:
                findings.settle(command, CommandOutcome.NOTHING)
            else:
                made.append(_class(command, _card_of(command, devices, every, findings)))
        elif command.name == "filter":
            findings.cannot(command, command.text, "is a filter as tc shows it: write the command that made it")
    return [*_in_order(made), *(command for command in commands if not is_shown(command))]


def _are_whole(qdiscs: Sequence[ScriptCommand], others: Sequence[ScriptCommand], findings: Findings) -> None:
    """Refuses a half of an htb: `tc qdisc show` and `tc class show` print one half each."""
    made = [command for command in others if command.name == "tc" and "htb" in command.words]
    classes = [command for command in others if command.name == "class" and command.words[0] == "htb"]
    roots = [command for command in qdiscs if command.words[0] == "htb"]
    for these, those, what, show in (
        (roots, classes, "has classes", "class"),
        (classes, roots, "has a qdisc", "qdisc"),
    ):
        for each in these:
            major = each.words[1].split(":")[0]
            if not made and not any(other.words[1].split(":")[0] == major for other in those):
                device = value(each.words, "dev") or "CARD"
                why = f'{what} that this does not tell: write what "tc {show} show dev {device}" prints here too'
                raise findings.error(each.line, each.text, why)


def _configures(command: ScriptCommand, findings: Findings) -> bool:
    """Return whether a user put it there; `0:` is a card's own."""
    if command.words[1] != "0:":
        return True
    if command.words[0] == "noqueue":
        findings.settle(command, CommandOutcome.NOTHING)
    else:
        findings.warn(command, f"{command.words[0]} 0: is the card's default: not imported")
    return False


def value(words: Sequence[str], key: str) -> str | None:
    """The word behind `key`; None where there is none."""
    return next((value for word, value in pairwise(words) if word == key), None)


def _qdisc(command: ScriptCommand, device: str, findings: Findings) -> ScriptCommand:
    kind, handle, *rest = command.words
    words = ["qdisc", "add", "dev", device]
    parent = value(rest, "parent")
    if kind in INGRESS_KINDS:
        return replace(command, name="tc", words=(*words, kind))
    words += ["root"] if "root" in rest or parent is None else ["parent", parent]
    options = list(rest)
    for key in ("dev", "parent"):
        if key in options:
            del options[options.index(key) : options.index(key) + 2]
    options = [word for word in options if word != "root"]
    options = _without(options, _DROPPED)
    read = _OPTIONS[kind](options) if kind in _OPTIONS else options
    if (
        kind == "netem"
        and (delay := read[read.index("delay") :] if "delay" in read else [])[2:3]
        and delay[2][0].isdigit()
    ):
        findings.note(command, "tc does not show the distribution of jitter, so it is taken as uniform")
    if kind == "prio":
        findings.warn(command, "tc qdisc show tells no filters, so what they send to other bands is not known here")
    return replace(command, name="tc", words=(*words, "handle", handle, kind, *read))


def _card_of(command: ScriptCommand, devices: dict[str, set[str]], every: set[str], findings: Findings) -> str:
    """The card of a class: the card that it names, or that of the qdisc which has its handle."""
    named = value(command.words, "dev")
    known = {named} if named else devices.get(f"{command.words[1].split(':')[0]}:", every)
    if len(known) > 1:
        why = f'is of one of {", ".join(sorted(known))}: write "dev" and its card behind the handle'
        raise findings.error(command.line, command.text, why)
    return next(iter(known), _CARD)


def _class(command: ScriptCommand, device: str) -> ScriptCommand:
    kind, handle, *rest = command.words
    words = ["class", "add", "dev", device]
    parent = value(rest, "parent")
    words += ["root"] if parent is None else ["parent", parent]
    options = _without([word for word in rest if word != "root"], {**_DROPPED, "parent": 2, "leaf": 2, "dev": 2})
    options = _without(options, {"mpu": 2} if value(options, "mpu") == "0b" else {})
    return replace(command, name="tc", words=(*words, "classid", handle, kind, *options))


def _without(words: Iterable[str], dropped: dict[str, int]) -> list[str]:
    """The words, but not the given ones with their values."""
    kept: list[str] = []
    skip = 0
    for word in words:
        skip = skip or dropped.get(word, 0)
        if skip:
            skip -= 1
        else:
            kept.append(word)
    return kept


def _netem(words: list[str]) -> list[str]:
    """Names of parts of a loss model and of a rate are no words of the command."""
    names = ("p", "r", "1-h", "1-k", "p13", "p31", "p32", "p23", "p14", "packetoverhead", "cellsize", "celloverhead")
    return [word for word in words if word not in names]


def _tbf(words: list[str]) -> list[str]:
    return ["latency" if word == "lat" else word for word in words]


def _packets(words: list[str]) -> list[str]:
    """`limit 1000p`."""
    return [word[:-1] if before == "limit" and word.endswith("p") else word
            for before, word in zip(["", *words], words, strict=False)]  # fmt: skip


def _fq_codel(words: list[str]) -> list[str]:
    return _packets(words if "ecn" in words else [*words, "noecn"])


def _sfq(words: list[str]) -> list[str]:
    return [word.removesuffix("sec") for word in _packets(words)]


_OPTIONS: dict[str, Callable[[list[str]], list[str]]] = {
    "netem": _netem, "tbf": _tbf, "pfifo": _packets, "codel": _packets, "pie": _packets, "fq_codel": _fq_codel,
    "sfq": _sfq,
}  # fmt: skip


def _above(words: Sequence[str]) -> str:
    """The handle of a command's parent, "" for a root."""
    own = value(words, "classid") or ""
    return (value(words, "parent") or own.split(":")[0]).rstrip(":")


def _in_order(commands: list[ScriptCommand]) -> list[ScriptCommand]:
    """The commands in an order in which each follows its parent; those without a known parent come last."""
    left, made, there = list(commands), list[ScriptCommand](), set[str]()
    while left:
        ready = [each for each in left if _above(each.words) in ("", *there)]
        for each in ready or left:
            made.append(each)
            own = value(each.words, "classid") or (value(each.words, "handle") or "").rstrip(":")
            there |= {own}
            if each.words[-1:] and value(each.words, "handle") and "htb" not in each.words:
                there |= {f"{own}:{band:x}" for band in range(1, 17)}
        left = [each for each in left if each not in (ready or left)]
    return made
