"""An experiment of hundreds of runs, copies of a few: as whole as theirs, and read as one that was run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import ewan
from ewan.analysis import load, measurement_cache, report, side_by_side, summary
from ewan.analysis.cli import plot_command, report_command
from ewan.analysis.compare.cli import compare_command
from ewan.analysis.tests import synthetic
from ewan.calibration import many_runs
from ewan.labs.context import Context
from ewan.labs.record import journal
from ewan.labs.record.experiment import damage
from tests.bench import sweep as bench_sweep

pytestmark = pytest.mark.torture

SIZES: dict[str, list[str | int]] = {"congestion": ["reno", "cubic", "bbr"], "buffer": ["0.5BDP", "1BDP"]}
TOLD = {"metrics": ["utilisation", "mean goodput"], "normalise": {"by": "congestion", "to": "reno"}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 runs: six points with forty seeds."""
    original = tmp_path_factory.mktemp("original")
    synthetic.experiment(original, [{"congestion": "reno"}], seeds=(1, 2), pairs=1, seconds=2, told=TOLD)
    points = many_runs.points(SIZES)
    return many_runs.write(original, tmp_path_factory.mktemp("many") / "copies", points, range(1, 41))


def command(which: object, *arguments: str) -> str:
    done = CliRunner().invoke(which, arguments, catch_exceptions=False, obj=Context.of(os.environ))  # type: ignore[arg-type]
    assert done.exit_code == 0, done.output
    return str(done.output)


def test_copies_are_whole_and_differ(place: Path) -> None:
    document = journal.load(place)
    assert len(document.runs) == 240 and "no result" in document.title
    assert not any(damage(place, name, document.files) for name in document.files)
    flows = load.experiment(place).frame("flows")
    assert flows["received_bytes"].n_unique() == 240
    assert flows.group_by("parameter_congestion", "parameter_buffer").len()["len"].to_list() == [40] * 6


def test_a_report_over_them_is_that_of_one_process_and_the_same_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / measurement_cache.FILE).unlink(missing_ok=True)
    with monkeypatch.context() as alone:
        alone.setattr(side_by_side, "cpus", lambda: 1)
        first = summary.analyse(place)
    assert (place / measurement_cache.FILE).exists()
    page = report.write(place).read_bytes()
    (place / measurement_cache.FILE).unlink()
    assert summary.analyse(place) == first == summary.analyse(place)
    assert report.write(place).read_bytes() == page
    utilisation = ewan.load(place).metric("utilisation").by("congestion")
    assert utilisation["n"].to_list() == [80, 80, 80]


def test_what_is_interrupted_says_how_much_there_is(place: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "runs").symlink_to(place / "runs")
    (part / "certificates").symlink_to(place / "certificates")
    document = json.loads((place / "experiment.json").read_text())
    document["status"] = "running"
    for run in document["runs"][200:]:
        run["status"] = "waiting"
    gone = {run["directory"] for run in document["runs"][200:]}
    files = {name: known for name, known in document["files"].items() if name[:8] not in gone}
    (part / "experiment.json").write_text(json.dumps({**document, "files": files}))
    said = "200 of 240 runs complete"
    assert f"so far: {said}" in command(report_command, str(part))
    page = (part / "report.html").read_text()
    assert f"{said} (incomplete)" in page and "40 of 240 runs are not complete" in page
    assert f"so far: {said}" in command(plot_command, str(part), "utilisation by buffer, lines congestion")
    assert f"first: {said} so far" in command(compare_command, str(part), str(place), "-o", str(tmp_path / "both.html"))
    assert [point.seeds for point in summary.found(part).points] == [40] * 5 + [0]
    assert ewan.load(part).table("links").select(pl.col("run").n_unique()).item() == 200


def test_the_sweeps_of_the_bench_have_so_many_runs() -> None:
    for runs in (*bench_sweep.RUNS, *bench_sweep.QUICK_RUNS):
        assert len(bench_sweep.points(runs)) * bench_sweep.SEEDS == runs


def test_a_command_of_the_bench_is_measured(tmp_path: Path) -> None:
    seconds, peak = bench_sweep.spent(["exp", "list"], tmp_path)
    assert 0.05 < seconds < 60 and 10 << 20 < peak < 1 << 30
