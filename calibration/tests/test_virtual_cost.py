"""What a run costs: coefficients found again from runs that were made of them, and those of the real kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ewan.calibration.host import virtual
from ewan.calibration.host.virtual import REFERENCE, CaseCost, VirtualCost
from ewan.generator import scenario as scenarios
from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.context import Context
from ewan.labs.record.demand import Demand

CONTEXT = Context.of(os.environ)
COEFFICIENTS = tuple(virtual.CASES)


def demands() -> dict[str, Demand]:
    """Of each case of the measurement, as it is expected."""
    found = {}
    for name, text in virtual.CASES.items():
        scenario = scenarios.parse(text, Path(f"{name.replace('_', '-')}.scenario.yaml"))
        ((_, _, schedule),) = scenario.runs().scheduled(host.virtual_facts(), "virtual")
        found[name] = schedule.demand()
    return found


def test_the_cases_tell_all_coefficients_apart() -> None:
    truth = VirtualCost(30_000_000, 4_000, 300, 150, 1_100, 250, 1_000_000, 0.1)
    runs = [
        CaseCost(name, virtual.weights(demand), virtual.cpu_ns(truth, demand)) for name, demand in demands().items()
    ]
    found = virtual.solve(runs)
    for name in COEFFICIENTS:
        assert found[name] == pytest.approx(getattr(truth, name), rel=0.02, abs=2), name


def test_each_coefficient_is_in_the_time_of_a_run() -> None:
    demand = Demand(1_000_000, 500_000, 100_000, 10_000, 5, 20_000)
    wall_ns, u_ns = virtual.wall_ns(REFERENCE, demand)
    assert virtual.cpu_ns(REFERENCE, demand) + REFERENCE.outside_ns == wall_ns
    assert 0 < u_ns < wall_ns / 2
    for name in COEFFICIENTS:
        dearer = replace(REFERENCE, **{name: 2 * getattr(REFERENCE, name)})
        assert virtual.wall_ns(dearer, demand)[0] > wall_ns, name


def test_a_host_of_half_the_pace_takes_twice_as_long() -> None:
    entries = 4_000
    boot_ns = REFERENCE.boot_ns + entries * REFERENCE.entry_ns
    slower = virtual.scaled(REFERENCE, 2 * boot_ns, entries)
    demand = Demand(1_000_000, 0, 0, 0, 0, 20_000)
    assert virtual.wall_ns(slower, demand)[0] == pytest.approx(2 * virtual.wall_ns(REFERENCE, demand)[0], rel=0.01)
    assert slower.share >= REFERENCE.share


@pytest.mark.virtual
def test_this_host_is_measured_and_a_run_takes_about_what_it_should(tmp_path: Path) -> None:
    """A neighbour may slow any of it down, so that only the order of magnitude can be asserted of times."""
    cost = virtual.measure(CONTEXT, budget_s=0)
    for name in VirtualCost.__struct_fields__:
        assert getattr(cost, name) >= 0, name
    assert cost.entry_ns > 500 and cost.packet_ns > 50
    run, took = virtual.weigh(CONTEXT.virtual(), "mixed_ns", tmp_path / "run")
    assert virtual.weighed_ns(cost, run.weights) == pytest.approx(took.cpu_ns, rel=2)
    assert took.packets == pytest.approx(demands()["mixed_ns"].packets, rel=0.1)
    assert took.entries == pytest.approx(demands()["mixed_ns"].entries, rel=0.2)
    assert took.cpu_ns > 0 and took.touched_bytes < took.memory_bytes
