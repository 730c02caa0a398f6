"""Large sweeps: every run is made, scheduled and checked once, one after the other, before the first one starts."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from ewan.experiments.engine import preparation
from ewan.experiments.engine.parts import Facts
from ewan.experiments.tests.origins import origin
from ewan.generator import scenario
from ewan.generator.scenario import DescriptionError, Runs
from ewan.labs.record.experiment import INPUTS

SWEEP = """
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}
sweep: {to: [right1, %s]}
seeds: %d
steps:
  - {name: load, from: left1, to: "${to}", congestion: reno, for: 1s, bulk: {}}
"""
MOST_BYTES_A_RUN = 4500
"""Memory that is kept for a run until the first one starts: its entry, and the checksums of its three files."""


def sweep(seeds: int, second: str = "r1") -> Runs:
    """Two points, the second of which sends to another node."""
    return scenario.parse(SWEEP % (second, seeds), Path("x.scenario.yaml")).runs()


def prepared(runs: Runs, directory: Path) -> preparation.ReadyExperiment:
    directory.mkdir()
    facts = Facts({}, origin())
    return preparation.prepare(preparation.jobs(runs, virtual=True), facts, virtual=True, directory=directory)


def test_each_run_is_scheduled_once_until_all_can_begin(tmp_path: Path, scheduled: list[int]) -> None:
    experiment = prepared(sweep(seeds=3), tmp_path / "x").experiment
    assert scheduled == [1, 2, 3, 4, 5, 6]
    assert [entry.number for entry in experiment.runs] == scheduled
    for entry in experiment.runs:
        assert experiment.job(entry).plan.lab == "x", "what was written is whole"
    assert len(experiment.files) == len(INPUTS) * len(experiment.runs)


def test_a_run_is_made_when_it_is_asked_for(scheduled: list[int]) -> None:
    runs = sweep(seeds=5000)
    assert len(runs) == 10_000 and runs[9999].seed == 5000
    next(preparation.jobs(runs, virtual=True))
    assert scheduled == [1]


def test_no_run_is_kept(tmp_path: Path) -> None:
    """The memory that 40 further runs take, once all modules are there."""
    prepared(sweep(seeds=2), tmp_path / "first")
    tracemalloc.start()
    try:
        peaks = []
        for seeds in (5, 25):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            kept = prepared(sweep(seeds), tmp_path / str(seeds))
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
            del kept
    finally:
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 40 * MOST_BYTES_A_RUN, peaks


def test_a_mistake_in_the_last_run_leaves_nothing(tmp_path: Path, scheduled: list[int]) -> None:
    with pytest.raises(DescriptionError, match="there is no node nobody in the lab"):
        prepared(sweep(seeds=2, second="nobody"), tmp_path / "x")
    assert scheduled == [1, 2, 3] and not (tmp_path / "x").exists()
