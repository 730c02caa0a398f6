"""Readers: what programs of a scenario's `run:` steps printed becomes tables, as what the generators measured does.

In: schedule.json and commands.json of a run, and its directory. Out: rows of the tables of readers, each with its step,
node and command, and a row of `readings` for each program that somebody reads. Nothing is refused: what could not be
read is said there in one line, and the output itself stays in commands/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from generator.readers import hops, iperf3, ping
from generator.readers.call import calls
from generator.readers.reader import Printed, Reader, Reading
from generator.rows import Rows, frame_of
from labs.record import tables

READERS: tuple[Reader, ...] = (ping.READER, *hops.READERS, iperf3.READER)
TABLES = ("pings", "hops", "intervals", "readings")
MOST_OUTPUT_BYTES = 256 << 20
"""Of one command that is read."""


def rows(document: Mapping[str, Any], directory: Path) -> dict[str, pl.DataFrame]:
    """The tables of what the commands of a run's steps printed; empty where no program that is read ran.

    `document` is schedule.json, `directory` has commands.json and commands/.
    """
    told = [each for each in document.get("commands", []) if each["part"] == "command"]
    path = directory / "commands.json"
    if not told or not path.exists():
        return {}
    commands = orjson.loads(path.read_bytes())
    result: Rows = {table: [] for table in TABLES}
    for each in told:
        if each["index"] >= len(commands["commands"]):
            continue
        entry = commands["commands"][each["index"]]
        whose = {"step": each["step"], "node": each["node"], "command": each["index"] + 1}
        for reader, reading in _readings(entry, directory, commands.get("t0_unix_ns")):
            result["readings"].append({**whose, "tool": reader.name, **reading.totals, "problem": reading.problem})
            for table, those in reading.rows.items():
                result[table] += [{**whose, **row} for row in those]
    return {table: frame_of(those, table) for table, those in result.items()} if result["readings"] else {}


def problems(directory: Path) -> list[str]:
    """What could not be read of a run whose tables are made, a line each."""
    there = tables.read(directory, "readings").filter(pl.col("problem").is_not_null()).to_dicts()
    return [f"{each['tool']} in {each['node']} (step {each['step']}): {each['problem']}" for each in there]


def _readings(entry: Mapping[str, Any], directory: Path, t0_unix_ns: int | None) -> Iterator[tuple[Reader, Reading]]:
    """What each reader finds in the output of one command."""
    for reader in READERS:
        found = tuple(calls(entry["argv"], reader.programs))
        if not found:
            continue
        if entry["error"] is not None or entry["started_ns"] is None:
            yield reader, Reading(problem=str(entry["error"] or "was not started"))
            continue
        output = directory / entry["out"]
        try:
            if output.stat().st_size > MOST_OUTPUT_BYTES:
                yield reader, Reading(problem=f"its output has more than {MOST_OUTPUT_BYTES >> 20} MiB")
                continue
            text = output.read_text(errors="replace")
        except OSError as error:
            yield reader, Reading(problem=f"its output is not readable ({error.strerror})")
            continue
        yield reader, reader.read(Printed(text, found, entry["started_ns"], t0_unix_ns))
