"""Helpers of commands for labs of the live clock: they select a lab, bring one up, and wait for its routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ewan.labs.base import codec, interrupt, writing
from ewan.labs.base.product import command
from ewan.labs.base.reporter import Tell
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Refused
from ewan.labs.context import Context
from ewan.labs.runtime.base import LabError

if TYPE_CHECKING:
    from ewan.labs.compile import HostFacts
    from ewan.labs.plan import Plan
    from ewan.labs.routes import NotConvergedError
    from ewan.labs.routing_documents import Convergence
    from ewan.labs.runtime.base import LabLifecycle
    from ewan.labs.runtime.program import Program

MAKES_ONE = command("make lab TOPO=dumbbell RTT=100", "ewan lab dumbbell --rtt 100ms")
"""The command that brings a lab up."""


def which(labs: LabLifecycle, name: str | None) -> str:
    """The lab that is meant: the named one, or the only one that is up."""
    names = labs.names()
    if name is not None:
        if name not in names:
            raise Refused(f"no lab named {name} is up ({', '.join(names) or 'none is'}): {MAKES_ONE}")
        return name
    if not names:
        raise Refused(f"no lab is up: {MAKES_ONE}")
    if len(names) > 1:
        raise Refused(f"{len(names)} labs are up ({', '.join(names)}): say which with --lab (make: NAME=)")
    return names[0]


def host_facts(context: Context) -> Callable[[], HostFacts]:
    """The facts for the compiler on the host of a live lab: this machine, or those of --machines."""
    from ewan.labs import host

    def of_machines() -> HostFacts:
        with context.reporter.progress("asking the machines what they have") as progress:
            return context.multi_machine(progress.update).host_facts()

    return host.facts if context.machines is None else of_machines


@contextmanager
def brought_up(context: Context, plan: Plan) -> Iterator[Plan]:
    """A lab that is up, with progress and warnings on standard error; gives the plan as it is up. It stays up
    afterwards; Ctrl-C meanwhile takes it down again.

    Over several machines the plan that is up has the spinners of all of them.
    """
    from ewan.labs.runtime.memory import free_memory_bytes

    warnings, made = [], False
    needed = sum(way.store_bytes for link in plan.links for way in (link.forward, link.backward))
    if needed > (free := free_memory_bytes()):
        warnings.append(f"full links would hold {about(needed, 'size')}, and {about(free, 'size')} of memory are free")
    what = f"bringing up {plan.lab}: {len(plan.nodes)} nodes, {len(plan.links)} emulated links"
    try:
        with context.reporter.progress(what) as progress, interrupt.deferred():
            warnings += context.live(show=lambda text: progress.update(f"{what}: {text}")).up(plan)
            made = True  # without it the lab may be another user's of this name
            interrupt.left[plan.lab] = partial(_left, context, plan.lab)
        for warning in warnings:
            context.reporter.warn(warning)
        yield plan if context.machines is None else context.live().load(plan.lab).plan
    except (KeyboardInterrupt, GeneratorExit):
        if made:
            context.live().down(plan.lab)
        raise


def _left(context: Context, lab: str) -> str:
    up = lab in context.live().names()
    return f"lab {lab} is up: `ewan down {lab}` removes it" if up else f"lab {lab} is down again"


def converged(context: Context, plan: Plan, progress: Tell) -> Convergence | None:
    """Waits for the routes where a protocol finds them, and says how long that took."""
    from ewan.labs import routes

    try:
        return routes.converged(context.live(), plan, progress)
    except routes.NotConvergedError as error:
        raise unsettled(plan, error) from None


def unsettled(plan: Plan, error: NotConvergedError) -> LabError:
    """The error for a lab that is up without its routes, with remedies."""
    return LabError(
        f"{error}: lab {plan.lab} is up: see its links with `ewan ps {plan.lab}` and nodes/ROUTER/*.log in its state "
        f"directory, or remove it with `ewan down {plan.lab}`"
    )


def start_machines(context: Context, plan: Plan) -> None:
    """Starts the hosts that are machines, with progress, and says their kernels; a lab whose machines fail is down."""
    if all(node.machine is None for node in plan.nodes):
        return
    labs = context.live()
    try:
        with context.reporter.progress(f"{plan.lab} is up") as progress:
            kernels = labs.start_machines(plan.lab, lambda text: progress.update(f"{plan.lab} is up: {text}"))
    except BaseException:
        labs.down(plan.lab)
        raise
    for node, release in kernels.items():
        context.reporter.note(f"{node} is a machine of its own: Linux {release}")


def show_routing(context: Context, routing: Convergence | None) -> None:
    """The result of `converged` in a line; none where no protocol runs."""
    from ewan.labs.change import PROTOCOLS

    if routing is not None:
        protocol, after = PROTOCOLS[routing.protocol], about(routing.after_ns, "time", 3)
        context.reporter.console.print(f"routing: {protocol} converged in {after}")


def run_and_remove(context: Context, plan: Plan, program: Program, directory: Path) -> dict[str, Any] | None:
    """Brings a lab up, runs a program in it and takes it down; whatever happens, nothing of the lab is left.

    Beside what the program leaves, `directory` gets plan.json and, in links.json, the spinners' last counters. Returns
    commands.json as data; None where the program did not come so far. Raises LabError.
    """
    from ewan.labs.plan import to_json

    writing.write(directory / "plan.json", to_json(plan))
    with brought_up(context, plan):
        labs = context.live()
        try:
            with context.reporter.progress(f"running {plan.lab}"):
                labs.batch(plan.lab, program, directory)
        except LabError as error:
            try:
                labs.down(plan.lab)
            except LabError as left:
                raise LabError(f"{error}; {left}") from None
            raise
        except Exception:
            labs.down(plan.lab)
            raise
        removed = labs.down(plan.lab)
    path = directory / "links.json"
    # The program leaves the counters of all links; a spinner's last ones come when it ends.
    told = orjson.loads(path.read_bytes()) if path.exists() else {"format": "ewan-links/1", "links": []}
    told["spinners"] = codec.data_of(removed.spinners)
    writing.write(path, orjson.dumps(told, option=orjson.OPT_INDENT_2))
    path = directory / "commands.json"
    document: dict[str, Any] | None = orjson.loads(path.read_bytes()) if path.exists() else None
    return document
