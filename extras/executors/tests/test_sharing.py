"""Bundling of runs and their distribution to workers; Dask itself is in tests/extras/test_workers.py."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ewan.experiments.engine.unit import Unit
from ewan.extras.executors import remote, work_queue
from ewan.extras.executors.work_queue import QueuedRun
from ewan.labs.base.units import NS_PER_SECOND

UNIT = Unit("0" * 64, b"", b"", b"", 0, 0, "s", "e", "n")


def runs(*seconds: float) -> Iterator[QueuedRun]:
    return (QueuedRun(number, UNIT, round(each * NS_PER_SECOND)) for number, each in enumerate(seconds, 1))


def sizes(*seconds: float, most: int = work_queue.MOST_UNITS) -> list[int]:
    return [len(bundle) for bundle in work_queue.bundled(runs(*seconds), most)]


def test_short_runs_go_together_and_long_ones_alone() -> None:
    assert sizes(*[0.5] * 10) == [4, 4, 2]
    assert sizes(3, 3, 0.1) == [1, 1, 1]
    assert sizes(0.1, 3) == [2]


def test_runs_whose_time_nobody_knows_go_alone() -> None:
    assert sizes(0, 0, 0) == [1, 1, 1]


def test_no_more_go_together_than_leave_work_for_all() -> None:
    assert sizes(*[0.01] * 7, most=3) == [3, 3, 1]
    assert sizes(*[0.001] * 120) == [50, 50, 20]


def test_runs_are_named_by_their_numbers() -> None:
    first, *_, last = runs(1, 1, 1)
    assert (work_queue.described([first]), work_queue.described([first, last])) == ("run 1", "runs 1 to 3")


@pytest.mark.parametrize("variable", [remote.ENDS, "SLURM_JOB_END_TIME"])
def test_no_run_begins_that_would_not_end_before_the_job(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    monkeypatch.delenv(remote.ENDS, raising=False)
    assert remote._has_time(10**15), "nobody says when it ends"
    monkeypatch.setenv(variable, str(int(time.time()) + 60))
    assert remote._has_time(30 * NS_PER_SECOND) and remote._has_time(0)
    assert not remote._has_time(45 * NS_PER_SECOND)
