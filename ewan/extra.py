"""The contract of extras: packages that add to the product, and that nothing in the product imports.

A package names one object, an `Extra`, by an entry point of the group `ewan.extras`:

    [project.entry-points."ewan.extras"]
    example = "ewan_example:EXTRA"

Each of its fields maps names to functions that import what they return, so that an extra costs nothing until it is
used. The core looks for extras where it meets a name that it does not know, and for what only an extra can do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "ewan.extras"
"""The group of entry points that name extras."""


@dataclass(frozen=True, slots=True)
class Export:
    """A format of other programs in which a scenario can be written, a file for each point of its parameters.

    `load` imports the function that makes the text of a run: of an `ewan.generator.scenario.ScenarioRun`, its
    `ewan.labs.plan.Plan` and the number of seeds. It raises DescriptionError where the format has no place for it.
    """

    ending: str
    """The ending of its files' names, like `.xml`."""
    help: str
    """One line about it for `ewan results export --help`."""
    load: Callable[[], Callable[..., str]]


@dataclass(frozen=True, slots=True)
class Extra:
    """A package's additions to the product."""

    commands: Mapping[str, Callable[[], click.Command]] = field(default_factory=dict)
    """Commands of `ewan`, by name."""
    metrics: Mapping[str, Callable[[], tuple[Any, Callable[..., float | None]]]] = field(default_factory=dict)
    """Metrics that scenarios and figures may name, by name: what each is, an `ewan.labs.record.metric.Metric`, and the
    function that computes it of an `ewan.analysis.rundata.RunData`: a value in the metric's unit, or None where a run
    has none. They are computed where they are named."""
    scenario_readers: Mapping[str, Callable[[], Callable[[Path], Any]]] = field(default_factory=dict)
    """Functions that read a scenario in another format, by how the names of its files end (`.xml`): of a file they give
    an `ewan.generator.scenario.Scenario` and a tuple of lines on what of the file has no use."""
    exports: Mapping[str, Export] = field(default_factory=dict)
    """Formats that `ewan results export` writes a scenario in, by the name of the option: `nxe` for `--nxe
    FILE.xml`."""
    executors: Mapping[str, Callable[[], Callable[..., Any]]] = field(default_factory=dict)
    """Functions that execute runs of the virtual clock elsewhere: of an `ewan.labs.context.Context` and the file of
    `ewan run --cluster FILE` they give a context manager of an `ewan.experiments.engine.executor.Executor`."""
    machines: Mapping[str, Callable[[], Callable[..., Any]]] = field(default_factory=dict)
    """Functions that make live labs over several machines: of an `ewan.labs.context.Context` and a function that is
    a function that reports progress they return an `ewan.labs.runtime.multi_machine.MultiMachineRuntime`."""
    drivers: Mapping[str, Callable[[], ModuleType]] = field(default_factory=dict)
    """Programs that drive external emulators, by the name that descriptions write. A driver is a module that Python
    starts as a program; `NAME.driver.json` beside it says what its devices can (`ewan.labs.hardware.abilities`)."""
    pages: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Functions that give the text of a page of the documentation, by its path below docs/."""
    functions: Mapping[str, Callable[[], Callable[..., Any]]] = field(default_factory=dict)
    """Functions of `import ewan` for notebooks, by name: `ewan.course()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledExtras(Extra):
    """All that the extras of this Python environment add, and which extras they are."""

    usable: Mapping[str, Extra]
    """The extras by the names of their entry points, in the order of these names."""
    failures: tuple[str, ...]
    """A line for each extra that cannot be imported."""


@functools.cache
def installed() -> InstalledExtras:
    """The extras of this Python environment. It reads the environment's packages once, which takes about 20 ms."""
    from importlib.metadata import entry_points

    usable: dict[str, Extra] = {}
    failures = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            usable[point.name] = _extra(point)
        except Exception as error:  # a package of anybody's: whatever it raises, the others are usable
            failures.append(f"the extra {point.name} ({point.value}) cannot be used: {type(error).__name__}: {error}")
    together = {
        each.name: {name: what for extra in usable.values() for name, what in getattr(extra, each.name).items()}
        for each in fields(Extra)
    }
    return InstalledExtras(**together, usable=usable, failures=tuple(failures))


def _extra(point: EntryPoint) -> Extra:
    found = point.load()
    if not isinstance(found, Extra):
        raise TypeError(f"it is {type(found).__name__}, not ewan.extra.Extra")
    return found
