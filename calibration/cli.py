"""The commands that measure: `lab` (compile, up, verify), `verify`, `certificate`, `doctor`.

In: the command line. Out: tables, or JSON with --json; exit status 1 when a link is outside its tolerance, 2 for
what the user can put right.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from ewan.calibration import BatchLab, LiveLab, devices, doctor, kept, report, so_far, verify_lab
from ewan.calibration import reference as reference_readings
from ewan.calibration.host import calibrations as host_kept
from ewan.calibration.host.finding import Finding
from ewan.labs import clock, descriptions, routes, rundir
from ewan.labs.base import codec, writing
from ewan.labs.base.product import RESULTS, command
from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.commands import live, tables, virtual
from ewan.labs.commands.errors import Incomplete, Refused, guarded
from ewan.labs.commands.options import (
    description_options,
    details_option,
    json_option,
    machines_option,
    optional_lab,
    pass_context,
    policy_option,
    reference_option,
    trust_option,
)
from ewan.labs.commands.privileges import as_root, is_virtual
from ewan.labs.context import Context
from ewan.labs.plan import Plan, to_json
from ewan.labs.record import CERTIFICATE_FILE, Certificate, Policy, host_drops
from ewan.labs.record import to_json as certificate_json
from ewan.labs.record.schema import CertificateFile
from ewan.labs.render import path_line
from ewan.labs.routing_documents import Convergence
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import SETUP
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.virtual import Run

COLOURS = {
    "ok": "green",
    "outside": "bold red",
    "not decidable": "yellow",
    "not measured": "yellow",
    "shown": "dim",
    "good": "green",
    "limited": "yellow",
}


@click.command("lab")
@machines_option
@description_options
@trust_option
@policy_option
@details_option
@json_option(lambda: CertificateFile)
@guarded
@pass_context
def lab_command(
    context: Context, /, topology: str, policy: Policy, details: bool, as_json: bool, **options: Any
) -> None:
    """Compile a description, bring the lab up and verify every link. A live lab stays up.

    TOPOLOGY is a template (dumbbell, parking-lot, star, chain, ring, mesh, fishbone, four-domain, grid), a file, or
    the NAME of a file NAME.lab.yaml in the current directory, else in labs/library.

    \b
    ewan lab dumbbell --rtt 100ms
    ewan lab parking-lot --rtt 60ms --rate 100M --buffer 255pkt
    ewan lab my.lab.yaml --loss 0.1%
    ewan lab dumbbell --rtt 100ms --rate 10G --runtime virtual
    """
    in_virtual = is_virtual(context)
    facts = live.host_facts(context)
    plan = descriptions.trusted_plan_of(context, topology, options, virtual=in_virtual, facts=facts)
    if in_virtual:
        lab_virtual(context, plan, as_json, policy, details)
        return
    as_root(context)
    directory = rundir.make(plan.lab)
    try:
        with live.brought_up(context, plan) as plan:
            if not as_json:
                describe(context, plan, details)
            certificate = certify(context, plan, policy, directory)
            live.start_machines(context, plan)
            show(context, certificate, directory, plan, as_json, details)
            if not as_json:
                first, last = (
                    (plan.pairs[0].source, plan.pairs[0].sink)
                    if plan.pairs
                    else (plan.nodes[0].name, plan.nodes[-1].name)
                )
                context.reporter.console.print(f"it stays up: {_uses(first, last)}")
            advise(context, certificate)
    except BaseException:
        drop(directory)
        raise
    sys.exit(0 if certificate.passed else 1)


def lab_virtual(context: Context, plan: Plan, as_json: bool, policy: Policy = "default", details: bool = True) -> None:
    """The lab in the virtual clock: built, verified, ended."""
    directory = rundir.make(plan.lab)
    if not as_json:
        describe(context, plan, details)
    verifying = VerificationProgress(context)
    try:
        certificate = verify_lab(plan, BatchLab(verifying, directory), policy=policy)
    except RuntimeError as error:
        raise Refused(f"{error}: what was measured until then is in {directory}") from None
    show(context, certificate, directory, plan, as_json, details)
    if not as_json:
        context.reporter.console.print(clock.summary(verifying.runs[-1]), soft_wrap=True)
    sys.exit(0 if certificate.passed else 1)


class VerificationProgress:
    """Runs in the virtual clock whose progress is shown; `runs`: those that have ended."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.runs: list[Run] = []

    def run(self, plan: Plan, program: Program, directory: Path, stop: threading.Event | None = None) -> Run:
        """Runs a program in the lab of a plan, and shows how far it is."""
        self.runs.append(virtual.run(self._context, plan, program, directory, "verifying", stop))
        return self.runs[-1]


def describe(context: Context, plan: Plan, details: bool = True) -> None:
    """The lab before it is measured: its longest path, or with `details` all nodes, links and pairs."""
    if not details and (picture := path_line.lines(plan)):
        context.reporter.console.print("\n" + "\n".join(picture) + "\n", soft_wrap=True, markup=False, highlight=False)
        return
    for drawn in tables.of_plan(plan):
        context.reporter.console.print(drawn)
        context.reporter.console.print()


@click.command("verify")
@optional_lab
@policy_option
@reference_option
@click.option(
    "--by-devices",
    is_flag=True,
    help="compare with the external emulators' own readings, not with the configured values",
)
@details_option
@json_option(lambda: CertificateFile)
@guarded
@pass_context
def verify_command(
    context: Context,
    name: str | None,
    policy: Policy,
    reference: Path | None,
    by_devices: bool,
    details: bool,
    as_json: bool,
) -> None:
    """Measure every link of a running lab against its plan.

    \b
    ewan lab verify
    ewan lab verify dumbbell --json
    """
    as_root(context)
    labs = context.live()
    plan = labs.load(live.which(labs, name)).plan
    if own := ", ".join(node.name for node in plan.nodes if node.machine is not None):
        message = f"lab {plan.lab}: {own}: a machine of its own answers no probe of ours"
        raise Refused(f"{message}: `ewan lab` verifies before it starts one, see `ewan lab certificate {plan.lab}`")
    if tables.changes(labs, plan):
        context.reporter.warn(
            "links were changed since the lab came up (ewan ps): they are compared with the plan all the same"
        )
    readings = None if reference is None else reference_readings.read(reference)
    directory = rundir.make(plan.lab)
    try:
        certificate = certify(context, plan, policy, directory)
        if readings is not None and reference is not None:
            certificate = reference_readings.against(certificate, readings, reference)
        if by_devices:
            told = devices.readings(certificate)
            if told is None:
                raise Refused(f"lab {plan.lab} has no external emulator that says what it does: leave --by-devices out")
            certificate = reference_readings.against(certificate, told, Path("--by-devices"))
    except BaseException:
        drop(directory)
        raise
    show(context, certificate, directory, plan, as_json, details)
    advise(context, certificate)
    sys.exit(0 if certificate.passed else 1)


def advise(context: Context, certificate: Certificate) -> None:
    """Says, last of all, what to do about a lab that did not pass."""
    for line in report.advice(certificate):
        context.reporter.messages.print(line, style="yellow", soft_wrap=True)


def drop(directory: Path) -> None:
    """Takes a directory away in which there is no certificate."""
    so_far.forget(directory)
    rundir.drop(directory)


def certify(context: Context, plan: Plan, policy: Policy, directory: Path, *, thorough: bool = False) -> Certificate:
    """Runs the verification, saying on standard error what it is at; `directory` has what is known so far."""
    try:
        with context.reporter.progress(f"verifying {plan.lab}") as progress:
            lab = LiveLab(context.live(), context.binary)
            return verify_lab(
                plan,
                lab,
                progress=lambda text: progress.step(f"verifying {plan.lab}: {text}"),
                policy=policy,
                instrument=host_kept.instrument(context),
                thorough=thorough,
                so_far=so_far.write(directory),
            )
    except routes.NotConvergedError as error:
        raise live.unsettled(plan, error) from None
    except RuntimeError as error:
        raise Refused(str(error)) from None


def show(
    context: Context, certificate: Certificate, directory: Path, plan: Plan, as_json: bool, details: bool = True
) -> None:
    """Keeps a certificate with its plan in the run's directory, and prints it, also where it could not be kept."""
    try:
        keep(certificate, directory, plan)
    except LabError as error:
        drawn(context, certificate, None, as_json, details)
        up = f", and lab {plan.lab} is up: `ewan down {plan.lab}` removes it" if certificate.clock == "live" else ""
        raise Incomplete(f"{error}: the certificate is not kept{up}") from None
    drawn(context, certificate, directory / CERTIFICATE_FILE, as_json, details)


def drawn(context: Context, certificate: Certificate, path: Path | None, as_json: bool, details: bool = True) -> None:
    """Prints a certificate; `path`: where it is kept; `details`: all of its rows, with uncertainties and notes."""
    if as_json:
        sys.stdout.buffer.write(certificate_json(certificate))
        return
    rows, notes = report.sheet(certificate) if details else (report.main_rows(certificate), [])
    columns = list(report.COLUMNS if details else report.MAIN_COLUMNS)
    coloured = [[f"[{COLOURS[cell]}]{cell}[/]" if cell in COLOURS else cell for cell in row] for row in rows]
    context.reporter.console.print(grid("Verification", columns, coloured, most=len(coloured), keys=2))
    for number, note in enumerate(notes, 1):
        context.reporter.console.print(f"[dim]{number}[/] {note}", soft_wrap=True, markup=True)
    more = [report.legend(certificate)] if details else report.reasons(certificate)
    for line in filter(None, more):
        context.reporter.console.print(line, soft_wrap=True, markup=False)
    context.reporter.console.print()
    routing = certificate.routing
    live.show_routing(context, codec.from_data(Convergence, routing, "routing") if routing else None)
    for line in host_drops.lines(certificate.dropped):
        context.reporter.console.print(f"{line}, while the lab was measured", soft_wrap=True, markup=False)
    colour = "green" if certificate.passed else "bold red"
    where = f"  certificate: {path}" if path is not None else ""
    context.reporter.console.print(f"[{colour}]{report.summary(certificate)}[/]{where}", soft_wrap=True, markup=True)
    if not details and path is not None:
        context.reporter.console.print(
            f"ewan lab certificate {certificate.lab} shows all measurements with uncertainties"
        )


def keep(certificate: Certificate, directory: Path, plan: Plan) -> None:
    """Writes the plan and its certificate into a directory, which its user gets back under sudo."""
    with rundir.kept(directory):
        writing.write(directory / "plan.json", to_json(plan))
        report.write(certificate, directory / CERTIFICATE_FILE)
        so_far.forget(directory)
        rundir.give_back(directory)


@click.command("certificate")
@click.argument("where", required=False, metavar="[RUN|LAB|FILE]")
@json_option(lambda: CertificateFile)
@guarded
@pass_context
def certificate_command(context: Context, where: str | None, as_json: bool) -> None:
    """Show a certificate: the last one, that of a run, or the last one of a lab.

    An experiment has a certificate for each of its labs.

    \b
    ewan lab certificate
    ewan lab certificate dumbbell
    ewan lab certificate results/20261122T101112Z-parallel-streams
    """
    try:
        found = [(path, report.read(path)) for path in kept.find(where, RESULTS)]
    except (LookupError, ValueError) as error:
        raise Refused(str(error.args[0])) from None
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}") from None
    for path, certificate in found:
        if not as_json:
            for line in report.circumstances(certificate):
                context.reporter.console.print(line, soft_wrap=True)
            context.reporter.console.print()
        drawn(context, certificate, path, as_json)
    sys.exit(0 if all(certificate.passed for _, certificate in found) else 1)


@click.command("doctor")
@json_option(lambda: tuple[Finding, ...])
@guarded
@pass_context
def doctor_command(context: Context, as_json: bool) -> None:
    """Check what this machine can do for a lab, and say what it lacks.

    \b
    ewan doctor
    """
    try:
        found = doctor.findings(context.binary, context.environment)
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(f"{context.binary} cannot be run ({error}): {SETUP}") from None
    if as_json:
        context.reporter.emit(found)
    else:
        context.reporter.console.print(findings_table(found, "This machine"))
    sys.exit(1 if any(each.verdict == "missing" for each in found) else 0)


def _uses(first: str, last: str) -> str:
    """Commands for a lab that is up."""
    return command(
        f'make exec NODE={first} CMD="ping -c 3 {last}", make watch, make down',
        f"ewan lab exec {first} -- ping -c 3 {last}, ewan lab watch, ewan down",
    )


def findings_table(found: Sequence[Finding], title: str) -> Sheet:
    """A table of findings about this machine, one row each."""
    rows = [
        [
            escape(each.what),
            escape(each.found),
            f"[{COLOURS.get(each.verdict, 'bold red')}]{each.verdict}[/]",
            escape(each.meaning),
        ]
        for each in found
    ]
    return grid(title, ["what", "found", "verdict", "meaning"], rows, most=len(rows))
