"""`ewan figures`: figures of papers, measured again in the virtual clock.

In: the names of figures. Out: results/figures/<name>.svg with its data as <name>.csv, and a table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from analysis.figures import latencies
from calibration import bursts
from labs import cli, rundir
from labs.runtime.base import LabError
from labs.runtime.virtual import VirtualRuntime
from labs.units import about

PLACE = rundir.RESULTS / "figures"


@click.command("figures")
@click.argument("names", nargs=-1, type=click.Choice(["bursts"]))
@cli.guarded
def figures_command(names: tuple[str, ...]) -> None:
    """Measure the figures of papers again, in the virtual clock; all when none is named.

    \b
    ewan figures bursts      eWAN, figures 5 and 6: netem alone sends bursts, netem with psp does not
    """
    for name in names or FIGURES:
        FIGURES[name]()


def draw_bursts() -> None:
    runtime = VirtualRuntime(cli.BINARY, tell=lambda line: cli.messages.print(line, soft_wrap=True))
    with tempfile.TemporaryDirectory() as scratch, cli.messages.status("bursts in the virtual clock"):
        try:
            series = bursts.measure(runtime, Path(scratch))
        except RuntimeError as error:
            raise cli.fail(str(error)) from None
    panels = [latencies.Packets(each.title, each.times_ns, each.latencies_ns) for each in series]
    keep("bursts", latencies.draw(panels), bursts.csv(series))
    columns = ["series", "packets", "largest bunch", "largest burst", "in packets", "latency least", "most"]
    cli.console.print(cli.grid("Bursts: 100 Mbit/s into 1 ms", columns, [row(each) for each in series]))
    cli.console.print(f"{PLACE / 'bursts.svg'}  {PLACE / 'bursts.csv'}", soft_wrap=True)


def row(series: bursts.Series) -> list[str]:
    burst = series.largest_burst_bytes
    least, most = min(series.latencies_ns), max(series.latencies_ns)
    return [
        series.title,
        str(len(series.times_ns)),
        str(series.largest_bunch),
        f"{burst:.0f} B",
        f"{burst / series.packet_bytes:.2f}",
        about(least, "time", 6),
        about(most, "time", 6),
    ]


def keep(name: str, picture: str, data: str) -> None:
    try:
        PLACE.mkdir(parents=True, exist_ok=True)
        (PLACE / f"{name}.svg").write_text(picture)
        (PLACE / f"{name}.csv").write_text(data)
        rundir.give_back(PLACE)
    except OSError as error:
        raise LabError(f"{PLACE}: {error.strerror}: run it in a directory where you may write") from None


FIGURES: dict[str, Callable[[], None]] = {"bursts": draw_bursts}
