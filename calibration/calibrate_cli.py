"""The commands `measure host` and `measure lab`: this host, a lab as it is deployed, or any path.

In: the command line. Out: tables, or JSON with --json, and a report; exit status 1 for a lab outside its tolerances.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from ewan.calibration import cli, page, path
from ewan.calibration import reference as reference_readings
from ewan.calibration.host import calibrations, measurement
from ewan.calibration.host import cli as host_cli
from ewan.calibration.host.calibrations import PROFILES, Profile
from ewan.calibration.uncertainty import Instrument
from ewan.generator import traffic_request
from ewan.labs import descriptions, rundir
from ewan.labs.base import writing
from ewan.labs.base.codec import Document, replace
from ewan.labs.base.sheet import grid
from ewan.labs.base.units.shown import ARROWS, written
from ewan.labs.commands import live
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import (
    json_option,
    machines_option,
    only_live,
    optional_description,
    pass_context,
    policy_option,
    reference_option,
    renamed_option,
    trust_option,
)
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.plan import Plan, digest
from ewan.labs.record import Certificate, Policy, Row
from ewan.labs.record.schema import CertificateFile
from ewan.labs.runtime.probe_documents import Probe, ProbeResult
from ewan.labs.runtime.probes import send as send_probes


class PathOutput(Document, tag="ewan-path/1"):
    """The measurements of a path."""

    rows: tuple[Row, ...]


@click.command("lab")
@machines_option
@trust_option
@optional_description
@click.option("--path", "ends", nargs=2, metavar="A B", help="any path: nodes of a lab that is up, or NETNS@ADDRESS")
@policy_option
@reference_option
@json_option(lambda: (CertificateFile, PathOutput))
@guarded
@pass_context
def lab_command(
    context: Context,
    /,
    topology: str | None,
    ends: tuple[str, str] | None,
    reference: Path | None,
    policy: Policy,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure a lab as it is deployed: every link, all links at once, every pair of hosts, and TCP by RFC 6349.

    A lab that is up is measured as it is; another one is brought up for the measurement. With --path, measure the path
    between two ends that are there already.

    \b
    ewan measure lab dumbbell --rtt 100ms
    ewan measure lab --path red@10.0.0.1 blue@10.0.0.2
    """
    if ends is not None:
        if topology is not None or reference or any(value is not None for value in options.values()):
            raise Refused("--path measures that path: leave the other words out")
        calibrate_path(context, ends, as_json)
        return
    if topology is None:
        raise Refused(
            "which lab? name its topology, like ewan measure lab dumbbell; ewan measure host measures this host"
        )
    only_live(click.get_current_context(), None, context.runtime)
    facts = live.host_facts(context)
    plan = descriptions.plan_of(topology, options, context.reporter.note, virtual=False, facts=facts)
    sys.exit(0 if calibrate_lab(context, plan, policy, as_json, reference).passed else 1)


@click.command("host")
@renamed_option(
    "--size",
    "profile",
    old="--profile",
    type=click.Choice(PROFILES),
    default="default",
    show_default=True,
    help="how long it measures: about 15 s, a minute, ten minutes",
)
@click.option("--nic", "nics", multiple=True, metavar="NAME", help="also describe this network card")
@json_option(lambda: calibrations.HostCalibration)
@guarded
@pass_context
def host_command(context: Context, profile: Profile, nics: tuple[str, ...], as_json: bool) -> None:
    """Measure the accuracy of this host's timers, and the rate and the delay error of its links.

    The result is kept. Labs and experiments that need more than this host carries are refused with a reason.

    \b
    ewan measure host
    ewan measure host --size full
    """
    as_root(context)
    what = f"calibrating this host ({measurement.WORDS[profile]})"
    with context.reporter.progress(what) as status:
        found = measurement.measure(context, profile, lambda text: status.step(f"{what}: {text}"), nics)
    try:
        place = calibrations.save(context, found)
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}: name another place for the cache with EWAN_CACHE") from None
    directory = rundir.make("host")
    with rundir.kept(directory):
        writing.write(directory / "host.json", calibrations.to_json(found))
        made = page.write(directory, *page.of_host(found))
        rundir.give_back(directory)
    if as_json:
        sys.stdout.buffer.write(calibrations.to_json(found))
        return
    host_cli.show(context, found)
    context.reporter.console.print(f"kept: {place}  report: {made}", soft_wrap=True)


def calibrate_lab(
    context: Context, plan: Plan, policy: Policy, as_json: bool, reference: Path | None = None
) -> Certificate:
    """A lab as it is deployed: verified, with all its links loaded at once, and TCP by RFC 6349.

    A lab of this name that is up is measured as it is, if it is of the same plan, and stays up. Else it is made for the
    time of the measurement.
    """
    as_root(context)
    readings = None if reference is None else reference_readings.read(reference)
    labs = context.live()
    there = plan.lab in labs.names()
    if there:
        # Over several machines the plan that is up has the spinners of all of them.
        up = labs.load(plan.lab).plan
        if labs.runtime_of(plan.lab) == "cluster":
            plan = replace(plan, spinners=up.spinners, host_cpus=up.host_cpus)
    if there and digest(up) != digest(plan):
        raise Refused(f"lab {plan.lab} is up, and of another plan: ewan down {plan.lab}, or give this one another name")
    directory = rundir.make(plan.lab)
    try:
        with nullcontext(plan) if there else live.brought_up(context, plan) as plan:
            try:
                certificate = cli.certify(context, plan, policy, directory, thorough=True)
                if readings is not None and reference is not None:
                    certificate = reference_readings.against(certificate, readings, reference)
            finally:
                if not there:
                    context.live().down(plan.lab)
    except BaseException:
        cli.drop(directory)
        raise
    cli.show(context, certificate, directory, plan, as_json)
    made = page.write(
        directory, *page.of_lab(certificate, plan, None if certificate.machines else calibrations.load(context))
    )
    rundir.give_back(directory)
    if not as_json:
        context.reporter.console.print(f"report: {made}", soft_wrap=True)
    cli.advise(context, certificate)
    return certificate


def calibrate_path(context: Context, ends: tuple[str, str], as_json: bool) -> None:
    """Any path between two namespaces, both ways."""
    as_root(context)
    labs = context.live()
    nodes: dict[str, tuple[str, str]] = {}
    lab_of: dict[str, str] = {}
    for name in labs.names():
        plan = labs.load(name).plan
        for node, address in traffic_request.addresses_of(plan).items():
            nodes[node] = traffic_request.end(name, node, address).netns, address
            lab_of[node] = name
    a, b = (path.end_of(text, nodes) for text in ends)
    stretched = next((lab_of[each] for each in ends if each in lab_of and labs.elsewhere(lab_of[each])), None)
    if stretched is not None and {lab_of.get(each) for each in ends} != {stretched}:
        raise Refused(f"lab {stretched} stretches over several machines: a path from one of its nodes ends at another")
    usable = sorted(os.sched_getaffinity(0))
    what = f"measuring the path from {a.name} to {b.name}"
    with context.reporter.progress(what) as progress:

        def send(probes: Sequence[Probe]) -> Sequence[ProbeResult]:
            # The last CPU is that of links that spin.
            cpus = usable[:-1] or usable

            def tell(text: str) -> None:
                progress.step(f"{what}: {text}")

            if stretched is not None:
                found = labs.probe(stretched, probes, tell)
            else:
                found = send_probes(probes, cpus, context.binary, tell)
            return found.results

        try:
            # What was measured of this machine is not of others.
            instrument = calibrations.instrument(context) if stretched is None else Instrument()
            rows = path.measure(a, b, send, instrument)
        except RuntimeError as error:
            raise Refused(str(error)) from None
    if as_json:
        context.reporter.emit(PathOutput(rows))
        return
    drawn = [[f"{row.link} {ARROWS.get(row.direction, '')}", *path_cells(row)] for row in rows]
    context.reporter.console.print(grid("Path", ["path", "quantity", "measured", "U", "note"], drawn))


def path_cells(row: Row) -> list[str]:
    """A row of which nothing was configured."""
    known = None if row.uncertainty is None or row.measured is None else row.uncertainty.expanded
    return [row.quantity, written(row.measured, row.unit, 6), written(known, row.unit, 2), row.note]
