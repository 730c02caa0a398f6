"""`ewan report` and `ewan runs` as a user calls them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from analysis.cli import report_command, runs_command
from analysis.tests import synthetic
from labs.context import Context


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "results"


def report(*arguments: str) -> Result:
    return CliRunner().invoke(report_command, arguments, catch_exceptions=False, obj=Context.of(os.environ))


def runs(*arguments: str) -> Result:
    return CliRunner().invoke(runs_command, arguments, catch_exceptions=False, obj=Context.of(os.environ))


def make(results: Path, name: str = "20260102T030405Z-synthetic") -> Path:
    return synthetic.experiment(results / name, [{"congestion": "cubic"}], seeds=(1,), pairs=2, seconds=3)


def test_report_names_the_page_it_made(results: Path) -> None:
    make(results)
    answer = report("results/20260102T030405Z-synthetic", "--flent", "out")
    assert answer.exit_code == 0
    assert "results/20260102T030405Z-synthetic/report.html" in answer.output
    assert (results / "20260102T030405Z-synthetic/report.html").exists()
    assert len(list(Path("out").glob("*.flent.gz"))) == 1


def test_report_takes_the_newest_experiment(results: Path) -> None:
    make(results)
    newest = make(results, "20270102T030405Z-synthetic")
    assert report().exit_code == 0
    assert (newest / "report.html").exists()


def test_report_of_something_else_is_one_line_and_status_2(results: Path) -> None:
    (results / "20260102T030405Z-dumbbell").mkdir(parents=True)
    for arguments in (["results/20260102T030405Z-dumbbell"], ["nowhere"], []):
        answer = report(*arguments)
        assert answer.exit_code == 2
        assert answer.stderr.count("\n") == 1
        assert answer.stderr.startswith("ewan: ")


def test_runs_tells_when_what_how_far_and_with_what_result(results: Path) -> None:
    report(str(make(results)))
    (results / "20260102T030405Z-dumbbell").mkdir()
    broken = results / "20260102T030406Z-broken"
    broken.mkdir()
    (broken / "experiment.json").write_text("{")
    answer = runs()
    assert answer.exit_code == 0
    line = next(line for line in answer.output.splitlines() if "-synthetic" in line)
    for words in ("2026-01-02 03:04", "virtual", "1/1", "complete", "mean completion time"):
        assert words in line
    assert "not readable" in next(line for line in answer.output.splitlines() if "-broken" in line)
    assert "1 other directory" in answer.stderr


def test_runs_as_json(results: Path) -> None:
    make(results)
    (row,) = json.loads(runs("--json").stdout)
    assert (row["scenario"], row["runs"], row["status"], row["verified"]) == ("synthetic", "1/1", "complete", "–")


def test_runs_without_results(results: Path) -> None:
    answer = runs()
    assert answer.exit_code == 0
    assert "no experiments in results/" in answer.stderr
