"""Options and arguments that commands share, and the context that each is given.

--runtime goes into the context of its command; the others are arguments of the command's function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ewan.labs.commands.errors import Refused
from ewan.labs.context import RUNTIME_VARIABLE, Context
from ewan.labs.runtime.base import NAMES, LiveName

Function = TypeVar("Function", bound=Callable[..., Any])

pass_context = click.make_pass_decorator(Context)
"""The command's first argument is the `Context`."""


def renamed_option(*names: str, old: str, **attributes: Any) -> Callable[[Function], Function]:
    """An option whose name in version 0.1 was `old`, which works until 0.4 and says the new name on standard error."""
    new = next(name for name in names if name.startswith("--"))
    key = f"{__name__}.{new}"

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE:
            if not context.resilient_parsing:
                click.echo(f"ewan: `{old}` is now `{new}`; the old name works until version 0.4", err=True)
            context.meta[key] = value

    def take(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        given = context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
        return value if given else context.meta.get(key, value)

    def both(command: Function) -> Function:
        shown = {"show_default", "help", "metavar", "default"}
        hidden = {name: value for name, value in attributes.items() if name not in shown}
        before = click.option(
            old,
            f"old_{key.rpartition('-')[2]}",
            hidden=True,
            expose_value=False,
            is_eager=True,
            callback=keep,
            **hidden,
        )
        return click.option(*names, callback=take, **attributes)(before(command))

    return both


# Overrides of a description on the command line: option, help.
OVERRIDES = {
    "name": "the lab's name (default: the description's)",
    "rtt": 'base RTT of the longest host pair, "100ms"; or a list for the pairs, "10ms,40ms"',
    "rate": 'rate of the wide-area links, "1Gbit/s" or "1G"',
    "pairs": "host pairs of a dumbbell",
    "buffer": 'queue limit, "1BDP", "255pkt", "500kB" or "100ms"',
    "loss": 'loss on the wide-area links, "0.1%"',
    "mtu": "largest IP packet in bytes",
    "ip": "IP version: 4, 6 or dual",
    "routing": "routing protocol: static, ospf, isis or bgp",
    "switch": "ovs: connect the hosts of each router by one switch",
    "seed": "seed of all random numbers",
    "emulator": "what emulates the links: auto, user, kernel or tbf",
    "kernel": "virtual clock: a kernel that you added (ewan kernel add); 6.12 is the default",
    "dither": 'virtual clock: processing time of a host, "auto", "0" or "10us"',
}

policy_option = click.option(
    "--policy",
    type=click.Choice(["strict", "default", "teaching"]),
    default="default",
    show_default=True,
    help="strict: each value with its uncertainty lies inside its tolerance; teaching: wide tolerances",
)
reference_option = click.option(
    "--reference",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="readings of another instrument (JSON, or a program that prints it) to compare with, not configured values",
)
details_option = click.option("--details", is_flag=True, help="print all rows, with uncertainties and notes")


class JsonOption(click.Option):
    """The option `--json` of a command. `output` returns the type of the JSON document, or a tuple of types where the
    command prints one of several; it is a function, so that a command starts without the modules of its results."""

    def __init__(self, *names: Any, output: Callable[[], Any], **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.output = output


def json_option(output: Callable[[], Any]) -> Callable[[Function], Function]:
    """The option --json of a command; `output` as for `JsonOption`. `ewan docs` publishes its schema."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        cls=JsonOption,
        output=output,
        help="one JSON document instead of tables (schema: docs/reference/json.md)",
    )


unverified_option = click.option(
    "--unverified", is_flag=True, help="run in a lab that is outside its tolerances; the records say so"
)


def only_live(context: click.Context, parameter: click.Parameter | None, value: str | None) -> None:
    """Refuses the virtual clock for commands on labs that stay up: its labs are there only while a program runs."""
    if value == "virtual":
        also = "--capture NODE " if context.command_path.endswith(" capture") else ""
        raise Refused(
            f"{context.command_path} needs a lab that stays up, and in the virtual clock a lab runs from its start "
            f"to its end: write ewan lab batch TOPOLOGY {also}--do 'NODE: COMMAND' --runtime virtual, "
            "or use the live clock"
        )


live_option = click.option(
    "--runtime", type=click.Choice(NAMES), hidden=True, expose_value=False, callback=only_live, is_eager=True
)


def lab_option(command: Function) -> Function:
    """--lab, for commands on a part of a lab that is up."""
    return live_option(click.option("--lab", metavar="NAME", help="the lab, needed where several are up")(command))


def optional_lab(command: Function) -> Function:
    """NAME of a lab that is up, where none may be meant."""
    return live_option(click.argument("name", required=False)(command))


def _into_the_context(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    told = context.find_object(Context)
    if told is not None:  # as in completion, where no command is called
        context.obj = dataclasses.replace(told, runtime=value)


runtime_option = click.option(
    "--runtime",
    type=click.Choice(NAMES),
    default="auto",
    envvar=RUNTIME_VARIABLE,
    show_default=True,
    expose_value=False,
    callback=_into_the_context,
    help=f"{' and '.join(get_args(LiveName))}: live, as root; virtual: simulated time, without root",
)


def _machines_into_the_context(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    told = context.find_object(Context)
    if told is not None and value is not None:
        if told.runtime not in ("auto", "netns"):
            raise Refused(f"--machines {value}: a lab over several machines is one of namespaces: leave --runtime out")
        context.obj = dataclasses.replace(told, machines=value)


machines_option = click.option(
    "--machines",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    expose_value=False,
    callback=_machines_into_the_context,
    help="a file of machines over which the lab stretches (docs/how-to/labs/machines.md)",
)


def _context_flag(option: str, field: str, description: str) -> Callable[[Function], Function]:
    """A flag whose value is a field of the context."""

    def put(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        told = context.find_object(Context)
        if told is not None:
            change: dict[str, Any] = {field: value}
            context.obj = dataclasses.replace(told, **change)

    return click.option(option, is_flag=True, expose_value=False, callback=put, help=description)


trust_option = _context_flag(
    "--trust", "trusted", "execute programs of this file without asking, and remember the permission (SECURITY.md)"
)
load_module_option = _context_flag(
    "--load-module",
    "load_modules",
    "live: compile congestion controls of yours for this machine's kernel, load them, and unload them at the end",
)


def description_options(command: Function) -> Function:
    """TOPOLOGY, the overrides, --runtime."""
    return _described(command, required=True)


def optional_description(command: Function) -> Function:
    """The same, where no TOPOLOGY may be meant."""
    return _described(command, required=False)


def _described(command: Function, required: bool) -> Function:
    from ewan.labs.spec.fields import Topology

    for key in sorted(Topology.all_parameters() - set(OVERRIDES), reverse=True):
        kinds = [kind for kind in Topology.words() if key in Topology.parameters(kind)]
        words = key.replace("_", " ")
        about = f"number of {words} of a {' or a '.join(kinds)}"
        command = click.option(f"--{words.replace(' ', '-')}", metavar="N", help=about)(command)
    for key, text in reversed(OVERRIDES.items()):
        command = click.option(f"--{key}", metavar="VALUE", help=text)(command)
    command = runtime_option(command)
    named = "TOPOLOGY|FILE" if required else "[TOPOLOGY|FILE]"
    return click.argument("topology", metavar=named, required=required, shell_complete=complete_topology)(command)


def complete_topology(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Templates and descriptions by name; else files."""
    from ewan.labs.spec import names
    from ewan.labs.spec.fields import Topology

    known = sorted(name for name in {*Topology.words(), *names.known(names.LAB)} if name.startswith(begun))
    return [CompletionItem(name) for name in known] or [CompletionItem(begun, type="file")]
