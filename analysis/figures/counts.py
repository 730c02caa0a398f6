"""The words of a figure's caption about the number of values at its points. Pure.

In: of each point that is drawn, its line, its parameters, and the number of its values. Out: `n = 4 (3 for bbr)`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MOST_NAMED = 4
"""Groups that are named one by one; of more, a caption has the least and the largest number."""


class PointCount(NamedTuple):
    """The line and the point, both in words, and how many values the point has."""

    line: str
    point: str
    n: int


def in_words(counts: Sequence[PointCount]) -> str:
    """The number that most points have, and which have another. ValueError for no count."""
    ((usual, _),) = Counter(each.n for each in counts).most_common(1)
    others: dict[PointCount, None] = {}
    for line in dict.fromkeys(each.line for each in counts):
        own = [each for each in counts if each.line == line]
        if line and len({each.n for each in own}) == 1:
            others[PointCount(line, line, own[0].n)] = None
        else:
            others |= dict.fromkeys(own)
    named = [each for each in others if each.n != usual]
    if not named:
        return f"n = {usual}"
    if len(named) > MOST_NAMED or not all(each.point for each in named):
        return f"n from {min(each.n for each in counts)} to {max(each.n for each in counts)}"
    return f"n = {usual} ({'; '.join(f'{each.n} for {each.point}' for each in named)})"
