"""Tests of a file, executed: each run of a test is a case.

In: tests, a folder for their records. Out: the outcome of each case, in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.experiments.api import run as runs
from ewan.extras.testing.files import FileTest
from ewan.generator.scenario import ScenarioRun
from ewan.labs.base.errors import UserError
from ewan.labs.runtime.sweep import sweep


@dataclass(frozen=True)
class Case:
    """A run of a test. `name`: the test's, and the values of the parameters that vary."""

    name: str
    test: FileTest
    run: ScenarioRun


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case. `failures`: a line for each expectation that does not hold; `error`: why it did not run;
    `wall_ns`: how long it took; `ended_ns`: when each program ended, by its step."""

    case: Case
    failures: tuple[str, ...]
    error: str | None
    wall_ns: int
    ended_ns: dict[str, int | None]
    directory: Path

    @property
    def passed(self) -> bool:
        """Return whether all is as expected."""
        return not self.failures and self.error is None


def cases(tests: Sequence[FileTest]) -> Iterator[Case]:
    """The runs of all tests: each has one for each point of its sweep and each seed."""
    for test in tests:
        every = test.scenario.runs()
        for run in every:
            values = [f"{name}={run.parameters[name]}" for name in every.varying]
            values += [f"seed={run.seed}"] if every.seeds > 1 else []
            yield Case(f"{test.name}[{','.join(values)}]" if values else test.name, test, run)


def execute(
    wanted: Sequence[Case], folder: Path, workers: int | None, done: Callable[[Outcome], None]
) -> list[Outcome]:
    """Run all cases, so many at once; `done` gets each as it ends."""
    lock = threading.Lock()

    def job(number: int, case: Case) -> Callable[[threading.Event], Outcome]:
        def work(stop: threading.Event) -> Outcome:
            outcome = _execute(case, folder / f"{number:03}")
            with lock:
                done(outcome)
            return outcome

        return work

    return sweep((job(number, case) for number, case in enumerate(wanted, 1)), workers)


def _execute(case: Case, directory: Path) -> Outcome:
    programs = case.test.programs
    begun = time.monotonic_ns()
    try:
        result = runs.execute_run(case.run, list(programs.values()), directory)
        failures = [failure for each in case.test.expectations if (failure := each.failure(result, programs))]
        asked = {each.exit for each in case.test.expectations}
        failures += [
            f"{name}: {each.outcome}" for name, each in programs.items() if name not in asked and not each.succeeded
        ]
    except (UserError, ValueError) as error:
        return Outcome(case, (), str(error), time.monotonic_ns() - begun, {}, directory)
    ended = {name: each.ended_or_none for name, each in programs.items()}
    return Outcome(case, tuple(failures), None, time.monotonic_ns() - begun, ended, directory)
