"""A run of the virtual clock as a unit: all that it needs in one value, and all that it leaves in another.

In: the bytes of a run's plan, program and schedule; a virtual kernel, a node binary and a directory to work in. Out:
its outcome, its tables, and the entry that the store keeps of it. The experiment on this machine, a shard of it
and a worker of a cluster execute a run by this one module; nothing here knows of an experiment's directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ewan.experiments import store
from ewan.experiments.engine import outcome
from ewan.experiments.store import entry, key
from ewan.generator import records
from ewan.labs import clock
from ewan.labs import plan as plans
from ewan.labs.plan import Plan
from ewan.labs.record import schedule as schedules
from ewan.labs.record.disturbances import TABLES as DISTURBANCES
from ewan.labs.record.experiment import INPUTS, Status, checksum_once, hidden
from ewan.labs.record.schedule import Schedule
from ewan.labs.runtime import memory
from ewan.labs.runtime import program as run_programs
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.run_directory import occupied
from ewan.labs.runtime.run_leftovers import remove_tree
from ewan.labs.runtime.virtual import Cost, Show, VirtualRuntime

# What a run leaves and no result is: sources of its tables, and what only its making needed.
NOT_KEPT = (
    *("links.csv", "device.csv", "classes.csv", "drops.csv", *(f"{table}.csv" for table in DISTURBANCES)),
    *("progress", "console.log", "root", "uml", "controller"),
)
_KEY_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Versions:
    """SHA-256 of the virtual kernel and of the node binary that results are of."""

    kernel: str
    binary: str


@dataclass(frozen=True, slots=True)
class Tools:
    """The virtual kernel and the node binary that execute runs on this machine. `folders`: those that commands may read
    there, of which the first is their current directory; None: the current directory."""

    kernel: Path
    binary: Path
    folders: tuple[Path, ...] | None = None

    @property
    def versions(self) -> Versions:
        """Each file is read once in this process."""
        return Versions(checksum_once(self.kernel), checksum_once(self.binary))


@dataclass(frozen=True, slots=True)
class Unit:
    """A run that can be executed anywhere: no paths, and all of it can be pickled. `plan`, `program` and `schedule` are
    JSON; `schedule` has only the part that tables are made by. `memory_bytes`: the memory of its guest; `expected_ns`:
    about how long it takes of virtual time. `scenario`, `experiment` and `name` go into its entry and are not in the
    key."""

    key: str
    plan: bytes
    program: bytes
    schedule: bytes
    expected_ns: int
    memory_bytes: int
    scenario: str
    experiment: str
    name: str


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run. `error` in one line; None: it is complete. `cost`: None where it could not be executed."""

    status: Status
    error: str | None
    started: str
    cost: Cost | None

    @property
    def complete(self) -> bool:
        """All of it was measured, and the store may keep it."""
        return self.status == "complete"


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """The answer of a worker: the status of a run, and the store's entry; None where the run is not complete."""

    key: str
    status: Status
    error: str | None
    entry: bytes | None
    wall_ns: int
    cpu_ns: int


def key_of(contents: Mapping[str, bytes], versions: Versions) -> str:
    """The key of a run. `contents`: the bytes of its plan, program and schedule, by the names of their files."""
    return key_of_unit(*_without_names(contents), versions)


def key_of_unit(plan: bytes, program: bytes, schedule: bytes, versions: Versions) -> str:
    """The key of a unit, whose schedule is without names."""
    digests = [hashlib.sha256(content).hexdigest() for content in (plan, program, schedule)]
    return key.of_run(
        plan=digests[0],
        program=digests[1],
        schedule=digests[2],
        kernel=versions.kernel,
        binary=versions.binary,
        tables=key.tables_digest(),
        programs=key.program_checksums(plan, program),
    )


def _without_names(contents: Mapping[str, bytes]) -> tuple[bytes, bytes, bytes]:
    """Plan, program, and the schedule without its names."""
    plan, program, schedule = (contents[name] for name in INPUTS)
    return plan, program, schedules.unnamed_to_json(schedules.from_json(schedule))


def unit(
    contents: Mapping[str, bytes], tools: Tools, expected_ns: int, scenario: str, experiment: str, name: str
) -> Unit:
    """The unit of a run; `contents` as `key_of` has them. ValueError where they are none of a run."""
    plan, program, schedule = _without_names(contents)
    needs = memory.need(plans.from_json(plan), run_programs.from_json(program, expected_ns))
    return Unit(
        key=key_of_unit(plan, program, schedule, tools.versions),
        plan=plan,
        program=program,
        schedule=schedule,
        expected_ns=expected_ns,
        memory_bytes=needs.bytes,
        scenario=scenario,
        experiment=experiment,
        name=name,
    )


def execute(
    work: Unit,
    tools: Tools,
    scratch: Path,
    stop: threading.Event | None = None,
    show: Show = lambda progress: None,
) -> RunAnswer:
    """Runs a unit in an empty directory below `scratch`, which is removed afterwards in any case.

    LabError where it could not be begun, OSError where nothing can be written there: another machine may do better. An
    error of the run itself is in `RunAnswer`; so is an end by `stop`."""
    plan, program = plans.from_json(work.plan), run_programs.from_json(work.program, work.expected_ns)
    scratch.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=f"{work.key[:_KEY_DIGITS]}-", dir=scratch))
    try:
        ended = run(plan, program, schedules.unnamed_from_json(work.schedule), place, tools, stop, show)
        content = None
        if ended.complete:
            files = dict(results(place))
            told = entry.manifest(work.key, origin(ended, work.scenario, work.experiment, work.name), files)
            content = entry.packed(told, files)
        cost = ended.cost
        return RunAnswer(
            work.key, ended.status, ended.error, content, cost.wall_ns if cost else 0, cost.cpu_ns if cost else 0
        )
    finally:
        with contextlib.suppress(LabError), occupied(place):  # a guest that was killed may still write
            pass
        remove_tree(place)


def run(
    plan: Plan,
    program: Program,
    schedule: Schedule,
    place: Path,
    tools: Tools,
    stop: threading.Event | None = None,
    show: Show = lambda progress: None,
) -> RunEnd:
    """Executes a run in the virtual clock and makes its tables, all in `place`, where nothing of an earlier one is.

    LabError and OSError where it could not be executed.
    """
    started = now()
    result = VirtualRuntime(tools.binary, tools.kernel, show=show, folders=tools.folders).run(
        plan, program, place, stop
    )
    clock.write_wall(place, started, clock.cost_of(result))
    if result.interrupted:
        return RunEnd("incomplete", outcome.INTERRUPTED, started, result.cost)
    error = outcome.judge(place, program)
    try:
        why = records.collect(place, schedule, plan.links)
    except ValueError as wrong:
        why = f"its records are not whole: {wrong}"
    error = error or why
    return RunEnd("incomplete" if error else "complete", error, started, result.cost)


def results(place: Path) -> Iterator[tuple[str, Path]]:
    """The files of a run that stay, by their names in its directory; without its inputs and hidden files."""
    for path in place.rglob("*"):
        name = path.relative_to(place)
        source = path.suffix == ".csv" and name.parts[0] == "traffic"
        kept = name.parts[0] not in NOT_KEPT and not source and name.as_posix() not in INPUTS
        if kept and not hidden(name) and path.is_file() and not path.is_symlink():
            yield name.as_posix(), path


def origin(ended: RunEnd, scenario: str, experiment: str, name: str) -> store.EntryOrigin:
    """The origin of a run's entry in the store."""
    cost = ended.cost
    wall_ns, cpu_ns = (cost.wall_ns, cost.cpu_ns) if cost else (0, 0)
    return store.EntryOrigin("run", scenario, experiment, name, ended.started, wall_ns, cpu_ns)


def now() -> str:
    """This moment in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
