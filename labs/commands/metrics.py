"""`ewan lab metrics`: a page for Prometheus with what the links of a lab do, and the files that show it.

In: a lab that is up, an address to listen at. Out: the page, until Ctrl-C; or, with --files, Prometheus' and Grafana's
files for that address. The page itself is the node binary's (emulator/node/src/metrics).
"""

from __future__ import annotations

import select
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from ewan.labs import rundir
from ewan.labs.base import codec, writing
from ewan.labs.base.interrupt import deferred
from ewan.labs.base.reporter import Reporter
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import optional_lab, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.render import dashboards
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.multi_machine import LinkSamplesNow
from ewan.labs.runtime.state import State

ADDRESS = f"127.0.0.1:{dashboards.METRICS_PORT}"
PROMETHEUS = f"127.0.0.1:{dashboards.PORTS.prometheus}"


@click.command("metrics")
@optional_lab
@click.option(
    "--listen",
    default=ADDRESS,
    show_default=True,
    metavar="ADDRESS:PORT",
    help="address to listen on; port 0 takes any free port",
)
@click.option("--once", is_flag=True, help="print the page and end")
@click.option(
    "--files",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="write prometheus.yml and Grafana's files for this address, and end",
)
@guarded
@pass_context
def metrics_command(context: Context, name: str | None, listen: str, once: bool, files: Path | None) -> None:
    """Serve the counters of the links of a lab to Prometheus until Ctrl-C.

    \b
    ewan lab metrics
    ewan lab metrics dumbbell --listen 127.0.0.1:9400
    ewan lab metrics --files dashboards/
    """
    if files is not None:
        write(context.reporter, files, listen)
        return
    as_root(context)
    labs = context.live()
    lab = which(labs, name)
    binary = str(node_binary(context.binary))
    # It ends when this process is killed: otherwise it would stay unnoticed.
    command = [binary, "launch", "--", binary]
    if labs.runtime_of(lab) == "cluster":
        with context.multi_machine().samples(lab) as samples:
            show(context.reporter, lab, [*command, "joint-metrics"], None if once else listen, samples.now)
        return
    state = str(State(context.state).directory(lab))
    show(context.reporter, lab, [*command, "metrics", "--state", state], None if once else listen)


Told = Callable[[], LinkSamplesNow]
"""The present samples from the machines of a lab that stretches over several."""


def show(reporter: Reporter, lab: str, command: list[str], listen: str | None, told: Told | None = None) -> None:
    """The page, at the address until it is ended, or once on standard output. `told`: for the program's own input."""
    if listen is not None:
        serve(reporter, lab, [*command, "--listen", listen], told)
        return
    given = b"" if told is None else line_of(told)
    done = subprocess.run([*command, "--once"], input=given, capture_output=True)
    if done.returncode != 0:
        refuse(done.stderr.decode(errors="replace"), done.returncode)
    click.echo(done.stdout, nl=False)


def line_of(told: Told) -> bytes:
    """As the program reads it."""
    return codec.line(told())


def serve(reporter: Reporter, lab: str, command: list[str], told: Told | None = None) -> None:
    """Runs the server until it is ended; its first line says where it listens, each other one asks for a report."""
    given = subprocess.DEVNULL if told is None else subprocess.PIPE
    with deferred() as check:
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        try:
            where = process.stdout.readline().decode().strip()
            if where:
                reporter.console.print(f"links of {lab}: {where} for Prometheus; Ctrl-C ends", soft_wrap=True)
            while process.poll() is None:
                check()
                asked, _, _ = select.select([process.stdout], [], [], 0.2)
                # It asks for one page at a time, so that a line is all that there is to be read.
                if asked and process.stdout.readline() and told is not None:
                    assert process.stdin is not None
                    process.stdin.write(line_of(told))
                    process.stdin.flush()
                elif asked:
                    process.wait()
        except (KeyboardInterrupt, BrokenPipeError):
            return
        finally:
            process.terminate()
            _, said = process.communicate()
    if process.returncode > 0:
        refuse(said.decode(errors="replace"), process.returncode)


def refuse(said: str, status: int) -> NoReturn:
    """LabError with the last line that the server printed."""
    lines = said.strip().splitlines()
    raise LabError(lines[-1] if lines else f"ewan-node metrics ended with status {status}")


def write(reporter: Reporter, directory: Path, listen: str) -> None:
    """prometheus.yml and Grafana's files, for a page that is served at `listen`."""
    root = directory.absolute()
    texts = dashboards.all_files([listen], f"http://{PROMETHEUS}", str(root))
    rundir.check(root)
    try:
        for name, text in texts.items():
            writing.make_folder(root, str(Path(name).parent))
            writing.write(root / name, text)
    except OSError as error:
        raise Refused(writing.trouble(error, root, "name another directory with --files")) from None
    start = f"prometheus --config.file={root / dashboards.PROMETHEUS_FILE} --web.listen-address={PROMETHEUS}"
    show = f"GF_PATHS_PROVISIONING={root / dashboards.PROVISIONING}, or import {root / dashboards.DASHBOARD_FILE}"
    for line in (start, f"Grafana: {show}"):
        reporter.console.print(line, soft_wrap=True)
