"""Which links flows cross."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.paths import crossed
from analysis.tests.synthetic import PLAN

GOLDEN = Path(__file__).parents[2] / "tests/golden"


def test_a_dumbbell_has_one_link_and_two_directions() -> None:
    assert crossed(PLAN, [("left1", "right1"), ("left3", "right2")]) == {("core", "forward")}
    assert crossed(PLAN, [("right1", "left1")]) == {("core", "backward")}
    assert crossed(PLAN, [("left1", "left2")]) == set()


def test_links_in_a_row() -> None:
    plan = json.loads((GOLDEN / "stages.plan.json").read_text())
    assert crossed(plan, [("host1", "host2")]) == {("arm1", "forward"), ("arm2", "backward")}


def test_a_plan_that_is_not_there_has_no_links() -> None:
    assert crossed({}, [("left1", "right1")]) == set()
