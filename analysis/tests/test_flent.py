"""The export, as Flent itself reads it."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ewan.analysis import flent, load
from ewan.analysis.tests import synthetic


@pytest.fixture
def experiment(tmp_path: Path) -> load.ExperimentResults:
    points = [{"congestion": "reno"}, {"congestion": "cubic"}]
    place = tmp_path / "20260102T030405Z-synthetic"
    return load.experiment(synthetic.experiment(place, points, seeds=(1,), pairs=3, reverse=1, seconds=6))


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def test_one_file_a_run(experiment: load.ExperimentResults, tmp_path: Path) -> None:
    written = flent.write(experiment, tmp_path / "out")
    assert [path.name for path in written] == [
        "20260102T030405Z-synthetic-001-congestion=reno_seed=1.flent.gz",
        "20260102T030405Z-synthetic-002-congestion=cubic_seed=1.flent.gz",
    ]


def test_series_are_megabits_per_second_on_one_grid(experiment: load.ExperimentResults, tmp_path: Path) -> None:
    document = read(flent.write(experiment, tmp_path / "out")[0])
    assert document["version"] == 4
    x, results = document["x_values"], document["results"]
    assert all(len(series) == len(x) for series in results.values())
    assert x[:3] == pytest.approx([0.1, 0.2, 0.3])
    goodput = experiment.runs[0].table("goodput")
    at_three = {
        row["flow"]: row["arrived_bytes"] for row in goodput.iter_rows(named=True) if row["time_ns"] == 3 * 10**9
    }
    index = x.index(3.0)
    # Flows 0 to 2 are the load (the third starts at 2 s), 3 is reverse; bytes in 100 ms are 80 bit/s each.
    expected = [at_three[flow] * 80 / 10**6 for flow in range(3)]
    assert [results[f"TCP upload::{n}"][index] for n in (1, 2, 3)] == pytest.approx(expected)
    assert results["TCP upload sum"][index] == pytest.approx(sum(expected))
    assert results["TCP upload avg"][index] == pytest.approx(sum(expected) / 3)
    assert results["TCP download::1"][index] == pytest.approx(at_three[3] * 80 / 10**6)
    assert results["TCP upload::3"][0] is None


def test_senders_are_raw_values(experiment: load.ExperimentResults, tmp_path: Path) -> None:
    raw = read(flent.write(experiment, tmp_path / "out")[0])["raw_values"]["TCP upload::1"]
    row = experiment.runs[0].table("series").row(0, named=True)
    assert raw[0]["tcp_cwnd"] == row["cwnd_segments"]
    assert raw[0]["tcp_rtt"] == pytest.approx(row["srtt_ns"] / 10**6)
    assert "tcp_pacing_rate" not in raw[0]  # not paced


def test_the_same_run_gives_the_same_bytes(experiment: load.ExperimentResults, tmp_path: Path) -> None:
    first, second = (flent.write(experiment, tmp_path / name)[0].read_bytes() for name in ("a", "b"))
    assert first == second


def test_flent_opens_it(experiment: load.ExperimentResults, tmp_path: Path) -> None:
    path = flent.write(experiment, tmp_path / "out")[1]
    command = ["flent", "-i", str(path), "-f", "summary"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Summary of tcp_nup test run from 2026-01-02 03:04:05" in result.stdout + result.stderr
    mean = [value for value in read(path)["results"]["TCP upload::2"] if value is not None]
    (line,) = [line for line in (result.stdout + result.stderr).splitlines() if "TCP upload::2" in line]
    assert f"{sum(mean) / len(mean):.2f} " in line and "Mbits/s" in line


def test_without_uploads_their_sum_is_empty_on_the_same_grid(tmp_path: Path) -> None:
    place = synthetic.experiment(tmp_path / "udp", [{"rate": "8Mbit/s"}], seeds=(1,), kind="udp")
    for path in flent.write(load.experiment(place), tmp_path / "out"):
        document = read(path)
        assert document["results"]["TCP upload sum"] == [None] * len(document["x_values"])
    assert list((tmp_path / "out").iterdir())
