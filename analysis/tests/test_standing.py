"""Progress of an experiment, from only its record and the names of its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.analysis.experiment_progress import of_command, progress
from ewan.analysis.tests import synthetic
from ewan.experiments.tests.origins import origin
from ewan.labs.base.codec import replace
from ewan.labs.record.experiment import DOCUMENT, LOCK, Entry, begin, to_json
from ewan.labs.record.journal import Journal, RunChange
from ewan.labs.runtime.locks import held

STARTED = "2026-01-31T12:00:00+00:00"
MOMENT = 1_769_860_800


def entry(number: int, congestion: str, **more: object) -> Entry:
    place = f"runs/{number:03}"
    parameters: dict[str, str | int] = {"congestion": congestion}
    made = Entry(number, f"run {number}", parameters, number, "x", "x", place, 0, "waiting", None, None, None)
    return replace(made, **more)


@pytest.fixture
def experiment(tmp_path: Path) -> Iterator[Path]:
    """Two points of two seeds; the first run has ended, the second is at work, the others wait."""
    place = tmp_path / "20260131T120000Z-x"
    document = begin(origin(command="ewan run x.scenario.yaml"), "virtual", False, STARTED)
    document.stages["execution"].status = "running"
    document.runs = [entry(1, "reno", status="complete"), entry(2, "reno"), entry(3, "bic"), entry(4, "bic")]
    for number in range(1, 5):
        (place / f"runs/{number:03}").mkdir(parents=True)
        (place / f"runs/{number:03}/plan.json").write_text("{}")
    (place / "runs/002/console.log").write_text("")
    (place / DOCUMENT).write_bytes(to_json(document))
    with held(place / LOCK, 0.0, "nobody else has it"):
        yield place


def test_each_point_is_told_with_its_runs(experiment: Path) -> None:
    found = progress(experiment)
    assert (found.stage, found.varying, found.report) == ("execution", ("congestion",), False)
    assert [(point.parameters["congestion"], dict(point.became)) for point in found.points] == [
        ("reno", {"done": 1, "running": 1}),
        ("bic", {"waiting": 2}),
    ]


def test_the_journal_is_heeded(experiment: Path) -> None:
    journal = Journal(experiment)
    journal.begin((experiment / DOCUMENT).read_bytes())
    journal.add(RunChange(run=entry(3, "bic", status="failed", error="no route"), files={}))
    journal.add(RunChange(run=entry(4, "bic", verified=False), files={}))
    point = progress(experiment).points[1]
    assert (dict(point.became), point.error) == ({"failed": 1, "refused": 1}, "no route")


def test_results_stand_beside_the_points_when_they_are_there(experiment: Path) -> None:
    def measured(mean: float) -> dict[str, object]:
        return {"aggregate goodput": {"mean": mean, "low": None, "high": None, "n": 1, "unit": "bit/s"}}

    point = {"parameters": {"congestion": "bic"}, "seeds": 1, "runs": [1], "complete": True, "normalised": {}}
    synthetic.summary(experiment, [{**point, "metrics": measured(5e6)}])
    found = progress(experiment)
    assert found.metrics == ("aggregate goodput (Mbit/s)",)
    assert [point.results for point in found.points] == [("–",), ("5",)]


def test_a_command_finds_its_own_experiment(experiment: Path) -> None:
    command, results = "ewan run x.scenario.yaml", experiment.parent
    assert of_command(results, command, MOMENT, MOMENT + 5) == experiment
    assert of_command(results, command, MOMENT - 60, MOMENT - 30) is None
    assert of_command(results, "ewan run y.scenario.yaml", MOMENT, MOMENT + 5) is None
