"""An experiment's directory and its document, experiment.json: what is to be run, how far it has come, on what.

In: runs with their plans and schedules. Out: DIR/experiment.json, DIR/runs/NNN/{plan,program,schedule}.json, which are
all that execution needs: whoever resumes or repeats an experiment reads no scenario. The document is replaced in one
step whenever something ends, so that a reader, and whoever goes on after a crash, finds a whole one. It is there when
all runs are in it, and holds the SHA-256 of every file that is read again: of what a run executes from the start, of
its results when its tables are made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from generator.engine import checked, stored
from labs import plan as plans
from labs import rundir
from labs.plan import Plan
from labs.reading import read_bytes
from labs.record import experiment as records
from labs.record.experiment import DOCUMENT, FORMAT, INPUTS
from labs.runtime.base import LabError
from labs.runtime.occupied import occupied
from labs.runtime.program import Program

AGAIN = "`ewan rerun` of its archive runs it once more"

STAGES = {
    "reservation": "reservation",
    "deployment": "deployment",
    "configuration": "configuration",
    "execution": "execution",
    "logs": "log handling",
    "analysis": "analysis",
    "archiving": "archiving and cleaning",
}
"""Those of NXE (Guillier and Vicat-Blanc Primet), in order, by the word that names each on the command line."""

Status = Literal["waiting", "complete", "incomplete", "failed"]
State = Literal["running", "complete", "incomplete", "refused"]

# What a run leaves and no result is: sources of its tables, and what only its making needed.
NOT_KEPT = ("links.csv", "progress", "console.log", "root", "uml")
# Room for the last experiment.json where the results have filled the disk.
RESERVE = ".reserve"
RESERVE_BYTES = 1 << 20
# What is in the directory before the document.
BEGINNING = {"scenario.yaml", "settings.json", "runs", RESERVE, rundir.ROOM, f".{DOCUMENT}"}
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


@dataclass(slots=True)
class Entry:
    """A run: which, and what became of it. `verified`: its certificate passed; None: there is none yet."""

    number: int
    name: str
    parameters: dict[str, str | int]
    seed: int
    plan_sha256: str
    family: str
    """SHA-256 of the plan without its seeds: runs of one family share a certificate."""
    directory: str
    expected_ns: int = 0
    status: Status = "waiting"
    error: str | None = None
    certificate: str | None = None
    verified: bool | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What a run executes."""

    entry: Entry
    plan: Plan
    program: Program
    schedule: dict[str, Any]


class Experiment:
    """The document and its runs; `save` after every change. Several threads may change different entries."""

    def __init__(self, directory: Path, document: dict[str, Any], runs: list[Entry]) -> None:
        self.directory = directory
        self.document = document
        self.runs = runs
        self._lock = threading.Lock()

    @classmethod
    def create(cls, directory: Path, facts: Mapping[str, Any]) -> Experiment:
        document = {"format": FORMAT, **facts, "started": now(), "ended": None, "status": "running"}
        document["stages"] = {stage: {"status": "waiting"} for stage in STAGES}
        document["files"] = {}
        experiment = cls(directory, document, [])
        with contextlib.suppress(OSError), (directory / RESERVE).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        return experiment

    @classmethod
    def load(cls, directory: Path, shown: Path | None = None) -> Experiment:
        """LabError where there is none, or one of another version; `shown` stands for the directory in messages."""
        path = directory / DOCUMENT
        try:
            document = orjson.loads(read_bytes(path))
        except (FileNotFoundError, NotADirectoryError):
            if directory.is_dir() and {path.name for path in directory.iterdir()} <= BEGINNING:
                raise LabError(f"{directory}: the experiment had not begun when it ended: run it once more") from None
            raise LabError(
                f"{directory}: there is no experiment: name a directory of results/ with {DOCUMENT}"
            ) from None
        except OSError as error:
            raise LabError(f"{path}: {error.strerror}") from None
        except orjson.JSONDecodeError as error:
            raise LabError(f"{path}: is damaged ({error}): {AGAIN}") from None
        if why := records.refusal(document, shown or directory):
            raise LabError(why)
        try:
            checked.check(document, STAGES)
            runs = list(plans.read_typed(tuple[Entry, ...], document.pop("runs"), "runs"))
            for entry in runs:
                checked.check_directory(entry.directory)
        except ValueError as error:
            raise LabError(f"{path}: not an experiment: {error}: {AGAIN}") from None
        return cls(directory, document, runs)

    @property
    def name(self) -> str:
        return str(self.document["scenario"])

    @property
    def virtual(self) -> bool:
        return bool(self.document["clock"] == "virtual")

    def place(self, entry: Entry) -> Path:
        return self.directory / entry.directory

    def save(self) -> None:
        with self._lock:
            document = {**self.document, "runs": [dataclasses.asdict(entry) for entry in self.runs]}
            text = orjson.dumps(document, option=_OPTIONS)
            new = self.directory / f".{DOCUMENT}"
            try:
                new.write_bytes(text)
            except OSError:
                (self.directory / RESERVE).unlink(missing_ok=True)
                new.write_bytes(text)
            new.replace(self.directory / DOCUMENT)

    def finish(self, status: State) -> None:
        self.document |= {"status": status, "ended": now()}
        self.save()
        (self.directory / RESERVE).unlink(missing_ok=True)

    def add(self, job: Job) -> None:
        """A run that is to be executed; saved with the next `save`."""
        place = self.place(job.entry)
        place.mkdir(parents=True, exist_ok=True)
        (place / "plan.json").write_bytes(plans.to_json(job.plan))
        (place / "program.json").write_bytes(job.program.to_json())
        (place / "schedule.json").write_bytes(orjson.dumps(job.schedule, option=_OPTIONS))
        for name in INPUTS:
            self.record(place / name)
        self.runs.append(job.entry)

    @property
    def files(self) -> dict[str, str]:
        """Of each file that the document vouches for, by its path in the directory: the SHA-256."""
        found: dict[str, str] = self.document["files"]
        return found

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
            schedule = plans.read_typed(dict[str, Any], orjson.loads(read_bytes(place / "schedule.json")), "schedule")
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
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise LabError(f"{directory}: {error.strerror}: name a directory of results/") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"{directory}: another `ewan run` is at work there: wait for its end") from None
        yield
    finally:
        os.close(descriptor)


def now() -> str:
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
