"""Helpers of the tests of scenarios: a lab, and a text's runs and schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ewan.generator import scenario
from ewan.generator.scenario import Scenario, ScenarioRun, ScheduledRun
from ewan.labs.base.codec import Struct
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record.experiment import Clock

FACTS = HostFacts((0, 1), (), "virtual")
HEAD = """lab: {topology: {dumbbell: {pairs: 3, reverse_pairs: 2}}, rtt: 20ms, wan: {rate: 10Mbit/s}}
"""

SWEPT = (
    HEAD
    + """
parameters: {streams: 1, length: 5s}
sweep: [{streams: 1, length: 5s}, {streams: [2, 3], length: 10s}]
scales: {quick: {parameters: {length: 1s}, sweep: {streams: [1, 4]}, seeds: [7, 9]}}
stop: {metric: mean goodput, within: 5%}
steps: [{name: a, from: left1, to: right1, streams: "${streams}", for: "${length}", bulk: }]
"""
)
"""A scenario with groups of values and a scale."""


def parse(text: str) -> Scenario:
    """A scenario that no file holds."""
    return scenario.parse(text, Path("x.scenario.yaml"))


def planned(run: ScenarioRun, clock: Clock = "virtual") -> ScheduledRun:
    """A run's schedule on the plan of its own lab."""
    return run.schedule(compile_spec(run.spec, FACTS), clock)


def check(text: str, settings: dict[str, str] | None = None, scale: str | None = None) -> None:
    """Makes every run and its schedule, as an experiment does before the first one starts."""
    assert list(parse(text).runs(settings, scale).scheduled(FACTS, "virtual"))


def only(text: str) -> ScheduledRun:
    """The schedule of the one run of a scenario in the shared lab."""
    (run,) = parse(HEAD + text).runs()
    return planned(run)


def flows(schedule: ScheduledRun) -> list[Any]:
    """The request to the traffic generator, as it reads it, with the defaults."""
    assert schedule.program.traffic is not None
    return [_whole(flow) for flow in schedule.program.traffic.flows]


def _whole(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_whole(each) for each in value]
    if not isinstance(value, Struct):
        return value
    names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    config = value.__struct_config__
    tag = {} if config.tag is None else {config.tag_field: config.tag}
    return tag | {key: _whole(each) for key, name in names if not _absent(key, each := getattr(value, name))}


def _absent(key: str, value: object) -> bool:
    optional = (
        "most",
        "class",
        "transit_ns",
        "from",
        "to",
        "step",
        "after",
        "number",
        "half",
        "sample_ns",
        "multipath",
    )
    return value is None and key in optional
