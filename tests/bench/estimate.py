"""How well the forecast of a run's wall time holds: scenarios of the library, forecast and then run, one by one.

In: a context that can run the virtual kernel. Out: what was expected of each run and what it took, packets and CPU
time; tables of them for `bench.py`. A neighbour on the machine slows a run down, its CPU time too: a short run of the
calibration before and after each says by how much, and the forecast is for that pace.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ewan.calibration.host import virtual as calibration
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import ScenarioRun, ScheduledRun
from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.base.units.shown import about
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.spec import names

BUDGET_S, QUICK_BUDGET_S = 12.0, 5.0
WITHIN = 0.25
"""What a forecast may be off by."""

Made = tuple[ScenarioRun, Plan, ScheduledRun]


def chosen(quick: bool) -> Iterator[tuple[str, Made]]:
    """The first and the last point of each scenario of the library at its smallest scale; a quick bench has the first
    alone."""
    for name in names.known(names.SCENARIO):
        scenario = scenarios.load(name)
        scale = "quick" if "quick" in scenario.scales else None
        made = list(scenario.runs({}, scale).scheduled(host.virtual_facts(), "virtual"))
        for each in made[:1] if quick or len(made) == 1 else (made[0], made[-1]):
            yield name, each


def measure(context: Context, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """All runs; `say` is told which is at work."""
    say("calibration of this host")
    cost = calibration.measure(context, QUICK_BUDGET_S if quick else BUDGET_S, say)
    runtime = context.virtual()
    rows = []
    with tempfile.TemporaryDirectory(prefix="ewan-bench-") as scratch:

        def pace(number: int) -> float:
            found = [
                calibration.weigh(runtime, calibration.PACE, Path(scratch) / f"pace-{number}-{turn}")
                for turn in range(2)
            ]
            return min(run.cpu_ns / calibration.weighed_ns(cost, run.weights) for run, _ in found)

        before = pace(0)
        for number, (name, (run, plan, schedule)) in enumerate(chosen(quick), 1):
            say(f"{name} {run.name}")
            demand = schedule.demand()
            took = runtime.run(plan, schedule.program, Path(scratch) / str(number)).cost
            after = pace(number)
            rows.append(
                {
                    "scenario": name,
                    "run": run.name,
                    "expected_packets": demand.packets,
                    "packets": took.packets,
                    "expected_entries": demand.entries,
                    "entries": took.entries,
                    "expected_cpu_ns": calibration.cpu_ns(cost, demand),
                    "cpu_ns": took.cpu_ns,
                    "wall_ns": took.wall_ns,
                    "pace": (before + after) / 2,
                    "weights": calibration.weights(demand),
                    "memory_bytes": took.memory_bytes,
                    "touched_bytes": took.touched_bytes,
                }
            )
            before = after
    return {"cost": codec.data_of(cost), "runs": rows}


def ratio(row: dict[str, Any]) -> float:
    """CPU time that was expected, at the machine's pace, for what was taken."""
    return float(row["expected_cpu_ns"] * row["pace"] / row["cpu_ns"])


Sheet = tuple[str, list[str], list[list[str]]]


def tables(found: dict[str, Any]) -> list[Sheet]:
    """Title, columns, rows."""
    rows = []
    for row in found["runs"]:
        rows.append(
            [
                f"{row['scenario']}, {row['run'].removesuffix(' seed=1')}",
                f"{row['packets']:,}",
                f"{row['expected_packets'] / row['packets']:.2f}",
                about(row["cpu_ns"], "time", 3),
                f"{row['pace']:.2f}",
                f"{ratio(row):.2f}",
                about(row["touched_bytes"], "size", 3),
                about(row["memory_bytes"], "size", 3),
            ]
        )
    columns = ["run", "packets", "expected / seen", "CPU time", "pace", "expected / seen", "memory touched", "given"]
    off = [abs(ratio(row) - 1) for row in found["runs"]]
    within = sum(each <= WITHIN for each in off)
    kept = [f"{within} of {len(off)}", f"{statistics.median(off):.0%}", f"{max(off):.0%}"]
    return [
        ("Virtual clock: the forecast of a run", columns, rows),
        ("Virtual clock: forecasts of CPU time", [f"within {WITHIN:.0%}", "median error", "largest"], [kept]),
    ]
