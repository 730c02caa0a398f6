"""Long work: a command of ewan as a process of its own, which goes on when the page or the server is gone.

In: the words of a command. Out: results/.studio/jobs/ID/ with job.json (what was asked), out and err (what it said),
and ended.json (its exit status), so that whoever opens the page again, or starts the server again, finds all of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import orjson
import psutil

from labs import writing
from labs.context import ROOT
from labs.rundir import RESULTS

PLACE = RESULTS / ".studio/jobs"
MOST_SHOWN = 100
MOST_TOLD_BYTES = 256 << 10
"""Of what a job said; the end of it."""
AROUND = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the command's affair
begun = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
status = subprocess.run(sys.argv[2:], preexec_fn=begun).returncode
from pathlib import Path
from labs import writing
writing.write(Path(sys.argv[1]), '{"status": %d}' % status)
"""
"""A process around each command: it writes the exit status, whoever is there to read it."""
State = Literal["running", "ended", "lost"]


@dataclass(frozen=True, slots=True)
class Asked:
    """job.json. `pid` and `created` name the process for good: numbers of processes come again."""

    id: str
    words: tuple[str, ...]
    started: str
    pid: int
    created: float


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the page has it. `lost`: its process is gone and left no status, as after a power cut."""

    id: str
    words: tuple[str, ...]
    started: str
    state: State
    status: int | None
    out: str
    err: str


class UnknownJobError(LookupError):
    """There is no job of that name."""


class Jobs:
    """Those of one directory, which several servers may use one after the other."""

    def __init__(self, place: Path, environment: Mapping[str, str], command: Sequence[str] = ()) -> None:
        self._place, self._environment = place, environment
        self._command = tuple(command or (sys.executable, str(ROOT / "ewan.py")))
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, words: Sequence[str]) -> Job:
        """Begins a command; its words are words of a process and never a shell's. OSError where it cannot be."""
        number = self._new()
        place = self._place / number
        with (place / "out").open("wb") as out, (place / "err").open("wb") as err:
            child = subprocess.Popen(
                [sys.executable, "-c", AROUND, str((place / "ended.json").absolute()), *self._command, *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                env=dict(self._environment) | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "160"},
            )
        self._children[number] = child
        created = psutil.Process(child.pid).create_time()
        asked = Asked(number, tuple(words), datetime.now(UTC).isoformat(timespec="seconds"), child.pid, created)
        writing.write(place / "job.json", orjson.dumps(asdict(asked)))
        return self.find(number)

    def _new(self) -> str:
        self._place.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(path.name) for path in self._place.iterdir() if path.name.isdigit()), default=0)
        while True:
            try:
                (self._place / str(number)).mkdir()
                return str(number)
            except FileExistsError:
                number += 1

    def find(self, number: str) -> Job:
        """One job as it is now; UnknownJobError."""
        place = self._place / number
        if not number.isdigit():
            raise UnknownJobError(number)
        try:
            asked = Asked(**orjson.loads((place / "job.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            raise UnknownJobError(number) from None
        child = self._children.get(number)
        if child is not None:
            child.poll()  # a child that has ended is taken from the system
        try:
            status: int | None = orjson.loads((place / "ended.json").read_bytes())["status"]
            state: State = "ended"
        except (OSError, ValueError, KeyError):
            status, state = None, "running" if self._process(asked) is not None else "lost"
        out, err = (_end(place / name) for name in ("out", "err"))
        return Job(number, tuple(asked.words), asked.started, state, status, out, err)

    def every(self) -> list[Job]:
        """The newest first."""
        numbers = sorted((int(path.name) for path in self._place.glob("*") if path.name.isdigit()), reverse=True)
        found = []
        for number in numbers[:MOST_SHOWN]:
            try:
                found.append(self.find(str(number)))
            except UnknownJobError:
                continue
        return found

    def stop(self, number: str) -> Job:
        """Asks a job to end, as Ctrl-C does: it takes down what it made."""
        place = self._place / number
        found = self.find(number)
        process = self._process(Asked(**orjson.loads((place / "job.json").read_bytes())))
        if found.state == "running" and process is not None:
            os.killpg(process.pid, signal.SIGINT)
        return self.find(number)

    def _process(self, asked: Asked) -> psutil.Process | None:
        try:
            process = psutil.Process(asked.pid)
            alive = process.create_time() == asked.created and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if alive else None


def _end(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_TOLD_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
