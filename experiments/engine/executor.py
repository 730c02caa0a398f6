"""Executors of the runs of the virtual clock that the store does not have.

In: an experiment's runs. Out: each run's entry with its status. The engine knows only `Executor`: this machine on all
cores is one, and `NoExecutor` is used when results of shards are collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ewan.experiments.engine import execution
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.forecast import Forecast
from ewan.experiments.engine.stored_runs import ResultKeeper
from ewan.experiments.engine.unit import Tools, Versions
from ewan.labs.context import Context
from ewan.labs.record.experiment import Entry
from ewan.labs.runtime import kernel
from ewan.labs.runtime.binary import node_binary


class Executor(Protocol):
    """See each method."""

    @property
    def here(self) -> bool:
        """Return whether runs are executed on this machine, whose resources and speed then count."""

    def ready(self) -> tuple[Versions, str]:
        """Bring up the programs that execute runs; their versions, and words for people. LabError where one is
        missing."""

    def execute(
        self, experiment: Experiment, entries: Sequence[Entry], keeping: ResultKeeper, workers: int, wall: Forecast
    ) -> None:
        """Complete runs, and give complete ones to `keeping`. `workers`: so many at once where it is `here`."""


@dataclass(slots=True)
class ThisMachine:
    """All cores of this machine."""

    context: Context
    here: bool = True
    _tools: Tools | None = None

    @property
    def tools(self) -> Tools:
        """Found once; the kernel is built where it is not there."""
        if self._tools is None:
            self._tools = Tools(kernel.kernel(self.context.reporter.tell), node_binary(self.context.binary))
        return self._tools

    def ready(self) -> tuple[Versions, str]:
        """See `Executor`."""
        return self.tools.versions, f"virtual kernel {self.tools.kernel.name}"

    def execute(
        self, experiment: Experiment, entries: Sequence[Entry], keeping: ResultKeeper, workers: int, wall: Forecast
    ) -> None:
        """See `Executor`."""
        execution.in_virtual(self.context, experiment, entries, workers, keeping, self.tools, wall)


@dataclass(frozen=True, slots=True)
class NoExecutor:
    """Executes nothing: runs that are not in the store stay missing. `versions`: the kernel and node binary of the
    results."""

    versions: Versions
    here: bool = False

    def ready(self) -> tuple[Versions, str]:
        """See `Executor`."""
        return self.versions, f"results of virtual kernel {self.versions.kernel[:12]}"

    def execute(
        self, experiment: Experiment, entries: Sequence[Entry], keeping: ResultKeeper, workers: int, wall: Forecast
    ) -> None:
        """See `Executor`."""
        for entry in entries:
            entry.error = entry.error or "what the store had of it was damaged"
