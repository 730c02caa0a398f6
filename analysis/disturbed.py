"""How far what disturbed the links of live runs touched their load.

In: runs with their tables; what disturbed them (labs/record/disturbances.py). Out: for summary.json the seconds, and
the share of the load; in words for the report. A flow is touched while a link of its way is out of its tolerance, in
either direction: its data cross the link in the one, its acknowledgements in the other. What it received meanwhile is
counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ewan.analysis import flows, network
from ewan.analysis.load import RunResults
from ewan.analysis.network import Ways
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import written
from ewan.labs.record import disturbances
from ewan.labs.record.disturbances import Disturbance

MARK = "†"
"""Beside a point of the parameters whose links left their tolerance in a run of it."""
MOST_SEEN = 100
"""Disturbances of a run that its summary repeats; all are in its tables."""
MOST_ROWS = 60
"""Of the report's table."""


def of_run(run: RunResults, ways: Ways) -> dict[str, Any] | None:
    """What summary.json says of a run; None where nobody watched it. LoadError where a table is damaged."""
    found = run.disturbances()
    if found is None:
        return None
    seen, until_ns = found
    touched, delivered = touched_bytes(run.table("flows"), run.table("goodput"), ways, seen)
    # What marks the run is never left out for what does not.
    told = sorted(sorted(seen, key=lambda each: not each.marks)[:MOST_SEEN], key=seen.index)
    return {
        "watched_ns": until_ns,
        "seconds": disturbances.seconds(seen),
        "touched_bytes": touched,
        "delivered_bytes": delivered,
        "share": touched / delivered if delivered else None,
        "seen": [
            {
                "begin_ns": each.begin_ns,
                "end_ns": each.end_ns,
                "kind": each.kind,
                "where": each.where,
                "marks": each.marks,
                "words": each.words,
            }
            for each in told
        ],
        "left_out": len(seen) - len(told),
    }


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


def together(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The same over all runs of a summary that were watched; None: none was."""
    watched = {run["number"]: run["disturbed"] for run in runs if run.get("disturbed") is not None}
    if not watched:
        return None
    touched, delivered = (sum(each[key] for each in watched.values()) for key in ("touched_bytes", "delivered_bytes"))
    return {
        "watched_runs": len(watched),
        "watched_ns": sum(each["watched_ns"] for each in watched.values()),
        "runs": [number for number, each in watched.items() if each["seconds"]],
        "seconds": sum(len(each["seconds"]) for each in watched.values()),
        "touched_bytes": touched,
        "delivered_bytes": delivered,
        "share": touched / delivered if delivered else None,
    }


def in_words(found: Mapping[str, Any]) -> str:
    """Of one run: `2 of 30 s, 6.7 % of the load`."""
    if not found["seconds"]:
        return "no"
    time = disturbances.share_of_time(len(found["seconds"]), found["watched_ns"])
    return time if found["share"] is None else f"{time}, {written(found['share'], 'share', 2)} of the load"


def warning(total: Mapping[str, Any] | None) -> str:
    """What a reader must know before any number; empty where no run was touched."""
    told = "" if total is None else disturbances.in_all(total)
    return f"{told[0].upper()}{told[1:]}. What stands on these runs is marked {MARK}." if told else ""


def rows(runs: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """What disturbed the runs of a summary, for the report's table, and how many rows have no place in it: those of
    what marks no run go first."""
    found = [row for run in runs for row in _rows(run["number"], (run.get("disturbed") or {"seen": ()})["seen"])]
    told = sorted(found, key=lambda row: not row["marks"])[:MOST_ROWS]
    elsewhere = sum((run.get("disturbed") or {"left_out": 0})["left_out"] for run in runs)
    told.sort(key=lambda row: (row["run"], row["begin_ns"]))
    for row in told:
        row["time"] = f"{row['begin_ns'] / NS_PER_SECOND:.1f} to {row['end_ns'] / NS_PER_SECOND:.1f}"
    return told, len(found) - len(told) + elsewhere


def _rows(number: int, seen: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row each; what goes on is one row, and what another row of that time names as its cause is none."""
    kept: list[dict[str, Any]] = []
    for each in seen:
        others = (other["words"] for other in seen if other is not each and other["begin_ns"] == each["begin_ns"])
        if any(each["words"] in words for words in others):
            continue
        before = next((row for row in reversed(kept) if row["words"] == each["words"]), None)
        if before is not None and before["end_ns"] == each["begin_ns"]:
            before["end_ns"] = each["end_ns"]
        else:
            kept.append({"run": number, **{key: each[key] for key in ("begin_ns", "end_ns", "words", "marks")}})
    return kept


def footnote(runs: Iterable[int], found: Mapping[str, Any]) -> str:
    """For the caption of a figure that is made of these runs; empty where no link left its tolerance in any."""
    total = found.get("disturbed") or {"runs": []}
    own = sorted(set(runs) & set(total["runs"]))
    if not own:
        return ""
    told = ", ".join(map(str, own[:MOST_SEEN]))
    return f" Links left their tolerance for a time in run{'s' * (len(own) > 1)} {told}."
