"""Long work: a command of ewan as a process of its own, which goes on when the page or the server is gone.

In: the words of a command. Out: results/.studio/jobs/ID/ with job.json (the request), out and err (the output), and
ended.json (the exit status), so that a page or a server that is opened again finds all of it. A job is at work as long
as one of its processes holds the lock of the file `at-work`, which all of them have as standard input: the process
around the command, the command, and a sudo between them, whichever of them is killed. A job that waits for its turn has
waiting.json instead. It begins when no other is at work: a job that ends begins the next one, server or no server; a
server looks too, for jobs whose predecessor was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ewan.labs.base import codec, documents, reading, writing
from ewan.labs.base.codec import Struct
from ewan.labs.base.errors import UserError
from ewan.labs.base.product import IMPORTED_FROM, RESULTS
from ewan.labs.context import COMMAND
from ewan.labs.runtime import locks

PLACE = RESULTS / ".studio/jobs"
MOST_SHOWN = 100
MOST_TOLD_BYTES, MOST_LISTED_BYTES = 256 << 10, 8 << 10
"""Bytes of the end of a job's output: for one job, and for an older one in the list, which a page asks for each
second."""
BEGINS_S = 10.0
"""A job that is about to begin and has no process after so long never had one."""
AROUND = """
import os, signal, subprocess, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the command's affair
begun = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
ended, prefix = Path(sys.argv[1]), int(sys.argv[2])
status = subprocess.run(sys.argv[3:], preexec_fn=begun).returncode
from ewan.labs.base import writing
writing.write(ended, '{"status": %d}' % status)
from ewan.extras.studio.server.jobs import Jobs
Jobs(ended.parent.parent, os.environ, sys.argv[3:3 + prefix]).turn()
"""
"""A process around each command: it writes the exit status, whoever is there to read it, and begins what waits."""
State = Literal["waiting", "running", "ended", "lost"]
ASKED, AT_WORK, WAITS, BEGINS, ENDED, OUT_OF_LINE = (
    "job.json",
    "at-work",
    "waiting.json",
    "begins.json",
    "ended.json",
    "taken-out.json",
)
"""Files of a job. WAITS is renamed to BEGINS when its turn has come, and to OUT_OF_LINE where it is taken out."""


class JobRequest(Struct):
    """job.json. `pid`: number of the process around the command, and of the group of both."""

    id: str
    words: tuple[str, ...]
    started: str
    pid: int


class QueuedJob(Struct):
    """waiting.json. `started`: when it was asked for."""

    words: tuple[str, ...]
    started: str


class JobEnd(Struct):
    """ended.json."""

    status: int


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the page has it. `lost`: its process is gone and left no status, as after a power cut. `started`: of one
    that waits, when it was asked for. `ended`: UNIX time in s."""

    id: str
    words: tuple[str, ...]
    started: str
    state: State
    status: int | None
    out: str
    err: str
    ended: float | None = None


class UnknownJobError(LookupError):
    """There is no job of that name."""


class Jobs:
    """The jobs of one directory, which several servers may use, one after the other or at once."""

    def __init__(self, place: Path, environment: Mapping[str, str], command: Sequence[str] = ()) -> None:
        self._place, self._environment = place, environment
        self._command = tuple(command or COMMAND)
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, words: Sequence[str]) -> Job:
        """Begins a command; its words are words of a process and never a shell's. OSError where it cannot be."""
        number = self._new()
        self._begin(number, words)
        return self.find(number)

    def queue(self, words: Sequence[str]) -> Job:
        """The same, as soon as no other job is at work, after those that wait already."""
        number = self._new()
        writing.write(self._place / number / WAITS, codec.compact(QueuedJob(tuple(words), _now())))
        self.turn()
        return self.find(number)

    def turn(self) -> None:
        """Begins the first job that waits, where none is at work."""
        if not self._place.is_dir():
            return
        with self._alone():
            waiting = [number for number in self._numbers() if (self._place / number / WAITS).exists()]
            if not waiting or any(self._at_work(number) for number in self._numbers()):
                return
            place = self._place / waiting[0]
            (place / WAITS).rename(place / BEGINS)
            self._begin(waiting[0], documents.read(QueuedJob, place / BEGINS).words)

    def _begin(self, number: str, words: Sequence[str]) -> None:
        place = self._place / number
        around = [str((place / ENDED).absolute()), str(len(self._command))]
        with (
            os.fdopen(locks.private(place / AT_WORK), "rb") as at_work,
            (place / "out").open("wb") as out,
            (place / "err").open("wb") as err,
        ):
            fcntl.flock(at_work, fcntl.LOCK_EX)
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", AROUND, *around, *self._command, *words],
                stdin=at_work,
                stdout=out,
                stderr=err,
                start_new_session=True,
                env=dict(self._environment) | {"PYTHONPATH": str(IMPORTED_FROM), "NO_COLOR": "1", "COLUMNS": "160"},
            )
        self._children[number] = child
        writing.write(place / ASKED, codec.compact(JobRequest(number, tuple(words), _now(), child.pid)))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Holds a lock under which no other process begins waiting jobs; it ends with this process."""
        descriptor = locks.private(self._place / ".turn")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _new(self) -> str:
        self._place.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(name) for name in self._numbers()), default=0)
        while True:
            try:
                (self._place / str(number)).mkdir()
                return str(number)
            except FileExistsError:
                number += 1

    def _numbers(self) -> list[str]:
        """The numbers of all jobs, the oldest first."""
        return sorted((path.name for path in self._place.glob("*") if path.name.isdigit()), key=int)

    def _asked(self, number: str) -> JobRequest | None:
        try:
            return documents.read(JobRequest, self._place / number / ASKED)
        except (OSError, ValueError):
            return None

    def _at_work(self, number: str) -> bool:
        if (self._place / number / ENDED).exists():
            return False
        asked = self._asked(number)
        # A change of a link that waits for its time takes nothing of the machine.
        return asked is not None and asked.words[:2] != ("lab", "set") and self._has_process(number)

    def find(self, number: str, most_bytes: int = MOST_TOLD_BYTES) -> Job:
        """One job as it is now, with the last `most_bytes` of its output; UnknownJobError."""
        place = self._place / number
        if not number.isdigit():
            raise UnknownJobError(number)
        asked = self._asked(number)
        if asked is None:
            return self._early(number)
        child = self._children.get(number)
        if child is not None:
            child.poll()  # a child that has ended is taken from the system
        ended = None
        try:
            status: int | None = documents.read(JobEnd, place / ENDED).status
            state: State = "ended"
            ended = (place / ENDED).stat().st_mtime
        except (OSError, ValueError):
            status, state = None, "running" if self._has_process(number) else "lost"
        out, err = (_end(place / name, most_bytes) for name in ("out", "err"))
        return Job(number, asked.words, asked.started, state, status, out, err, ended)

    def _early(self, number: str) -> Job:
        """One that has no process yet."""
        place = self._place / number
        state: State = "waiting"
        for name in (WAITS, BEGINS):
            with contextlib.suppress(OSError, ValueError):
                told = documents.read(QueuedJob, place / name)
                if name == BEGINS and time.time() - (place / name).stat().st_mtime > BEGINS_S:
                    state = "lost"
                return Job(number, told.words, told.started, state, None, "", "")
        raise UnknownJobError(number)

    def every(self) -> list[Job]:
        """All jobs, the newest first, with their output."""
        found: list[Job] = []
        for number in reversed(self._numbers()):
            if len(found) == MOST_SHOWN:
                break
            with contextlib.suppress(UnknownJobError):
                found.append(self.find(number, MOST_LISTED_BYTES if found else MOST_TOLD_BYTES))
        return found

    def stop(self, number: str) -> Job:
        """Asks a job to end, as Ctrl-C does: it takes down its lab. A waiting job is taken out of the queue."""
        found = self.find(number)
        place = self._place / number
        if found.state == "waiting":
            with self._alone(), contextlib.suppress(FileNotFoundError):
                (place / WAITS).rename(place / OUT_OF_LINE)
                return found
            found = self.find(number)  # its turn has come meanwhile
        asked = self._asked(number)
        if found.state == "running" and asked is not None:
            try:
                os.killpg(asked.pid, signal.SIGINT)
            except ProcessLookupError:
                pass  # it has just ended
            except PermissionError:
                line = f"sudo kill -INT -- -{asked.pid}"
                raise UserError(f"job {number} runs as another user: {line} asks it to end") from None
        return self.find(number)

    def _has_process(self, number: str) -> bool:
        return reading.is_locked(self._place / number / AT_WORK)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _end(path: Path, most_bytes: int) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most_bytes))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
