"""The fourth stage on other machines' cores: runs go out as units, and what they left comes back into the experiment.

In: runs, the workers that a file for --cluster describes, what the store has. Out: each run's entry with what became of
it, saved as it ends, as when runs are executed here (`execution.py`).
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence

from generator.engine import execution, unit
from generator.engine.experiment import Experiment
from generator.engine.forecast import NOTHING, Forecast
from generator.engine.keeping import Keeping
from generator.engine.progress import Board
from generator.engine.unit import Packed
from generator.workers import starting
from generator.workers.file import Workers
from generator.workers.sharing import Run, Sharing
from generator.workers.starting import Started
from labs.context import Context
from labs.record.experiment import Entry

PLACE = ".workers"
"""In the experiment's directory: certificates and the logs of batch jobs."""


class Elsewhere:
    """Workers for one experiment, started when the first run needs them; `close` ends them."""

    def __init__(self, workers: Workers, experiment: Experiment, context: Context) -> None:
        starting.check()
        self._workers, self._experiment, self._context = workers, experiment, context
        self._fleet: Started | None = None
        self._stack = contextlib.ExitStack()
        self._keep_logs = False

    @property
    def at_once(self) -> int:
        """So many runs."""
        if self._fleet is not None and self._fleet.wanted is None:
            return max(len(self._fleet.client.nthreads()), 1)
        return self._workers.jobs * self._workers.cores * max(len(self._workers.hosts), 1)

    def execute(self, entries: Sequence[Entry], keeping: Keeping, wall: Forecast = NOTHING) -> None:
        """Completes runs: from the store, and executes the others; `wall` forecasts what each takes here, which is
        taken for what it takes there. LabError where there are no workers; DiskFullError where results have no room."""
        execution.stored(self._context, self._experiment, keeping.known(entries), len(entries), 1, keeping)
        left = [entry for entry in entries if entry.status != "complete"]
        if keeping.only or not left:
            return
        fleet = self._start()
        forecast_ns = {entry.number: wall.run_ns(entry) for entry in left}
        board = Board("execution", len(left), sum(entry.expected_ns for entry in left), self.at_once, forecast_ns)
        by_number = {entry.number: entry for entry in left}

        def units() -> Iterator[Run]:
            for entry in left:
                self._experiment.forget(entry)
                yield Run(entry.number, self._unit(entry, keeping), forecast_ns[entry.number])

        def ended(run: Run, packed: Packed) -> None:
            entry = by_number[run.number]
            board.begin(entry.number, entry.expected_ns, packed.wall_ns)
            execution.received(self._experiment, entry, packed, keeping)
            board.end(entry.number)

        store = None if keeping.place is None else str(keeping.place.absolute())
        with board.shown(self._context.reporter):
            tell = self._context.reporter.tell
            sharing = Sharing(self._workers, fleet, keeping.tools, store, tell, fresh=keeping.fresh)
            sharing.provide()
            sharing.go(units(), ended)
        self._keep_logs = any(entry.status == "failed" for entry in left)

    def close(self) -> None:
        """Ends the workers. The logs of their jobs stay where something went wrong."""
        self._stack.close()
        place = self._experiment.directory / PLACE
        shutil.rmtree(place / "keys", ignore_errors=True)
        if not self._keep_logs:
            shutil.rmtree(place, ignore_errors=True)

    def _start(self) -> Started:
        if self._fleet is None:
            begun = time.monotonic()
            place = (self._experiment.directory / PLACE).absolute()
            self._keep_logs = True
            with self._context.reporter.progress(f"starting workers ({self._workers.engine})"):
                self._fleet = self._stack.enter_context(starting.started(self._workers, place))
            self._keep_logs = False
            shown = f": {self._fleet.dashboard} shows what they do" if self._fleet.dashboard else ""
            took = f"{time.monotonic() - begun:.1f} s"
            self._context.reporter.tell(f"workers by {self._workers.file.name}, {self.at_once} at once ({took}){shown}")
        return self._fleet

    def _unit(self, entry: Entry, keeping: Keeping) -> unit.Unit:
        experiment = self._experiment
        return unit.unit(
            experiment.contents(entry),
            keeping.tools,
            entry.expected_ns,
            experiment.name,
            experiment.directory.name,
            entry.name,
        )
