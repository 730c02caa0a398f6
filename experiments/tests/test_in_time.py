"""Sweeps of very many runs: all labs and steps are checked before the first run starts, and a run's inputs are written
as it is about to start. The results are the same as with inputs that are written in advance."""

from __future__ import annotations

import dataclasses
import shutil
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.experiments.engine import engine, execution, preparation, reservation
from ewan.experiments.engine.executor import ThisMachine
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Facts
from ewan.experiments.engine.source import SCENARIO, SETTINGS
from ewan.experiments.tests.engines import CONTEXT, parts
from ewan.experiments.tests.origins import origin
from ewan.generator import scenario
from ewan.generator.scenario import DescriptionError
from ewan.labs.record.experiment import Entry
from ewan.labs.runtime import memory
from ewan.labs.runtime.base import LabError

pytestmark = pytest.mark.slow

TEXT = """
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}
sweep: {volume: %s}
seeds: %d
longest: 10s
steps:
  - name: load
    from: left1
    to: right1
    at: {uniform: {low: 0s, high: 1s}}
    congestion: reno
    bulk: {volume: "${volume}"}
"""
POINTS = "[10kB, 20kB]"
MOST_BYTES_A_RUN = 1024
"""Memory that is kept for a run that is not written yet."""
SOON_S = 5
"""CPU time until the first of 100,000 runs could start; it takes a tenth of it."""


def prepared(directory: Path, text: str, most: int = 1) -> preparation.ReadyExperiment:
    """The experiment of a scenario with more than `most` runs, which are too many to be written in advance."""
    directory.mkdir()
    file = directory.parent / "x.scenario.yaml"
    asked: dict[str, Any] = {"file": str(file), "scale": None, "settings": {}, "seeds": None}
    facts = Facts({SCENARIO: text.encode(), SETTINGS: orjson.dumps(asked)}, origin())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "MOST_AT_ONCE", most)
        jobs = preparation.in_time(scenario.parse(text, file).runs(), virtual=True)
        return preparation.prepare(jobs, facts, virtual=True, directory=directory)


def files(place: Path) -> dict[str, bytes]:
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.glob("runs/*/*.json")}


def test_each_point_is_checked_before_the_first_run_starts(tmp_path: Path, scheduled: list[int]) -> None:
    experiment = prepared(tmp_path / "x", TEXT % (POINTS, 3)).experiment
    assert scheduled == [1, 4]
    assert [entry.number for entry in experiment.runs] == [1, 2, 3, 4, 5, 6]
    assert [entry.written for entry in experiment.runs] == [True, False, False] * 2
    assert sorted(path.name for path in (tmp_path / "x/runs").iterdir()) == ["001", "004"]


def test_a_mistake_at_the_last_point_leaves_nothing(tmp_path: Path, scheduled: list[int]) -> None:
    with pytest.raises(DescriptionError, match="volume"):
        prepared(tmp_path / "x", TEXT % ("[10kB, 20 parsecs]", 3))
    assert scheduled == [1] and not (tmp_path / "x").exists()


def test_what_is_written_in_time_is_what_is_written_before(tmp_path: Path) -> None:
    late, before = (
        prepared(tmp_path / name, TEXT % (POINTS, 3), most).experiment for name, most in (("x", 1), ("y", 6))
    )
    assert all(entry.written for entry in before.runs)
    assert [entry.name for entry in late.runs] == [entry.name for entry in before.runs]
    assert late.runs[1].expected_ns != before.runs[1].expected_ns, "another seed begins at another time"
    for entry in late.runs:
        if not entry.written:
            late.write(entry)
    assert late.runs == before.runs and late.files == before.files
    assert files(tmp_path / "x") == files(tmp_path / "y")


def test_runs_whose_seed_is_in_the_scenario_are_each_checked_before(tmp_path: Path, scheduled: list[int]) -> None:
    prepared(tmp_path / "x", TEXT.replace("20ms", "${seed}ms") % (POINTS, 2))
    assert scheduled == [1, 2, 3, 4]


def test_what_is_needed_counts_runs_that_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT % (POINTS, 500)
    wanted = reservation.needs(preparation.jobs(scenario.parse(TEXT % (POINTS, 1), Path("x")).runs(), True), True)
    most = 500 * wanted.records_bytes + reservation.WORK_BYTES
    monkeypatch.setattr(memory, "available", lambda place: most)
    experiment = prepared(tmp_path / "x", text).experiment
    assert len(experiment.runs) == 1000
    monkeypatch.setattr(memory, "available", lambda place: most - 1)
    with pytest.raises(LabError, match="of records would be written"):
        prepared(tmp_path / "y", text)
    again = reservation.of_stored(experiment)
    assert (again.runs, again.records_bytes) == (1000, 500 * wanted.records_bytes), "as who resumes it asks"


def test_a_hundred_thousand_runs_are_planned_at_once(
    tmp_path: Path, scheduled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda place: 10**12)
    begun = time.process_time()
    experiment = prepared(tmp_path / "x", TEXT % (POINTS, 50_000)).experiment
    experiment.save()
    assert time.process_time() - begun < SOON_S
    assert scheduled == [1, 50_001] and len(experiment.runs) == 100_000


def test_little_is_kept_of_a_run_that_is_not_written(tmp_path: Path) -> None:
    prepared(tmp_path / "first", TEXT % (POINTS, 2))
    tracemalloc.start()
    try:
        peaks = []
        for seeds in (500, 2500):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            kept = prepared(tmp_path / str(seeds), TEXT % (POINTS, seeds))
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
            del kept
    finally:
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 4000 * MOST_BYTES_A_RUN, peaks


def test_a_run_that_was_not_written_is_not_repeated_elsewhere(tmp_path: Path) -> None:
    prepared(tmp_path / "x", TEXT % (POINTS, 2)).experiment.save()
    left = Experiment.load(tmp_path / "x")
    assert len(left.runs) == 4
    with pytest.raises(LabError, match=r"run 2: it had not been written .* `ewan exp resume .*/x` goes on with it"):
        left.job(left.runs[1])


def test_who_goes_on_is_told_that_the_scenario_is_another_one(tmp_path: Path) -> None:
    prepared(tmp_path / "x", TEXT % (POINTS, 2)).experiment.save()
    (tmp_path / f"x/{SCENARIO}").write_text((TEXT % (POINTS, 2)).replace("20ms", "21ms"))
    left = Experiment.load(tmp_path / "x")
    left.make = preparation.made_again(tmp_path / "x")
    with pytest.raises(LabError, match="run 2: its lab is not the lab that was checked when the experiment began"):
        left.write(left.runs[1])
    assert not (tmp_path / "x/runs/002").exists()
    (tmp_path / f"x/{SCENARIO}").unlink()
    with pytest.raises(LabError, match=r"scenario\.yaml or settings\.json is missing"):
        preparation.made_again(tmp_path / "x")


@pytest.mark.virtual
def test_an_experiment_that_ended_before_all_was_written_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are the same as those of an experiment whose runs were all written before."""
    text = TEXT % ("[10kB]", 3)
    whole = prepared(tmp_path / "whole", text, most=3)
    assert engine.run(whole, parts=parts("ok"), context=CONTEXT) == 0
    cut = prepared(tmp_path / "cut", text)
    attempt = execution.attempt

    def killed(experiment: Experiment, entry: Entry, *rest: Any) -> None:
        if entry.number > 1:
            shutil.copytree(tmp_path / "cut", tmp_path / "killed")  # as SIGKILL would leave it
            raise KeyboardInterrupt
        attempt(experiment, entry, *rest)

    monkeypatch.setattr(execution, "attempt", killed)
    with pytest.raises(KeyboardInterrupt):
        engine.run(cut, parts=parts("ok"), context=CONTEXT, executor=OneByOne(CONTEXT))
    monkeypatch.setattr(execution, "attempt", attempt)
    for name, written in (("killed", [True, False, False]), ("cut", [True, True, False])):
        left = Experiment.load(tmp_path / name)
        assert [entry.status for entry in left.runs] == ["complete", "waiting", "waiting"]
        assert [entry.written for entry in left.runs] == written
        assert engine.resume(tmp_path / name, parts=parts("ok"), context=CONTEXT) == 0
        assert tables(tmp_path / name) == tables(tmp_path / "whole")
        ended = Experiment.load(tmp_path / name)
        assert ended.runs == whole.experiment.runs and ended.files.keys() == whole.experiment.files.keys()
        ended.check()


@pytest.mark.virtual
def test_what_the_store_has_of_a_run_is_taken_as_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = dataclasses.replace(CONTEXT, store=tmp_path / "store")
    assert engine.run(prepared(tmp_path / "two", TEXT % ("[10kB]", 2)), parts=parts("ok"), context=context) == 0
    capsys.readouterr()
    assert engine.run(prepared(tmp_path / "three", TEXT % ("[10kB]", 3)), parts=parts("ok"), context=context) == 0
    said = capsys.readouterr().err
    assert "1 of 3 runs are in the store" in said and "\n1 more runs were in the store" in said
    ended = Experiment.load(tmp_path / "three")
    assert [entry.taken for entry in ended.runs] == [True, True, None]
    assert [entry.status for entry in ended.runs] == ["complete"] * 3
    assert tables(tmp_path / "two").items() <= tables(tmp_path / "three").items()


class OneByOne(ThisMachine):
    """Executes one run after the other."""

    def execute(self, experiment: Experiment, entries: Sequence[Entry], keeping: Any, workers: int, wall: Any) -> None:
        super().execute(experiment, entries, keeping, 1, wall)


def tables(place: Path) -> dict[str, bytes]:
    """All but how long each run took of wall time."""
    left = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.glob("runs/*/*.parquet")}
    return left | {name: content for name, content in files(place).items() if not name.endswith("wall.json")}
