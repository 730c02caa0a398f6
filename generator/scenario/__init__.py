"""Scenarios: the traffic of a lab, its times, and its varied parameters; from a file to what nodes execute.

A description becomes runs (points of its parameters, with seeds), and each run a schedule with its program. Pure. Runs
are made one by one: an experiment schedules, checks and writes each once, and keeps none, before the first one
starts."""

from ewan.generator.scenario.manual import markdown
from ewan.generator.scenario.published import Stop
from ewan.generator.scenario.runs import Runs, ScenarioRun
from ewan.generator.scenario.scenario import Scenario, find, from_data, load, parse
from ewan.generator.scenario.schedule import ScheduledRun
from ewan.labs.record.schedule import Clock
from ewan.labs.spec import DescriptionError

__all__ = [
    "Clock",
    "DescriptionError",
    "Runs",
    "Scenario",
    "ScenarioRun",
    "ScheduledRun",
    "Stop",
    "find",
    "from_data",
    "load",
    "markdown",
    "parse",
]
