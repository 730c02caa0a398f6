"""The scenarios of labs/library and the page about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ewan.generator import scenario
from ewan.generator.scenario.manual import markdown
from ewan.generator.tests.scenarios import planned
from ewan.labs.base import codec

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = sorted((ROOT / "labs/library").glob("*.scenario.yaml"))


def test_there_are_scenarios() -> None:
    assert len(LIBRARY) >= 12


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: file.name)
def test_every_ready_scenario_compiles_in_all_of_its_scales(file: Path) -> None:
    result = scenario.load(file)
    assert result.name == file.name.removesuffix(".scenario.yaml")
    for scale in (None, *result.scales):
        runs = result.runs(scale=scale)
        assert len({run.name for run in runs}) == len(runs)
        last = runs[-1]
        one, two = planned(last), planned(replace(last))
        assert one.program.to_json() == two.program.to_json()
        assert codec.compact(one.document) == codec.compact(two.document)
        assert 0 < one.program.expected_ns <= one.program.longest_ns


def test_papers_numbers_stand_beside() -> None:
    streams = scenario.load("parallel-streams")
    values = [each.recorded for each in streams.document.beside if each.metric == "aggregate goodput"]
    assert [(each.when, each.value, each.unit) for each in values] == [
        ({"streams": 1}, 8353.66e6, "bit/s"), ({"streams": 2}, 8793.92e6, "bit/s"),
        ({"streams": 5}, 8987.49e6, "bit/s"), ({"streams": 10}, 9207.78e6, "bit/s"),
    ]  # fmt: skip
    reverse = scenario.load("reverse-traffic")
    assert reverse.document.beside[-1].than == {"reverse": 0}
    assert reverse.document.beside[-1].recorded.value == pytest.approx(0.1)
    assert len(planned(reverse.runs(scale="quick")[-1]).document.flows) == 15 + 11


def test_the_page_in_docs_is_current() -> None:
    assert (ROOT / "docs/reference/scenario.md").read_text() == markdown(), "ewan docs writes it"
