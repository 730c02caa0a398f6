"""netem's options as settings of a link. See tc-netem(8), tc/q_netem.c of iproute2 and net/sched/sch_netem.c of
Linux."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ewan.extras.importers.directions import Setting
from ewan.extras.importers.findings import Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.labs.base.units import Duration, Fraction, Rate
from ewan.labs.base.units.tools import tc_percent, tc_rate, tc_size, tc_time, tc_whole

LIMIT = 1000
"""Packets, where none is written."""
NONE = Duration(0)
_ALL = Fraction.parse("100%")
_SHAPES = ("uniform", "normal", "pareto")


@dataclass(slots=True)
class Netem:
    """One netem. `limit` counts the delay line too, in packets; `overhead` is bytes of `rate`."""

    command: ScriptCommand
    delay: Duration = NONE
    jitter: Duration = NONE
    distribution: str = "uniform"
    loss: tuple[Setting, str] | None = None
    corrupt: Fraction | None = None
    duplicate: Fraction | None = None
    rate: Rate | None = None
    overhead: int = 0
    limit: int = LIMIT


class _Words:
    """The words that are left, taken one by one."""

    def __init__(self, words: Sequence[str], command: ScriptCommand, findings: Findings) -> None:
        self.left = list(words)
        self.command = command
        self.findings = findings
        self.key = ""

    def take(self, what: str) -> str:
        if not self.left:
            raise self.findings.error(self.command.line, self.command.text, f"{self.key} has no {what}: write it")
        return self.left.pop(0)

    @property
    def number(self) -> bool:
        """Return whether tc takes the next word for a number, which begins with a digit."""
        return self.left[:1] != [] and self.left[0][:1].isdecimal()

    def time(self) -> Duration:
        return self.findings.read(self.command, self.key, tc_time, self.take("time"))

    def percent(self) -> Fraction:
        return self.findings.read(self.command, self.key, tc_percent, self.take("percentage"))

    def whole(self) -> int:
        text = self.take("number")
        number = self.findings.read(self.command, self.key, tc_whole, text.removeprefix("-"))
        return -number if text.startswith("-") else number

    def correlation(self) -> None:
        """Reads netem's own kind of correlation, which no model of ours has: only 0 is accepted."""
        if not self.number:
            return
        value = self.percent()
        if value.ppb:
            why = f"netem's correlation ({value}) changes the share itself and has no word in a description"
            self.findings.cannot(self.command, f"{self.key} … {value}", why)

    def cannot(self, why: str, *, values: int = 0) -> None:
        taken = [self.left.pop(0) for _ in range(min(values, len(self.left)))]
        self.findings.cannot(self.command, " ".join((self.key, *taken)), why)


def read(command: ScriptCommand, options: Sequence[str], findings: Findings) -> Netem:
    """Read the options of netem; ImportingError for a word that is none, or that has no equivalent in a description."""
    netem = Netem(command)
    words = _Words(options, command, findings)
    while words.left:
        word = words.left.pop(0)
        words.key = full(word)
        if not words.key:
            known = 'is no option of netem: write one of "delay", "loss", "corrupt", "duplicate", "rate", "limit"'
            raise findings.error(command.line, word, known)
        _READERS[words.key](words, netem)
    if netem.distribution != "uniform" and not (netem.delay.ns and netem.jitter.ns):
        message = 'a distribution is of delay and jitter, and tc refuses one without: write both, like "delay 20ms 2ms"'
        raise findings.error(command.line, f"distribution {netem.distribution}", message)
    return netem


def full(word: str) -> str:
    """The option that tc takes a word for, of which the first letters do; "" for none."""
    return next((each for each in _READERS if word and each.startswith(word)), "")


def _limit(words: _Words, netem: Netem) -> None:
    netem.limit = words.findings.read(words.command, "limit", tc_size, words.take("number")).bytes
    if not netem.limit:
        raise words.findings.error(words.command.line, "limit 0", "drops every packet: write a limit of 1 or more")


def _delay(words: _Words, netem: Netem) -> None:
    netem.delay = words.time()
    if words.number:
        netem.jitter = words.time()
        words.correlation()


def _distribution(words: _Words, netem: Netem) -> None:
    name = words.take("name")
    if name in _SHAPES:
        netem.distribution = name
        return
    why = f'the table "{name}" has no word in a description, whose delays are uniform, normal, pareto or a file\'s'
    words.findings.cannot(words.command, f"distribution {name}", why, "take it as normal")
    netem.distribution = "normal"


def _loss(words: _Words, netem: Netem) -> None:
    if netem.loss is not None:
        raise words.findings.error(words.command.line, "loss", "is there twice, so tc refuses it: leave one out")
    kind = words.left[0] if words.left else ""
    if kind in ("random", "state", "gemodel"):
        words.left.pop(0)
    if kind == "state":
        netem.loss = _states(words)
    elif kind == "gemodel":
        netem.loss = _gilbert(words)
    else:
        if kind != "random" and kind and not words.number:
            message = 'is no share of packets that tc takes there: write one that begins with a digit, like "0.5%"'
            raise words.findings.error(words.command.line, f"loss {kind}", message)
        share = words.percent()
        words.correlation()
        netem.loss = (str(share), f"loss {share}")
    if words.left[:1] == ["ecn"]:
        words.cannot("marks instead of losing, which has no word in a description", values=1)


def _numbers(words: _Words, most: int) -> list[Fraction]:
    found = [words.percent()]
    while words.number and len(found) < most:
        found.append(words.percent())
    return found


def _states(words: _Words) -> tuple[Setting, str]:
    """p13, then p31 (100 % − p13), p32 (0), p23 (100 %), p14 (0), as tc has the defaults."""
    given = _numbers(words, 5)
    defaults = [Fraction(0), Fraction(_ALL.ppb - given[0].ppb), Fraction(0), _ALL, Fraction(0)]
    every = [*given, *defaults[len(given) :]]
    keys = ("p13", "p31", "p32", "p23", "p14")
    return {"markov": {key: str(value) for key, value in zip(keys, every, strict=True)}}, "loss state"


def _gilbert(words: _Words) -> tuple[Setting, str]:
    """p, then r (100 % − p), 1-h (100 %), 1-k (0)."""
    given = _numbers(words, 4)
    defaults = [Fraction(0), Fraction(_ALL.ppb - given[0].ppb), _ALL, Fraction(0)]
    every = [*given, *defaults[len(given) :]]
    keys = ("to_bad", "to_good", "loss_bad", "loss_good")
    return {"gilbert-elliott": {key: str(value) for key, value in zip(keys, every, strict=True)}}, "loss gemodel"


def _corrupt(words: _Words, netem: Netem) -> None:
    netem.corrupt = words.percent()
    words.correlation()


def _duplicate(words: _Words, netem: Netem) -> None:
    netem.duplicate = words.percent()
    words.correlation()


def _reorder(words: _Words, netem: Netem) -> None:
    share = words.percent()
    if words.number:
        words.percent()
    if words.left and full(words.left[0]) == "gap":
        words.left.pop(0)
        words.whole()
    if share.ppb:
        why = "sends a share of the packets without any delay, which has no word in a description"
        words.findings.cannot(words.command, f"reorder {share}", why)


def _gap(words: _Words, netem: Netem) -> None:
    if number := words.whole():
        why = "sends each such packet without any delay, which has no word in a description"
        words.findings.cannot(words.command, f"gap {number}", why)


def _rate(words: _Words, netem: Netem) -> None:
    netem.rate = words.findings.read(words.command, "rate", tc_rate, words.take("rate"))
    if words.left and re.match("-?[0-9]", words.left[0]):
        netem.overhead = words.whole()
    if words.number and (cell := words.whole()):
        words.findings.cannot(words.command, f"rate … {cell}", "cells have no word in a description")
    if words.number:
        words.whole()


def _slot(words: _Words, netem: Netem) -> None:
    taken = []
    while words.left and not full(words.left[0]):
        taken.append(words.left.pop(0))
    why = "holds packets back until a slot of netem's kind begins, which has no word in a description"
    words.findings.cannot(words.command, " ".join(("slot", *taken)), why)


def _seed(words: _Words, netem: Netem) -> None:
    value = words.take("number")
    words.findings.note(words.command, f"seed {value}: draws are others here; seed: is the lab's own")


_READERS: dict[str, Callable[[_Words, Netem], None]] = {
    "limit": _limit,
    "delay": _delay,
    "latency": _delay,
    "loss": _loss,
    "drop": _loss,
    "reorder": _reorder,
    "corrupt": _corrupt,
    "gap": _gap,
    "duplicate": _duplicate,
    "distribution": _distribution,
    "rate": _rate,
    "slot": _slot,
    "seed": _seed,
}
"""In the order in which tc compares a word with them."""
