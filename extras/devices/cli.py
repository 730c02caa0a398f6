"""`ewan driver`: the known drivers, the abilities of a device, and a driver's conformance to the protocol.

In: the command line. Out: tables, JSON with --json; exit status 1 where a check fails, 2 for an error that the user can
correct."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click

from ewan.extras.devices.conformance import ConformanceCheck, checks
from ewan.labs.base import codec, ownership
from ewan.labs.base.sheet import grid
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.abilities import Abilities, DriverFile, ModelEntry, Range, ranges
from ewan.labs.hardware.driver import Driver, caller


@click.group("driver")
def driver_command() -> None:
    """External emulators as links: their drivers.

    \b
    ewan driver list
    ewan driver describe ./my-driver --address /dev/ttyUSB0
    ewan driver test ./my-driver --address /dev/ttyUSB0
    """


def _device(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="an option for the driver"),
        click.option("--model", metavar="NAME", help="model of the device (default: the driver's first one)"),
        click.option(
            "--address", default="", metavar="ADDRESS", help="address of the device, in the form that the driver needs"
        ),
        click.argument("program", metavar="PROGRAM"),
    ):
        command = option(command)
    return command


class ListedDriver(codec.Struct):
    """A model of device that a driver knows, and its abilities."""

    model: str
    abilities: Abilities


class DriverCheckOutput(codec.Struct):
    """The checks of a driver, and whether all of them passed."""

    checks: tuple[ConformanceCheck, ...]
    passed: bool


@driver_command.command("list")
@json_option(lambda: dict[str, ListedDriver])
@guarded
@pass_context
def list_command(context: Context, as_json: bool) -> None:
    """List the drivers of this project and the abilities of their devices."""
    found = [(name, each) for name in catalogue.names() for each in catalogue.models(name).values()]
    if as_json:
        context.reporter.emit({name: ListedDriver(each.name, each.abilities) for name, each in found})
        return
    rows = [[name, each.name, *_shown(each.abilities)] for name, each in found]
    columns = ["driver", "model", "rate", "delay", "delays", "losses", "queue", "series"]
    context.reporter.console.print(grid("Drivers", columns, rows, most=len(rows)))


@driver_command.command("describe")
@_device
@guarded
@pass_context
def describe_command(context: Context, program: str, address: str, model: str | None, options: tuple[str, ...]) -> None:
    """Ask a device for its abilities, and print them as JSON in the form of PROGRAM.driver.json."""
    with _starter(context, program)() as driver:
        found = driver.describe(address, model, _pairs(options))
    entry = ModelEntry(found.abilities, (found.device,))
    sys.stdout.buffer.write(codec.ordered(DriverFile({found.model: entry})))


@driver_command.command("test")
@_device
@json_option(lambda: DriverCheckOutput)
@guarded
@pass_context
def check_command(
    context: Context, program: str, address: str, model: str | None, options: tuple[str, ...], as_json: bool
) -> None:
    """Tell whether a driver keeps to the protocol of docs/how-to/labs/hardware.md. The device is set to many values
    meanwhile."""
    found = []
    for each in checks(_starter(context, program), address, model, _pairs(options)):
        found.append(each)
        if not as_json:
            word = "[green]ok[/]    " if each.holds else "[bold red]wrong[/] "
            context.reporter.console.print(word, end="", markup=True)
            said = f"{each.what}: {each.found}" if each.found else each.what
            context.reporter.console.print(said, soft_wrap=True, markup=False, highlight=False)
    wrong = sum(not each.holds for each in found)
    if as_json:
        context.reporter.emit(DriverCheckOutput(tuple(found), not wrong))
    else:
        context.reporter.console.print(f"{program}: {len(found) - wrong} ok{f', {wrong} wrong' if wrong else ''}")
    sys.exit(1 if wrong else 0)


@driver_command.command("simulate")
@click.argument("model", metavar="MODEL")
@click.option("--ports", required=True, metavar="A,B", help="names of the two interfaces that are cabled to it")
@click.option("--address", required=True, metavar="ADDRESS", help="unix:/path, or /path for a serial line")
@click.option("--wire", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="in place of gtrcnet.toml")
@click.option("--delay", default="0ms", metavar="TIME", help="of each of its answers")
@guarded
@pass_context
def simulate_command(context: Context, model: str, ports: str, address: str, wire: Path | None, delay: str) -> None:
    """A GtrcNET box that is a process here, until Ctrl-C: for trials of the driver without the box.

    On standard input it takes: silent, rounding, reset, well.

    \b
    ewan driver simulate gtrcnet-1 --ports box0,box1 --address /tmp/box
    """
    import tempfile

    from ewan.extras.devices import simulator
    from ewan.extras.devices.gtrcnet import TABLE
    from ewan.extras.devices.wire import read
    from ewan.labs.base.reading import read_text
    from ewan.labs.base.units import NS_PER_SECOND, Duration, UnitError
    from ewan.labs.runtime import boxes
    from ewan.labs.runtime.binary import node_binary

    as_root(context)
    try:
        table = read(read_text(wire or TABLE), str(wire or TABLE.name))
        delay_s = Duration.parse(delay).ns / NS_PER_SECOND
    except UnitError as error:
        raise Refused(f'--delay "{delay}": {error}') from None
    except (ValueError, OSError) as error:
        raise Refused(str(error)) from None
    names = ports.split(",")
    if len(names) != 2 or not all(0 < len(name) < 16 and "/" not in name for name in names) or names[0] == names[1]:
        raise Refused(f'--ports "{ports}": write two names of at most 15 letters, "box0,box1"')
    with tempfile.TemporaryDirectory(prefix=boxes.folder_prefix(os.getpid())) as folder, suppress(KeyboardInterrupt):
        cpu = max(os.sched_getaffinity(0))
        with simulator.simulated(node_binary(context.binary), Path(folder), model, names, table, cpu) as box:
            context.reporter.console.print(f"{model}: ports {names[0]} and {names[1]}, commands at {address}")
            owner, _ = ownership.caller(context.environment) or (None, 0)
            simulator.serve(box, address, Path(folder), delay_s, _commands_from(sys.stdin), owner)
            context.reporter.tell("standard input has ended, and so has the box: give it </dev/null to have it stay")


def _commands_from(stream: TextIO | None) -> int | None:
    """The descriptor of standard input where a user or program may write: a terminal or a pipe. None for /dev/null, a
    file, or a closed one, as a program in the background has: the box stays then."""
    if stream is None:
        return None
    with suppress(ValueError, OSError):
        number = stream.fileno()
        kind = os.fstat(number).st_mode
        if os.isatty(number) or stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
            return number
    return None


def _starter(context: Context, program: str) -> Callable[[], Driver]:
    if catalogue.is_path(program) and not os.access(program, os.X_OK):
        why = "is no program that can be run: chmod +x" if Path(program).exists() else "there is no such file"
        raise Refused(f"{program}: {why}")
    if not catalogue.is_path(program) and program not in catalogue.names():
        known = ", ".join(catalogue.names())
        raise Refused(f'{program}: there is no such driver: write {known}, or a path such as "./{program}"')
    argv, folder = catalogue.argv(program)
    user = caller(context.environment)
    stderr = subprocess.DEVNULL if not sys.stderr.isatty() else sys.stderr.fileno()
    return lambda: Driver(argv, folder=folder, user=user, environment=context.environment, stderr=stderr)


def _pairs(options: tuple[str, ...]) -> dict[str, str]:
    for each in options:
        if "=" not in each:
            raise Refused(f'--option "{each}": write KEY=VALUE')
    return dict(each.split("=", 1) for each in options)


def _shown(abilities: Abilities) -> list[str]:
    from ewan.labs.base.units import Duration, Rate

    def span(each: Range, quantity: Callable[[int], object]) -> str:
        return f"{quantity(each.least)} to {quantity(each.most)} by {quantity(each.step)}"

    queue = abilities.queue
    limits = [name.removeprefix("queue.limit_") for name in ranges(abilities) if name.startswith("queue.")]
    series = abilities.series
    return [
        span(abilities.rate_bps, Rate),
        span(abilities.delay.delay_ns, Duration),
        ", ".join(abilities.delay.kinds),
        ", ".join(abilities.loss.kinds),
        "its own" if queue is None else f"{', '.join(queue.disciplines)} in {' or '.join(limits)}",
        "" if series is None else f"each {Duration(series.period_ns)}",
    ]
