"""External generators: iperf3 and D-ITG drive the same scenario as our own, and their results go to the same tables.

Comes in: a step of a scenario; after the run its schedule's document and directory. Goes out: commands for nodes, what
a tool cannot do, and rows of FLOWS, SERIES and GOODPUT (labs/record/tables.py), with null for what a tool does not say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import polars as pl

from generator.external import ditg, iperf3
from generator.external.transfer import LEAD_NS, Made, Obstacle, Transfer
from labs.record.tables import TABLES

if TYPE_CHECKING:
    from generator.scenario.fields import Step
    from generator.scenario.flows import FlowSettings

__all__ = ["LEAD_NS", "Made", "Transfer", "commands", "obstacle", "programs", "rows"]

_TOOLS: dict[str, Any] = {"iperf3": iperf3, "ditg": ditg}
_SAID = ("name", "step", "role", "transfer", "kind", "generator", "source", "sink", "congestion")


def obstacle(generator: str, step: Step, settings: FlowSettings) -> Obstacle | None:
    """The key that `generator` cannot do, and why; None where it can do all."""
    found: Obstacle | None = _TOOLS[generator].obstacle(step, settings)
    return found


def commands(generator: str, transfer: Transfer) -> Made:
    """What runs where for one transfer."""
    made: Made = _TOOLS[generator].commands(transfer)
    return made


def programs(document: dict[str, Any]) -> tuple[str, ...]:
    """The programs that must be there for a schedule's document to be run, and its results to be read."""
    tools = dict.fromkeys(flow["generator"] for flow in document["flows"] if flow["generator"] != "ewan")
    return tuple(name for tool in tools for name in _TOOLS[tool].PROGRAMS)


def rows(document: dict[str, Any], directory: Path) -> dict[str, pl.DataFrame]:
    """The rows of all external generators' flows of a run; what did not run, or said nothing, has an `error`.

    `document` is schedule.json, `directory` has commands.json and commands/.
    """
    found: dict[str, list[dict[str, Any]]] = {"flows": [], "series": [], "goodput": []}
    flows = [flow for flow in document["flows"] if flow["generator"] != "ewan"]
    path = directory / "commands.json"
    entries = orjson.loads(path.read_bytes())["commands"] if flows and path.exists() else []
    for flow in flows:
        for table, those in _rows(flow, entries, directory, document).items():
            found[table] += those
    return {table: pl.DataFrame(those, schema=TABLES[table]) for table, those in found.items()}


def _rows(flow: dict[str, Any], entries: list[Any], directory: Path, document: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {key: flow[key] for key in _SAID}
    row |= {"flow": flow["number"], "part": 0}
    row |= {"scheduled_ns": flow["scheduled_ns"], "volume_bytes": flow["volume_bytes"]}
    if len(entries) <= flow["command"]:
        return {"flows": [{**row, "error": f"{flow['generator']}: did not run"}]}
    entry = entries[flow["command"]]
    if entry["error"] is not None or entry["started_ns"] is None:
        return {"flows": [{**row, "error": entry["error"] or f"{flow['generator']}: was not started"}]}
    said = (directory / entry["out"]).read_bytes()
    if flow["generator"] == "iperf3":
        return iperf3.rows(flow, row, said, entry["started_ns"])
    decoded = ditg.decode(directory / "commands" / flow["tool"]["log"])
    words = said.decode(errors="replace") + (directory / entry["err"]).read_text(errors="replace")
    return ditg.rows(row, words, decoded, entry["started_ns"], document["series_ns"])
