"""The processes that run a lab's links: started in a session of their own, asked over their control sockets.

In: the node binary and a lab's state directory. Out: answers, and errors with the last line that a process wrote.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import psutil

from ewan.labs.plan import Spinner
from ewan.labs.runtime import control
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.requests import LinkRequest, StatsRequest
from ewan.labs.runtime.spinner_stats import SpinnerStats
from ewan.labs.runtime.words import last_words

Answer = TypeVar("Answer")

START_S = 30.0
POLL_S = 0.005
ANSWER_S = 10.0


def check_cpus(lab: str, spinners: Sequence[Spinner]) -> None:
    """A spinner's CPU is one that this process may use."""
    usable = os.sched_getaffinity(0)
    for number, spinner in enumerate(spinners):
        if spinner.cpu not in usable:
            listed = ", ".join(map(str, sorted(usable)))
            raise LabError(
                f"lab {lab}: no CPU to spin on: the plan puts spinner {number} on CPU {spinner.cpu}, "
                f"and this process may use {listed}: compile the description on this machine"
            )


def start(
    binary: Path, directory: Path, identity: str, spinners: Sequence[Spinner], check: Callable[[], None]
) -> list[subprocess.Popen[bytes]]:
    """Starts all, waits until each answers, and gives them; LabError, with its last line, for one that ended.

    `check` is called while waiting, and raises when there is a reason to stop. After an error all are killed.
    """
    # Killed: who removes the lab finds them by their command lines, which a process does not show at once.
    with control.starting(signal.SIGKILL) as processes:
        for number in range(len(spinners)):
            processes.append(_start(binary, directory, identity, number))
        deadline = time.monotonic() + START_S
        for number, process in enumerate(processes):
            name = f"spinner {number} (CPU {spinners[number].cpu})"
            while not _answers(directory, number, name, process, deadline):
                check()
                time.sleep(POLL_S)
    return processes


def _start(binary: Path, directory: Path, identity: str, number: int) -> subprocess.Popen[bytes]:
    command = [str(binary), "link", "--state", str(directory), "--spinner", str(number), "--id", identity]
    return control.start(command, log(directory, number), Path("/"))


def _answers(directory: Path, number: int, name: str, process: subprocess.Popen[bytes], deadline: float) -> bool:
    ended = process.poll() is not None  # before the question: a last answer may still be under way
    try:
        ask(directory, number, StatsRequest())
        return True
    except OSError as error:
        reason = error.strerror or str(error)
    said = last_words(log(directory, number))
    if ended:
        raise LabError(f"{name} ended at once: {said or f'status {process.returncode}'}")
    if time.monotonic() > deadline:
        raise LabError(f"{name} does not answer after {START_S:.0f} s: {said or reason}")
    return False


def ask(directory: Path, number: int, request: LinkRequest[Answer], timeout_s: float = ANSWER_S) -> Answer:
    """One request, one answer; OSError when no process answers, LabError when the answer is a refusal."""
    return control.ask(directory / f"spinner-{number}.sock", request, timeout_s, f"spinner {number}")


def ended(stats: SpinnerStats) -> str | None:
    """The links that a fault ended, of those in an answer to `stats`; None if all run."""
    links = ((name, link.ended) for name, link in stats.links.items())
    said = [f"link {name} has ended: a fault in the program: {words}" for name, words in links if words is not None]
    return "; ".join(said) or None


def log(directory: Path, number: int) -> Path:
    """The file that a spinner's output goes to."""
    return directory / f"spinner-{number}.log"


def processes(identity: str) -> dict[int, int]:
    """Spinner number → process id, of the lab with this manifest id."""
    numbers = ((number_of(process, identity), process.pid) for process in psutil.process_iter())
    return {number: pid for number, pid in numbers if number is not None}


def number_of(process: psutil.Process, identity: str | None = None, *, inside: bool = False) -> int | None:
    """The number of the spinner that a process is, in the lab with this manifest id if one is given; None: no spinner.

    A process can have any name. Its arguments are believed only if it is root's, as every spinner is, or this user's
    own: the kernel tells the owner. `inside`: the process was found in a network namespace of the lab, which holds only
    processes of the lab; a container's root may be another user on the host.
    """
    try:
        words = process.cmdline()
        if words[1:2] != ["link"] or (identity is not None and identity not in words) or "--spinner" not in words[:-1]:
            return None
        if not inside and process.uids().real not in (0, os.geteuid()):
            return None
    except psutil.Error:  # it ended
        return None
    number = words[words.index("--spinner") + 1]
    return int(number) if re.fullmatch(r"[0-9]{1,5}", number) else None
