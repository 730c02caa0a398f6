"""Readers: results of programs of a scenario's `run:` steps become tables, like those of the generators.

In: schedule.json and commands.json of a run, and its directory. Out: tables of what the programs printed, each row with
its step, node and command; tables of the CSV that they left in $EWAN_OUT; and a row of `readings` for each output and
file that is read. Nothing is refused: an output that could not be read has one line about it there. The files stay in
commands/."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import polars as pl

from ewan.generator import commands as commands_of
from ewan.generator.commands import RunCommand
from ewan.generator.readers import captures, ditg, files, hops, iperf3, ping, step_csv
from ewan.generator.readers.call import calls
from ewan.generator.readers.reader import CommandOutput, Reader, ReaderResult
from ewan.generator.rows import WRONG, Row, Rows, bounded, frame_of, number, text
from ewan.labs.base.codec import MOST_SHOWN
from ewan.labs.base.reading import one_line, read_bytes
from ewan.labs.record import tables
from ewan.labs.record.own_tables import OwnTable
from ewan.labs.record.schedule import CAPTURE, Part, Schedule

READERS: tuple[Reader, ...] = (ping.READER, *hops.READERS, iperf3.READER, ditg.READER)
_TELLING: tuple[Reader, ...] = (ping.READER, iperf3.READER, ditg.READER)
"""Those whose output is like no other's."""
_READ: tuple[Part, ...] = ("command", CAPTURE)
"""The kinds of scheduled commands that are read: those of steps, and captures."""
TABLES = ("pings", "hops", "intervals", "decoded_flows", "readings", "packets")
MOST_ERROR = 400
"""Characters of why a command was not started."""
MOST_OUTPUT_BYTES = 256 << 20
"""Bytes of the output of one command that are read."""
MOST_UNREAD_BYTES = 4 << 20
"""Bytes of output that are searched where a command's words do not name its program."""
UNREAD = (
    "it printed what {0} prints, and is not read: its command does not name {1}; write {1} itself, or sh -c with it"
)


@dataclass(frozen=True)
class OutputTables:
    """`tables` by the names of labs/record/columns.py; `own`: those of the programs' own files, by `<step>.<file>`."""

    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    own: dict[str, OwnTable] = field(default_factory=dict)


def results(schedule: Schedule, directory: Path) -> OutputTables:
    """Tables of the output that the commands of a run's steps printed, and of the files that they left in $EWAN_OUT; no
    tables where nothing is read.

    `directory` has commands.json and commands/."""
    read = [each for each in schedule.commands if each.part in _READ]
    commands = commands_of.read(directory) if read else None
    if commands is None:
        return OutputTables()
    # Over several machines each command has that of its own machine's clock.
    rows: Rows = {table: [] for table in TABLES}
    packets = tables.empty("packets")
    left: list[_FileTable] = []
    for each in read:
        if each.index >= len(commands.commands):
            continue
        entry = commands.commands[each.index]
        t0_unix_ns = commands.t0_unix_ns if entry.t0_unix_ns is None else entry.t0_unix_ns
        whose: Row = {"step": each.step, "node": each.node, "command": each.index + 1}
        if each.part == CAPTURE:
            caught = captures.read(entry, directory, t0_unix_ns)
            rows["readings"].append({**whose, "tool": CAPTURE, "file": captures.FILE, "problem": caught.problem})
            packets.extend(caught.packets)
            continue
        for reader, reading in chain(_readings(entry, directory, t0_unix_ns), _unread(entry, directory)):
            rows["readings"].append({**whose, "tool": reader.name, **reading.totals, "problem": reading.problem})
            for table, those in reading.rows.items():
                rows[table] += [{**whose, **row} for row in those]
        for file, found in files.tables(entry, directory, t0_unix_ns):
            row: Row = {**whose, "tool": "csv", "file": file, "problem": found if isinstance(found, str) else None}
            rows["readings"].append(row)
            left += [] if isinstance(found, str) else [_FileTable(row, found)]
    if not rows["readings"]:
        return OutputTables()
    own_of = _joined(left)
    return OutputTables({table: frame_of(those, table) for table, those in rows.items()} | {"packets": packets}, own_of)


def problems(directory: Path) -> list[str]:
    """The outputs of a run that could not be read, a line each. The tables of the run are made."""
    there = tables.read(directory, "readings").filter(pl.col("problem").is_not_null()).to_dicts()
    return [_problem(each) for each in there]


def _problem(row: Row) -> str:
    return f"{row['file'] or row['tool']} in {row['node']} (step {row['step']}): {row['problem']}"


@dataclass(frozen=True)
class _FileTable:
    """A table of one command's file, and the row about its reading."""

    row: Row
    table: OwnTable


def _joined(left: list[_FileTable]) -> dict[str, OwnTable]:
    """Tables of all commands of a step, by the file's name; the row of one that is left out gets the reason."""
    by_name: dict[str, list[_FileTable]] = {}
    for each in left:
        by_name.setdefault(f"{each.row['step']}.{Path(text(each.row, 'file')).stem}", []).append(each)
    result = {}
    for name, those in sorted(by_name.items()):
        table, left_out = step_csv.joined(
            [(text(each.row, "node"), number(each.row, "command"), each.table) for each in those]
        )
        for each in those:
            each.row["problem"] = left_out.get(number(each.row, "command"))
        result[name] = table
    return result


def _readings(entry: RunCommand, directory: Path, t0_unix_ns: int | None) -> Iterator[tuple[Reader, ReaderResult]]:
    """The result of each reader for the output of one command."""
    for reader in READERS:
        found = tuple(calls(entry.argv, reader.programs))
        if not found:
            continue
        if entry.error is not None or entry.started_ns is None:
            yield reader, ReaderResult(problem=one_line(str(entry.error or "was not started"), MOST_ERROR))
            continue
        output = directory / entry.out
        try:
            text = read_bytes(output, MOST_OUTPUT_BYTES).decode(errors="replace")
        except OSError as error:
            yield reader, ReaderResult(problem=f"its output is not readable ({error.strerror})")
            continue
        reading = _checked(reader, CommandOutput(text, found, entry.started_ns, t0_unix_ns))
        if reading is not None:
            yield reader, reading


def _unread(entry: RunCommand, directory: Path) -> Iterator[tuple[Reader, ReaderResult]]:
    """The results for a command whose words name no known program, if its output is nevertheless a known one."""
    if entry.started_ns is None or any(calls(entry.argv, reader.programs) for reader in READERS):
        return
    try:
        text = read_bytes(directory / entry.out, MOST_UNREAD_BYTES).decode(errors="replace")
    except OSError:
        return
    for reader in _TELLING:
        reading = _checked(reader, CommandOutput(text, (), entry.started_ns, None)) if text.strip() else None
        if reading is not None and any(reading.rows.values()):
            yield reader, ReaderResult(problem=UNREAD.format(reader.name, reader.programs[0]))


def _checked(reader: Reader, printed: CommandOutput) -> ReaderResult | None:
    """The result of a reader, as far as the tables can hold it. No output is an error, whatever it holds."""
    try:
        reading = reader.read(printed)
    except WRONG:
        return ReaderResult(problem=f"its output is none of {reader.name}'s")
    if reading is None:
        return None
    left_out = 0
    for table, those in reading.rows.items():
        reading.rows[table], beyond = bounded(those, table)
        left_out += beyond
    totals, beyond = bounded([reading.totals], "readings")
    reading.totals = totals[0] if totals else {}
    if left_out + beyond and reading.problem is None:
        reading.problem = f"{left_out + beyond} of its rows have numbers that no measurement gives, and are left out"
    if reading.problem is not None:
        reading.problem = one_line(str(reading.problem), MOST_SHOWN)
    return reading
