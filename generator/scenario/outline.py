"""A scenario's outline for people: its steps and events in time, its points, the number of runs.

Comes in: a scenario, facts about the machine, a clock, a point. Goes out: a `ScenarioOutline` of the point's first run.
The first runs of the other points are checked as `ewan run` checks them, for as long as a person waits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ewan.generator.scenario.events import NOT_OF_THE_LINK
from ewan.generator.scenario.fields import When
from ewan.generator.scenario.runs import ScenarioRun
from ewan.generator.scenario.scenario import Scenario
from ewan.generator.scenario.schedule import Bar, ScheduledRun
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.units import NS_PER_SECOND, Duration
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.plan import Plan
from ewan.labs.record.schedule import Clock
from ewan.labs.spec import DescriptionError

MOST_BARS = 64
"""Bars of a step that are listed one by one."""
MOST_POINTS = 500
"""Points that are listed with their values."""
CHECKED_NS = NS_PER_SECOND // 2
"""The time for which points beyond the shown one are checked."""


@dataclass(frozen=True, slots=True)
class StepOutline:
    """A step; `who` and `words` as they are written. `flows`: members in all rounds, of which `bars` are the first."""

    name: str
    kind: str
    role: str
    who: str
    words: str
    after: tuple[str, ...]
    flows: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class EventOutline:
    """An event, by its place in the file; `at_ns`: the value of its `at`, from T0 or from when what it waits for."""

    number: int
    at_ns: int
    link: str
    direction: str
    words: str


@dataclass(frozen=True, slots=True)
class ScenarioOutline:
    """A scenario. `point`: the one, from 1 on, whose steps and events these are. `checked`: so many points are known
    to be right; `more`: a stop rule may add seeds."""

    name: str
    title: str
    lab: str
    point: int
    varying: tuple[str, ...]
    points: tuple[Mapping[str, str | int], ...]
    points_in_all: int
    seeds: int
    more: bool
    runs: int
    checked: int
    scales: tuple[str, ...]
    expected_ns: int
    """About how long the run takes of its own clock."""
    longest_ns: int
    steps: tuple[StepOutline, ...]
    events: tuple[EventOutline, ...]
    links: tuple[str, ...]
    """Those that events may be of."""


def outline(
    scenario: Scenario, facts: HostFacts, clock: Clock, scale: str | None = None, point: int = 1
) -> ScenarioOutline:
    """The outline of a scenario; DescriptionError for a mistake for which `ewan run` would refuse one of the checked
    points."""
    return scheduled(scenario, facts, clock, scale, point)[0]


def scheduled(
    scenario: Scenario, facts: HostFacts, clock: Clock, scale: str | None = None, point: int = 1
) -> tuple[ScenarioOutline, Plan, ScheduledRun]:
    """The same, with the plan and the schedule of the run that is shown."""
    runs = scenario.runs(None, scale)
    point = min(max(point, 1), len(runs.points))
    run = runs[(point - 1) * runs.seeds]
    plan = compile_spec(run.spec, facts)
    schedule = run.schedule(plan, clock)
    begun, checked = time.monotonic_ns(), 1
    for number in runs.firsts:
        if time.monotonic_ns() - begun > CHECKED_NS:
            break
        if number == run.number:
            continue
        other = runs[number - 1]
        try:
            other.schedule(compile_spec(other.spec, facts), clock)
        except DescriptionError as error:
            raise _of(error, other) from None
        checked += 1
    begin_ns = schedule.document.begin_ns
    found = ScenarioOutline(
        name=scenario.name,
        title=scenario.title,
        lab=plan.lab,
        point=point,
        varying=runs.varying,
        points=tuple({name: each[name] for name in runs.varying if name in each} for each in runs.points[:MOST_POINTS]),
        points_in_all=len(runs.points),
        seeds=runs.seeds,
        more=scenario.stop_at(scale) is not None,
        runs=len(runs),
        checked=checked,
        scales=scenario.scales,
        expected_ns=max(schedule.program.expected_ns - begin_ns, 0),
        longest_ns=schedule.program.longest_ns - begin_ns,
        steps=_steps(run, schedule),
        events=_events(run),
        links=tuple(link.name for link in plan.links),
    )
    return found, schedule.plan, schedule


def _of(error: DescriptionError, run: ScenarioRun) -> DescriptionError:
    """The same error with the point at which it is: others are right."""
    values = ", ".join(f"{name}={value}" for name, value in run.parameters.items())
    return DescriptionError(f"{error} (at {values})")


def _steps(run: ScenarioRun, schedule: ScheduledRun) -> tuple[StepOutline, ...]:
    found = []
    for span in schedule.spans:
        step, raw = run.document.steps[span.step], run.written("steps", span.step)
        ends = (raw.get("from"), raw.get("to")) if "from" in raw else (raw.get("ranks") or raw.get("on"),)
        settings = {key: raw[key] for key in ("congestion", "generator", "streams") if key in raw}
        said = [_words(raw[step.kind]), *(f"{key} {_words(value)}" for key, value in settings.items())]
        found.append(
            StepOutline(
                step.name,
                step.kind,
                step.role or "load",
                " → ".join(_words(each) for each in ends),
                ", ".join(each for each in said if each) + _waits(step.when),
                step.after,
                len(span.bars),
                span.bars[:MOST_BARS],
            )
        )
    return tuple(found)


def _events(run: ScenarioRun) -> tuple[EventOutline, ...]:
    return tuple(
        EventOutline(
            number,
            event.at.ns,
            event.link,
            event.direction,
            _event_words(run.written("events", number)) + _lasts(event.for_) + _waits(event.when),
        )
        for number, event in enumerate(run.document.events)
    )


def _lasts(lasting: Duration | None) -> str:
    return "" if lasting is None else f" for {lasting}"


def _waits(when: When | None) -> str:
    return "" if when is None else f" when {when.said}"


def _event_words(raw: Mapping[str, JsonValue]) -> str:
    said = {key: value for key, value in raw.items() if key not in NOT_OF_THE_LINK}
    for word in ("down", "up"):
        if word in said:
            return word
    return ", ".join(f"{key} {_words(value)}" for key, value in said.items())


def _words(value: Any) -> str:
    """A value of the file in one line."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return " ".join(f"{key} {_words(inner)}".strip() for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(inner) for inner in value)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
