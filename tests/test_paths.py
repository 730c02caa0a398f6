"""The links that a plan's paths name are those whose counters move, in labs with more than one way.

Random graphs are in tests/torture/graphs.py, which the same measurement is made for.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.spec import load
from tests.paths import Ends, measured
from tests.torture import graphs

pytestmark = pytest.mark.virtual

LIBRARY = Path(__file__).parents[1] / "labs/library"


def of_library(name: str) -> Plan:
    plan = compile(load(LIBRARY / f"{name}.lab.yaml"), host.virtual_facts())
    return replace(plan, lab=f"tp{os.getpid()}")


def some_pairs(plan: Plan) -> list[Ends]:
    """Those of the plan, one the other way round, and hosts that are no pair of it."""
    pairs = [(pair.source, pair.sink) for pair in plan.pairs]
    hosts = [node.name for node in plan.nodes if node.kind == "host"]
    others = [(a, b) for a in hosts for b in hosts if a != b and (a, b) not in pairs and (b, a) not in pairs]
    return [*pairs, pairs[0][::-1], *others[:2]]


@pytest.mark.parametrize("name", ["ring", "ring-ospf", "grid", "graph", "switched"])
def test_the_counters_of_the_plans_paths_move_and_no_others(name: str, tmp_path: Path) -> None:
    plan = of_library(name)
    pairs = some_pairs(plan)
    _, moved = measured(plan, pairs, tmp_path / "run")
    graphs.check(plan, pairs, moved)


def test_a_path_that_is_not_the_packets_does_not_escape(tmp_path: Path) -> None:
    plan = of_library("ring")
    pair = plan.pairs[0]
    _, moved = measured(plan, [(pair.source, pair.sink)], tmp_path / "run")
    turned = replace(pair, forward=pair.backward, backward=pair.forward)
    with pytest.raises(AssertionError, match="the plan says"):
        graphs.check(replace(plan, pairs=(turned,)), [(pair.source, pair.sink)], moved)
