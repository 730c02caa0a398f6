"""Applies the overrides of nodes in labs of any runtime: it refuses those that a runtime lacks, and runs commands.

In: a plan; a function that runs a program in a node. Out: nothing, or LabError with one line. The output of a command
is nodes/NODE/exec-N.log in the lab's directory. While commands run, the file `running` there names the present one and
is locked: if the file exists without a lock, the process that ran them was killed.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ewan.labs.base.codec import replace
from ewan.labs.node_overrides import NodeOverrides
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Preparation, Program
from ewan.labs.runtime.words import last_words

LONGEST_S = 60.0
"""For a command to come to its end."""
POLL_S = 0.02
RUNNING = "running"
LONGEST_SAID = 4096  # bytes
MOST_SHOWN = 80  # letters of a command
OF_CONTAINERS = ("image", "entrypoint", "cmd", "binds", "ports")

Command = Callable[[str, Sequence[str]], list[str]]
"""A node and words; the command line that runs them in it."""
Attempt = Callable[[str, Sequence[str], Path], str]
"""Runs words in a node, with what they write in this log; why they failed, "" where they did not."""


def of(plan: Plan) -> Iterator[tuple[str, NodeOverrides]]:
    """The nodes that have overrides, by name."""
    return ((node.name, node.own) for node in plan.nodes if node.own is not None)


def needs_containers(plan: Plan) -> bool:
    """Return whether a node has an override that only a container has."""
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
    """The parts of this machine, beyond the folder of the description, that nodes see; a line each."""
    found = [(node, bind) for node, own in of(plan) for bind in own.binds if bind.outside]
    how = {True: "", False: ", and may be changed there"}
    return [f"{node} sees {bind.source} of this machine at {bind.target}{how[bind.read_only]}" for node, bind in found]


def prepared(plan: Plan, program: Program) -> Program:
    """The program with the nodes' commands before all else, for a lab that exists only for the program; the same
    where they are there already."""
    steps = tuple(Preparation(node, argv) for node, own in of(plan) for argv in own.exec)
    there = program.prepare[: len(steps)] == steps
    return program if there else replace(program, prepare=(*steps, *program.prepare))


def run(
    plan: Plan,
    directory: Path,
    command: Command,
    check: Callable[[], None],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs the nodes' commands, one after the other; `check` is called meanwhile, and raises when it is to stop.

    environment: of the command line itself; None: ours."""
    run_by(plan, directory, lambda node, argv, log: _failed(command(node, argv), log, check, environment))


def run_by(plan: Plan, directory: Path, attempt: Attempt) -> None:
    """The same, with whatever runs a command."""
    if not any(own.exec for _, own in of(plan)):
        return
    with _told(directory / RUNNING) as tell:
        _run(plan, directory, attempt, tell)


def unfinished(name: str, directory: Path) -> str:
    """The commands of nodes that are not finished, in words; "" if all are."""
    try:
        descriptor = os.open(directory / RUNNING, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):  # another user cannot read it before a command runs
        return ""
    try:
        said = os.read(descriptor, LONGEST_SAID).decode(errors="replace") or "the nodes' exec commands"
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return f"{said}: still runs"
    finally:
        os.close(descriptor)
    return f"{said}: was cut off with its `up`: remove the lab with `ewan down {name}`"


@contextmanager
def _told(path: Path) -> Iterator[Callable[[str], None]]:
    """Gives what says which command runs; the file is gone when all have come to their end."""
    path.unlink(missing_ok=True)
    # Until it is locked no other user can open it: a user who can read a file can lock it.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.fchmod(descriptor, 0o644)

        def tell(words: str) -> None:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, words.encode()[:LONGEST_SAID], 0)

        yield tell
        path.unlink()
    finally:
        os.close(descriptor)


def _run(plan: Plan, directory: Path, attempt: Attempt, tell: Callable[[str], None]) -> None:
    for node, own in of(plan):
        for number, argv in enumerate(own.exec, 1):
            tell(f"{node}: exec {' '.join(shlex.join(argv).split())[:MOST_SHOWN]}")
            log = directory / "nodes" / node / f"exec-{number}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            if why := attempt(node, argv, log):
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
