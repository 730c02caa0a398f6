"""Runs of the virtual clock on this machine, through the store: what it has is taken, what is executed is kept there.

In: units. Out: the files of each, in memory. Faults of the store are reported and hinder nothing.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ewan.experiments.engine import unit
from ewan.experiments.engine.unit import RunAnswer, Tools, Unit
from ewan.experiments.store import DamagedError, Store, entry
from ewan.extras.course.runs import Files
from ewan.labs.base.reporter import Progress, Reporter
from ewan.labs.context import DEFAULT_STORE, STORE_VARIABLE, Context
from ewan.labs.runtime import kernel
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.sweep import sweep


@contextlib.contextmanager
def here(context: Context, folder: Path, workers: int | None = None) -> Iterator[LocalExecutor]:
    """This machine for checks in a student's folder: with the store of the runs there, or the store that the
    environment names."""
    own = context.store if context.store is None or STORE_VARIABLE in context.environment else folder / DEFAULT_STORE
    store = None if own is None else Store(own, context.environment)
    with tempfile.TemporaryDirectory(prefix="ewan-course-") as scratch:
        yield LocalExecutor(context.reporter, context.binary, store, Path(scratch), workers)


@dataclass
class LocalExecutor:
    """This machine. `store` None: nothing is kept; `scratch`: where runs are executed; `workers` None: on all CPUs.

    `binary`: the wished-for path of `ewan-node`.
    """

    reporter: Reporter
    binary: Path
    store: Store | None
    scratch: Path
    workers: int | None = None
    executed: int = 0
    """The number of runs that were not in the store."""
    _tools: Tools | None = None
    _full: bool = False
    _counting: threading.Lock = field(default_factory=threading.Lock)

    @property
    def tools(self) -> Tools:
        """Found once; the kernel is built where it is missing, with a message."""
        if self._tools is None:
            self._tools = Tools(kernel.kernel(self.reporter.tell), node_binary(self.binary))
        return self._tools

    def results(self, units: Sequence[Unit]) -> list[Files]:
        """See `runs.Executor`."""
        found = {each.key: files for each in units if (files := self._kept(each)) is not None}
        missing = list({each.key: each for each in units if each.key not in found}.values())
        if missing:
            found |= self._execute(missing)
        return [found[each.key] for each in units]

    def _kept(self, work: Unit) -> Files | None:
        if self.store is None:
            return None
        try:
            there = self.store.read(work.key)
        except DamagedError as error:
            self.store.set_aside(work.key)
            self.reporter.warn(f"{self.store.path(work.key)}: {error}: it is measured again")
            return None
        return None if there is None else there[1]

    def _execute(self, units: Sequence[Unit]) -> dict[str, Files]:
        done = 0

        def job(work: Unit) -> Callable[[threading.Event], tuple[str, Files]]:
            def run(stop: threading.Event) -> tuple[str, Files]:
                nonlocal done
                files = self._run(work, stop)
                with self._counting:
                    done += 1
                    self.executed += 1
                    progress.step(f"measured {done} of {len(units)}: {work.scenario} {work.name}")
                return work.key, files

            return run

        def begun(progress: Progress) -> None:
            progress.step(f"measuring {len(units)} run{'s' * (len(units) != 1)} in the virtual clock …")

        _ = self.tools
        with self.reporter.progress("measuring …") as progress:
            begun(progress)
            return dict(sweep((job(each) for each in units), self.workers))

    def _run(self, work: Unit, stop: threading.Event) -> Files:
        packed = unit.execute(work, self.tools, self.scratch, stop)
        if packed.entry is None:
            raise LabError(f"{work.scenario}, {work.name}: {packed.error}")
        self._keep(packed)
        return entry.read(io.BytesIO(packed.entry), packed.key)[1]

    def _keep(self, packed: RunAnswer) -> None:
        if self.store is None or packed.entry is None or self._full:
            return
        try:
            self.store.put_packed(packed.key, packed.entry)
        except OSError as error:
            self._full = True
            self.reporter.warn(f"{self.store.root}: {error.strerror}: nothing more is put into the store")
