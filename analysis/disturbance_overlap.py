"""The overlap between the disturbances of links and the load of live runs.

In: runs with their tables; what disturbed them (labs/record/disturbances.py). Out: for summary.json the seconds, and
the share of the load; in words for the report. A flow is touched while a link of its way is out of its tolerance, in
either direction: its data cross the link in the one, its acknowledgements in the other. What it received meanwhile is
counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from ewan.analysis import flows, network
from ewan.analysis.load import RunResults
from ewan.analysis.network import Ways
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import written
from ewan.labs.record import disturbances
from ewan.labs.record.disturbances import Disturbance
from ewan.labs.record.summary import AllDisturbances, RunDisturbances, RunSummary, SeenDisturbance, Summary

MARK = "†"
"""Beside a point of the parameters whose links left their tolerance in a run of it."""
MOST_SEEN = 100
"""Disturbances of a run that its summary repeats; all are in its tables."""
MOST_ROWS = 60
"""Rows of the report's table."""


def of_run(run: RunResults, ways: Ways) -> RunDisturbances | None:
    """The disturbances of a run for summary.json; None where its links were not watched. LoadError where a table is
    damaged."""
    found = run.disturbances()
    if found is None:
        return None
    seen, until_ns = found
    touched, delivered = touched_bytes(run.table("flows"), run.table("goodput"), ways, seen)
    # What marks the run is never left out for what does not.
    told = sorted(sorted(seen, key=lambda each: not each.marks)[:MOST_SEEN], key=seen.index)
    return RunDisturbances(
        watched_ns=until_ns,
        seconds=tuple(disturbances.seconds(seen)),
        touched_bytes=touched,
        delivered_bytes=delivered,
        share=touched / delivered if delivered else None,
        seen=tuple(
            SeenDisturbance(each.begin_ns, each.end_ns, each.kind, each.where, each.marks, each.words) for each in told
        ),
        left_out=len(seen) - len(told),
    )


def touched_bytes(
    all_flows: pl.DataFrame, goodput: pl.DataFrame, ways: Ways, seen: Sequence[Disturbance]
) -> tuple[int, int]:
    """Payload that load flows got while a link of their way was out of its tolerance, and all that they got. Of a flow
    whose way is not known, while any link was."""
    own = flows.loaded(all_flows).select("flow", "part", "kind", "source", "sink")
    bins = goodput.join(own, on=["flow", "part"])
    touched = 0
    for (kind, source, sink), rows in bins.group_by("kind", "source", "sink", maintain_order=True):
        way = ways.get(network.ends_of_payload(_word(kind), _word(source), _word(sink)))
        times = disturbances.intervals(seen, None if way is None else {link for link, _ in way})
        middles = (rows["time_ns"] - rows["bin_ns"] // 2).to_numpy()
        touched += int(rows["delivered_bytes"].fill_null(0).to_numpy()[network.within(middles, times)].sum())
    return touched, int(bins["delivered_bytes"].sum())


def _word(value: object) -> str | None:
    return None if value is None else str(value)


def together(runs: Iterable[RunSummary]) -> AllDisturbances | None:
    """The same over all runs of a summary that were watched; None: none was."""
    watched = {run.number: run.disturbed for run in runs if run.disturbed is not None}
    if not watched:
        return None
    touched = sum(each.touched_bytes for each in watched.values())
    delivered = sum(each.delivered_bytes for each in watched.values())
    return AllDisturbances(
        watched_runs=len(watched),
        watched_ns=sum(each.watched_ns for each in watched.values()),
        runs=tuple(number for number, each in watched.items() if each.seconds),
        seconds=sum(len(each.seconds) for each in watched.values()),
        touched_bytes=touched,
        delivered_bytes=delivered,
        share=touched / delivered if delivered else None,
    )


def in_words(found: RunDisturbances) -> str:
    """The disturbances of one run in words: `2 of 30 s, 6.7 % of the load`."""
    if not found.seconds:
        return "no"
    time = disturbances.share_of_time(len(found.seconds), found.watched_ns)
    return time if found.share is None else f"{time}, {written(found.share, 'share', 2)} of the load"


def warning(total: AllDisturbances | None) -> str:
    """The warning about disturbances that stands before all numbers of the report; empty where no run was touched."""
    told = disturbances.in_all(total)
    return f"{told[0].upper()}{told[1:]}. What stands on these runs is marked {MARK}." if told else ""


class DisturbanceRow(NamedTuple):
    """A row of the report's table. Times are in ns after T0."""

    run: int
    begin_ns: int
    end_ns: int
    words: str
    marks: bool

    @property
    def time(self) -> str:
        """The beginning and the end, in seconds."""
        return f"{self.begin_ns / NS_PER_SECOND:.1f} to {self.end_ns / NS_PER_SECOND:.1f}"


def rows(runs: Iterable[RunSummary]) -> tuple[list[DisturbanceRow], int]:
    """The rows of the report's table of disturbances, and the number of rows that do not fit in it: rows that mark no
    run are left out first."""
    watched = {run.number: run.disturbed for run in runs if run.disturbed is not None}
    found = [row for number, own in watched.items() for row in _rows(number, own.seen)]
    told = sorted(found, key=lambda row: not row.marks)[:MOST_ROWS]
    told.sort(key=lambda row: (row.run, row.begin_ns))
    return told, len(found) - len(told) + sum(own.left_out for own in watched.values())


def _rows(number: int, seen: Sequence[SeenDisturbance]) -> list[DisturbanceRow]:
    """A row for each disturbance; one that goes on is one row, and one that another row of that time names as its cause
    has none."""
    kept: list[DisturbanceRow] = []
    for each in seen:
        if any(each.words in other.words for other in seen if other is not each and other.begin_ns == each.begin_ns):
            continue
        last = next((at for at in reversed(range(len(kept))) if kept[at].words == each.words), None)
        if last is not None and kept[last].end_ns == each.begin_ns:
            kept[last] = kept[last]._replace(end_ns=each.end_ns)
        else:
            kept.append(DisturbanceRow(number, each.begin_ns, each.end_ns, each.words, each.marks))
    return kept


def footnote(runs: Iterable[int], found: Summary) -> str:
    """The caption's note on disturbances of these runs; empty where no link left its tolerance in any."""
    own = sorted(set(runs) & set(found.disturbed.runs if found.disturbed else ()))
    if not own:
        return ""
    told = ", ".join(map(str, own[:MOST_SEEN]))
    return f" Links left their tolerance for a time in run{'s' * (len(own) > 1)} {told}."
