"""An experiment's directory and its document, experiment.json: what is to be run, how far it has come, on what.

In: runs with their plans and schedules. Out: DIR/experiment.json, DIR/runs/NNN/{plan,program,schedule}.json, which are
all that execution needs: whoever resumes or repeats an experiment reads no scenario. The document is replaced in one
step whenever something ends, so that a reader, and whoever goes on after a crash, finds a whole one. It is there when
all runs are in it, and holds the SHA-256 of every file that is read again: of what a run executes from the start, of
its results when its tables are made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from generator.engine import stored
from labs import plan as plans
from labs import rundir
from labs.plan import Plan
from labs.reading import read_bytes
from labs.record import experiment as records
from labs.record.experiment import DOCUMENT, INPUTS, Clock, Document, DocumentError, Entry, Origin, StageName, State
from labs.runtime.base import LabError
from labs.runtime.locks import lock
from labs.runtime.occupied import occupied
from labs.runtime.program import Program
from labs.spec.values import LONGEST_NAME, NAME
from labs.typed import read_typed

AGAIN = "`ewan rerun` of its archive runs it once more"

STAGES: dict[StageName, str] = {
    "reservation": "reservation",
    "deployment": "deployment",
    "configuration": "configuration",
    "execution": "execution",
    "logs": "log handling",
    "analysis": "analysis",
    "archiving": "archiving and cleaning",
}
"""How each stage is shown, in order, by the word that names it on the command line."""

# What a run leaves and no result is: sources of its tables, and what only its making needed.
NOT_KEPT = ("links.csv", "progress", "console.log", "root", "uml")
# Room for the last experiment.json where the results have filled the disk.
RESERVE = ".reserve"
RESERVE_BYTES = 1 << 20
# What is in the directory before the document.
BEGINNING = {"scenario.yaml", "settings.json", "runs", RESERVE, rundir.ROOM, f".{DOCUMENT}"}
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True)
class Job:
    """What a run executes."""

    entry: Entry
    plan: Plan
    program: Program
    schedule: dict[str, Any]


class Experiment:
    """The document and its runs; `save` after every change. Several threads may change different entries."""

    def __init__(self, directory: Path, document: Document) -> None:
        self.directory = directory
        self.document = document
        self._lock = threading.Lock()

    @classmethod
    def create(cls, directory: Path, origin: Origin, clock: Clock, *, unverified: bool = False) -> Experiment:
        """A new one without runs, in a directory that is there; its document is written with the first `save`."""
        experiment = cls(directory, records.begin(origin, clock, unverified, now()))
        with contextlib.suppress(OSError), (directory / RESERVE).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        return experiment

    @classmethod
    def load(cls, directory: Path, shown: Path | None = None) -> Experiment:
        """LabError where there is none, or one of another version; `shown` stands for the directory in messages."""
        path = directory / DOCUMENT
        try:
            document = records.from_json(read_bytes(path), shown or directory)
        except (FileNotFoundError, NotADirectoryError):
            if directory.is_dir() and {path.name for path in directory.iterdir()} <= BEGINNING:
                raise LabError(f"{directory}: the experiment had not begun when it ended: run it once more") from None
            raise LabError(
                f"{directory}: there is no experiment: name a directory of results/ with {DOCUMENT}"
            ) from None
        except OSError as error:
            raise LabError(f"{path}: {error.strerror}") from None
        except DocumentError as error:
            raise LabError(str(error)) from None
        if not NAME.fullmatch(document.scenario) or len(document.scenario) > LONGEST_NAME:
            raise LabError(f"{path}: not an experiment: scenario is no name: {AGAIN}")
        return cls(directory, document)

    @property
    def name(self) -> str:
        """The scenario's."""
        return self.document.scenario

    @property
    def virtual(self) -> bool:
        """Whether its runs are in the virtual clock."""
        return self.document.clock == "virtual"

    @property
    def runs(self) -> list[Entry]:
        """In the order of their numbers."""
        return self.document.runs

    def place(self, entry: Entry) -> Path:
        """The directory of a run."""
        return self.directory / entry.directory

    def save(self) -> None:
        """Replaces experiment.json in one step; the reserve makes room where the disk is full."""
        with self._lock:
            text = records.to_json(self.document)
            new = self.directory / f".{DOCUMENT}"
            try:
                new.write_bytes(text)
            except OSError:
                (self.directory / RESERVE).unlink(missing_ok=True)
                new.write_bytes(text)
            new.replace(self.directory / DOCUMENT)

    def finish(self, status: State) -> None:
        """The experiment's last state."""
        self.document.status, self.document.ended = status, now()
        self.save()
        (self.directory / RESERVE).unlink(missing_ok=True)

    def add(self, job: Job) -> None:
        """A run that is to be executed; saved with the next `save`."""
        place = self.place(job.entry)
        place.mkdir(parents=True, exist_ok=True)
        contents = (plans.to_json(job.plan), job.program.to_json(), orjson.dumps(job.schedule, option=_OPTIONS))
        for name, content in zip(INPUTS, contents, strict=True):
            (place / name).write_bytes(content)
            self.files[f"{job.entry.directory}/{name}"] = hashlib.sha256(content).hexdigest()
        self.runs.append(job.entry)

    @property
    def files(self) -> dict[str, str]:
        """Of each file that the document vouches for, by its path in the directory: the SHA-256."""
        return self.document.files

    def record(self, path: Path) -> None:
        """The document vouches for a file's present bytes; saved with the next `save`."""
        self.files[path.relative_to(self.directory).as_posix()] = records.checksum(path)

    def record_results(self, entry: Entry) -> None:
        """All that a run left and that stays."""
        place = self.place(entry)
        for path in place.rglob("*"):
            name = path.relative_to(place)
            source = path.suffix == ".csv" and name.parts[0] == "traffic"
            if path.is_file() and not path.is_symlink() and name.parts[0] not in NOT_KEPT and not source:
                self.record(path)

    def _recorded(self, entry: Entry) -> list[str]:
        # `list` is one step: other threads may record files of other runs meanwhile.
        return sorted(name for name in list(self.files) if name.startswith(f"{entry.directory}/"))

    def check(self, entry: Entry | None = None) -> None:
        """LabError for the first file, of a run or of all, whose bytes are not those that were recorded."""
        for name in sorted(self.files) if entry is None else self._recorded(entry):
            if why := records.damage(self.directory, name, self.files):
                raise LabError(why)

    def job(self, entry: Entry) -> Job:
        """What a run executes, as it was stored; LabError where that is not there."""
        place = self.place(entry)
        for name in INPUTS:
            if records.damage(self.directory, f"{entry.directory}/{name}", self.files):
                raise LabError(f"run {entry.number}: {place / name}: is damaged or missing: {AGAIN}")
        try:
            plan = plans.from_json(read_bytes(place / "plan.json"))
            program = stored.program(read_bytes(place / "program.json"), entry.expected_ns)
            schedule = read_typed(dict[str, Any], orjson.loads(read_bytes(place / "schedule.json")), "schedule")
        except OSError as error:
            raise LabError(f"run {entry.number}: {error.filename}: {error.strerror}: {AGAIN}") from None
        except ValueError as error:
            raise LabError(f"run {entry.number}: {place}: is damaged ({error}): {AGAIN}") from None
        return Job(entry, plan, program, schedule)

    def forget(self, entry: Entry) -> None:
        """Removes what an earlier attempt left, so that it is run as the first time."""
        with occupied(self.place(entry)):
            for path in self.place(entry).iterdir():
                if path.name not in INPUTS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        kept = {f"{entry.directory}/{name}" for name in INPUTS}
        for name in self._recorded(entry):
            if name not in kept:
                del self.files[name]
        entry.status, entry.error = "waiting", None

    def wanting(self) -> list[Entry]:
        """Runs that have not come to their end."""
        return [entry for entry in self.runs if entry.status != "complete"]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One engine in a directory at a time; the lock is on the directory itself and ends with its process."""
        with locked(self.directory):
            yield


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """LabError where there is no such directory, or another engine is at work in it."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise LabError(f"{directory}: {error.strerror}: name a directory of results/") from None
    try:
        lock(descriptor, time.monotonic(), f"{directory}: another `ewan run` is at work there: wait for its end")
        yield
    finally:
        os.close(descriptor)


def now() -> str:
    """This moment in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def family(plan: Plan) -> str:
    """SHA-256 of a plan without its seeds: what a certificate is about."""
    return hashlib.sha256(orjson.dumps(_unseeded(orjson.loads(plans.to_json(plan))))).hexdigest()


def _unseeded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: 0 if key == "seed" else _unseeded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_unseeded(each) for each in value]
    return value
