"""The engine calls these functions to verify labs and to judge results; tests replace them by their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.experiments.engine.link_loads import Loads
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.record import Certificate
from ewan.labs.record.demand import Demand
from ewan.labs.record.experiment import ExperimentOrigin
from ewan.labs.record.summary import Summary

"""ewan-summary/1: `runs`, `points`, `beside` (analysis/summary.py)."""


Wall = Callable[[Demand], tuple[int, int]]
"""The wall time of a run and the standard uncertainty of that, in ns."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Functions of other packages. Each field's own module has its errors; LabError and RuntimeError carry one line for
    the user."""

    certify: Callable[[Context, Plan, Path, bool, threading.Event], Certificate]
    """Arguments: the context of this process, a plan, a directory of its own for the probes' files, whether it is the
    virtual clock (live, the lab is up), and the event that asks it to end early."""
    analyse: Callable[[Path], Summary]
    """An experiment's directory; writes summary.json."""
    report: Callable[[Path], Path]
    """An experiment's directory; gives the path of its report."""
    estimate: Callable[[Sequence[float], float], tuple[float, float]]
    """Values and a confidence → their mean, and half the width of its confidence interval."""
    welch: Callable[[Sequence[float], Sequence[float], float], tuple[float, float, float]]
    """Two samples, not all of whose values are equal, and a confidence → p of the difference of their means, half the
    width of its confidence interval, and the coverage factor of that."""
    outside: Callable[[Context, Plan, Loads], str]
    """The reason, in one line, why this host cannot carry the load that a run's flows may put on the links of its plan
    in the live clock; empty: it can. Needs root; it measures the host if that was not measured yet."""
    wall: Callable[[Context], Wall]
    """The cost of a run of the virtual clock on this host, which may be measured for that; the kernel must be there."""

    @classmethod
    def default(cls) -> Parts:
        """The functions of calibration and analysis, which take a second to import."""
        from ewan.analysis.differences import expanded
        from ewan.analysis.report import write
        from ewan.analysis.statistics import mean_interval
        from ewan.analysis.summary import analyse
        from ewan.calibration.certificates import certify
        from ewan.calibration.host.measurement import wall_of
        from ewan.calibration.host.refusal import outside

        return cls(certify, analyse, write, mean_interval, expanded, outside, wall_of)


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that an experiment's record has beside its runs."""

    files: Mapping[str, bytes]
    """All that is needed to read the scenario again, by name: scenario.yaml, settings.json."""
    origin: ExperimentOrigin
