"""The program that sets the windows of a run of the virtual clock: started beside its kernel, and gone at its end.

In: a `Controller`, the run's directory. Out: the descriptor of the kernel's end of their socket, and the program's
output in program.log; LabError in one line where the program has ended, answers something else, or does not answer. The
protocol is that of labs/congestion/external.py. The kernel behind its wall inherits one socket, and nothing else of the
program, whose standard input is the other end.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.labs.base import writing
from ewan.labs.base.product import ROOT
from ewan.labs.base.reading import end_of, one_line
from ewan.labs.congestion.external import VARIABLE
from ewan.labs.runtime import wall
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Controller
from ewan.labs.runtime.run_leftovers import remove_tree

LOG = "program.log"
FOLDER = "controller"
"""The folder of a run in which a program with files of its own starts."""
SEED = "EWAN_SEED"
"""The variable of the environment with the seed of the run's lab."""
PLACE = "EWAN_CONTROLLER_RUN"
"""The variable with the run's directory, by which the processes are found that the program has started."""
MOST_FILE_BYTES = 64 << 20
"""The size of each file that a program behind the wall writes, its log among them."""
ANSWERS_S = 10
"""The wall-clock time that the program has for an answer."""
ENDS_S = 5.0
"""The wall-clock time that it has to end when its kernel has ended."""
MOST_SAID = 1 << 16
MOST_WORDS = 200
_OF_KERNEL = re.compile(r"tcp_external: (?:Kernel panic - )?(.*?)(?:;| \(|$)")
_CLOSED = "it closed its socket"


def pair(answers_s: int = 0) -> tuple[socket.socket, socket.socket]:
    """The kernel's end of a socket and the program's. `answers_s`: how long the kernel waits; 0: for ever."""
    of_kernel, of_program = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wait = struct.pack("ll", answers_s, 0)
    of_kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)
    of_kernel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, wait)
    return of_kernel, of_program


@dataclass(frozen=True, slots=True)
class RunningController:
    """A program that runs. `of_kernel`: the kernel's end of the socket."""

    of_kernel: socket.socket
    _child: subprocess.Popen[bytes]
    _shown: str
    _log: Path

    def completed(self) -> None:
        """LabError where it has failed although its kernel has ended as it should."""
        self.of_kernel.close()
        if status := _ended(self._child):
            raise LabError(f"{self._shown}: {_of_status(status, self._log)}")

    def fault(self, error: LabError) -> LabError | None:
        """The error of the program that ended its kernel; None where the kernel ended for another reason."""
        if (found := _OF_KERNEL.search(str(error))) is None:
            return None
        self.of_kernel.close()
        status = _ended(self._child) if _CLOSED in found[1] else self._child.poll()
        if status is None:
            return LabError(f"{self._shown}: {found[1].replace('in time', f'within {ANSWERS_S} s')}")
        return LabError(f"{self._shown}: {_of_status(status, self._log)}")


@contextlib.contextmanager
def running(controller: Controller, seed: int, binary: Path, directory: Path) -> Iterator[RunningController]:
    """The program with its end of the socket, in a session of its own, in which nothing is left afterwards."""
    shown = f"program {shlex.join(controller.argv)}"
    words = list(controller.argv)
    if words[0].endswith(".py"):
        words.insert(0, sys.executable)
    place = directory.absolute() / FOLDER
    environment = dict(os.environ)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if controller.files is not None:
            _write(controller.files, place)
            if not wall.off():
                words = [str(binary), "launch", *_walls(words, place), "--", *words]
            kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
            environment = {**kept, "HOME": str(place), "TMPDIR": str(place)}
        environment |= {SEED: str(seed), PLACE: str(directory.absolute()), "PYTHONHASHSEED": "0"}
        of_kernel, of_program = pair(ANSWERS_S)
        with of_kernel:
            with of_program, writing.anew(directory / LOG) as log:
                child = subprocess.Popen(
                    words,
                    stdin=of_program.fileno(),  # the wall closes all others but standard output and error
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=None if controller.files is None else place,
                    env={**environment, VARIABLE: "0"},
                    start_new_session=True,
                )
            try:
                if controller.files is not None:
                    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (MOST_FILE_BYTES, MOST_FILE_BYTES))
                yield RunningController(of_kernel, child, shown, directory / LOG)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                _end_descendants(f"{PLACE}={directory.absolute()}")
    except OSError as error:
        raise LabError(f"{shown}: it cannot be started: {error.strerror}") from None
    finally:
        if controller.files is not None:
            remove_tree(place)


def check(argv: Sequence[str], folder: Path) -> None:
    """LabError for a program that cannot be started in `folder`."""
    name = argv[0]
    path = folder / name
    if name.endswith(".py"):
        if not path.is_file():
            raise LabError(f"{name}: there is no such file")
    elif shutil.which(path if "/" in name else name) is None:
        there = "/" in name and path.is_file()
        remedy = f"it may not be executed: chmod +x {name}" if there else "there is no such program"
        raise LabError(f"{name}: {remedy}")


def _write(files: dict[str, bytes], place: Path) -> None:
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
        (place / name).chmod(0o755)
    place.mkdir(exist_ok=True)


def _walls(words: Sequence[str], place: Path) -> list[str]:
    """The wall of a program: it sees the system's programs, this project and the installations of the programs that its
    words name, and writes into its folder."""
    shown = [place, ROOT, *map(Path, wall.SYSTEM), *wall.of_etc()]
    for path in wall.executables(words, place):
        shown += wall.of_program(path)
    return ["--write", str(place), *wall.readable(shown)]


def _end_descendants(variable: str) -> None:
    """Ends what the program has started in sessions of their own: processes with its variable in their environment."""
    wanted, found = os.fsencode(variable), True
    while found:
        found = False
        for place in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if wanted in place.read_bytes().split(b"\0") and int(place.parent.name) != os.getpid():
                    os.kill(int(place.parent.name), signal.SIGKILL)
                    found = True


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    """The program's exit status; None where it goes on."""
    try:
        return child.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        return None


def _of_status(status: int, log: Path) -> str:
    how = f"with status {status}" if status >= 0 else f"by signal {signal.Signals(-status).name}"
    try:
        said = end_of(log, MOST_SAID)[0].strip().splitlines()
    except OSError:
        said = []
    last = one_line(said[-1], MOST_WORDS) if said else ""
    return f"it ended {how}{'' if status else ', before its flows had'}{f': {last}' if last else ''}"
