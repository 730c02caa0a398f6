"""`ewan exp compare`: two experiments beside each other, as a user calls it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ewan.analysis.compare import descriptions, results
from ewan.analysis.compare.cli import compare_command
from ewan.analysis.tests import synthetic
from ewan.analysis.tests.test_report import Reader
from ewan.labs.context import Context

CC = [{"congestion": "reno", "rtt": "20ms"}, {"congestion": "cubic", "rtt": "20ms"}]


def compare(*arguments: str) -> Result:
    return CliRunner().invoke(compare_command, arguments, catch_exceptions=False, obj=Context.of(os.environ))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def made(place: Path, points: list[dict[str, Any]], **options: Any) -> Path:
    synthetic.experiment(place, points, **{"pairs": 2, "seconds": 4, **options})
    rate = options.get("rate_bps", 1_000_000_000)
    (place / "scenario.yaml").write_text(f"lab: dumbbell\nwan: {{rate: {rate}}}\n")
    for run in place.glob("runs/*"):
        plan = {"seed": 1, "links": [{"name": "core", "forward": {"rate_bps": rate}, "backward": {"rate_bps": rate}}]}
        (run / "plan.json").write_text(json.dumps(plan))
    synthetic.vouch(place)
    return place


def test_what_differs_is_told_and_nothing_else(place: Path) -> None:
    made(place / "a", CC)
    made(place / "b", CC, rate_bps=500_000_000, told={"commit": "1" * 40})
    answer = compare("a", "b", "--metric", "aggregate goodput", "--json")
    assert answer.exit_code == 0
    found = json.loads(answer.stdout)
    assert found["labs"] == [
        {"what": "links core forward rate_bps and 1 more", "first": "1 Gbit/s", "second": "500 Mbit/s"}
    ]
    assert [row["what"] for row in found["circumstances"]] == ["commit"]
    assert found["parameters"] == []
    assert "-wan: {rate: 1000000000}" in found["scenarios"] and "+wan: {rate: 500000000}" in found["scenarios"]
    assert [row["parameters"] for row in found["results"]] == CC
    for row in found["results"]:
        assert row["paired"] and row["test"] == "paired t"
        assert row["second"]["mean"] == pytest.approx(row["first"]["mean"] / 2, rel=0.01)
        assert row["outcome"] == "less, worse"


def test_the_terminal_and_the_page_have_both_beside_each_other(place: Path) -> None:
    made(place / "a", CC)
    made(place / "b", CC, rate_bps=500_000_000)
    answer = compare("a", "b", "--metric", "aggregate goodput", "-o", "page.html")
    assert answer.exit_code == 0 and answer.output.rstrip().endswith("page.html")
    assert "Results" in answer.output and "less, worse" in answer.output
    assert not (place / "b/compare.html").exists()
    page = (place / "page.html").read_text()
    Reader(page)
    assert "1 Gbit/s" in page and "500 Mbit/s" in page and "less, worse" in page


def test_an_experiment_beside_itself_has_no_difference(place: Path) -> None:
    made(place / "a", CC)
    answer = compare("a", "a")
    assert answer.exit_code == 0 and (place / "a/compare.html").exists()
    assert "the descriptions are the same" in answer.output
    assert "versions and circumstances are the same" in answer.output
    assert "no difference shown" in answer.output and "better" not in answer.output


def test_other_seeds_are_not_paired(place: Path) -> None:
    made(place / "a", CC[:1])
    made(place / "b", CC[1:], seeds=(4, 5, 6, 7))
    found = json.loads(compare("a", "b", "--metric", "mean completion time", "--json").stdout)
    (row,) = found["results"]
    assert (row["paired"], row["test"], row["effect"]) == (False, "Welch", "Hedges' g")
    assert (row["first"]["n"], row["second"]["n"]) == (3, 4)
    assert {row["what"] for row in found["parameters"]} == {"congestion", "seeds"}


def test_points_match_by_what_varies() -> None:
    def points(*parameters: dict[str, Any]) -> Any:
        return {tuple(each.items()): {} for each in parameters}

    one = points({"cc": "reno", "rtt": 1}, {"cc": "reno", "rtt": 2})
    two = points({"cc": "bbr", "rtt": 2, "loss": 0}, {"cc": "bbr", "rtt": 3, "loss": 0})
    assert [(dict(a)["rtt"], dict(b)["rtt"]) for a, b in results.matched(one, two)] == [(2, 2)]
    unlike = points({"cc": "bbr", "rtt": 1, "loss": 0}, {"cc": "bbr", "rtt": 1, "loss": 1})
    assert results.matched(one, unlike) == [], "which of the two is meant is not known"


def test_what_differs_in_the_same_way_is_one_row() -> None:
    class Run:
        def __init__(self, rate: int) -> None:
            self.rate = rate

        def json(self, name: str) -> dict[str, Any]:
            return {"nodes": [{"name": f"left{n}", "rate_bps": self.rate, "mac": str(self.rate)} for n in range(3)]}

    (row,) = descriptions.of_labs(Run(1_000), Run(2_000))  # type: ignore[arg-type]
    assert row == ("nodes left0 rate_bps and 2 more", "1 kbit/s", "2 kbit/s")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a", "nowhere"], "there is no such directory"),
        (["a", "a", "--metric", "speed"], "unknown metric"),
        (["a", "a", "-o", "nowhere/page.html"], "name another file with --output"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(place: Path, arguments: list[str], says: str) -> None:
    made(place / "a", CC[:1], seeds=(1,))
    answer = compare(*arguments)
    assert answer.exit_code == 2
    assert says in answer.output and len(answer.output.strip().splitlines()) == 1
