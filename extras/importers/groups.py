"""Groups of a script's commands (`( … )`, `{ … }`, `if`, loops), and the shells that run them. Pure.

Comes in: statements. Goes out: their words without those that open and close groups; for each statement the shells
below the script's own that run it. A shell of its own has each part of a pipe, what is in the background, and `( … )`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ewan.extras.importers.scan import BETWEEN, CLOSING, DEEPEST, OPENING, ScriptError, Statement, Word

END = Word("", plain=True)
"""Behind the last command of a `( … )`; expands to no word."""


def without_groups(words: list[Word], groups: list[str]) -> list[Word]:
    """The words of a simple command, without those that open and close groups, of which `groups` keeps account."""
    if words and words[0].plain and words[0].text == "function":
        if words[-1].text in ("{", "("):
            groups.append(words[-1].text)
        return []
    while words and words[0].plain and words[0].text in OPENING | CLOSING | BETWEEN:
        first = words[0].text
        if first in OPENING:
            groups.append(first)
        elif first in CLOSING and groups:
            groups.pop()
        elif first == "then" and groups and groups[-1] == "if":
            groups[-1] = "then"
        words = [] if first in ("for", "case", "select") else words[1:]
    if words and words[-1].plain and words[-1].text in ("(", ")"):
        label = words[-1].text == ")" and groups and groups[-1] == "case"
        if words[-1].text == "(":
            groups.append("(")
            return words[:-1] if len(words) > 2 else []
        return [] if label else [*words[:-1], *([END] if groups else [])]
    return words


@dataclass(frozen=True, slots=True)
class EnclosingShells:
    """The numbers of the shells that run a statement, from the outermost on, and whether one is in the background."""

    shells: tuple[int, ...] = ()
    background: bool = False


@dataclass(slots=True)
class _Unit:
    """A simple command or a group, with its first and last statement, and its members."""

    operator: str
    first: int
    last: int
    inside: list[_Unit]
    bracket: bool = False
    background: bool = False

    @property
    def piped(self) -> bool:
        """Return whether it reads from a pipe."""
        return self.operator in ("|", "|&")

    @property
    def goes_on(self) -> bool:
        """Return whether it belongs to one list with the statement before it."""
        return self.piped or self.operator in ("&&", "||")


def shells_of(of: list[Statement], numbers: Iterator[int]) -> list[EnclosingShells]:
    """The enclosing shells of each statement; `numbers` gives new ones."""
    found = [EnclosingShells() for _ in of]
    _number(_units(of), found, numbers)
    return found


def _units(of: list[Statement]) -> list[_Unit]:
    groups: list[str] = []
    levels: list[list[_Unit]] = [[]]
    for at, each in enumerate(of):
        before = len(groups)
        words = without_groups(each.words, groups)
        closes = len(groups) < before or (bool(words) and words[-1] is END)
        if len(groups) < before:
            del levels[len(groups) + 1 :]
        elif not each.words and levels[-1] and not each.operator:
            pass
        else:
            unit = _Unit(each.operator, at, at, [], bracket=len(groups) > before and groups[-1] == "(")
            levels[-1].append(unit)
            if len(groups) > DEEPEST:
                raise ScriptError(each.line, f"has more than {DEEPEST} groups in each other: is it a script?")
            if len(groups) > before:
                levels.append(unit.inside)
        if closes and words and words[-1] is END:
            groups.pop()
            del levels[len(groups) + 1 :]
        if levels[-1]:
            levels[-1][-1].last = at
            levels[-1][-1].background |= each.background
    return levels[0]


def _number(units: list[_Unit], found: list[EnclosingShells], numbers: Iterator[int]) -> None:
    lists: list[list[_Unit]] = []
    for unit in units:
        if lists and unit.goes_on:
            lists[-1].append(unit)
        else:
            lists.append([unit])
    for each in lists:
        if each[-1].background:
            _within(each[0].first, each[-1].last, found, numbers, background=True)
        for at, unit in enumerate(each):
            if unit.bracket or unit.piped or any(following.piped for following in each[at + 1 : at + 2]):
                _within(unit.first, unit.last, found, numbers)
            _number(unit.inside, found, numbers)


def _within(
    first: int, last: int, found: list[EnclosingShells], numbers: Iterator[int], *, background: bool = False
) -> None:
    """One more shell for these statements."""
    shell = next(numbers)
    for at in range(first, last + 1):
        found[at] = EnclosingShells((*found[at].shells, shell), found[at].background or background)
