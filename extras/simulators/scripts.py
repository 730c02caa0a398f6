"""One run of a scenario as a script of ns-2 or a program of ns-3.

In: a run, its plan, how often it is repeated. Out: the text; DescriptionError where the simulator cannot do it.
"""

from __future__ import annotations

from ewan.extras.simulators import ns2, ns3
from ewan.extras.simulators.flows import traffic
from ewan.extras.simulators.network import network
from ewan.generator.scenario import ScenarioRun
from ewan.labs.plan import Plan


def script_of_ns2(run: ScenarioRun, plan: Plan, seeds: int) -> str:
    """The Tcl script of a run for ns-2."""
    lab, schedule = network(plan), run.schedule(plan, "virtual")
    return ns2.script(_title(run), lab, traffic(run, schedule, lab.mtu, tuple(ns2.CONGESTION), ns2.SIMULATOR))


def program_of_ns3(run: ScenarioRun, plan: Plan, seeds: int) -> str:
    """The C++ program of a run for ns-3."""
    lab, schedule = network(plan), run.schedule(plan, "virtual")
    return ns3.program(_title(run), lab, traffic(run, schedule, lab.mtu, tuple(ns3.CONGESTION), ns3.SIMULATOR))


def _title(run: ScenarioRun) -> str:
    values = ", ".join(f"{name}={value}" for name, value in run.parameters.items())
    return " ".join(f"{run.scenario.title}{f' ({values})' if values else ''}".split())
