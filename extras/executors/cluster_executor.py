"""Runs of the virtual clock on other machines' cores: they go out as units, and their results come back.

In: an experiment's runs, the workers that a file for --cluster describes. Out: each run's entry with its status, saved
as it ends, as when this machine executes them (`execution.py`)."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ewan.experiments.engine import execution, unit
from ewan.experiments.engine.executor import ThisMachine
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.forecast import Forecast
from ewan.experiments.engine.progress import Board
from ewan.experiments.engine.stored_runs import ResultKeeper
from ewan.experiments.engine.unit import RunAnswer, Versions
from ewan.extras.executors import dask_workers, reading
from ewan.extras.executors.dask_workers import WorkerPool
from ewan.extras.executors.file import Workers
from ewan.extras.executors.work_queue import QueuedRun, WorkQueue
from ewan.labs import trust
from ewan.labs.context import Context
from ewan.labs.record.experiment import Entry

PLACE = ".workers"
"""In the experiment's directory: certificates and the logs of batch jobs."""
ROUNDS = 4
"""So often each worker is given something to do at least, so that none of them is idle for long at the end."""


class ClusterExecutor:
    """An executor whose workers are started when the first run needs them, and are gone after the context.

    Labs are verified here, and runs are forecast for this machine, which is taken for what they take there.
    """

    here = True

    def __init__(self, workers: Workers, context: Context) -> None:
        self._workers, self._context = workers, context
        self._this = ThisMachine(context)
        self._fleet: WorkerPool | None = None
        self._place: Path | None = None
        self._keep_logs = False
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> ClusterExecutor:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()
        if self._place is None:
            return
        shutil.rmtree(self._place / "keys", ignore_errors=True)
        if not self._keep_logs or not any(path.is_file() for path in self._place.rglob("*")):
            shutil.rmtree(self._place, ignore_errors=True)

    def ready(self) -> tuple[Versions, str]:
        """See `Executor`."""
        return self._this.ready()

    def execute(
        self, experiment: Experiment, entries: Sequence[Entry], keeping: ResultKeeper, workers: int, wall: Forecast
    ) -> None:
        """See `Executor`. LabError where there are no workers that could; DiskFullError where results have no room."""
        fleet = self._started(experiment)
        forecast_ns = {entry.number: wall.run_ns(entry) for entry in entries}
        expected_ns = sum(entry.expected_ns for entry in entries)
        board = Board("execution", len(entries), expected_ns, fleet.at_once, forecast_ns)
        by_number = {entry.number: entry for entry in entries}

        def runs() -> Iterator[QueuedRun]:
            for entry in entries:
                if not execution.starts(experiment, entry, board, keeping):
                    continue
                experiment.forget(entry)
                yield QueuedRun(entry.number, self._unit(experiment, entry), forecast_ns[entry.number])

        def ended(run: QueuedRun, packed: RunAnswer) -> None:
            entry = by_number[run.number]
            board.begin(entry.number, entry.expected_ns, packed.wall_ns)
            try:
                execution.received(experiment, entry, packed, keeping)
            finally:
                board.end(entry.number)

        store = None if keeping.place is None else str(keeping.place.absolute())
        tell = self._context.reporter.tell
        self._keep_logs = True
        with board.shown(self._context.reporter):
            sharing = WorkQueue(self._workers, fleet, self._this.tools, store, tell, fresh=keeping.fresh)
            sharing.provide()
            sharing.go(runs(), ended, max(len(entries) // (ROUNDS * fleet.at_once), 1))
        self._keep_logs = any(entry.status == "failed" for entry in entries)

    def _started(self, experiment: Experiment) -> WorkerPool:
        if self._fleet is None:
            begun, reporter = time.monotonic(), self._context.reporter
            self._place, self._keep_logs = (experiment.directory / PLACE).absolute(), True
            with reporter.progress(f"starting workers ({self._workers.engine})"):
                self._fleet = self._stack.enter_context(dask_workers.started(self._workers, self._place))
            shown = f": {self._fleet.dashboard} shows what they do" if self._fleet.dashboard else ""
            took = f"{time.monotonic() - begun:.1f} s"
            reporter.tell(f"workers by {self._workers.file.name}, {self._fleet.at_once} at once ({took}){shown}")
        return self._fleet

    def _unit(self, experiment: Experiment, entry: Entry) -> unit.Unit:
        return unit.unit(
            experiment.contents(entry),
            self._this.tools,
            entry.expected_ns,
            experiment.name,
            experiment.directory.name,
            entry.name,
        )


def executor(context: Context, file: Path) -> ClusterExecutor:
    """The workers that a file describes. The user is asked to trust files of others that decide which programs are
    executed.

    LabError where Dask is not installed, DescriptionError where the file cannot be read."""
    dask_workers.check()
    workers = reading.load(file)
    for each in (file, *([workers.ssh_config] if workers.ssh_config else [])):
        trust.ask_for_file(context, each)
    return ClusterExecutor(workers, context)
