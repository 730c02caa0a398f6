"""A worker on any machine: it executes units of runs, one after the other.

In: units, the paths of kernel and node binary, the store if the worker sees it. Out: the result of each unit. A unit's
key is compared with that of this machine's own versions first, so that a machine with another version of anything that
decides its results executes none."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ewan.experiments.engine import unit
from ewan.experiments.engine.unit import RunAnswer, Tools, Unit
from ewan.experiments.store import Store
from ewan.labs.base import ownership
from ewan.labs.base.product import extra
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.writing import anew, beside
from ewan.labs.runtime.base import LabError

ENDS = "EWAN_WORKER_ENDS"
"""The variable of a job's environment that holds the end of its walltime, in seconds since 1970."""
MARGIN = 1.25
"""So much longer than forecast may a run take, and still end within its walltime."""
ENDING_S = 10
"""Before the end: results are on their way."""

_stops: dict[str, threading.Event] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """Units that a worker executes one after the other, none of which waits for another. `tools`: by their paths there,
    or None: those that were sent, of these checksums. `store`: where the worker keeps results; None: it sends them
    back. `fresh`: it looks for none there."""

    study: str
    units: tuple[Unit, ...]
    forecast_ns: tuple[int, ...]
    tools: tuple[str, str] | None
    checksums: tuple[str, str]
    store: str | None
    fresh: bool


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The results of the units of a task, in their order; an entry is left out where it is in the store. Units that are
    missing at the end were not begun, since this worker ends before they would."""

    results: tuple[RunAnswer, ...]
    worker: str
    error: str | None = None
    """The reason why this worker can execute none of them."""


def work(task: WorkerTask) -> TaskResult:
    """Executes a task; runs that are in the store by now are not executed again."""
    from distributed import get_worker

    results: list[RunAnswer] = []
    try:
        tools = _tools(task)
        store = None if task.store is None else Store(Path(task.store))
        for each, forecast_ns in zip(task.units, task.forecast_ns, strict=True):
            _check(each, tools)
            if store is not None and not task.fresh and store.has(each.key):
                results.append(RunAnswer(each.key, "complete", None, None, 0, 0))
            elif _has_time(forecast_ns):
                results.append(_kept(_execute(task.study, each, tools), store))
            else:
                break
    except (LabError, OSError) as error:
        return TaskResult(tuple(results), get_worker().address, str(error))
    return TaskResult(tuple(results), get_worker().address)


def stop(study: str) -> None:
    """Ends the runs of a study that are at work on this worker, and begins no further ones."""
    _stopped(study).set()


def provide(contents: Sequence[bytes]) -> None:
    """Keeps the kernel and the node binary that were sent, by their checksums."""
    for content in contents:
        path = _sent(hashlib.sha256(content).hexdigest())
        if path.is_file() and hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(content).digest():
            continue
        new = beside(path)
        with anew(new) as file:
            file.write(content)
        new.chmod(0o700)
        new.replace(path)


def _sent(checksum: str) -> Path:
    return _own("tools") / checksum


def _own(kind: str) -> Path:
    """This user's directory for files of a kind, in the machine's own temporary directory, which is usually not on a
    network."""
    return ownership.private_directory(_above(tempfile.gettempdir()) / kind)


@functools.cache
def _above(place: str) -> Path:
    """A new directory, until this process ends, where the usual name is taken by another user's file."""
    try:
        return ownership.private_directory(Path(place) / f"ewan-{os.getuid()}")
    except PermissionError:
        made = Path(tempfile.mkdtemp(prefix="ewan-", dir=place))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return made


def _tools(task: WorkerTask) -> Tools:
    if task.tools is not None:
        return Tools(Path(task.tools[0]), Path(task.tools[1]))
    paths = [_sent(checksum) for checksum in task.checksums]
    for path, checksum in zip(paths, task.checksums, strict=True):
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != checksum:
            raise LabError(f"{path}: is not what was sent")
    kernel, binary = paths
    return Tools(kernel, binary)


def _check(each: Unit, tools: Tools) -> None:
    """LabError where a version on this machine that decides results differs from that of the machine that made the
    unit."""
    if unit.key_of_unit(each.plan, each.program, each.schedule, tools.versions) == each.key:
        return
    raise LabError(
        f"{os.uname().nodename} has another version of this project, of Python's packages, or of a program that the "
        f"runs start: bring it to the same commit and run {extra('cluster', 'make setup-cluster')} there"
    )


def _has_time(forecast_ns: int) -> bool:
    """Return whether a run would end before this worker's job must; a run of unknown length begins."""
    ends = os.environ.get("SLURM_JOB_END_TIME") or os.environ.get(ENDS)
    if not ends or not ends.isdigit():
        return True
    return time.time() + wanted_s(forecast_ns) < int(ends)


def wanted_s(forecast_ns: int) -> float:
    """The time (s) that a job must last for a run that is forecast to take so long."""
    return MARGIN * forecast_ns / NS_PER_SECOND + ENDING_S


def _execute(study: str, each: Unit, tools: Tools) -> RunAnswer:
    try:
        return unit.execute(each, tools, _own("runs"), _stopped(study))
    except (LabError, OSError) as error:
        return RunAnswer(each.key, "failed", f"{os.uname().nodename}: {error}", None, 0, 0)


def _kept(packed: RunAnswer, store: Store | None) -> RunAnswer:
    """Puts a result into the store and leaves it out of the answer; where the store takes nothing, the answer has
    it."""
    if store is None or packed.entry is None:
        return packed
    with contextlib.suppress(OSError):
        store.put_packed(packed.key, packed.entry)
        return replace(packed, entry=None)
    return packed


def _stopped(study: str) -> threading.Event:
    with _lock:
        return _stops.setdefault(study, threading.Event())
