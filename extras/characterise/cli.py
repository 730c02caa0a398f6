"""The command `characterise`: the measurement of a path, in either clock.

In: the command line. Out: a table, beside it the truth from the plan of a lab of ours; the same as a document, which
`ewan suite advise` reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import orjson

from ewan.calibration import path
from ewan.calibration.host import calibrations
from ewan.calibration.path import PathEnd
from ewan.extras.characterise import measure, truth
from ewan.extras.characterise.plan import Load, lasts_ns
from ewan.generator import traffic_request
from ewan.labs import descriptions, rundir
from ewan.labs.base import documents
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import Rate, UnitError
from ewan.labs.base.units.shown import ARROWS, written
from ewan.labs.base.wording import nearest
from ewan.labs.base.writing import write, write_named
from ewan.labs.commands import live, virtual
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, optional_description, pass_context, trust_option
from ewan.labs.commands.privileges import as_root, is_virtual
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.record.characterisation import Characterisation, Estimate, to_json
from ewan.labs.runtime.probe_documents import OfStreams, ProbeAnswer, ProbeRequest, ProbeResult
from ewan.labs.runtime.probes import send as send_probes
from ewan.labs.runtime.program import Program

FILE = "characterisation.json"
NAMES = {
    "capacity": "capacity",
    "buffer": "buffer",
    "buffer_time": "buffer, as time",
    "loss": "loss",
    "cross": "cross traffic",
}


@click.command("characterise")
@optional_description
@trust_option
@click.option(
    "--path", "ends", nargs=2, metavar="A B", required=True, help="two hosts of a lab, or NETNS@ADDRESS twice"
)
@click.option(
    "--cross",
    "crossing",
    nargs=3,
    multiple=True,
    metavar="A B RATE",
    help="virtual clock: cross traffic of full packets from A to B",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="write the document for ewan suite advise to this file",
)
@json_option(lambda: Characterisation)
@guarded
@pass_context
def characterise_command(
    context: Context,
    /,
    topology: str | None,
    ends: tuple[str, str],
    crossing: tuple[tuple[str, str, str], ...],
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure a path: base RTT, capacity, buffer, loss and cross traffic, each with its uncertainty (k = 2).

    In the virtual clock TOPOLOGY is a description, and its lab is made for the probes. In the live clock it is the name
    of a lab that is up, and may be left out. Probes fill the path's buffers both ways.

    \b
    ewan measure path dumbbell --rtt 40ms --rate 100M --path left1 right1 --runtime virtual -o path.json
    ewan measure path dumbbell --pairs 2 --path left1 right1 --cross left2 right2 20Mbit/s --runtime virtual
    ewan measure path --path left1 right1
    ewan measure path --path red@10.0.0.1 blue@10.0.0.2 -o path.json
    """
    if ends[0] == ends[1]:
        raise Refused(f"--path {ends[0]} {ends[1]}: write two different ends")
    if is_virtual(context) and (topology is not None or context.runtime == "virtual"):
        if topology is None:
            raise Refused("which lab? in the virtual clock it is made for the probes: write its TOPOLOGY or FILE")
        plan = descriptions.trusted_plan_of(context, topology, options, virtual=True)
        directory, found = in_virtual(context, plan, ends, crossing)
    else:
        if crossing:
            raise Refused(
                "--cross is for the virtual clock: in a lab that is up, start what is to send by ewan lab exec"
            )
        if given := [name for name, value in options.items() if value is not None]:
            raise Refused(
                f"--{given[0].replace('_', '-')} is of a lab that is made for the probes: write --runtime virtual too"
            )
        directory, found = in_live(context, topology, ends)
    with rundir.kept(directory):
        write(directory / FILE, to_json(found))
        rundir.give_back(directory)
    if output is not None:
        try:
            write_named(output, to_json(found))
        except OSError as error:
            raise Refused(f"-o {output}: {error.strerror}: the document is in {directory / FILE}") from None
    if as_json:
        context.reporter.emit(orjson.loads(to_json(found)))
        return
    show(context, found)
    context.reporter.console.print(f"kept: {output or directory / FILE}", soft_wrap=True)


def in_virtual(
    context: Context, plan: Plan, names: tuple[str, str], crossing: Sequence[tuple[str, str, str]]
) -> tuple[Path, Characterisation]:
    """Measure a path in a lab that is made for each step of the probes; return the directory of the results, and the
    characterisation."""
    hosts = [node.name for node in plan.nodes if node.kind == "host"]
    addresses = traffic_request.addresses_of(plan)

    def end_of(name: str, option: str) -> PathEnd:
        if name not in hosts:
            raise Refused(f'{option} "{name}": lab {plan.lab} has no such host, {nearest(name, hosts)}')
        return PathEnd(name, traffic_request.end(plan.lab, name, addresses[name]).netns, addresses[name])

    a, b = (end_of(name, "--path") for name in names)
    pair = truth.path_of(plan, a.name, b.name)
    size = min(port.mtu for node in plan.nodes for port in node.interfaces)
    loads = []
    for source, sink, text in crossing:
        words = f"{source} {sink} {text}"
        sender, receiver = end_of(source, "--cross"), end_of(sink, "--cross")
        if source == sink:
            raise Refused(f"--cross {words}: write two different hosts")
        try:
            loads.append(Load(sender, receiver, Rate.parse(text).bps, size, words))
        except UnitError as error:
            raise Refused(f'--cross "{text}": {error}') from None
    directory = rundir.make(plan.lab)
    numbers = iter(range(1, 100))

    def send(probes: Sequence[OfStreams]) -> Sequence[ProbeResult]:
        request = ProbeRequest(tuple(plan.host_cpus), tuple(probes), "virtual")
        longest = sum(map(lasts_ns, probes))
        place = directory / f"probes-{next(numbers)}"
        run = virtual.run(context, plan, Program(request, expected_ns=longest), place, "characterising")
        if run.interrupted or not (file := run.directory / "probe.json").exists():
            raise Refused(f"interrupted: what was measured until then is in {directory}")
        return documents.read(ProbeAnswer, file).results

    asked = measure.MeasurementRequest(a, b, plan.lab, "virtual", "", None, tuple(loads))
    return directory, truth.beside(measure.characterise(asked, send), plan, pair, loads)


def in_live(context: Context, lab: str | None, words: tuple[str, str]) -> tuple[Path, Characterisation]:
    """Measure a path of a lab that is up, of all that are up, or between any two network namespaces."""
    as_root(context)
    labs = context.live()
    names = labs.names()
    if lab is not None:
        names = [live.which(labs, lab)]
    if broken := [name for name in names if lab is not None and labs.status(name).state != "complete"]:
        raise Refused(f"lab {broken[0]} is not up as a whole: ewan ps says what is missing")
    plans = {name: labs.load(name).plan for name in names}
    nodes: dict[str, tuple[str, str]] = {}
    owners: dict[str, str] = {}
    several: dict[str, str] = {}
    for name, plan in plans.items():
        for node, address in traffic_request.addresses_of(plan).items():
            if node in owners:
                several[node] = f"{owners[node]} and {name}"
            nodes[node] = traffic_request.end(name, node, address).netns, address
            owners[node] = name
    if both := [text for text in words if text in several]:
        raise Refused(f'--path "{both[0]}": labs {several[both[0]]} have such a node: name the lab that is meant')
    a, b = (path.end_of(text, nodes) for text in words)
    own = owners.get(a.name) if owners.get(a.name) == owners.get(b.name) else None
    pair = None if own is None else truth.path_of(plans[own], a.name, b.name)
    usable = sorted(os.sched_getaffinity(0))
    # The last CPU is that of links that spin.
    cpus = list(plans[own].host_cpus) if own is not None else usable[:-1] or usable
    instrument = calibrations.instrument(context)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    asked = measure.MeasurementRequest(a, b, own or "", "live", time, instrument)
    what = f"measuring the path from {a.name} to {b.name}"
    directory = rundir.make(own or "path")
    try:
        with context.reporter.progress(what) as progress:

            def send(probes: Sequence[OfStreams]) -> Sequence[ProbeResult]:
                def tell(text: str) -> None:
                    progress.step(f"{what}: {text}")

                if own is not None:  # its ends may be on several machines
                    answer = labs.probe(own, probes, tell)
                else:
                    answer = send_probes(probes, cpus, context.binary, tell)
                return answer.results

            found = measure.characterise(asked, send)
    except RuntimeError as error:
        rundir.drop(directory)
        raise Refused(str(error)) from None
    except BaseException:
        rundir.drop(directory)
        raise
    return directory, found if own is None or pair is None else truth.beside(found, plans[own], pair, ())


def show(context: Context, found: Characterisation) -> None:
    """The table: a row for each value."""
    rows = [_row("↔", "base RTT", found.base_rtt), ["↔", "MTU", f"{found.mtu_bytes} B", "–", "–", ""]]
    for name, way in found.ways().items():
        rows += [_row(ARROWS[name], words, getattr(way, key)) for key, words in NAMES.items()]
    title = f"Path from {found.source} to {found.sink}{f' of {found.lab}' if found.lab else ''}"
    columns = ["way", "quantity", "measured", "U (k = 2)", "configured", "note"]
    context.reporter.console.print(grid(title, columns, rows, most=len(rows), keys=2))
    beside = f"; beside it {', '.join(found.load)}" if found.load else ""
    note = f"rates and sizes: of IP packets of {found.mtu_bytes} B; RTT: of {found.packet_bytes} B{beside}"
    context.reporter.console.print(note, soft_wrap=True, markup=False)
    for name, way in found.ways().items():
        for doubt in way.doubts:
            context.reporter.warn(f"{ARROWS[name]} {doubt}")


def _row(way: str, words: str, each: Estimate) -> list[str]:
    known = None if each.uncertainty is None else each.uncertainty.expanded
    return [
        way,
        words,
        written(each.value, each.unit, 5),
        written(known, each.unit, 2),
        written(each.truth, each.unit, 5),
        each.note,
    ]
