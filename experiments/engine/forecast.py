"""Forecast of the wall time of runs of the virtual clock, before the first one begins. Pure.

In: the runs' demands, and what this host takes for one (`Parts.wall`). Out: ns for each run, and a line for people."""

from __future__ import annotations

from collections.abc import Sequence

from ewan.experiments.engine.parts import Wall
from ewan.labs.base.units import KILO, MEGA
from ewan.labs.base.units.shown import about
from ewan.labs.record.demand import Demand
from ewan.labs.record.experiment import Entry


class Forecast:
    """A forecast for an experiment's runs; a run without a counted demand is like the mean of the others."""

    def __init__(self, runs: Sequence[Entry], wall: Wall | None) -> None:
        counted = [entry.demand for entry in runs if entry.demand is not None]
        self._wall = wall
        self._usual = _mean(counted) if counted else None

    def run_ns(self, entry: Entry) -> int:
        """Wall time of one run on a CPU of its own; 0: not known."""
        return self._of(entry)[0]

    def words(self, entries: Sequence[Entry], workers: int) -> str:
        """The time that all of them take, so many at once, in words."""
        each = [self._of(entry) for entry in entries]
        at_once = max(min(workers, len(entries)), 1)
        # Runs on one host are too slow or too fast together: their uncertainties add up.
        total_ns = max(sum(ns for ns, _ in each) / at_once, *(ns for ns, _ in each), 0)
        share = sum(u_ns for _, u_ns in each) / max(sum(ns for ns, _ in each), 1)
        packets = sum(demand.packets for entry in entries if (demand := entry.demand or self._usual))
        cpus = f"{at_once} CPU{'s' if at_once > 1 else ''}"
        time = f"{about(total_ns, 'time', 2)} ± {100 * share:.0f} %"
        return f"its runs take about {time} of wall time on {cpus} ({amount(packets)} packets)"

    def _of(self, entry: Entry) -> tuple[int, int]:
        demand = entry.demand or self._usual
        return (0, 0) if self._wall is None or demand is None else self._wall(demand)


NOTHING = Forecast((), None)
"""The forecast where nothing is known of the runs' cost."""


def _mean(demands: Sequence[Demand]) -> Demand:
    return Demand(
        **{
            name: round(sum(getattr(each, name) for each in demands) / len(demands))
            for name in Demand.__struct_fields__
        }
    )


def amount(number: int) -> str:
    """`12.3 M`, `850 k`, `34`."""
    for unit, size in (("M", MEGA), ("k", KILO)):
        if number >= size:
            return f"{float(f'{number / size:.3g}'):g} {unit}"
    return str(number)
