"""The runs of a shard, and the number of further ones that a stop rule wants in the next round. Pure.

In: numbers of runs; each point's values so far. Out: numbers; points with their numbers of further runs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewan.experiments.engine.stop_rule import Estimate, Point, reached
from ewan.generator.scenario import Stop

MOST_SHARDS = 100_000
_WRITTEN = re.compile(r"(\d{1,6})/(\d{1,6})")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One of `count` equal parts, `index` from 1 on."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`3/100`; ValueError for other text."""
        found = _WRITTEN.fullmatch(text)
        if not found:
            raise ValueError('write which part of how many, like "3/100"')
        index, count = int(found[1]), int(found[2])
        if not 1 <= count <= MOST_SHARDS:
            raise ValueError(f"a study has 1 to {MOST_SHARDS} shards")
        if not 1 <= index <= count:
            raise ValueError(f'of {count} shards the first is "1/{count}", the last "{count}/{count}"')
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def file(self) -> str:
        """The name of its record: names sort as numbers do."""
        return f"{self.index:0{len(str(self.count))}}-of-{self.count}.json"

    def has(self, number: int) -> bool:
        """Return whether a run is this shard's: neighbours are in different shards, so that points of long runs are
        shared."""
        return (number - 1) % self.count == self.index - 1

    def numbers(self, total: int) -> range:
        """The numbers of its runs among `total`, from 1 on."""
        return range(self.index, total + 1, self.count)


def owner(number: int, count: int) -> Shard:
    """The shard of so many that has a run."""
    return Shard((number - 1) % count + 1, count)


def wanted(
    stop: Stop, result: Mapping[Point, Sequence[float]], runs: Mapping[Point, int], estimate: Estimate
) -> dict[Point, int]:
    """The number of further runs that each point needs, by its values so far; without points that need none.

    The half width of an interval shrinks as the root of the number of values, so the square of its excess gives the
    number that there must be. Intervals of few values are uncertain themselves: a round at most doubles a point's
    runs."""
    further = {}
    for point, number in runs.items():
        measured = result.get(point, ())
        if number >= stop.at_most or reached(stop, measured, estimate):
            continue
        further[point] = min(max(_needed(stop, measured, estimate) - number, 1), number, stop.at_most - number)
    return further


def _needed(stop: Stop, measured: Sequence[float], estimate: Estimate) -> int:
    """The number of values that a point needs in all."""
    least = max(stop.at_least, 2)
    if len(measured) < least:
        return least
    mean, half = estimate(measured, stop.confidence.share)
    if math.isnan(half) or not mean:
        return stop.at_most
    return math.ceil(min(len(measured) * (half / (stop.within.share * abs(mean))) ** 2, stop.at_most))
