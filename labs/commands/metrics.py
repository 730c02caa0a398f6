"""`ewan metrics`: a page for Prometheus with what the links of a lab do, and the files that show it.

In: a lab that is up, an address to listen at. Out: the page, until Ctrl-C; or, with --files, Prometheus' and Grafana's
files for that address. The page itself is the node binary's (labs/node/src/metrics).
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NoReturn

import click

from labs.cluster.formats import SHARES
from labs.commands.errors import Refused, guarded
from labs.commands.live import which
from labs.commands.options import live_option, pass_context
from labs.commands.privileges import as_root
from labs.context import Context
from labs.render import dashboards
from labs.reporter import Reporter
from labs.runtime.base import LabError
from labs.runtime.binary import node_binary
from labs.runtime.interrupt import deferred
from labs.runtime.state import State

ADDRESS = f"127.0.0.1:{dashboards.METRICS_PORT}"
PROMETHEUS = f"127.0.0.1:{dashboards.PORTS.prometheus}"


@click.command("metrics")
@live_option
@click.argument("name", required=False)
@click.option("--listen", default=ADDRESS, show_default=True, metavar="ADDRESS:PORT", help="port 0 takes any")
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
    """Serve what the links of a lab do, for Prometheus; Ctrl-C ends.

    \b
    ewan metrics
    ewan metrics dumbbell --listen 127.0.0.1:9400
    ewan metrics --files dashboards/
    """
    if files is not None:
        write(context.reporter, files, listen)
        return
    as_root(context)
    labs = context.live()
    lab = which(labs, name)
    if labs.runtime_of(lab) == "cluster":
        raise Refused(
            f"lab {lab} stretches over several machines: serve on each its own share, with the binary that was sent: "
            f"~/.cache/ewan/ewan-node-… metrics --state {SHARES}/{lab} --listen {listen}"
        )
    binary = str(node_binary(context.binary))
    # It ends when we are killed: nobody would know of it.
    command = [binary, "launch", "--", binary, "metrics", "--state"]
    command.append(str(State(context.state).directory(lab)))
    if once:
        done = subprocess.run([*command, "--once"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            refuse(done.stderr, done.returncode)
        click.echo(done.stdout, nl=False)
        return
    serve(context.reporter, lab, [*command, "--listen", listen])


def serve(reporter: Reporter, lab: str, command: list[str]) -> None:
    """Runs the server until it is ended; its first line says where it listens."""
    with deferred() as check:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            where = process.stdout.readline().strip()
            if where:
                reporter.console.print(f"links of {lab}: {where} for Prometheus; Ctrl-C ends", soft_wrap=True)
            while process.poll() is None:
                check()
                try:
                    process.wait(timeout=0.2)
                except subprocess.TimeoutExpired:
                    continue
        except KeyboardInterrupt:
            return
        finally:
            process.terminate()
            _, said = process.communicate()
    if process.returncode > 0:
        refuse(said, process.returncode)


def refuse(said: str, status: int) -> NoReturn:
    """LabError with the last line that the server said."""
    lines = said.strip().splitlines()
    raise LabError(lines[-1] if lines else f"ewan-node metrics ended with status {status}")


def write(reporter: Reporter, directory: Path, listen: str) -> None:
    """prometheus.yml and Grafana's files, for a page that is served at `listen`."""
    root = directory.absolute()
    texts = dashboards.all_files([listen], f"http://{PROMETHEUS}", str(root))
    try:
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    except OSError as error:
        raise Refused(f"{error.filename or root}: {error.strerror}: name another directory with --files") from None
    start = f"prometheus --config.file={root / dashboards.PROMETHEUS_FILE} --web.listen-address={PROMETHEUS}"
    show = f"GF_PATHS_PROVISIONING={root / dashboards.PROVISIONING}, or import {root / dashboards.DASHBOARD_FILE}"
    for line in (start, f"Grafana: {show}"):
        reporter.console.print(line, soft_wrap=True)
