"""The fourth stage: runs, in simulated time on all cores, or live one after the other in labs that are up.

In: runs and where they leave their results. Out: each run's entry with its outcome, saved as it ends. Runs of
the virtual clock are taken from the store where they are there. A run that fails stops no other; a full disk and Ctrl-C
stop all, and what has ended is kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ewan.experiments.engine import outcome, source, unit
from ewan.experiments.engine.deployment import Deployment
from ewan.experiments.engine.experiment import Experiment, Job
from ewan.experiments.engine.forecast import NOTHING, Forecast
from ewan.experiments.engine.progress import Board
from ewan.experiments.engine.stored_runs import ResultKeeper
from ewan.experiments.engine.unit import Tools
from ewan.generator import records
from ewan.labs import clock
from ewan.labs.base import writing
from ewan.labs.base.units.shown import about
from ewan.labs.context import Context
from ewan.labs.record import disturbances
from ewan.labs.record.experiment import Entry
from ewan.labs.rundir import DiskFullError, is_full
from ewan.labs.runtime import cpu
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.progress import RunProgress
from ewan.labs.runtime.sweep import sweep
from ewan.labs.runtime.virtual import begins_ns as begins_at


def in_virtual(
    context: Context,
    experiment: Experiment,
    entries: Sequence[Entry],
    workers: int,
    keeping: ResultKeeper,
    tools: Tools,
    wall: Forecast = NOTHING,
) -> None:
    """Executes runs in the virtual clock on this machine, so many at once; `wall` forecasts the time of each.

    Raises DiskFullError, and KeyboardInterrupt when all that are at work have been ended."""
    own = source.folder(experiment.directory)
    tools = replace(tools, folders=(Path.cwd(), *(() if own is None else (own,))))
    forecast_ns = {entry.number: wall.run_ns(entry) for entry in entries}
    board = Board("execution", len(entries), sum(entry.expected_ns for entry in entries), workers, forecast_ns)

    def job(entry: Entry) -> Callable[[threading.Event], None]:
        def run(stop: threading.Event) -> None:
            if not stop.is_set() and starts(experiment, entry, board, keeping):
                attempt(experiment, entry, board, lambda job: _virtual(experiment, job, board, keeping, tools, stop))

        return run

    with board.shown(context.reporter, held_up=cpu.crowded):
        sweep((job(entry) for entry in entries), workers)


def starts(experiment: Experiment, entry: Entry, board: Board, keeping: ResultKeeper) -> bool:
    """Return whether a run whose turn has come is to be executed. A run that was not written yet is written now, and
    completed from the store if that has its results. Raises DiskFullError."""
    if entry.written:
        return True
    try:
        experiment.write(entry)
        if not keeping.meet(entry):
            return True
    except LabError as error:
        entry.status, entry.error = "failed", str(error)
    except OSError as error:
        if is_full(str(error)):
            raise _full(experiment) from None
        raise
    board.begin(entry.number, 0)
    board.end(entry.number)
    experiment.save_run(entry)
    return False


def from_store(
    context: Context,
    experiment: Experiment,
    entries: Sequence[Entry],
    workers: int,
    keeping: ResultKeeper,
    *,
    executes: bool = True,
) -> None:
    """Takes runs from the store that are there, and prints their number; `executes`: they could be executed instead.
    Raises DiskFullError."""
    known, total = keeping.known(entries), len(entries)
    if not known:
        return
    saved = {"wall_ns": 0, "runs": 0}
    board, lock = Board("from the store", len(known), 0, workers), threading.Lock()

    def job(entry: Entry) -> Callable[[threading.Event], None]:
        def run(stop: threading.Event) -> None:
            if stop.is_set():
                return
            board.begin(entry.number, 0)
            try:
                told = keeping.take(entry)
            except OSError as error:
                if is_full(str(error)):
                    raise _full(experiment) from None
                raise
            finally:
                board.end(entry.number)
                experiment.save_run(entry)
            if told is not None:
                with lock:
                    saved["wall_ns"] += told.origin.wall_ns
                    saved["runs"] += 1

        return run

    with board.shown(context.reporter):
        sweep((job(entry) for entry in known), workers)
    if not saved["runs"]:
        return
    work = about(saved["wall_ns"], "time", 3)
    saves = f"which saves {work} of work: --again measures them again" if executes else f"{work} of work"
    context.reporter.tell(f"{saved['runs']} of {total} runs are in the store ({keeping.place}), {saves}")


def received(experiment: Experiment, entry: Entry, packed: unit.RunAnswer, keeping: ResultKeeper) -> None:
    """Takes the result of a run that was executed elsewhere into its entry. Raises DiskFullError."""
    entry.status, entry.error = packed.status, packed.error
    try:
        if packed.status == "complete" and not keeping.receive(entry, packed.key, packed.entry):
            entry.status, entry.error = "failed", "what the worker kept in the store is not there: run it once more"
    except OSError as error:
        entry.status, entry.error = "incomplete", str(error)
        if is_full(str(error)):
            raise _full(experiment) from None
        raise
    finally:
        experiment.save_run(entry)


def in_live(context: Context, experiment: Experiment, entries: Sequence[Entry], deployment: Deployment) -> None:
    """Executes runs one after the other, each in the live lab of its plan.

    Raises DiskFullError, and KeyboardInterrupt when the run at work has been ended.
    """
    board = Board("execution", len(entries), sum(entry.expected_ns for entry in entries))
    with board.shown(context.reporter, live=True):
        for entry in entries:
            attempt(experiment, entry, board, lambda job: _live(context, experiment, job, deployment))
            if entry.error == outcome.INTERRUPTED:
                raise KeyboardInterrupt


def attempt(experiment: Experiment, entry: Entry, board: Board, run: Callable[[Job], str | None]) -> None:
    """Execute one run and record its status in its entry. `run` returns the reason why it is not complete; None: it is
    complete."""
    board.begin(entry.number, entry.expected_ns)
    try:
        experiment.forget(entry)
        entry.error = run(experiment.job(entry))
        entry.status = "incomplete" if entry.error else "complete"
    except (LabError, OSError) as error:
        entry.status, entry.error = "failed", str(error)
        if is_full(str(error)):
            entry.status = "incomplete"
            raise _full(experiment) from None
    finally:
        board.end(entry.number)
        experiment.save_run(entry)
    if entry.error is not None and is_full(entry.error):
        raise _full(experiment)


def _full(experiment: Experiment) -> DiskFullError:
    return DiskFullError(writing.no_space(experiment.directory))


def _virtual(
    experiment: Experiment, job: Job, board: Board, keeping: ResultKeeper, tools: Tools, stop: threading.Event
) -> str | None:
    begins_ns = begins_at(job.plan)

    def show(progress: RunProgress) -> None:
        passed_ns = None if progress.virtual_ns is None else max(progress.virtual_ns - begins_ns, 0)
        board.move(job.entry.number, replace(progress, virtual_ns=passed_ns))

    place = experiment.place(job.entry)
    with experiment.kept(job.entry):
        ended = unit.run(job.plan, job.program, job.schedule, place, tools, stop, show)
    if ended.error != outcome.INTERRUPTED:
        keeping.keep(job.entry, ended)
    return ended.error


def _live(context: Context, experiment: Experiment, job: Job, deployment: Deployment) -> str | None:
    deployment.have(job.program.modules or ())
    deployment.ensure(job.plan)
    place, started, begun = experiment.place(job.entry), unit.now(), time.monotonic_ns()
    try:
        with experiment.kept(job.entry):
            deployment.batch(job.plan, job.program, place)
    finally:
        _mark(context, job.entry, place)
    clock.write_wall(place, started, {"wall_ns": time.monotonic_ns() - begun})
    return outcome.judge(place, job.program)


def _mark(context: Context, entry: Entry, place: Path) -> None:
    """Records the seconds in which links left their tolerance, in the entry and in a printed line; also of a run that
    failed."""
    try:
        watched = records.disturbed(place)
    except (OSError, ValueError) as error:
        context.reporter.tell(f"warning: run {entry.number}: what disturbed it is not known: {error}")
        return
    without = records.lost_seconds(place)
    if watched is None:
        entry.disturbed = without or entry.disturbed
        return
    found, until_ns = watched
    entry.disturbed = sorted({*disturbances.seconds(found), *without})
    if line := disturbances.summary(found, until_ns):
        context.reporter.tell(f"run {entry.number}: {line}")
