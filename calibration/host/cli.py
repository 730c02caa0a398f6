"""The commands `calibrate` and `envelope`: what this host can be trusted with, before a lab is described.

In: the command line. Out: tables, or JSON with --json; `envelope` ends with status 1 for what is outside.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Any

import click

from ewan.calibration import cli, envelope
from ewan.calibration.envelope import LinkDemand, Prediction
from ewan.calibration.host import calibrations, measurement, words
from ewan.calibration.host.calibrations import HostCalibration
from ewan.generator import scenario
from ewan.labs import spec
from ewan.labs.base.product import RESULTS
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import Duration, Rate, Size, UnitError
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import (
    json_option,
    pass_context,
    renamed_option,
)
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.runtime.memory import free_memory_bytes
from ewan.labs.spec import names


def show(context: Context, found: HostCalibration) -> None:
    """Prints what was measured."""
    context.reporter.console.print(cli.findings_table(words.findings(found), "This host"))
    context.reporter.console.print()
    context.reporter.console.print(
        grid("Links of this host", words.COLUMNS, [words.link_row(each) for each in found.links])
    )
    for line in words.absences(found.absent):
        context.reporter.console.print(line, style="dim", soft_wrap=True)
    took = about(found.elapsed_ns, "time", 3)
    context.reporter.console.print(f"this host, {found.profile} profile, {found.time} ({took})")


@dataclass(frozen=True, slots=True)
class EnvelopeOutput(Prediction):
    """The prediction whether this host carries the requested links. `fastest_bps`: the largest rate that it carries;
    `margin`: the share of its capacity that is kept free; `measured`: when the host was measured."""

    fastest_bps: int | None
    margin: float
    measured: str


def _output() -> object:
    from ewan.experiments.feasibility import Verdict

    return EnvelopeOutput, Verdict


@click.command("envelope")
@click.argument("name", metavar="[FILE|NAME]", required=False)
@click.option("--rate", help='rate of each link, "2.5G"')
@click.option("--delay", default="0ms", show_default=True, help="one-way delay of each link")
@renamed_option("--packet", "size", old="--size", default="1500B", show_default=True, help="size of an IP packet")
@click.option(
    "--links",
    type=click.IntRange(1, 20_000),
    default=1,
    show_default=True,
    help="number of links that are loaded at once",
)
@click.option(
    "--emulator",
    type=click.Choice(["auto", "user", "kernel", "tbf"]),
    default="auto",
    show_default=True,
    help="the emulator of the links",
)
@json_option(_output)
@guarded
@pass_context
def envelope_command(
    context: Context,
    name: str | None,
    rate: str | None,
    delay: str,
    size: str,
    links: int,
    emulator: str,
    as_json: bool,
) -> None:
    """Say whether this host carries such links, with what margin and by which emulator.

    For a lab or a scenario (FILE, or a NAME of labs/library): say whether it runs live here while all pairs or all of
    its flows send, and how long it takes in the virtual clock. The exit status is 1 where this host does not carry it.

    \b
    ewan measure envelope --rate 2.5G --delay 5ms --packet 64B --links 4
    ewan measure envelope my.lab.yaml
    ewan measure envelope my.scenario.yaml
    """
    if (name is None) == (rate is None):
        raise Refused("write --rate, or the file of a lab or a scenario")
    if rate is None:
        sys.exit(of_file(context, name or "", as_json))
    demand = demanded(rate, delay, size, links, None if emulator == "auto" else emulator)
    found = calibrations.load(context)
    if found is None:
        as_root(context)
        found = measurement.of_this_host(context)
    try:
        prediction = envelope.predict(found.links, demand, free_memory_bytes())
    except envelope.NoEnvelopeError as error:
        raise Refused(str(error)) from None
    fastest = envelope.fastest(found.links, demand)
    if as_json:
        context.reporter.emit(
            EnvelopeOutput(**asdict(prediction), fastest_bps=fastest, margin=envelope.MARGIN, measured=found.time)
        )
    else:
        for line in verdict_lines(demand, prediction, fastest):
            context.reporter.console.print(line, soft_wrap=True, markup=True)
        context.reporter.console.print(f"by the measurement of {found.time}, {found.profile} profile", style="dim")
    sys.exit(0 if prediction.inside else 1)


def of_file(context: Context, name: str, as_json: bool) -> int:
    """The verdict of a lab or a scenario; the exit status."""
    from ewan.experiments import feasibility  # it knows the engine, which other commands here do not need

    known = feasibility.Verdicts(context)
    if calibrations.load(context) is None:
        as_root(context)
        measurement.of_this_host(context)
    lab = None if name.endswith(names.SCENARIO) else names.find(name, names.LAB)
    if lab is not None:
        found = known.of_lab(spec.text_of(lab, "write the path of a description"), lab)
    else:
        found = known.of_scenario(scenario.load(name), RESULTS)
    if as_json:
        context.reporter.emit(found)
    else:
        for line in feasibility.lines(found):
            context.reporter.console.print(line, soft_wrap=True, markup=False)
    return 0 if found.live.verdict in ("inside", "unknown") else 1


def demanded(rate: str, delay: str, size: str, links: int, backend: str | None) -> LinkDemand:
    """The demand in the words of the command line; Refused, one line, for others."""
    wanted = {
        "rate_bps": _quantity("rate", rate, Rate).bps,
        "delay_ns": _quantity("delay", delay, Duration).ns,
        "packet_bytes": _quantity("packet", size, Size).bytes,
    }
    if not 28 <= wanted["packet_bytes"] <= 65_535:
        raise Refused(f'--packet "{size}": write the size of an IP packet from 28B to 65535B, like 1500B')
    return LinkDemand(**wanted, links=links, backend=backend)


def _quantity(option: str, text: str, kind: Any) -> Any:
    try:
        return kind.parse(text)
    except UnitError as error:
        raise Refused(f'--{option} "{text}": {error}') from None


def verdict_lines(demand: LinkDemand, prediction: Prediction, fastest: int) -> list[str]:
    """The verdict, a line each: in or out, why, how far it reaches, how late packets would be."""
    verdict = "[green]inside[/]" if prediction.inside else "[bold red]outside[/]"
    lines = [f"{verdict}: {prediction.why}"]
    reach = about(fastest, "rate", 3)
    each = f"each of {demand.links} links" if demand.links > 1 else "a link"
    lines.append(f"back end {prediction.backend}; with packets of {demand.packet_bytes} bytes {each} may have {reach}")
    if prediction.delay_error_p50_ns is not None and prediction.delay_error_p99_ns is not None:
        p50, p99 = (about(ns, "time", 3) for ns in (prediction.delay_error_p50_ns, prediction.delay_error_p99_ns))
        share = ""
        if demand.delay_ns:
            share = f", {prediction.delay_error_p50_ns / demand.delay_ns:.3%} of {about(demand.delay_ns, 'time', 3)}"
        lines.append(f"packets leave late by {p50} at the median{share}, by {p99} at p99")
    if demand.memory_bytes:
        lines.append(f"{about(demand.memory_bytes, 'size', 3)} in flight when the delay lines are full")
    if not prediction.inside:
        lines.append("the virtual clock has no such limits: --runtime virtual")
    return lines
