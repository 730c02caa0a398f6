"""What the description says that nodes are made of, in labs of any runtime: what is refused, and commands that are run.

In: a plan; how a program is run in a node. Out: nothing, or LabError with one line. What a command wrote is
nodes/NODE/exec-N.log in the lab's directory.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from labs.own import Own
from labs.plan import Plan
from labs.runtime.base import LabError
from labs.runtime.program import Preparation, Program
from labs.runtime.words import last_words

LONGEST_S = 60.0
"""For a command to come to its end."""
POLL_S = 0.02
OF_CONTAINERS = ("image", "entrypoint", "cmd", "binds", "ports")

Command = Callable[[str, Sequence[str]], list[str]]
"""A node and words; the command line that runs them in it."""


def of(plan: Plan) -> Iterator[tuple[str, Own]]:
    """The nodes of which anything is said, by name."""
    return ((node.name, node.own) for node in plan.nodes if node.own is not None)


def needs_containers(plan: Plan) -> bool:
    """Whether a node has what only a container has."""
    return any(getattr(own, key) for _, own in of(plan) for key in OF_CONTAINERS)


def check_namespaces(plan: Plan) -> None:
    """LabError for what only a container has, where nodes are namespaces."""
    for node, own in of(plan):
        for key in OF_CONTAINERS:
            if getattr(own, key):
                raise LabError(
                    f"lab {plan.lab}: {node}: {key}: only a node that is a container has it: RUNTIME=containerlab"
                )


def outside(plan: Plan) -> list[str]:
    """What nodes see of this machine beyond the folder of the description, a line each."""
    found = [(node, bind) for node, own in of(plan) for bind in own.binds if bind.outside]
    how = {True: "", False: ", and may be changed there"}
    return [f"{node} sees {bind.source} of this machine at {bind.target}{how[bind.read_only]}" for node, bind in found]


def prepared(plan: Plan, program: Program) -> Program:
    """The program with the nodes' commands before all else, for a lab that is there for the program alone."""
    steps = tuple(Preparation(node, argv) for node, own in of(plan) for argv in own.exec)
    return replace(program, prepare=(*steps, *program.prepare)) if steps else program


def run(
    plan: Plan,
    directory: Path,
    command: Command,
    check: Callable[[], None],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs the nodes' commands, one after the other; `check` is called meanwhile, and raises when it is to stop.

    environment: of the command line itself; None: ours."""
    for node, own in of(plan):
        for number, argv in enumerate(own.exec, 1):
            log = directory / "nodes" / node / f"exec-{number}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            if why := _failed(command(node, argv), log, check, environment):
                raise LabError(f"lab {plan.lab}: {node}: exec {shlex.join(argv)}: {why}")


def _failed(words: list[str], log: Path, check: Callable[[], None], environment: Mapping[str, str] | None) -> str:
    """Why a command failed, "" where it did not."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    until = time.monotonic() + LONGEST_S
    try:
        while process.poll() is None:
            check()
            if time.monotonic() > until:
                return f"it has not come to its end after {LONGEST_S:.0f} s: have a program that goes on detach itself"
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_S)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    return "" if process.returncode == 0 else last_words(log) or f"ended with status {process.returncode}"
