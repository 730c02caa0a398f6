"""Changes in a live lab become a scenario that can be run: its events are these changes, at their times."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.generator import scenario as scenarios
from ewan.generator.scenario.link_recording import recorded
from ewan.labs import host, spec
from ewan.labs.compile import compile as compile_spec
from ewan.labs.link_changes import said
from ewan.labs.plan import Plan
from ewan.labs.runtime.state_documents import Direction, SettingsChange
from ewan.labs.spec import DescriptionError

LAB = """# A small lab.
name: mine
topology: dumbbell   # two routers
rtt: 20ms
wan: {rate: 10Mbit/s}
"""
BEGAN = 1_800_000_000_123_456_789
MS = 1_000_000


def plan() -> Plan:
    return compile_spec(spec.parse(LAB, Path("mine.lab.yaml")), host.virtual_facts())


def done(ms: int, direction: Direction = "both", **words: str) -> SettingsChange:
    return SettingsChange(BEGAN + ms * MS, "core", direction, words)


ALL = (
    done(0, delay="40ms", loss="0.1%"),
    done(1500, "forward", rate="5Mbit/s"),
    done(2250, down="true"),
    done(4000, up="true"),
    done(4100, loss="{gilbert-elliott: {to_bad: 1%, to_good: 10%, loss_bad: 50%}}"),
)


def test_the_scenario_does_again_what_was_done(tmp_path: Path) -> None:
    text = recorded(LAB, plan(), ALL)
    assert "# two routers" in text and "# A small lab." in text
    found = scenarios.parse(text, tmp_path / "again.scenario.yaml")
    (run,) = found.runs()
    assert run.spec.description.name == "mine-again"
    again = compile_spec(run.spec, host.virtual_facts())
    program = run.schedule(again, "virtual").program
    events = [(each.at_ns // MS, each.direction, each.down) for each in program.events]
    both = ("forward", "backward")
    assert events == [
        *((1000, way, None) for way in both),
        (2500, "forward", None),
        (3250, "forward", True),
        (5000, "forward", False),
        *((5100, way, None) for way in both),
    ]
    delayed, slower = program.events[0], program.events[2]
    assert delayed.down is None and delayed.change.delay is not None
    assert slower.down is None and slower.change.rate_bps == 5_000_000
    assert program.longest_ns > 10_000 * MS


def test_nothing_done_is_no_scenario() -> None:
    with pytest.raises(DescriptionError, match="nothing was done in mine yet"):
        recorded(LAB, plan(), ())


def test_what_was_done_is_said_as_it_is_typed() -> None:
    assert [said(each) for each in ALL[:3]] == ["delay=40ms loss=0.1%", "rate=5Mbit/s, forward", "down"]
