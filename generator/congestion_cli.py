"""The commands `cc add`, `cc list` and `cc remove`: congestion controls of a user's own.

In: C sources, the virtual kernel, this machine's kernel. Out: the library of added controls, and tables."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click

from ewan.generator import congestion
from ewan.labs.base.codec import Struct
from ewan.labs.base.sheet import grid
from ewan.labs.commands.errors import guarded
from ewan.labs.commands.options import json_option, pass_context
from ewan.labs.commands.virtual import runtime_of
from ewan.labs.congestion import library
from ewan.labs.congestion.library import AddedControl
from ewan.labs.context import Context
from ewan.labs.kernels import library as kernels
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.spec.values import DEFAULT_KERNEL


class CongestionOutput(Struct):
    """The congestion controls of each clock, and those that the user added, by their modules. `live`: those that this
    machine's kernel lets a node's sockets have."""

    virtual: tuple[str, ...]
    live: tuple[str, ...]
    added: dict[str, AddedControl]


@click.command("add")
@click.argument("source", metavar="FILE.c", type=click.Path(path_type=Path))
@click.option(
    "--kernel", metavar="NAME", help="the kernel for which it is written: one that you added (ewan kernel add)"
)
@guarded
@pass_context
def add_command(context: Context, source: Path, kernel: str | None) -> None:
    """Add a congestion control of your own to the virtual clock, from its C source.

    The source is that of a module of Linux, in the style of net/ipv4/tcp_*.c, or a BPF program for struct_ops, whose
    name ends in .bpf.c and which live labs run, too. It is compiled in a sandbox and loaded into a virtual kernel; the
    name that it registers is a congestion control then. Adding a changed file replaces it.

    \b
    ewan cc add tcp_mine.c
    ewan cc add tcp_mine.bpf.c
    ewan cc add tcp_mine.c --kernel bbr3
    ewan transfer dumbbell --rtt 100ms --cc mine,cubic --runtime virtual
    """
    with context.reporter.progress(f"building {source.name}, and loading it into a virtual kernel"):
        kernel = None if kernel == DEFAULT_KERNEL else kernel
        of_kernel = None if kernel is None else kernels.congestion_of(kernel, context.environment)
        built_in = congestion.in_virtual() if of_kernel is None else of_kernel
        runtime = runtime_of(context, kernel)
        control = library.add(source, runtime, node_binary(context.binary), built_in, context.environment, kernel)
    words = ", ".join(f"{name} ({kind})" for name, kind in control.parameters.items()) or "none"
    context.reporter.console.print(f"{', '.join(control.names)} added; parameters: {words}", soft_wrap=True)
    tried = f"ewan transfer dumbbell --rtt 100ms --cc {control.names[0]},cubic --runtime virtual"
    context.reporter.console.print(f"try it: {tried}{f' --kernel {kernel}' if kernel else ''}", soft_wrap=True)


@click.command("list")
@json_option(lambda: CongestionOutput)
@guarded
@pass_context
def list_command(context: Context, as_json: bool) -> None:
    """List the congestion controls of each clock, as the kernels report them.

    The virtual kernel is started with all that was added for it; this machine's kernel is asked for each name, and as
    root it has those that were added as BPF programs meanwhile.

    \b
    ewan cc list
    """
    in_clock, added = runtime_of(context), library.added(context.environment)
    of = {name: control for control in added.values() for name in control.names}
    elsewhere = {name: control.kernel for name, control in of.items() if control.kernel}
    with context.reporter.progress("starting a virtual kernel"):
        loaded = library.modules(of.keys() - elsewhere.keys(), context.environment)
        virtual = tuple(sorted(library.in_kernel(in_clock, loaded or ())))
    live = in_live(context, virtual)
    if as_json:
        context.reporter.emit(CongestionOutput(virtual, live, added))
        return
    rows = []
    for name in sorted({*virtual, *live, *elsewhere}):
        yes = ["yes" if name in each else "–" for each in (virtual, live)]
        if name in elsewhere:
            yes[0] = f"kernel {elsewhere[name]}"
        source = [of[name].file, ", ".join(of[name].parameters)] if name in of else ["", ""]
        rows.append([name, *yes, *source])
    columns = ["congestion control", "virtual clock", "live clock here", "added from", "parameters"]
    context.reporter.console.print(grid("Congestion controls", columns, rows))


def in_live(context: Context, names: tuple[str, ...]) -> tuple[str, ...]:
    """The controls of this machine's kernel; as root with those of the BPF programs that it takes."""
    with contextlib.ExitStack() as held:
        for module in library.modules(names, context.environment) or () if os.geteuid() == 0 else ():
            try:
                if module.source.bpf:
                    held.enter_context(context.host_kernel().having([module]))
            except LabError as error:
                context.reporter.warn(str(error))
        return congestion.in_live(names)


@click.command("remove")
@click.argument("name")
@guarded
@pass_context
def remove_command(context: Context, name: str) -> None:
    """Remove a congestion control that you added; results of its runs stay.

    \b
    ewan cc remove mine
    """
    control = library.remove(name, context.environment)
    context.reporter.console.print(f"{', '.join(control.names)} removed", soft_wrap=True)
