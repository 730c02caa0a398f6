"""The commands that describe, make and use labs; `ewan.py` puts them together with the other parts'.

In: the command line. Out: tables for people, one JSON document with --json, and exit status 2 with one line
for whatever the user can put right.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import click
import orjson
from click.shell_completion import CompletionItem
from rich.console import Console

from labs import host, routes
from labs.change import PROTOCOLS
from labs.commands import Refused
from labs.compile import compile as compile_spec
from labs.images import TAG
from labs.plan import Plan, digest
from labs.render import dashboards, files, table
from labs.runtime.base import LabError
from labs.runtime.binary import BUILT
from labs.runtime.live import CHOICES, Choice, LiveRuntime
from labs.sheet import Sheet
from labs.spec import DescriptionError, Spec, from_template, load, names, override
from labs.spec.fields import Topology
from labs.stages import Change
from labs.stages.change import words as change_words
from labs.units import about

ROOT = Path(__file__).resolve().parent.parent
BINARY = Path(os.environ.get("EWAN_NODE") or BUILT)
# Where nobody looks at a terminal (a pipe, a log), lines need not be short.
console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)
messages = Console(stderr=True, highlight=False, emoji=False)
MANY_ROWS = 24
RUNTIMES = (*CHOICES, "virtual")
# Of the environment: what is meant where the command line does not say.
DEFAULT_RUNTIME = "EWAN_RUNTIME"

# Of the environment, what commands heed; sudo takes the rest away.
PRESERVED = (
    "EWAN_STATE",
    "EWAN_RUNTIME",
    "EWAN_NODE",
    "EWAN_PORT",
    "EWAN_SCHED",
    "EWAN_KERNEL",
    "EWAN_ENGINE",
    *dashboards.PORT_VARIABLES.values(),
    "DOCKER_HOST",
    "NO_COLOR",
    "COLUMNS",
)

Function = TypeVar("Function", bound=Callable[..., Any])

# Overrides of a description on the command line: option, help.
OVERRIDES = {
    "name": "the lab's name (default: the description's)",
    "rtt": 'base RTT of the longest host pair, "100ms"; or a list for the pairs, "10ms,40ms"',
    "rate": 'rate of the wide-area links, "1Gbit/s" or "1G"',
    "pairs": "host pairs of a dumbbell",
    "buffer": 'queue limit, "1BDP", "255pkt", "500kB" or "100ms"',
    "loss": 'loss on the wide-area links, "0.1%"',
    "mtu": "largest IP packet in bytes",
    "ip": "4, 6 or dual",
    "routing": "static, ospf, isis or bgp",
    "switch": "ovs: the hosts of each router behind one switch",
    "seed": "of everything random",
    "emulator": "auto, user, kernel or tbf",
    "dither": 'virtual clock: a host\'s processing time, "auto", "0" or "10us"',
}


def fail(message: str) -> Refused:
    return Refused(message)


def guarded(command: Function) -> Function:
    """Turns the errors of descriptions and labs into one line with exit status 2."""

    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except (DescriptionError, LabError) as error:
            raise fail(str(error)) from None

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def emit(document: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.flush()


def as_root() -> None:
    """The live clock needs root: goes on under sudo, and says so."""
    if os.geteuid() == 0:
        return
    if shutil.which("sudo") is None:
        raise fail(
            "the live clock needs root, and there is no sudo here: run this as root, or a lab in the virtual clock "
            "(ewan lab … --runtime virtual, ewan batch … --runtime virtual)"
        )
    messages.print("the live clock needs root: going on under sudo", style="dim")
    keep = f"--preserve-env={','.join(PRESERVED)}"
    os.execvp("sudo", ["sudo", keep, sys.executable, str(ROOT / "ewan.py"), *sys.argv[1:]])


def is_virtual(runtime_name: str) -> bool:
    """For commands that run a lab from start to end: auto is the live clock where root is to be had."""
    live = os.geteuid() == 0 or shutil.which("sudo") is not None
    return runtime_name == "virtual" or (runtime_name == "auto" and not live)


def only_live(context: click.Context, parameter: click.Parameter | None, value: str | None) -> None:
    """A lab of the virtual clock is there only while it runs: nothing to enter, to look at or to change."""
    if value == "virtual":
        raise fail(
            f"ewan {context.info_name} needs a lab that stays up, and in the virtual clock a lab runs from its start "
            "to its end: write ewan batch TOPOLOGY --do 'NODE: COMMAND' --runtime virtual, or use the live clock"
        )


live_option = click.option(
    "--runtime", type=click.Choice(RUNTIMES), hidden=True, expose_value=False, callback=only_live, is_eager=True
)


def runtime(choice: str = "auto", show: Callable[[str], None] = lambda progress: None) -> LiveRuntime:
    """What handles the live labs that there are; new ones it makes as `choice` says: netns, containerlab or auto."""

    def tell(line: str) -> None:
        messages.print(line, style="dim", soft_wrap=True)

    return LiveRuntime(BINARY, cast(Choice, choice), show=show, tell=tell)


runtime_option = click.option(
    "--runtime",
    "runtime_name",
    type=click.Choice(RUNTIMES),
    default="auto",
    envvar=DEFAULT_RUNTIME,
    show_default=True,
    help="live, as root: netns, containerlab; virtual: simulated time, as anybody",
)


def description_options(command: Function) -> Function:
    """TOPOLOGY, the overrides, --runtime."""
    for key in sorted(Topology.all_parameters() - set(OVERRIDES), reverse=True):
        kinds = [kind for kind in Topology.words() if key in Topology.parameters(kind)]
        command = click.option(f"--{key.replace('_', '-')}", metavar="N", help=f"of {', '.join(kinds)}")(command)
    for key, text in reversed(OVERRIDES.items()):
        command = click.option(f"--{key}", metavar="VALUE", help=text)(command)
    command = runtime_option(command)
    return click.argument("topology", metavar="TOPOLOGY|FILE", shell_complete=complete_topology)(command)


def complete_topology(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Templates and descriptions by name; else files."""
    known = sorted(name for name in {*Topology.words(), *names.known(names.LAB)} if name.startswith(begun))
    return [CompletionItem(name) for name in known] or [CompletionItem(begun, type="file")]


def describe(topology: str, options: dict[str, Any]) -> Spec:
    """A template, or the description that a name or path means (`labs.spec.names`); then the command line's overrides.

    The name of a template always means the template, so that it is the same lab in every directory.
    """
    overrides = {key: str(value) for key, value in options.items() if value is not None and key != "runtime_name"}
    file = names.find(topology, names.LAB)
    # A graph has no default shape: its ready lab stands for it.
    if topology in Topology.words() and topology != "graph":
        if file is not None and not file.is_absolute():
            note = f"note: {topology} is the template of that name: to take the file, write ./{file}"
            messages.print(note, style="dim", soft_wrap=True)
        return from_template(topology, overrides)
    if file is None:
        every = dict.fromkeys([*Topology.words(), *names.known(names.LAB)])
        raise fail(f'TOPO "{topology}": unknown topology, {names.near(topology, every, names.LAB)}')
    return override(load(file), overrides)


def plan_of(topology: str, options: dict[str, Any], virtual: bool = False) -> Plan:
    """The plan for this machine, or for the virtual clock's, which is the same everywhere."""
    return compile_spec(describe(topology, options), host.virtual_facts() if virtual else host.facts())


def which(name: str | None) -> str:
    """The lab that is meant: the named one, or the only one that is up."""
    names = runtime().names()
    if name is not None:
        if name not in names:
            raise fail(f"no lab named {name} is up ({', '.join(names) or 'none is'}): make lab TOPO=dumbbell RTT=100")
        return name
    if not names:
        raise fail("no lab is up: make lab TOPO=dumbbell RTT=100")
    if len(names) > 1:
        raise fail(f"{len(names)} labs are up ({', '.join(names)}): say which with --lab (make: NAME=)")
    return names[0]


lab_option = click.option("--lab", "lab", metavar="NAME", help="which lab, where several are up")
json_option = click.option("--json", "as_json", is_flag=True, help="one JSON document instead of tables")


def grid(title: str, columns: list[str], rows: list[list[str]], most: int = MANY_ROWS, keys: int = 1) -> Sheet:
    """A table; of more than `most` rows, the first half of that many and how many more. `keys`: see `Sheet`."""
    shown = rows if len(rows) <= most else rows[: most // 2]
    caption = f"… and {len(rows) - len(shown)} more" if len(shown) < len(rows) else ""
    return Sheet(title, columns, shown, caption, keys)


def bring_up(plan: Plan, choice: str) -> None:
    """Up, with progress and warnings on standard error; `choice` is that of `runtime`. Ctrl-C leaves nothing."""
    warnings, made = [], False
    needed = sum(way.store_bytes for link in plan.links for way in (link.forward, link.backward))
    if needed > (free := host.free_memory_bytes()):
        warnings.append(f"full links would hold {about(needed, 'size')}, and {about(free, 'size')} of memory are free")
    what = f"bringing up {plan.lab}: {len(plan.nodes)} nodes, {len(plan.links)} emulated links"
    try:
        with messages.status(what) as status:
            warnings += runtime(choice, lambda progress: status.update(f"{what}: {progress}")).up(plan)
            made = True
    except KeyboardInterrupt:
        if made:  # without it what is there may be somebody else's lab of this name
            runtime().down(plan.lab)
        raise
    for warning in warnings:
        messages.print(f"warning: {warning}", style="yellow", soft_wrap=True)


def converged(plan: Plan, progress: Callable[[str], None]) -> dict[str, Any]:
    """Waits for the routes where a protocol finds them, and says how long that took."""
    try:
        return routes.converged(runtime(), plan, progress)
    except routes.NotConvergedError as error:
        raise unsettled(plan, error) from None


def unsettled(plan: Plan, error: routes.NotConvergedError) -> LabError:
    """What to do about a lab that is up and whose routes are not there."""
    return LabError(
        f"{error}: lab {plan.lab} is up: see its links with `ewan ps {plan.lab}` and nodes/ROUTER/*.log in its state "
        f"directory, or remove it with `ewan down {plan.lab}`"
    )


def show_routing(routing: Mapping[str, Any]) -> None:
    """What `converged` found, or a certificate holds, in a line; none where no protocol runs."""
    if routing:
        protocol, after = PROTOCOLS[routing["protocol"]], about(routing["after_ns"], "time", 3)
        console.print(f"routing: {protocol} converged in {after}")


@click.command("compile")
@description_options
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("out"), show_default=True
)
@json_option
@guarded
def compile_command(topology: str, output: Path, as_json: bool, **options: Any) -> None:
    """Compile a description to NAME.plan.json, NAME.svg, NAME.txt, and NAME.clab.yml for containerlab, with NAME/.

    \b
    ewan compile dumbbell --rtt 100ms --rate 1G
    ewan compile labs/library/parking-lot.lab.yaml -o out/
    """
    live = options["runtime_name"] != "virtual"
    plan = plan_of(topology, options, not live)
    drawn = tables(plan)
    sheet = Console(file=io.StringIO(), emoji=False, record=True, width=160)
    sheet.print(*drawn, sep="\n")
    try:
        ports = dashboards.ports_of(os.environ)
        made = files.written(plan, output, sheet=sheet.export_text(), version=TAG, ports=ports, live=live)
    except ValueError as error:
        raise fail(str(error)) from None
    except OSError as error:
        raise fail(f"{error.filename or output}: {error.strerror}: name another directory with --output") from None
    if as_json:
        emit({"lab": plan.lab, "plan_sha256": digest(plan), **{key: str(path) for key, path in made.items()}})
        return
    console.print(*drawn, sep="\n")
    console.print("  ".join(f"{key} {path}" for key, path in made.items()), soft_wrap=True)


def tables(plan: Plan) -> list[Sheet]:
    """Nodes and links of a plan, as drawn by compile and ps."""
    return [grid(title, columns, rows) for title, columns, rows in table.sheets(plan)]


@click.command("up")
@description_options
@guarded
def up_command(topology: str, **options: Any) -> None:
    """Bring a lab up without verifying it.

    \b
    ewan up star --rtt 20ms --name campus
    """
    if options["runtime_name"] == "virtual":
        only_live(click.get_current_context(), None, "virtual")
    as_root()
    plan = plan_of(topology, options)
    bring_up(plan, options["runtime_name"])
    try:
        with messages.status(f"{plan.lab} is up") as status:
            routing = converged(plan, lambda text: status.update(f"{plan.lab} is up: {text}"))
    except KeyboardInterrupt:
        runtime().down(plan.lab)
        raise
    show_routing(routing)
    console.print(f"{plan.lab} is up, unverified: ewan verify {plan.lab}")


@click.command("down")
@live_option
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="all labs that are up")
@json_option
@guarded
def down_command(name: str | None, every: bool, as_json: bool) -> None:
    """Remove a lab: exactly what its manifest names.

    \b
    ewan down dumbbell
    ewan down --all
    """
    as_root()
    names = runtime().names() if every and name is None else [which(name)]
    removed = {}
    for lab in names:
        removed[lab] = runtime().down(lab)
        if not as_json:
            console.print(table.removed(lab, removed[lab]), soft_wrap=True)
            title, columns, rows = table.last_counters(removed[lab])
            if rows:
                console.print(grid(title, columns, rows))
            for line in table.last_gaps(removed[lab]):
                console.print(line, soft_wrap=True)
    if as_json:
        emit(removed)
    elif not names:
        console.print("no lab is up")


@click.command("ps")
@live_option
@click.argument("name", required=False)
@json_option
@guarded
def ps_command(name: str | None, as_json: bool) -> None:
    """Labs that are up: nodes, addresses, links.

    \b
    ewan ps
    ewan ps dumbbell --json
    """
    as_root()
    names = [which(name)] if name is not None else runtime().names()
    if as_json:
        emit([runtime().status(lab) for lab in names])
        return
    if not names:
        console.print("no lab is up: make lab TOPO=dumbbell RTT=100")
    for lab in names:
        status = runtime().status(lab)
        said = f"[bold]{lab}[/bold]  {status['state']}  [dim]{status['runtime']}[/dim]  {status.get('note', '')}"
        console.print(said.rstrip(), soft_wrap=True)
        if status.get("links_down"):
            console.print(f"down: {', '.join(status['links_down'])}: ewan set LINK up", soft_wrap=True)
        if status["plan"]:
            plan = runtime().load(lab).plan
            for drawn in tables(plan):
                console.print(drawn)
            made = changes(lab, plan)
            if made:
                console.print(grid("Changes since it came up", ["link", "direction", "change", "at", "late by"], made))


def changes(lab: str, plan: Plan) -> list[list[str]]:
    """What `set` changed, when it should have and how late it was; times since the links started."""
    rows = []
    for number in range(len(plan.spinners)):
        try:
            answer = runtime().control(lab, number, {"command": "changes"})
        except LabError:  # a dead spinner is in the lab's own line
            continue
        for each in answer["changes"]:
            words = change_words(Change.from_data(each["change"]))
            times = [about(each["requested_ns"], "time", 6), about(each["late_ns"], "time")]
            rows.append([each["link"], each["direction"], words, *times])
    return rows


@click.command("docs", hidden=True)
@click.pass_context
def docs_command(context: click.Context) -> None:
    """Write docs/description.md and its like from the schemas."""
    for name, markdown in context.find_root().obj["pages"]().items():
        (ROOT / "docs" / name).write_text(markdown())


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    eval "$(ewan completion bash)"
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(root.command, {}, "ewan", "_EWAN_COMPLETE").source())
