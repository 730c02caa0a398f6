"""An experiment's directory and its document, experiment.json: its runs, their progress, its machine.

In: runs with their plans and schedules. Out: DIR/experiment.json, DIR/runs/NNN/{plan,program,schedule}.json, which are
all that execution needs: an experiment is resumed or repeated without its scenario, unless it has so many runs that
these files are written as each run is about to start. The document is replaced in one step at each stage, and the
status of each run meanwhile is added to a journal beside it, so that a reader, and an engine that goes on after a
crash, finds all of it whole. It is there when all runs are in it, and holds the SHA-256 of every file that is read
again: of a run's inputs from the start, of its results when its tables are made."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from ewan.experiments.engine.unit import now, results
from ewan.labs import plan as plans
from ewan.labs import rundir
from ewan.labs.base import interrupt
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.errors import UserError
from ewan.labs.base.values import LONGEST_NAME, NAME
from ewan.labs.base.writing import anew, trouble
from ewan.labs.plan import Plan
from ewan.labs.record import experiment as records
from ewan.labs.record import journal
from ewan.labs.record import schedule as schedules
from ewan.labs.record.experiment import (
    DOCUMENT,
    INPUTS,
    LOCK,
    Clock,
    Entry,
    ExperimentDocument,
    ExperimentOrigin,
    State,
)
from ewan.labs.record.journal import Change, LabChange, RunChange
from ewan.labs.record.schedule import NamedSchedule
from ewan.labs.runtime import program as programs
from ewan.labs.runtime import run_leftovers
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.locks import held
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.run_directory import occupied

AGAIN = "`ewan exp rerun` of its archive runs it once more"

READS_S = 0.1
"""For others, who hold the lock while they look whether an engine does."""
# Room for the last experiment.json where the results have filled the disk.
RESERVE = ".reserve"
RESERVE_BYTES = 1 << 20
SOURCES = "sources"
"""The folder that has the sources of congestion controls, for readers: runs execute those of their programs."""
# What is in the directory before the document.
BEGINNING = {"scenario.yaml", "settings.json", "runs", SOURCES, RESERVE, LOCK, rundir.ROOM, f".{DOCUMENT}"}


@dataclass(frozen=True, slots=True)
class Job:
    """The files that a run executes."""

    entry: Entry
    plan: Plan
    program: Program
    schedule: NamedSchedule

    @property
    def contents(self) -> dict[str, bytes]:
        """The bytes of these three, by the names of their files."""
        made = plans.to_json(self.plan), self.program.to_json(), schedules.to_json(self.schedule)
        return dict(zip(INPUTS, made, strict=True))


Make = Callable[[Entry], Job]
"""A function that makes the job of a run that was not written yet, from its entry."""


class Experiment:
    """The document and its runs. Several threads may change different entries.

    After a change of one run `save_run`, of the lab that is up `save_lab`, of anything else `save`, which takes as long
    as there are runs. `make`: where it has runs that are not written yet.
    """

    def __init__(self, directory: Path, document: ExperimentDocument) -> None:
        self.directory = directory
        self.document = document
        self.make: Make | None = None
        self._journal = journal.Journal(directory)
        self._of_runs = journal.of_runs(document.files)
        self._checked: set[str] | None = None
        self._lock = threading.Lock()

    @classmethod
    def create(cls, directory: Path, origin: ExperimentOrigin, clock: Clock, *, unverified: bool = False) -> Experiment:
        """A new one without runs, in a directory that is there; its document is written with the first `save`."""
        experiment = cls(directory, records.begin(origin, clock, unverified, now()))
        with contextlib.suppress(OSError), anew(directory / RESERVE) as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        return experiment

    @classmethod
    def load(cls, directory: Path, shown: Path | None = None) -> Experiment:
        """LabError where there is none, or one of another version; `shown` stands for the directory in messages."""
        path = directory / DOCUMENT
        try:
            document = journal.load(directory, shown)
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
        """Return whether its runs are in the virtual clock."""
        return self.document.clock == "virtual"

    @property
    def runs(self) -> list[Entry]:
        """The runs in the order of their numbers."""
        return self.document.runs

    def place(self, entry: Entry) -> Path:
        """The directory of a run."""
        return self.directory / entry.directory

    def save(self) -> None:
        """Replaces experiment.json in one step; the reserve makes room where the disk is full."""
        with interrupt.deferred(), self._lock:
            text = records.to_json(self.document)
            path, new = self.directory / DOCUMENT, self.directory / f".{DOCUMENT}"
            try:
                self._with_reserve(lambda: _put(new, text))
                new.replace(path)
            except OSError as error:
                with contextlib.suppress(OSError):
                    new.unlink()
                raise OSError(error.errno, error.strerror, str(path)) from None
            self._journal.begin(text)

    def save_run(self, entry: Entry) -> None:
        """Write the status of a run; it is in the document from the next `save` on."""
        self._add(RunChange(run=entry, files={name: self.files[name] for name in self._recorded(entry)}))

    def save_lab(self) -> None:
        """The same for the live lab that is up."""
        document = self.document
        self._add(LabChange(deployed=document.deployed, runtime=document.runtime, host=document.host))

    def _add(self, change: Change) -> None:
        if not self._journal.begun:
            self.save()
            return
        with interrupt.deferred(), self._lock:
            self._with_reserve(lambda: self._journal.add(change))

    def _with_reserve(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError:
            with contextlib.suppress(OSError):
                (self.directory / RESERVE).unlink(missing_ok=True)
            write()

    def finish(self, status: State) -> None:
        """The experiment's last state."""
        self.document.status, self.document.ended = status, now()
        self.save()
        (self.directory / RESERVE).unlink(missing_ok=True)

    def add(self, job: Job) -> None:
        """A run that is to be executed; saved with the next `save`, or `save_run`."""
        self._write(job)
        self.runs.append(job.entry)

    def write(self, entry: Entry) -> None:
        """Makes and writes the inputs of a run that were not written yet; saved with the next `save`, or `save_run`.

        LabError where it cannot be made, or differs from the inputs that were checked before the first run started.
        Raises OSError."""
        if self.make is None:
            raise LabError(self._unwritten(entry))
        try:
            job = self.make(entry)
        except UserError as error:
            raise LabError(str(error)) from None
        made = job.entry
        same = (made.name, made.parameters, made.family) == (entry.name, entry.parameters, entry.family)
        if not same:
            raise LabError(
                f"run {entry.number}: its lab is not the lab that was checked when the experiment began: its scenario, "
                "a file that it reads or ewan has changed since: run the scenario once more"
            )
        for name in job.program.sources.keys() - self._sources():
            raise LabError(
                f"run {entry.number}: the source of {name.rpartition('-')[0]} has changed since the experiment began: "
                "run the scenario once more"
            )
        self._write(job)
        entry.expected_ns, entry.plan_sha256 = made.expected_ns, made.plan_sha256

    def _sources(self) -> set[str]:
        """The names of the sources that were checked before the first run started."""
        if self._checked is None:
            jobs = (self.job(entry) for entry in self.runs if entry.written)
            self._checked = {name for job in jobs for name in job.program.sources}
        return self._checked

    def _write(self, job: Job) -> None:
        place = self.place(job.entry)
        place.mkdir(parents=True, exist_ok=True)
        for name, content in job.contents.items():
            _put(place / name, content)
            self._vouch(f"{job.entry.directory}/{name}", hashlib.sha256(content).hexdigest())

    def _unwritten(self, entry: Entry) -> str:
        return (
            f"run {entry.number}: it had not been written when {self.directory} was left: "
            f"`ewan exp resume {self.directory}` goes on with it"
        )

    @property
    def files(self) -> Mapping[str, str]:
        """The SHA-256 of each file that the document vouches for, by its path in the directory."""
        return self.document.files

    def record(self, path: Path) -> None:
        """The document vouches for a file's present bytes; saved with the next `save`."""
        self._vouch(path.relative_to(self.directory).as_posix(), records.checksum(path))

    def disown(self, name: str) -> None:
        """The document no longer vouches for a file, if it did; `name`: its path in the directory."""
        self.document.files.pop(name, None)
        for run in journal.of_runs([name]):
            self._of_runs.get(run, {}).pop(name, None)

    def _vouch(self, name: str, checksum: str) -> None:
        self.document.files[name] = checksum
        for run, names in journal.of_runs([name]).items():
            self._of_runs.setdefault(run, {}).update(names)

    def record_results(self, entry: Entry) -> None:
        """All that a run left and that stays."""
        for _, path in results(self.place(entry)):
            self.record(path)

    def record_known(self, entry: Entry, checksums: Mapping[str, str]) -> None:
        """The same of files whose SHA-256 is known, by their names in the run's directory."""
        for name, checksum in checksums.items():
            self._vouch(f"{entry.directory}/{name}", checksum)

    def _recorded(self, entry: Entry) -> list[str]:
        """The names of a run's files that the document vouches for, sorted."""
        return sorted(self._of_runs.get(entry.directory, ()))

    def check(self) -> None:
        """LabError for the first file whose bytes are not those that were recorded."""
        self._check(sorted(self.files))

    def check_results(self, entry: Entry) -> None:
        """Check the results of a run against their checksums; `job` checks its inputs."""
        self._check(name for name in self._recorded(entry) if name.rpartition("/")[2] not in INPUTS)

    def _check(self, names: Iterable[str]) -> None:
        for name in names:
            if why := records.damage(self.directory, name, self.files):
                raise LabError(why)

    def job(self, entry: Entry) -> Job:
        """The stored files that a run executes; LabError where they are missing or damaged."""
        contents = self.contents(entry)
        try:
            plan = plans.from_json(contents["plan.json"])
            program = programs.from_json(contents["program.json"], entry.expected_ns)
            schedule = schedules.from_json(contents["schedule.json"])
        except ValueError as error:
            raise LabError(f"run {entry.number}: {self.place(entry)}: is damaged ({error}): {AGAIN}") from None
        return Job(entry, plan, program, schedule)

    def contents(self, entry: Entry) -> dict[str, bytes]:
        """The bytes of a run's inputs, by the names of their files; LabError as `job`."""
        if not entry.written:
            raise LabError(self._unwritten(entry))
        return {name: self._input(entry, name) for name in INPUTS}

    def _input(self, entry: Entry, name: str) -> bytes:
        """The bytes of a file that a run executes, read once; LabError where they are not those that were written."""
        try:
            content = records.intact(self.directory, f"{entry.directory}/{name}", self.files)
        except OSError as error:
            raise LabError(f"run {entry.number}: {error.filename}: {error.strerror}: {AGAIN}") from None
        except DocumentError:
            content = None
        if content is None:
            raise LabError(f"run {entry.number}: {self.place(entry) / name}: is damaged or missing: {AGAIN}")
        return content

    def forget(self, entry: Entry) -> None:
        """Removes the results of an earlier attempt, so that it is run as the first time."""
        with occupied(self.place(entry)):
            run_leftovers.clear(self.place(entry), INPUTS)
        kept = {f"{entry.directory}/{name}" for name in INPUTS}
        for name in self._recorded(entry):
            if name not in kept:
                self.disown(name)
        entry.begin_anew()

    @contextlib.contextmanager
    def kept(self, entry: Entry) -> Iterator[None]:
        """Keeps the files that a run executes as they are: they are restored afterwards. LabError where the run's
        commands changed them."""
        contents = self.contents(entry)
        try:
            yield
        except BaseException:
            self._restore(entry, contents)
            raise
        if changed := self._restore(entry, contents):
            raise LabError(f"one of its commands changed or removed {changed[0]}, of what the run executes")

    def _restore(self, entry: Entry, contents: Mapping[str, bytes]) -> list[str]:
        """Writes changed files of these again and returns their names."""
        place = self.place(entry)
        changed = [name for name in contents if records.damage(self.directory, f"{entry.directory}/{name}", self.files)]
        for name in changed:
            run_leftovers.remove_tree(place / name)  # whatever is there now
            _put(place / name, contents[name])
        return changed

    def wanting(self) -> list[Entry]:
        """Runs that have not come to their end."""
        return [entry for entry in self.runs if entry.status != "complete"]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One engine in a directory at a time; the lock ends with its process."""
        with locked(self.directory):
            yield


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock the directory; LabError where it does not exist, or another engine is at work in it. A user who can only
    read it can neither lock nor change it."""
    rundir.check(directory)
    if directory.is_dir() and not os.access(directory, os.W_OK):
        yield
        return
    with contextlib.ExitStack() as stack:
        refusal = f"{directory}: another `ewan run` is at work there: wait for its end"
        try:
            stack.enter_context(held(directory / LOCK, READS_S, refusal))
        except OSError as error:
            raise LabError(trouble(error, directory, "name a directory of results/")) from None
        yield


def _put(path: Path, content: bytes) -> None:
    with anew(path) as file:
        file.write(content)


_SEED = re.compile(rb'"seed": [^,\n]+')
"""In a plan's bytes, in which each key has a line. Within a string its quotes would have backslashes."""


def family(plan: bytes) -> str:
    """SHA-256 of a plan without its seeds, to which a certificate belongs. `plan`: its bytes."""
    return hashlib.sha256(orjson.dumps(orjson.loads(_SEED.sub(b'"seed": 0', plan)))).hexdigest()
