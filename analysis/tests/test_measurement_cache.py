"""Metrics are kept as long as they are of the same bytes; several runs measured together give the same as each by
itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ewan.analysis import batches, load, measurement_cache, metrics, summary
from ewan.analysis.load import LoadError
from ewan.analysis.tests import synthetic
from ewan.extra import installed
from ewan.labs.base import writing
from ewan.labs.record import metrics as vocabulary
from ewan.labs.record import quantities, tables
from ewan.labs.record.metric import Metric, MetricGroup

CC: list[dict[str, Any]] = [{"congestion": "reno"}, {"congestion": "cubic", "reverse": 1}]
SHARE = quantities.parse("share of each step")


def made(place: Path, **options: Any) -> Path:
    return synthetic.experiment(place, CC, **{"pairs": 2, "seconds": 3, "reverse": 1, **options})


def of(place: Path, *also: quantities.Quantity) -> dict[int, measurement_cache.RunMetrics]:
    return measurement_cache.of_runs(load.experiment(place), also)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement_cache, "FEWEST_KEPT", 2)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the runs that are measured."""
    numbers: list[int] = []
    whole = measurement_cache.of_run

    def of_run(run: load.RunResults, *arguments: Any) -> measurement_cache.RunMetrics:
        numbers.append(run.number)
        return whole(run, *arguments)

    monkeypatch.setattr(measurement_cache, "of_run", of_run)
    return numbers


@pytest.mark.parametrize("kind", ["bulk", "arrivals", "requests", "messages", "udp"])
def test_several_runs_together_give_what_each_gives_by_itself(tmp_path: Path, kind: str) -> None:
    place = made(tmp_path, kind=kind)
    synthetic.watched(place, 2, 1)
    # A table without rows, and a run that lacks one.
    tables.write(place / "runs/003", "goodput", tables.empty("goodput"))
    (place / "runs/004/series.parquet").unlink()
    synthetic.vouch(place)
    alone = [measurement_cache.of_run(run, [SHARE]) for run in load.experiment(place).runs]
    found = [
        measurement_cache.of_run(run, [SHARE], None, ready) for run, ready in batches.ready(load.experiment(place).runs)
    ]
    assert found == alone
    assert [ready is not None for _, ready in batches.ready(load.experiment(place).runs)].count(False) == 1


@pytest.mark.usefixtures("kept")
def test_a_metric_of_an_extra_is_computed_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = made(tmp_path)
    metric = Metric("answer", "count", "a number", MetricGroup.NETWORK)
    answers = [1.0]
    extras = replace(installed(), metrics={"answer": lambda: (metric, lambda run: answers[-1])})
    for module in (metrics, vocabulary):
        monkeypatch.setattr(module, "installed", lambda: extras)
    for answer in (1.0, 2.0):
        answers.append(answer)
        found = of(place, quantities.Quantity(metric), SHARE)
        assert {run.asked["answer"]["answer"] for run in found.values()} == {answer}


def test_tables_of_several_versions_are_read_one_by_one(tmp_path: Path) -> None:
    place = made(tmp_path)
    path = place / "runs/002/flows.parquet"
    older = pl.read_parquet(path).drop("timeouts")
    tables.save(path, older, {"format": tables.FORMAT})
    synthetic.vouch(place)
    found = {run.number: ready for run, ready in batches.ready(load.experiment(place).runs)}
    assert [number for number, ready in found.items() if ready is not None] == []
    assert summary.of(load.experiment(place)).runs[1].metrics["mean goodput"].value != 0


def test_a_damaged_table_among_several_is_named(tmp_path: Path) -> None:
    place = made(tmp_path)
    (place / "runs/005/links.parquet").write_bytes(b"damaged")
    with pytest.raises(LoadError, match=r"005/links\.parquet: is damaged"):
        of(place)


def test_what_is_kept_is_not_measured_again(tmp_path: Path, kept: None, counted: list[int]) -> None:
    place = made(tmp_path)
    first = summary.analyse(place)
    assert counted == [1, 2, 3, 4, 5, 6]
    counted.clear()
    assert summary.analyse(place) == first and not counted
    found = of(place, SHARE)
    assert sorted(counted) == [1, 2, 3, 4, 5, 6], "another quantity"
    counted.clear()
    assert of(place, SHARE) == found and not counted
    assert found[1].asked["share of each step"]


def test_a_run_whose_bytes_changed_is_measured_again(tmp_path: Path, kept: None, counted: list[int]) -> None:
    place = made(tmp_path)
    before = of(place)
    counted.clear()
    frame = tables.read(place / "runs/004", "flows")
    tables.write(place / "runs/004", "flows", frame.with_columns(pl.col("received_bytes") // 2))
    synthetic.vouch(place)
    after = of(place)
    assert counted == [4] and after[4] != before[4]
    assert {number: each for number, each in after.items() if number != 4} == {
        number: each for number, each in before.items() if number != 4
    }


def test_an_experiment_that_grows_is_read_once(tmp_path: Path, kept: None, counted: list[int]) -> None:
    place = made(tmp_path)
    path = place / "experiment.json"
    whole = json.loads(path.read_text())
    several = {name: known for name, known in whole["files"].items() if not name.startswith("runs/006")}
    path.write_text(json.dumps({**whole, "files": several}))
    assert list(of(place)) == [1, 2, 3, 4, 5]
    counted.clear()
    path.write_text(json.dumps(whole))
    assert list(of(place)) == [1, 2, 3, 4, 5, 6] and counted == [6]


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\xff\x00", None])
def test_a_file_that_is_not_whole_says_nothing(
    tmp_path: Path, kept: None, counted: list[int], damage: bytes | None
) -> None:
    place = made(tmp_path)
    known = of(place)
    counted.clear()
    path = place / measurement_cache.FILE
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 400) if damage is None else damage)
    assert of(place) == known and len(counted) == 6


def test_what_other_code_measured_says_nothing(
    tmp_path: Path, kept: None, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = made(tmp_path)
    of(place)
    counted.clear()
    monkeypatch.setattr(measurement_cache, "_code", lambda: "0" * 64)
    of(place)
    assert len(counted) == 6


def test_a_directory_that_nobody_may_write_into_is_read_all_the_same(
    tmp_path: Path, kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = made(tmp_path)

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(writing, "write", refused)
    assert len(of(place)) == 6 and not (place / measurement_cache.FILE).exists()


def test_few_runs_keep_nothing(tmp_path: Path) -> None:
    place = made(tmp_path)
    summary.analyse(place)
    assert not (place / measurement_cache.FILE).exists()


def test_rows_of_tables_are_known_without_reading_them(tmp_path: Path, kept: None) -> None:
    place = made(tmp_path)
    assert measurement_cache.rows(load.experiment(place)) == {}
    of(place)
    heights = {name: tables.read(place / "runs/002", name).height for name in ("flows", "series", "goodput", "links")}
    assert heights.items() <= measurement_cache.rows(load.experiment(place))[2].items()
