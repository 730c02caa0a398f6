"""The commands that measure: `lab` (compile, up, verify), `verify`, `doctor`.

In: the command line. Out: tables, or JSON with --json; exit status 1 when a link is outside its tolerance, 2 for
what the user can put right.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import click
import orjson

from calibration import BatchLab, LiveLab, doctor, report, verify_lab
from labs import cli, clock, routes, rundir
from labs.commands import Incomplete
from labs.plan import Plan, to_json
from labs.record import Certificate
from labs.record import to_json as certificate_json
from labs.runtime.base import LabError
from labs.runtime.program import Program
from labs.runtime.virtual import Run

COLOURS = {
    "ok": "green",
    "outside": "bold red",
    "not measured": "yellow",
    "shown": "dim",
    "good": "green",
    "limited": "yellow",
}


@click.command("lab")
@cli.description_options
@cli.json_option
@cli.guarded
def lab_command(topology: str, as_json: bool, **options: Any) -> None:
    """Compile a description, bring the lab up, verify every link, leave it up (in the virtual clock: and end).

    TOPOLOGY is a template (dumbbell, parking-lot, star, chain, ring, mesh, fishbone, four-domain, grid), a file, or
    the NAME of a file NAME.lab.yaml in the current directory, else in labs/library.

    \b
    ewan lab dumbbell --rtt 100ms
    ewan lab parking-lot --rtt 60ms --rate 100M --buffer 255pkt
    ewan lab my.lab.yaml --loss 0.1%
    ewan lab dumbbell --rtt 100ms --rate 10G --runtime virtual
    """
    virtual = cli.is_virtual(options["runtime_name"])
    plan = cli.plan_of(topology, options, virtual)
    if virtual:
        lab_virtual(plan, as_json)
        return
    cli.as_root()
    directory = rundir.make(plan.lab)
    try:
        cli.bring_up(plan, options["runtime_name"])
        if not as_json:
            describe(plan)
        try:
            certificate = certify(plan)
        except KeyboardInterrupt:
            cli.runtime().down(plan.lab)
            raise cli.fail(f"interrupted: {plan.lab} is down again") from None
    except BaseException:
        rundir.drop(directory)
        raise
    show(certificate, directory, plan, as_json)
    if not as_json:
        first, last = (
            (plan.pairs[0].source, plan.pairs[0].sink) if plan.pairs else (plan.nodes[0].name, plan.nodes[-1].name)
        )
        cli.console.print(f'it stays up: make exec NODE={first} CMD="ping -c 3 {last}", make watch, make down')
    advise(certificate)
    sys.exit(0 if certificate.passed else 1)


def lab_virtual(plan: Plan, as_json: bool) -> None:
    """The lab in the virtual clock: built, verified, ended."""
    directory = rundir.make(plan.lab)
    if not as_json:
        describe(plan)
    verifying = Verifying()
    try:
        certificate = verify_lab(plan, BatchLab(verifying, directory))
    except RuntimeError as error:
        raise cli.fail(f"{error}: what was measured until then is in {directory}") from None
    show(certificate, directory, plan, as_json)
    if not as_json:
        cli.console.print(clock.summary(verifying.runs[-1]), soft_wrap=True)
    sys.exit(0 if certificate.passed else 1)


class Verifying:
    """Runs in the virtual clock whose progress is shown; `runs`: those that have ended."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def run(self, plan: Plan, program: Program, directory: Path, stop: threading.Event | None = None) -> Run:
        self.runs.append(clock.run(plan, program, directory, "verifying", stop))
        return self.runs[-1]


def describe(plan: Plan) -> None:
    """Nodes and links, before they are measured."""
    for drawn in cli.tables(plan):
        cli.console.print(drawn)
        cli.console.print()


@click.command("verify")
@cli.live_option
@click.argument("name", required=False)
@cli.json_option
@cli.guarded
def verify_command(name: str | None, as_json: bool) -> None:
    """Measure every link of a running lab against its plan.

    \b
    ewan verify
    ewan verify dumbbell --json
    """
    cli.as_root()
    plan = cli.runtime().load(cli.which(name)).plan
    if cli.changes(plan.lab, plan):
        text = "links were changed since the lab came up (ewan ps): they are compared with the plan all the same"
        cli.messages.print(f"warning: {text}", style="yellow", soft_wrap=True)
    directory = rundir.make(plan.lab)
    try:
        certificate = certify(plan)
    except BaseException:
        rundir.drop(directory)
        raise
    show(certificate, directory, plan, as_json)
    advise(certificate)
    sys.exit(0 if certificate.passed else 1)


def advise(certificate: Certificate) -> None:
    """Says, last of all, what to do about a lab that did not pass."""
    for line in report.advice(certificate):
        cli.messages.print(line, style="yellow", soft_wrap=True)


def certify(plan: Plan) -> Certificate:
    """Runs the verification, saying on standard error what it is at."""

    def progress(text: str) -> None:
        if cli.messages.is_terminal:
            status.update(f"verifying {plan.lab}: {text}")
        else:  # a log: a line for each step
            cli.messages.print(f"verifying {plan.lab}: {text}", soft_wrap=True)

    try:
        with cli.messages.status(f"verifying {plan.lab}") as status:
            return verify_lab(plan, LiveLab(cli.runtime(), cli.BINARY), progress=progress)
    except routes.NotConvergedError as error:
        raise cli.unsettled(plan, error) from None
    except RuntimeError as error:
        raise cli.fail(str(error)) from None


def show(certificate: Certificate, directory: Path, plan: Plan, as_json: bool) -> None:
    """Keeps a certificate with its plan in the run's directory, and prints it, also where it could not be kept."""
    try:
        keep(certificate, directory, plan)
    except LabError as error:
        drawn(certificate, None, as_json)
        up = f", and lab {plan.lab} is up: `ewan down {plan.lab}` removes it" if certificate.clock == "live" else ""
        raise Incomplete(f"{error}: the certificate is not kept{up}") from None
    drawn(certificate, directory, as_json)


def drawn(certificate: Certificate, directory: Path | None, as_json: bool) -> None:
    """Prints a certificate; `directory`: where it is kept."""
    if as_json:
        sys.stdout.buffer.write(certificate_json(certificate))
        return
    rows, notes = report.sheet(certificate)
    coloured = [[f"[{COLOURS[cell]}]{cell}[/]" if cell in COLOURS else cell for cell in row] for row in rows]
    cli.console.print(cli.grid("Verification", list(report.COLUMNS), coloured, most=len(coloured), keys=2))
    for number, note in enumerate(notes, 1):
        cli.console.print(f"[dim]{number}[/] {note}", soft_wrap=True)
    cli.console.print()
    cli.show_routing(certificate.routing)
    colour = "green" if certificate.passed else "bold red"
    where = f"  certificate: {directory / 'certificate.json'}" if directory is not None else ""
    cli.console.print(f"[{colour}]{report.summary(certificate)}[/]{where}", soft_wrap=True)


def keep(certificate: Certificate, directory: Path, plan: Plan) -> None:
    with rundir.kept(directory):
        (directory / "plan.json").write_bytes(to_json(plan))
        report.write(certificate, directory / "certificate.json")
        rundir.give_back(directory)


@click.command("doctor")
@cli.json_option
@cli.guarded
def doctor_command(as_json: bool) -> None:
    """What this machine can do for a lab, and what follows from what it lacks.

    \b
    ewan doctor
    """
    try:
        found = doctor.findings(cli.BINARY)
    except (OSError, subprocess.SubprocessError) as error:
        raise cli.fail(f"{cli.BINARY} cannot be run ({error}): make setup") from None
    if as_json:
        cli.emit(orjson.loads(orjson.dumps(found)))
    else:
        rows = [
            [each.what, each.found, f"[{COLOURS.get(each.verdict, 'bold red')}]{each.verdict}[/]", each.meaning]
            for each in found
        ]
        cli.console.print(cli.grid("This machine", ["what", "found", "verdict", "meaning"], rows))
    sys.exit(1 if any(each.verdict == "missing" for each in found) else 0)
