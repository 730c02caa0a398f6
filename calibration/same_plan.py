"""Compares the plan of the lab that is up with the plan that it is verified against. Pure.

In: the two plans. Out: their differences in words; empty if they are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ewan.labs.base.codec import Struct
from ewan.labs.base.units import Duration, Rate
from ewan.labs.link import Direction
from ewan.labs.plan import Link, Plan

MOST_SHOWN = 3


def differences(wanted: Plan, made: Plan) -> str:
    """`core: back end tbf in place of user`; empty where the plans are equal."""
    if wanted == made:
        return ""
    found = [*_names([each.name for each in wanted.links], [each.name for each in made.links])]
    there = {link.name: link for link in made.links}
    for link in wanted.links:
        if link.name in there:
            found += [f"{link.name}: {words}" for words in _of_link(link, there[link.name])]
    found = found or [f"its {name}" for name in _fields(wanted, made)]
    more = f" and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    return ", ".join(found[:MOST_SHOWN]) + more


def _names(wanted: Sequence[str], made: Sequence[str]) -> Iterator[str]:
    for name in wanted:
        if name not in made:
            yield f"no link {name}"
    for name in made:
        if name not in wanted:
            yield f"a link {name} more"


def _of_link(wanted: Link, made: Link) -> Iterator[str]:
    if wanted.backend != made.backend:
        yield f"back end {made.backend} in place of {wanted.backend}"
    for name in ("forward", "backward"):
        way: tuple[Direction, Direction] = getattr(wanted, name), getattr(made, name)
        if way[0].rate_bps != way[1].rate_bps:
            yield f"{name} rate {Rate(way[1].rate_bps)} in place of {Rate(way[0].rate_bps)}"
        changed = [each for each in _fields(*way) if each != "rate_bps"]
        if "delay" in changed:
            lines = [getattr(each.delay, "delay_ns", None) for each in way]
            told = f" {Duration(lines[1])} in place of {Duration(lines[0])}" if None not in lines else ""  # type: ignore[arg-type]
            yield f"{name} delay{told}"
        if others := [each for each in changed if each != "delay" and not each.startswith("store_")]:
            yield f"{name} {', '.join(others)}"


def _fields(one: Struct, other: Struct) -> list[str]:
    """Names of the fields that differ, of two values of one type."""
    return [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]
