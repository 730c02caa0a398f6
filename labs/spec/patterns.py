"""Who takes part: patterns of names, `left[1-3,7]`, comma lists and roles, as lists of a lab's nodes.

Comes in: what a scenario says, and the lab's nodes. Goes out: names in the order written, each known. `left[4+2]` are
two from the fourth on; `left[1-0]` and `left[4+0]` are no node, so that how many there are may be a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from ewan.labs.base.wording import nearest

MOST_MEMBERS = 20_000

_PIECE = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:([-+])([0-9]{1,9}))?")

Written = str | int | Sequence[str | int]


class PatternError(ValueError):
    """The fault of a pattern and its remedy, in one line."""


def split(text: str) -> list[str]:
    """`left[1,3],r1` at the commas outside of brackets."""
    pieces, depth, piece = [], 0, ""
    for letter in text:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            pieces.append(piece.strip())
            piece = ""
        else:
            piece += letter
    return [*pieces, piece.strip()]


def expand(pattern: str) -> list[str]:
    """`left[1-2]` → left1, left2; several brackets give every combination, the last one counting fastest."""
    if not _PIECE.fullmatch(pattern) or not pattern:
        raise PatternError('write names of nodes like "left1", "left[1-10]" or "left[1,3-5],right2"')
    names, end = [""], 0
    for result in _BRACKETS.finditer(pattern):
        numbers = _numbers(result[1])
        if len(names) * len(numbers) > MOST_MEMBERS:
            raise _too_many(len(names) * len(numbers))
        names = [f"{name}{pattern[end : result.start()]}{number}" for name in names for number in numbers]
        end = result.end()
    return [name + pattern[end:] for name in names]


def _too_many(count: int) -> PatternError:
    return PatternError(f"names {count} members and more: write at most {MOST_MEMBERS}")


def _numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise PatternError(f'[{text}] is no range: write one like "[1-10]", "[1,3-5]" or "[11+5]" (5 from 11 on)')
        first = int(match[1])
        last = first + int(match[3]) - 1 if match[2] == "+" else int(match[3] or first)
        if last < first - 1:
            raise PatternError(f'[{text}] counts down: write "[{last}-{first}]"')
        if last - first >= MOST_MEMBERS:
            raise PatternError(f"[{text}] has {last - first + 1} members: write at most {MOST_MEMBERS}")
        numbers += range(first, last + 1)
        if len(numbers) > MOST_MEMBERS:
            raise _too_many(len(numbers))
    return numbers


def members(written: Written, roles: Mapping[str, Written], nodes: Collection[str]) -> list[str]:
    """The nodes that a pattern, a role, or a list of both names; PatternError for one that the lab has not."""
    pieces = [piece for each in _texts(written) for piece in split(each)]
    names: list[str] = []
    for piece in pieces:
        if piece in roles:
            names += members(roles[piece], {}, nodes)
        else:
            names += expand(piece)
        if len(names) > MOST_MEMBERS:
            raise _too_many(len(names))
    known = frozenset(nodes)
    for name in names:
        if name not in known:
            raise PatternError(f"there is no node {name} in the lab: {nearest(name, [*nodes, *roles])}")
    return names


def _texts(written: Written) -> list[str]:
    return [str(each) for each in written] if isinstance(written, (list, tuple)) else [str(written)]
