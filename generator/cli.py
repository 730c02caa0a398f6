"""The command `transfer`: bulk TCP over a lab, a run for each congestion control, in either clock.

In: a description, congestion controls, how long or how much. Out: a table, and for each congestion control a run
directory with the record of its flows (traffic/) and their TCP_INFO over time (series.csv).
"""

from __future__ import annotations

import csv
import functools
import io
import threading
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click
from msgspec.structs import astuple

from ewan.generator import congestion, traffic_request
from ewan.generator.traffic_request import FlowRecord, FlowSample
from ewan.labs import clock, descriptions, rundir
from ewan.labs.base import codec
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import NS_PER_SECOND, Size, UnitError
from ewan.labs.base.units.shown import about
from ewan.labs.base.writing import anew
from ewan.labs.batch import LONGEST_NS
from ewan.labs.batch import duration as time_of
from ewan.labs.commands.errors import Incomplete, Refused, guarded
from ewan.labs.commands.live import run_and_remove
from ewan.labs.commands.options import (
    description_options,
    json_option,
    load_module_option,
    pass_context,
    trust_option,
)
from ewan.labs.commands.privileges import as_root, is_virtual
from ewan.labs.commands.virtual import runtime_of
from ewan.labs.congestion import external_program, library
from ewan.labs.context import Context
from ewan.labs.kernels import library as kernels
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Controller, Program
from ewan.labs.runtime.sweep import sweep

MOST_FLOWS = 10_000
LONGEST_LIVE_NS = 600 * NS_PER_SECOND
SHORTEST_SAMPLE_NS = 100_000


class TransferOutput(codec.Struct):
    """The flows of a transfer by their congestion control, and the directory that has their series."""

    lab: str
    directory: str
    flows: dict[str, list[FlowRecord]]


@click.command("transfer")
@description_options
@trust_option
@load_module_option
@click.option("--cc", default="cubic", show_default=True, help='congestion control, or several: "reno,cubic,bbr"')
@click.option("--for", "duration", metavar="TIME", help="how long each flow sends (default: 10s)")
@click.option("--volume", metavar="SIZE", help='how much each flow sends, "100MB"')
@click.option(
    "--flows", default=1, show_default=True, type=click.IntRange(1, MOST_FLOWS), help="parallel flows of each pair"
)
@click.option(
    "--sample", default="10ms", show_default=True, metavar="TIME", help="interval between two samples of TCP_INFO"
)
@click.option("--program", "controller", metavar="PROGRAM", help="program that sets windows: --cc external")
@click.option("--thinks", metavar="TIME", help="simulated time until an answer of PROGRAM takes effect (default: none)")
@json_option(lambda: TransferOutput)
@guarded
@pass_context
def transfer_command(
    context: Context,
    /,
    topology: str,
    cc: str,
    duration: str | None,
    volume: str | None,
    flows: int,
    sample: str,
    controller: str | None,
    thinks: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Send bulk TCP between the host pairs, and record cwnd and the rest of TCP_INFO over time.

    Each congestion control has a run of its own. In the virtual clock, each CPU executes one run at a time.

    \b
    ewan transfer dumbbell --rtt 100ms --cc reno,cubic,bbr --for 20s --runtime virtual
    ewan transfer dumbbell --rtt 20ms --rate 100M --pairs 2 --flows 2 --cc reno --volume 50MB
    ewan transfer dumbbell --rtt 100ms --cc external --program ./mine.py --runtime virtual
    """
    virtual = is_virtual(context)
    plan = descriptions.trusted_plan_of(context, topology, options, virtual=virtual)
    if not plan.pairs:
        raise Refused(f"lab {plan.lab} has no pair of hosts: write them as pairs in its description")
    if duration is None and volume is None:
        duration = "10s"
    lasting = None if duration is None else time_of(duration, "--for")
    size = None if volume is None else size_of(volume)
    sample_ns = time_of(sample, "--sample")
    if 0 < sample_ns < SHORTEST_SAMPLE_NS:
        raise Refused(f'--sample "{sample}": write at least "0.1ms", or "0s" for none')
    if 0 in (lasting, size):
        raise Refused('there is nothing to send: write --for "10s" or --volume "100MB"')
    controls = list(dict.fromkeys(word for word in cc.replace(",", " ").split()))
    if not controls:
        raise Refused('--cc: write the name of a congestion control, "cubic"')
    outside, thinks_ns = controller_of(controls, controller, thinks, virtual)
    if not virtual:
        as_root(context)
    kernel = None if plan.kernel is None else plan.kernel.name
    built_in = None if kernel is None else kernels.congestion_of(kernel, context.environment)
    modules = library.modules(controls, context.environment) or ()
    added = {name: tuple(each for each in modules if name in each.controls) or None for name in controls}
    if outside is not None:
        added[external_program.NAME] = (external_program.module(thinks_ns),)

    def program(control: str) -> Program:
        ends = [plan.pairs[number % len(plan.pairs)] for number in range(flows)]
        wanted = [
            traffic_request.BulkTransfer(end.source, end.sink, control, bytes=size, duration_ns=lasting) for end in ends
        ]
        in_clock: Literal["live", "virtual"] = "virtual" if virtual else "live"
        longest_ns = LONGEST_NS if virtual else LONGEST_LIVE_NS
        request = traffic_request.transfers(plan, wanted, in_clock, sample_ns=sample_ns, longest_ns=longest_ns)
        return Program(
            traffic=request,
            longest_ns=longest_ns,
            expected_ns=lasting or 0,
            modules=added[control],
            controller=outside if control == external_program.NAME else None,
        )

    mine = set() if outside is None else {external_program.NAME}
    here = not virtual and context.machines is None
    with context.host_kernel().having(modules) if here else nullcontext():
        congestion.refuse(controls, virtual, library.names(context.environment) | mine, built_in)
        place = rundir.make(plan.lab)
        programs = {control: program(control) for control in controls}
        execute = functools.partial(in_virtual, kernel=kernel) if virtual else in_live
        result = ran(context, plan, programs, place, execute)
    if as_json:
        context.reporter.emit(TransferOutput(plan.lab, str(place), result))
        return
    columns = [
        "congestion control",
        "flows",
        "received",
        "goodput",
        "fairness",
        "retransmitted",
        "largest cwnd",
        "longest",
    ]
    context.reporter.console.print(
        grid(f"Transfers over {plan.lab}", columns, [row(control, result[control]) for control in controls])
    )
    context.reporter.console.print(f"flows and series: {place}/*/traffic/traffic.json, series.csv", soft_wrap=True)


def ran(
    context: Context,
    plan: Plan,
    programs: dict[str, Program],
    place: Path,
    execute: Callable[[Context, Plan, dict[str, Program], Path], None],
) -> dict[str, list[FlowRecord]]:
    """Runs into PLACE/<congestion control>, and gives their flows."""
    try:
        with rundir.kept(place):
            execute(context, plan, programs, place)
            result = {control: flows_of(control, place / control) for control in programs}
            for control in programs:
                write_series(place / control, result[control])
            rundir.give_back(place)
    except rundir.DiskFullError as error:
        raise Incomplete(str(error)) from None
    return result


def controller_of(
    controls: list[str], program: str | None, thinks: str | None, virtual: bool
) -> tuple[Controller | None, int]:
    """The program that sets windows, None without one, and its thinking time."""
    wanted = external_program.NAME in controls
    if wanted and not virtual:
        raise Refused("--cc external: a program sets windows in the virtual clock only: add --runtime virtual")
    if wanted and program is None:
        raise Refused("--cc external: write the program that sets its windows: --program ./mine.py")
    if not wanted and (program is not None or thinks is not None):
        raise Refused(f"{'--thinks' if program is None else '--program'} is for --cc external, and no flow has it")
    if program is None:
        return None, 0
    thinks_ns = 0 if thinks is None else time_of(thinks, "--thinks")
    try:
        return external_program.of_user(program), thinks_ns
    except LabError as error:
        raise Refused(f"--program {error}") from None


def size_of(text: str) -> int:
    """`--volume` in bytes."""
    try:
        return Size.parse(text).bytes
    except UnitError as error:
        raise Refused(f'--volume "{text}": {error}') from None


def in_virtual(
    context: Context,
    plan: Plan,
    programs: dict[str, Program],
    place: Path,
    kernel: str | None = None,
) -> None:
    """Runs into PLACE/<congestion control>; each in a lab of its own, on all cores. Where a kernel was named, plan.json
    of each run has its name, and wall.json what it cost."""
    runtime = runtime_of(context, kernel)
    runtime.kernel()
    ended: list[str] = []
    failed: list[LabError] = []

    def job(control: str) -> Callable[[threading.Event], None]:
        def run(stop: threading.Event) -> None:
            started = datetime.now(UTC).isoformat(timespec="seconds")
            try:
                result = runtime.run(plan, programs[control], place / control, stop)
            except LabError as error:
                if programs[control].modules is None:
                    raise
                failed.append(error)  # the fault of a module is none of the other runs
                return
            for warning in result.ended.warnings:
                context.reporter.warn(warning)
            if kernel is not None:
                clock.write_wall(place / control, started, clock.cost_of(result))
            ended.append(control)
            status.update(f"transfers over {plan.lab}: {len(ended)} of {len(programs)} have ended")
            if result.interrupted:
                raise LabError(f"interrupted: what has ended is in {place}")

        return run

    with context.reporter.progress(f"transfers over {plan.lab}: {', '.join(programs)}") as status:
        sweep([job(control) for control in programs])
    if failed:
        raise failed[0]


def in_live(context: Context, plan: Plan, programs: dict[str, Program], place: Path) -> None:
    """The same, one after the other, each in a fresh lab."""
    for control, program in programs.items():
        (place / control).mkdir()
        run_and_remove(context, plan, program, place / control)


def flows_of(control: str, run: Path) -> list[FlowRecord]:
    """The records of a run's flows; the command fails where one of them did not run as it should."""
    try:
        return traffic_request.completed(run)
    except RuntimeError as error:
        raise Refused(f"{control}: {error}") from None


def write_series(run: Path, flows: list[FlowRecord]) -> None:
    """RUN/series.csv: one line for each sample of each flow; the units are in the names."""
    states, cells = traffic_request.state_columns(run)
    with io.TextIOWrapper(anew(run / "series.csv"), newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = FlowSample.__struct_fields__ if any(flow.series for flow in flows) else ()
        writer.writerow(["flow", *names, *states])
        for number, flow in enumerate(flows):
            more = cells.get((flow.flow, flow.part), iter(()))
            writer.writerows([number, *astuple(sample), *next(more, ())] for sample in flow.series or ())


def row(control: str, flows: list[FlowRecord]) -> list[str]:
    """A row of the table: the results of all flows of a run together."""
    goodputs = [flow.goodput_bps or 0.0 for flow in flows]
    # Jain, Chiu, Hawe 1984.
    squares = sum(goodput**2 for goodput in goodputs)
    fairness = sum(goodputs) ** 2 / (len(goodputs) * squares) if squares else 0.0
    cwnd = max((sample.cwnd_segments for flow in flows for sample in flow.series or ()), default=0)
    longest = max(((flow.ended_ns or 0) - (flow.started_ns or 0) for flow in flows), default=0)
    return [
        control,
        str(len(flows)),
        about(sum(flow.received_bytes for flow in flows), "size"),
        about(sum(goodputs), "rate"),
        f"{fairness:.4f}",
        str(sum(flow.retransmitted_segments or 0 for flow in flows)),
        f"{cwnd} segments",
        f"{longest / NS_PER_SECOND:.6f} s",
    ]
