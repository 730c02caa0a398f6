"""A program of the user's that sets the windows of flows in the virtual clock: built in the kernel as the congestion
control `external`, started for a run, and gone at its end.

In: the program's words, its declared thinking time, a run. Out: the run's results with the program's output in
program.log; LabError in one line where the program has ended, answers something else, or does not answer. The protocol
is that of labs/congestion/external.py. The program runs as any command of the user does; the kernel behind its wall
inherits one socket, and nothing else of the program.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ewan.labs.base import writing
from ewan.labs.base.product import ROOT
from ewan.labs.base.reading import end_of, one_line
from ewan.labs.congestion import source
from ewan.labs.congestion.external import VARIABLE
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import KernelModule, Program
from ewan.labs.runtime.virtual import Run, VirtualRuntime

NAME = "external"
"""The congestion control's name."""
SOURCE = ROOT / "emulator/kernel/external/tcp_external.c"
LOG = "program.log"
ANSWERS_S = 10
"""The wall-clock time that the program has for an answer."""
ENDS_S = 5.0
"""The wall-clock time that it has to end when its kernel has ended."""
MOST_SAID = 1 << 16
MOST_WORDS = 200
_OF_KERNEL = re.compile(r"tcp_external: (?:Kernel panic - )?(.*?)(?:;| \(|$)")
_CLOSED = "it closed its socket"


def words_of(text: str) -> tuple[str, ...]:
    """The words of `--program`: a Python file runs with this Python, another program by its own name. LabError for one
    that cannot be started."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise LabError(f"--program {text}: {error}") from None
    if not words:
        raise LabError('--program "": write a program and its arguments, "./mine.py"')
    name = words[0]
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise LabError(f"--program {name}: there is no such file")
        return (sys.executable, *words)
    if shutil.which(name) is None:
        there = Path(name).is_file() and "/" in name
        remedy = f"it may not be executed: chmod +x {name}" if there else "there is no such program"
        raise LabError(f"--program {name}: {remedy}")
    return tuple(words)


def module(thinks_ns: int = 0) -> KernelModule:
    """The module that gives the virtual kernel the congestion control; an answer takes effect `thinks_ns` later in
    simulated time."""
    return KernelModule(source.read(SOURCE), (NAME,), f"thinks_ns={thinks_ns}" if thinks_ns else "")


def pair(answers_s: int = 0) -> tuple[socket.socket, socket.socket]:
    """The kernel's end of a socket and the program's. `answers_s`: how long the kernel waits; 0: for ever."""
    of_kernel, of_program = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wait = struct.pack("ll", answers_s, 0)
    of_kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)
    of_kernel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, wait)
    return of_kernel, of_program


def run(
    runtime: VirtualRuntime,
    words: Sequence[str],
    plan: Plan,
    program: Program,
    directory: Path,
    stop: threading.Event | None = None,
) -> Run:
    """Runs `program` in the lab as `VirtualRuntime.run` does, with the program of these words beside it."""
    of_kernel, of_program = pair(ANSWERS_S)
    shown = shlex.join(words[1:] if words[0] == sys.executable else words)
    with of_kernel, _started(words, of_program, directory) as child:
        try:
            result = runtime.run(plan, program, directory, stop, controller=of_kernel.fileno())
        except LabError as error:
            if (found := _OF_KERNEL.search(str(error))) is None:
                raise
            of_kernel.close()
            raise LabError(f"--program {shown}: {_fault(found[1], child, directory / LOG)}") from None
        of_kernel.close()
        if not result.interrupted and (status := _ended(child)):
            raise LabError(f"--program {shown}: {_of_status(status, directory / LOG)}")
        return result


@contextlib.contextmanager
def _started(words: Sequence[str], end: socket.socket, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program with its end of the socket, in a session of its own, in which nothing is left afterwards."""
    environment = {**os.environ, VARIABLE: str(end.fileno())}
    try:
        with end:
            directory.mkdir(parents=True, exist_ok=True)
            with writing.anew(directory / LOG) as log:
                child = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    pass_fds=(end.fileno(),),
                    start_new_session=True,
                )
    except OSError as error:
        raise LabError(f"--program {words[0]}: it cannot be started: {error.strerror}") from None
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    """The program's exit status; None where it goes on."""
    try:
        return child.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        return None


def _fault(of_kernel: str, child: subprocess.Popen[bytes], log: Path) -> str:
    """Why the kernel has ended, in its words or by how the program has ended."""
    status = _ended(child) if _CLOSED in of_kernel else child.poll()
    if status is None:
        return of_kernel.replace("in time", f"within {ANSWERS_S} s")
    return _of_status(status, log)


def _of_status(status: int, log: Path) -> str:
    how = f"with status {status}" if status >= 0 else f"by signal {signal.Signals(-status).name}"
    try:
        said = end_of(log, MOST_SAID)[0].strip().splitlines()
    except OSError:
        said = []
    last = one_line(said[-1], MOST_WORDS) if said else ""
    return f"it ended {how}{'' if status else ', before its flows had'}{f': {last}' if last else ''}"
