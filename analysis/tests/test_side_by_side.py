"""Several processes give the same result as one."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from ewan.analysis import figures, load, side_by_side, summary
from ewan.analysis.load import LoadError
from ewan.analysis.tests import synthetic
from ewan.labs.record.figures import parse

pytestmark = pytest.mark.slow

VARIANTS = [{"congestion": "reno"}, {"congestion": "cubic"}]
LINE = "mean goodput by congestion"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return synthetic.experiment(tmp_path, VARIANTS, pairs=2, seconds=4)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "FEWEST_RUNS", 2)
    monkeypatch.setattr(side_by_side, "cpus", lambda: 2)


def drawn(place: Path) -> tuple[object, ...]:
    experiment = load.experiment(place)
    found = summary.of(experiment)
    return found, *figures.draw(experiment, found, [parse(LINE), parse("mean goodput against share")])


def test_summaries_and_figures_are_those_of_one_process(place: Path, request: pytest.FixtureRequest) -> None:
    alone = drawn(place)
    request.getfixturevalue("many")
    assert drawn(place) == alone


def test_a_damaged_table_is_named(place: Path, many: None) -> None:
    (place / "runs/001/flows.parquet").write_bytes(b"damaged")
    with pytest.raises(LoadError, match=r"flows\.parquet"):
        summary.of(load.experiment(place))


def end(number: int) -> int:
    if number == 2 and multiprocessing.parent_process() is not None:
        os._exit(1)
    return number


def test_what_a_killed_process_was_to_do_is_done_here(many: None) -> None:
    assert side_by_side.each(end, list(range(40)), 40) == list(range(40))
