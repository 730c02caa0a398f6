"""The page of `ewan suite papers`: verdicts, pictures, links to reports, and its words about missing results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.analysis import papers, summary
from ewan.analysis.tests import synthetic

POINTS = [{"congestion": name, "buffer": buffer} for name in ("cubic", "reno") for buffer in ("1BDP", "2BDP")]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = synthetic.experiment(tmp_path_factory.mktemp("papers"), POINTS, seconds=3)
    summary.analyse(place)
    (place / "report.html").write_text("report")
    return place


def outcome(name: str, directory: Path | None, picture: Any) -> dict[str, Any]:
    row = {"what": "a <number>", "paper": "1 s", "here": "2 s", "verdict": "differs", "why": "", "values": {}}
    return {
        **{"name": name, "title": f"Title of {name}", "paper": "a paper", "about": "found", "scaled": "smaller"},
        **{"rows": [row], "verdict": "differs", "picture": picture},
        "experiments": {"main": None if directory is None else str(directory)},
    }


def page(place: Path, *outcomes: dict[str, Any]) -> str:
    ledger = place / "all-quick.json"
    ledger.write_bytes(orjson.dumps({"scale": "quick", "commit": "0123456789abcdef", "outcomes": outcomes}))
    written = papers.write(ledger)
    assert written == place / "all-quick.html"
    return written.read_text()


def test_a_target_stands_with_its_rows_its_picture_and_its_report(directory: Path, tmp_path: Path) -> None:
    picture = {"draw": "goodput by buffer", "lines": "congestion"}
    text = page(tmp_path, outcome("one", directory, picture), outcome("two", directory, "rtt p50 by buffer"))
    assert text.count("<svg") == 2 and "a &lt;number&gt;" in text and "0123456789ab" in text
    assert (tmp_path / "pictures/one.svg").read_text().startswith("<?xml")
    assert "cubic" in (tmp_path / "pictures/one.csv").read_text()
    link = text.split('Reports: <a href="')[1].split('"')[0]
    assert (tmp_path / link).read_text() == "report"


def test_the_same_results_give_the_same_page(directory: Path, tmp_path: Path) -> None:
    first = page(tmp_path, outcome("one", directory, "goodput by buffer"))
    assert page(tmp_path, outcome("one", directory, "goodput by buffer")) == first


def test_a_metric_of_the_picture_that_the_scenario_does_not_name_is_computed(directory: Path, tmp_path: Path) -> None:
    text = page(tmp_path, outcome("one", directory, "goodput of source left1 by buffer"))
    assert "<svg" in text and "not drawn" not in text


@pytest.mark.parametrize(
    ("picture", "there", "said"),
    [
        ("goodput by depth", True, "there is no such parameter"),
        ("goodput by buffer", False, "nothing was measured"),
    ],
)
def test_what_cannot_be_drawn_is_said(directory: Path, tmp_path: Path, picture: str, there: bool, said: str) -> None:
    text = page(tmp_path, outcome("one", directory if there else None, picture))
    assert "<svg" not in text and said in text


def test_a_target_without_a_picture_has_none(directory: Path, tmp_path: Path) -> None:
    text = page(tmp_path, outcome("one", directory, None))
    assert "<svg" not in text and "not drawn" not in text
