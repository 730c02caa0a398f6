"""Helpers of the engine's tests: jobs of a small scenario, and replacements of an engine's surroundings."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ewan.experiments.engine import engine, preparation
from ewan.experiments.engine.experiment import Job
from ewan.experiments.engine.parts import Facts, Parts, Wall
from ewan.experiments.tests.origins import origin
from ewan.generator import scenario
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.record import Certificate, MachineFacts, Row
from ewan.labs.record.summary import Summary
from tests import summaries

CONTEXT = dataclasses.replace(Context.of(os.environ), store=None)
TEXT = """
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}
seeds: 2
longest: 10s
sample: 100ms
steps:
  - {name: load, from: left1, to: right1, congestion: reno, for: 1s, bulk: {}}
"""


def jobs(text: str = TEXT) -> list[Job]:
    """A scenario's runs in the virtual clock."""
    return list(preparation.jobs(scenario.parse(text, Path("engine.scenario.yaml")).runs(), virtual=True))


def half_of_range(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """The mean, and half of the range in place of a confidence interval's half width."""
    return sum(values) / len(values), (max(values) - min(values)) / 2


def unlike(first: Sequence[float], second: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """A test of the difference for which different samples differ for sure."""
    return float(first == second), 0.0, 1.0


def certificate(plan: Plan, verdict: Any) -> Certificate:
    """A certificate of one row with this verdict."""
    facts = MachineFacts("", "", "", 1, 0, "", False, {})
    row = Row("core", "forward", "rate", "bit/s", 1e7, 2e7, 1e7, 1.0, verdict)
    return Certificate("", plan.lab, "", facts, {}, (row,), {}, {}, 0, "virtual")


def parts(verdict: str, outside: str = "") -> Parts:
    """An engine's surroundings in which every lab has the same verdict, and nothing is analysed. `outside`: the reason
    why the host does not carry the runs' load."""

    def certify(context: Context, plan: Plan, place: Path, virtual: bool, stop: threading.Event) -> Certificate:
        return certificate(plan, verdict)

    def analyse(place: Path) -> Summary:
        return summaries.summary()

    def wall(context: Context) -> Wall:
        return lambda demand: (demand.packets, demand.packets // 4)

    def report(place: Path) -> Path:
        return place / "report.html"

    return Parts(certify, analyse, report, half_of_range, unlike, lambda *asked: outside, wall)


def begun(place: Path, verdict: str, unverified: bool) -> int:
    """Runs the small scenario in labs of one verdict; the exit status."""
    facts = Facts({}, origin(scenario="engine"))
    prepared = preparation.prepare(jobs(), facts, virtual=True, directory=place, unverified=unverified)
    return engine.run(prepared, parts=parts(verdict), context=CONTEXT)
