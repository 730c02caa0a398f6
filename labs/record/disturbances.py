"""Finds the disturbances of the links in a live run, and the seconds in which the links left their tolerance. Pure.

In: a run's tables `releases`, `spinners` and `machine` (labs/record/columns.py). Out: disturbances in words, seconds,
intervals. This module stands with the tables, because the generator marks runs by it and the analysis shades figures by
it: both must agree, and both depend on labs/record only.

A run is marked for the reasons for which a verification does not pass (docs/explanation/verification.md). In an
interval, more than one packet in a hundred left a link late, so that the p99 was late. Packets found no room. A link
ended. The clock that stamps packets was set. A CPU that was taken away, or time that the hypervisor stole, is a cause:
it is reported, and marks nothing if no packet was late because of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import polars as pl

from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.base.units.shown import written
from ewan.labs.record.bounds import LONGEST_GAP_NS, STEAL_SHARE
from ewan.labs.record.summary import AllDisturbances

TABLES = ("releases", "spinners", "machine")
"""The tables that only live runs have."""
EVERY_NS = NS_PER_SECOND
"""The interval of the counts."""
LATE_SHARE = 0.01
"""More late ones of what left a link in an interval, and their p99 is beyond its bound."""
LEAST_PACKETS = 100
"""The least number of packets that has a p99."""
STEP_NS = 10_000
"""A clock that is set by more marks the run: half of all packets may leave their link so late."""
_LATE_LOOK_NS = 50 * NS_PER_MS
"""A look that comes so late after a full second still ends that second's interval."""
_MOST_PLACES, _MOST_SECONDS, _MOST_NAMED = 3, 5, 10

Kind = Literal["late", "overrun", "ended", "step", "clock source", "taken", "shared", "steal"]
_MACHINE = "the machine"
_ORDER: tuple[Kind, ...] = ("ended", "clock source", "step", "overrun", "late", "shared", "taken", "steal")
"""The order of the disturbances of one interval, the most important first."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """From `begin_ns` to `end_ns` after T0. `where`: `core forward`, `CPU 1` or the machine; `link`: of one direction
    of a link, else all are meant. `marks`: the links left their tolerance."""

    begin_ns: int
    end_ns: int
    kind: Kind
    where: str
    link: str | None
    marks: bool
    words: str


class ReleaseRow(NamedTuple):
    """A row of the table of releases: one direction of a link in an interval; `beyond`: its lateness was beyond its
    bound."""

    time_ns: int
    interval_ns: int
    spinner: int
    link: str
    direction: str
    released_packets: int
    late_packets: int
    overrun_packets: int
    bound_ns: int
    lateness_max_ns: int
    ended: bool
    down: bool
    beyond: bool


class SpinnerRow(NamedTuple):
    """A row of the table of spinners."""

    time_ns: int
    interval_ns: int
    spinner: int
    cpu: int
    taken_ns: int
    gap_max_ns: int
    shared: bool


class MachineRow(NamedTuple):
    """A row of the table of the machine."""

    time_ns: int
    interval_ns: int
    cpu_ns: int
    stolen_ns: int
    stepped_ns: int
    clocksource: str | None
    changed: bool


R = TypeVar("R", ReleaseRow, SpinnerRow, MachineRow)


def watched_ns(machine: pl.DataFrame) -> int | None:
    """Until when after T0 a run was watched; None: it was not."""
    return None if machine.is_empty() else int(machine.select(pl.col("time_ns").max()).item())


def judge(releases: pl.DataFrame, spinners: pl.DataFrame, machine: pl.DataFrame) -> list[Disturbance]:
    """All that disturbed a run, in the order of time, the most important first of those at the same time."""
    taken = {(row.time_ns, row.spinner): row for row in _rows(SpinnerRow, spinners)}
    machines = {row.time_ns: row for row in _rows(MachineRow, machine)}
    told = (pl.col("late_packets") > 0) | (pl.col("overrun_packets") > 0) | pl.col("ended")
    found = [
        disturbance
        for _, rows in releases.sort("time_ns").group_by("link", "direction", maintain_order=True)
        for row in _rows(ReleaseRow, _with_verdicts(rows).filter(told))
        for disturbance in _of_link(row, taken.get((row.time_ns, row.spinner)), machines.get(row.time_ns))
    ]
    found += [each for row in taken.values() for each in _of_spinner(row)]
    found += [each for row in machines.values() for each in _of_machine(row)]
    return sorted(found, key=lambda each: (each.begin_ns, _ORDER.index(each.kind), each.where))


def _rows(kind: type[R], table: pl.DataFrame) -> Iterator[R]:
    return map(kind._make, table.select(kind._fields).iter_rows())


def _with_verdicts(rows: pl.DataFrame) -> pl.DataFrame:
    """One direction's rows in order, with `beyond`: the p99 of the lateness of what left in them was beyond its bound.

    A p99 takes a hundred packets: intervals with fewer are judged together with those that follow, the last ones with
    those before.
    """
    groups: list[int] = []
    group = many = 0
    for released in rows["released_packets"]:
        groups.append(group)
        many += released
        if many >= LEAST_PACKETS:
            group, many = group + 1, 0
    if 0 < many < LEAST_PACKETS and group > 0:
        groups = [min(each, group - 1) for each in groups]
    late, released = (pl.col(name).sum().over("group") for name in ("late_packets", "released_packets"))
    beyond = (late > LATE_SHARE * released) & (late > 1)
    return rows.with_columns(group=pl.Series(groups, dtype=pl.Int64)).with_columns(beyond=beyond)


def _of_link(row: ReleaseRow, spinner: SpinnerRow | None, machine: MachineRow | None) -> Iterator[Disturbance]:
    link, where = row.link, f"{row.link} {row.direction}"
    if row.ended:
        yield _made(row, "ended", where, link, True, f"{where} had ended: a fault in the program")
    if (late := row.late_packets) > 0:
        bound, most = (written(time, "ns", 3) for time in (row.bound_ns, row.lateness_max_ns))
        words = f"{late:,} of {row.released_packets:,} packets left {where} later than {bound}, up to {most}"
        causes = [] if spinner is None else [each.words for each in _of_spinner(spinner)]
        causes += [] if machine is None else [each.words for each in _of_machine(machine) if each.kind == "steal"]
        told = ": ".join([words, *([", ".join(causes)] if causes else [])])
        yield _made(row, "late", where, link, row.beyond, told)
    if row.overrun_packets > 0 and not row.down:
        many = row.overrun_packets
        yield _made(row, "overrun", where, link, True, f"{many:,} packet{'s' * (many > 1)} found no room at {where}")


def _of_spinner(row: SpinnerRow) -> Iterator[Disturbance]:
    where = f"CPU {row.cpu}"
    if row.shared:
        yield _made(row, "shared", where, None, False, f"{where} served the links of another lab too")
    if row.gap_max_ns > LONGEST_GAP_NS:
        taken, most = (written(time, "ns", 3) for time in (row.taken_ns, row.gap_max_ns))
        yield _made(row, "taken", where, None, False, f"{where} was taken from its links for {taken}, {most} at once")


def _of_machine(row: MachineRow) -> Iterator[Disturbance]:
    if row.changed:
        words = f"the kernel's clock source became {row.clocksource}"
        yield _made(row, "clock source", _MACHINE, None, True, words)
    if abs(row.stepped_ns) > STEP_NS:
        words = f"the clock was set by {written(row.stepped_ns, 'ns', 3)}"
        yield _made(row, "step", _MACHINE, None, True, words)
    if row.cpu_ns > 0 and row.stolen_ns >= STEAL_SHARE * row.cpu_ns:
        words = f"the hypervisor took {written(row.stolen_ns, 'ns', 3)} of CPU time"
        yield _made(row, "steal", _MACHINE, None, False, words)


def _made(
    row: ReleaseRow | SpinnerRow | MachineRow, kind: Kind, where: str, link: str | None, marks: bool, words: str
) -> Disturbance:
    return Disturbance(row.time_ns - row.interval_ns, row.time_ns, kind, where, link, marks, words)


def seconds(found: Iterable[Disturbance]) -> list[int]:
    """The seconds after T0 (0 is the first) in which links left their tolerance."""
    return sorted({second for each in found if each.marks for second in _seconds_of(each)})


def _seconds_of(each: Disturbance) -> range:
    first = (each.begin_ns + _LATE_LOOK_NS) // NS_PER_SECOND
    return range(first, max(math.ceil((each.end_ns - _LATE_LOOK_NS) / NS_PER_SECOND), first + 1))


def intervals(found: Iterable[Disturbance], links: Iterable[str] | None = None) -> list[tuple[int, int]]:
    """Times (ns after T0) in which links left their tolerance, disjoint and in order; `links`: of these, and what is of
    all links."""
    wanted = None if links is None else {*links, None}
    times = sorted(
        (each.begin_ns, each.end_ns) for each in found if each.marks and (wanted is None or each.link in wanted)
    )
    merged: list[tuple[int, int]] = []
    for begin, end in times:
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged


def summary(found: Sequence[Disturbance], until_ns: int) -> str | None:
    """One line about a run that was watched until `until_ns`: in which seconds its links left their tolerance, where,
    and the first cause. None: they did not."""
    marking = [each for each in found if each.marks]
    if not marking:
        return None
    places: dict[str, set[int]] = {}
    for each in marking:
        places.setdefault(each.where, set()).update(_seconds_of(each))
    worst = sorted(places.items(), key=lambda place: -len(place[1]))
    told = [f"{where} at {_listed(sorted(own))}" for where, own in worst[:_MOST_PLACES]]
    if len(worst) > _MOST_PLACES:
        told.append(f"{len(worst) - _MOST_PLACES} more")
    return (
        f"links left their tolerance in {share_of_time(len(seconds(marking)), until_ns)} ({'; '.join(told)}): "
        f"{marking[0].words}"
    )


def in_all(total: AllDisturbances | None) -> str:
    """The same of all runs of an experiment, by `disturbed` of its summary.json, with the share of the load that was
    touched; empty where no link left its tolerance."""
    if total is None or not total.runs:
        return ""
    named = ", ".join(map(str, total.runs[:_MOST_NAMED])) + (" …" if len(total.runs) > _MOST_NAMED else "")
    touched = "" if total.share is None else f"; {written(total.share, 'share', 2)} of the load crossed them then"
    many = total.watched_runs
    return (
        f"links left their tolerance in {len(total.runs)} of {many} run{'s' * (many > 1)} ({named}), in "
        f"{share_of_time(total.seconds, total.watched_ns)}{touched}"
    )


def share_of_time(many: int, until_ns: int) -> str:
    """`2 of 30 s`; a second that was begun counts."""
    return f"{many} of {max(math.ceil((until_ns - _LATE_LOOK_NS) / NS_PER_SECOND), many)} s"


def _listed(own: Sequence[int]) -> str:
    told = ", ".join(f"{second} s" for second in own[:_MOST_SECONDS])
    return told + (f" and {len(own) - _MOST_SECONDS} more" if len(own) > _MOST_SECONDS else "")
