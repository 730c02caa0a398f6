"""Distribution of runs to workers, so many at a time; the result of each run is reported as it ends.

In: units of runs one after the other, workers that come and go. Out: a result for each run. A worker that dies loses
the runs that it had, which another one does again; one whose job would end too early begins nothing more, and is
replaced where a batch scheduler can. Runs that are so short that handing them over would cost more than they take go
several at a time."""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ewan.experiments.engine.unit import RunAnswer, Tools, Unit
from ewan.extras.executors import remote, worker_check
from ewan.extras.executors.dask_workers import MEMORY, WorkerPool
from ewan.extras.executors.file import BATCH, Workers
from ewan.extras.executors.remote import TaskResult, WorkerTask
from ewan.labs.base.product import extra
from ewan.labs.base.reporter import Tell
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.runtime.base import LabError

if TYPE_CHECKING:
    from distributed import Future

LEAST_NS = 2 * NS_PER_SECOND
"""The least wall time of a task, beside which handing it over costs little."""
MOST_UNITS = 50
AHEAD = 2
"""Tasks for each worker, so that none of them waits for us."""
LOOK_S = 1.0
ASK_S = 0.5
"""So often it is asked which workers are there."""
SILENT_S = 10.0
"""The time without workers after which a warning is printed."""
LOST_S = 60.0
"""So long a scheduler of Dask that was there may be away."""
_SHOWS = {"slurm": ": squeue shows the jobs", "oar": ": oarstat shows the jobs", "pbs": ": qstat shows the jobs"}


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A unit, its number in the experiment, and its forecast wall time on a core; 0: unknown."""

    number: int
    unit: Unit
    forecast_ns: int


Bundle = tuple[QueuedRun, ...]
"""Runs that are handed to a worker together."""


class WorkQueue:
    """Runs of one study on workers that are started. `store`: where they keep results, if they see it, and find them
    unless `fresh`."""

    def __init__(
        self, workers: Workers, fleet: WorkerPool, tools: Tools, store: str | None, tell: Tell, *, fresh: bool = False
    ) -> None:
        self._workers, self._client, self._tools, self._tell = workers, fleet.client, tools, tell
        self._memory_bytes = fleet.memory_bytes
        self._store, self._fresh = store if workers.shared else None, fresh
        self._study = secrets.token_hex(8)
        self._at_work: dict[Future, Bundle] = {}
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._again: list[Bundle] = []
        self._seen, self._said = time.monotonic(), False
        """The moment when a worker was seen last, and whether the warning about missing workers was printed."""
        self._away_since: float | None = None
        self._known: frozenset[str] = frozenset()
        self._asked = -ASK_S
        import cloudpickle

        cloudpickle.register_pickle_by_value(worker_check)

    def provide(self) -> None:
        """Sends kernel and node binary to the workers that see no files of this machine, and to those that come."""
        if not self._workers.shared:
            from ewan.extras.executors.provision import Provision

            tools = self._tools
            self._client.register_plugin(Provision((tools.kernel.read_bytes(), tools.binary.read_bytes())), name="ewan")

    def go(
        self, runs: Iterator[QueuedRun], ended: Callable[[QueuedRun, RunAnswer], None], most: int = MOST_UNITS
    ) -> None:
        """Executes all runs and reports each once; at most `most` go to a worker together. LabError where no worker can
        execute them."""
        bundles = bundled(runs, most)
        try:
            while self._fill(bundles) or self._at_work:
                self._take(ended)
        except BaseException:
            self._stop()
            raise

    def _fill(self, bundles: Iterator[Bundle]) -> bool:
        """Gives the workers that are there enough to do; whether more is left."""
        most = AHEAD * len(self._ready())
        while len(self._at_work) < most:
            bundle = self._again.pop() if self._again else next(bundles, None)
            if bundle is None:
                return False
            self._submit(bundle)
        return True

    def _submit(self, bundle: Bundle) -> None:
        needed = max(run.unit.memory_bytes for run in bundle)
        self._refuse(bundle, needed)
        tools = self._tools
        task = WorkerTask(
            study=self._study,
            units=tuple(run.unit for run in bundle),
            forecast_ns=tuple(run.forecast_ns for run in bundle),
            tools=(str(tools.kernel.absolute()), str(tools.binary.absolute())) if self._workers.shared else None,
            checksums=(tools.versions.kernel, tools.versions.binary),
            store=self._store,
            fresh=self._fresh,
        )
        # Workers that were started by another program do not report their memory.
        wanted = {} if self._workers.engine == "dask" else {MEMORY: needed}
        future = self._client.submit(remote.work, task, pure=False, resources=wanted)
        self._at_work[future] = bundle
        future.add_done_callback(self._ended.put)

    def _refuse(self, bundle: Bundle, needed: int) -> None:
        """Refuses a bundle with LabError if no worker could execute it."""
        workers, name = self._workers, described(bundle)
        most = self._memory_bytes
        if most is not None and needed > most:
            raise LabError(
                f"{workers.file}: {name} needs {about(needed, 'size', 2)} of memory and a worker has "
                f"{about(most, 'size', 2)} (memory divided by cores): write more memory, or fewer cores"
            )
        longest_s = max(remote.wanted_s(run.forecast_ns) for run in bundle)
        if workers.engine in BATCH and workers.walltime_s is not None and longest_s > workers.walltime_s:
            longest = about(round(longest_s * NS_PER_SECOND), "time", 2)
            raise LabError(
                f"{workers.file}: {name} wants a job of {longest}, and its walltime is less: write a longer one"
            )

    def _take(self, ended: Callable[[QueuedRun, RunAnswer], None]) -> None:
        """Takes the result of a bundle that has ended, or was lost meanwhile."""
        try:
            future = self._ended.get(timeout=LOOK_S)
        except queue.Empty:
            self._look()
            return
        bundle = self._at_work.pop(future, None)
        if bundle is None:
            return
        if future.status in ("cancelled", "lost"):
            self._again.append(bundle)
            return
        try:
            error = future.exception()
            done: TaskResult | None = None if error is not None else future.result()
        except OSError:  # the scheduler went away between the task's end and this question
            self._again.append(bundle)
            return
        if done is None:
            assert error is not None
            self._died(bundle, error, ended)
            return
        self._seen, self._said = time.monotonic(), False
        future.release()
        for run, packed in zip(bundle, done.results, strict=False):
            ended(run, packed)
        if done.error is not None:
            raise LabError(done.error)
        if postponed := bundle[len(done.results) :]:
            self._again.append(postponed)
            with contextlib.suppress(Exception):
                self._client.retire_workers([done.worker], close_workers=True)

    def _died(self, bundle: Bundle, error: BaseException, ended: Callable[[QueuedRun, RunAnswer], None]) -> None:
        """A task whose workers died one after the other: its runs one by one, so that the one they die of is found."""
        from distributed.scheduler import KilledWorker

        if not isinstance(error, KilledWorker):
            raise LabError(f"a worker failed at {described(bundle)}: {type(error).__name__}: {error}") from None
        if len(bundle) > 1:
            self._again += [(run,) for run in reversed(bundle)]
            return
        why = "the workers that it was given died, one after the other: was there memory enough, and walltime?"
        ended(bundle[0], RunAnswer(bundle[0].unit.key, "failed", why, None, 0, 0))

    def _look(self) -> None:
        """Warns when no worker is there, and finds bundles that a restarted scheduler has forgotten."""
        if self._ready():
            self._seen, self._said, self._away_since = time.monotonic(), False, None
        elif self._client.status != "running":
            self._away_since = self._away_since or time.monotonic()
            if time.monotonic() - self._away_since > LOST_S:
                raise LabError(f"{self._workers.file}: Dask's scheduler is gone, and did not come back")
        elif time.monotonic() - self._seen > SILENT_S and not self._said:
            self._said = True
            self._tell(f"waiting for workers: none is there{_SHOWS.get(self._workers.engine, '')}")
        for future in [each for each in self._at_work if each.status in ("lost", "cancelled")]:
            self._again.append(self._at_work.pop(future))

    def _ready(self) -> frozenset[str]:
        """The workers that are there, by their addresses; LabError where one can execute no runs."""
        if time.monotonic() < self._asked + ASK_S:
            return self._known
        self._asked = time.monotonic()
        try:
            there = frozenset(self._client.nthreads())
            new = there - self._known
            said = self._client.run(worker_check.missing, workers=list(new), on_error="ignore") if new else {}
        except Exception:  # of whatever kind: the scheduler is away
            self._known = frozenset()
            return self._known
        if new:
            if why := next((each for each in said.values() if each), ""):
                remedy = f"write python: of this project there, or {extra('cluster', 'make setup-cluster')}"
                raise LabError(f"{self._workers.file}: a worker cannot execute runs: {why}: {remedy}")
            there = (there & self._known) | frozenset(said)
        self._known = there
        return there

    def _stop(self) -> None:
        """Ends the runs that are at work."""
        with contextlib.suppress(Exception):
            self._client.run(remote.stop, self._study, on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.cancel(list(self._at_work))


def bundled(runs: Iterator[QueuedRun], most: int = MOST_UNITS) -> Iterator[Bundle]:
    """Runs in their order, so many together as take LEAST_NS; one of unknown length goes by itself."""
    bundle: list[QueuedRun] = []
    takes_ns = 0
    for run in runs:
        bundle.append(run)
        takes_ns += run.forecast_ns or LEAST_NS
        if takes_ns >= LEAST_NS or len(bundle) >= most:
            yield tuple(bundle)
            bundle, takes_ns = [], 0
    if bundle:
        yield tuple(bundle)


def described(bundle: Sequence[QueuedRun]) -> str:
    """`run 7`, `runs 7 to 12`, for people."""
    first, last = bundle[0].number, bundle[-1].number
    return f"run {first}" if first == last else f"runs {first} to {last}"
