"""External generators: iperf3, D-ITG, UDT, QUIC and Open MPI drive the scenario of our own, into the same tables.

Comes in: a step of a scenario; after the run its schedule's document and directory. Goes out: commands for nodes, what
a tool cannot do, and rows of FLOWS, SERIES and GOODPUT (labs/record/tables.py), with null for what a tool does not say.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ewan.generator import commands as commands_of
from ewan.generator.commands import RunCommand
from ewan.generator.external.transfer import LEAD_NS, Obstacle, Output, Tool, ToolTransfer, TransferCommands
from ewan.generator.rows import WRONG, Row, Rows, bounded, frame_of
from ewan.labs.base.modules import modules_of
from ewan.labs.base.reading import one_line, read_bytes
from ewan.labs.record.schedule import COMMAND_FLOW, OWN, DitgTool, Flow, Iperf3Tool, QuicTool, Schedule, UdtTool
from ewan.labs.runtime.base import LabError

if TYPE_CHECKING:
    from ewan.generator.scenario.fields import ScenarioStep
    from ewan.generator.scenario.flows import FlowSettings

__all__ = [
    "LEAD_NS",
    "TOOLS",
    "Tool",
    "ToolTransfer",
    "TransferCommands",
    "between",
    "check_between",
    "chooses_link",
    "commands",
    "lead_ns",
    "obstacle",
    "programs",
    "readers",
    "remedies",
    "rows",
    "source_ports",
]


def _found() -> dict[str, Tool]:
    tools: list[Tool] = [module.TOOL for module in modules_of(__name__) if hasattr(module, "TOOL")]
    return {tool.name: tool for tool in tools}


TOOLS: Mapping[str, Tool] = _found()
"""By the scenario's word for it (`generator:`); all but `ewan`, which is our own. Each is a module beside this one,
which is found by its `TOOL`."""
TABLES = ("flows", "series", "goodput", "exchanges")
"""The tables that a tool may give rows of."""
MOST_ERROR = 400
"""Characters of what a tool says of an error."""


def obstacle(generator: str, step: ScenarioStep, settings: FlowSettings) -> Obstacle | None:
    """The key that `generator` cannot do, and why; None where it can do all."""
    if step.kind in ("bulk", "bidirectional") and step.work.limited:
        return (
            step.kind,
            'writes as fast as TCP takes it: leave out rate, chunk and interval, or write "generator: ewan"',
        )
    return TOOLS[generator].obstacle(step, settings)


def commands(generator: str, transfer: ToolTransfer) -> TransferCommands:
    """The commands of one transfer, each with its node."""
    return TOOLS[generator].commands(transfer)


def chooses_link(generator: str) -> bool:
    """Return whether the ends of a transfer may be links of hosts (`left1:vpn`)."""
    return generator == OWN or TOOLS[generator].chooses_link


def lead_ns(generator: str) -> int:
    """The time (ns) that a schedule needs before the first transfer of `generator`."""
    return 0 if generator == OWN else TOOLS[generator].lead_ns


def remedies() -> dict[str, str]:
    """The remedy where a program of a tool is missing, by the program."""
    return {
        program: tool.remedy or f"install the package {package}"
        for tool in TOOLS.values()
        for program, package in tool.programs.items()
    }


def programs(schedule: Schedule) -> tuple[str, ...]:
    """The programs that must be there for a schedule to be run, and its results to be read."""
    return tuple(program for name in _names(schedule) for program in TOOLS[name].programs)


def between(schedule: Schedule, machine_of: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Machines and the programs of tools that must be there; those that results are read by must be here too."""
    for flow in _flows(schedule):
        for node in flow.ends:
            yield from ((machine_of[node], program) for program in TOOLS[flow.generator].programs)


def readers(schedule: Schedule) -> tuple[str, ...]:
    """The programs that results of a schedule's tools are read by."""
    return tuple(program for name in _names(schedule) for program in TOOLS[name].reads_by)


def _flows(schedule: Schedule) -> Iterator[Flow]:
    """The flows of external tools."""
    return (flow for flow in schedule.flows if flow.generator not in (OWN, COMMAND_FLOW))


def _names(schedule: Schedule) -> Iterable[str]:
    return dict.fromkeys(flow.generator for flow in _flows(schedule))


def check_between(schedule: Schedule, machine_of: Mapping[str, str]) -> None:
    """LabError for a flow between two machines whose tool reads one clock, or one machine's files, for both ends."""
    for flow in _flows(schedule):
        if TOOLS[flow.generator].between_machines:
            continue
        used = list(dict.fromkeys(machine_of[node] for node in flow.ends))
        if len(used) > 1:
            raise LabError(
                f"{flow.name}: its ends are on the machines {' and '.join(used)}, and {flow.generator} is of one "
                'machine: write another generator, or keep them together with "placement:" in the file of machines'
            )


def rows(schedule: Schedule, directory: Path, copied: bool = False, overtaken: bool = False) -> dict[str, pl.DataFrame]:
    """The rows of all external generators' flows of a run; a flow that did not run, or printed nothing, has an `error`.

    `directory` has commands.json and commands/; `copied`, `overtaken`: see `Output`. ValueError for a tool that gives a
    row of another table, or one with a key that is no column of its table: the tool's module is wrong then."""
    result: dict[str, list[pl.DataFrame]] = {table: [frame_of((), table)] for table in TABLES}
    flows = list(_flows(schedule))
    found = commands_of.read(directory) if flows else None
    entries = found.commands if found is not None else ()

    def read(flow: Flow, row: Row) -> Rows:
        output = _output(flow, row, entries, directory, schedule.series_ns)
        return TOOLS[flow.generator].rows(replace(output, copied=copied, overtaken=overtaken))

    for flow in flows:
        for table, those in _rows(flow, entries, read).items():
            for row in those:
                if row.get("error") is not None:
                    row["error"] = one_line(str(row["error"]), MOST_ERROR)
            if table not in result:
                raise ValueError(f"{flow.generator}: rows of a table {table!r}: only of {', '.join(result)}")
            try:
                result[table].append(frame_of(those, table))
            except ValueError as error:
                raise ValueError(f"{flow.generator}: {error}") from None
    return {table: pl.concat(frames) for table, frames in result.items()}


def source_ports(schedule: Schedule, directory: Path) -> Iterator[tuple[Flow, int]]:
    """The flows that share the port of their sink with others, as parallel streams do, each with the port of its
    source, where its tool tells it."""
    found = commands_of.read(directory)
    for flow in _flows(schedule):
        port_of = TOOLS[flow.generator].source_port
        if port_of is None or flow.port is not None or not flow.addresses or found is None or flow.command is None:
            continue
        if len(found.commands) <= flow.command or found.commands[flow.command].started_ns is None:
            continue
        try:
            port = port_of(_output(flow, {}, found.commands, directory, schedule.series_ns))
        except (*WRONG, OSError):  # Its row tells what is wrong with it.
            continue
        if port is not None:
            yield flow, port


def _rows(flow: Flow, entries: Sequence[RunCommand], read: Callable[[Flow, Row], Rows]) -> Rows:
    tool = TOOLS[flow.generator]
    row, entry = commands_of.flow_row(flow, entries, f"{tool.name}:")
    if entry is None:
        return {"flows": [row]}
    wrong: Rows = {"flows": [{**row, "error": f"{tool.name}: its output has numbers that no measurement gives"}]}
    try:
        found = read(flow, row)
        return (
            found if all(bounded(those, table)[1] == 0 for table, those in found.items() if table in TABLES) else wrong
        )
    except (*WRONG, OSError, struct.error) as error:
        why = f" ({error.strerror})" if isinstance(error, OSError) else ""
        return {"flows": [{**row, "error": f"{tool.name}: its output is none of {tool.name}'s{why}"}]}


def _output(flow: Flow, row: Row, entries: Sequence[RunCommand], directory: Path, series_ns: int) -> Output:
    assert flow.command is not None
    entry = entries[flow.command]
    assert entry.started_ns is not None
    server = entries[flow.tool.server] if isinstance(flow.tool, Iperf3Tool | UdtTool | DitgTool | QuicTool) else None
    return Output(
        flow=flow,
        row=row,
        stdout=read_bytes(directory / entry.out),
        stderr=read_bytes(directory / entry.err).decode(errors="replace"),
        directory=directory / entry.files,
        started_ns=entry.started_ns,
        series_ns=series_ns,
        server=None if server is None else directory / server.out,
        server_directory=None if server is None else directory / server.files,
        ahead_ns=0 if server is None else (server.t0_unix_ns or 0) - (entry.t0_unix_ns or 0),
    )
