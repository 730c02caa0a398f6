"""The congestion controls of a run that are the user's own, as modules of the virtual kernel.

In: the controls that its flows ask for, the scenario's `cc:`, and the library of added controls. Out: a module for each
of them, with its source; DescriptionError where a source cannot be read.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from ewan.generator.scenario.runs import ScenarioRun
from ewan.labs.base.codec import replace
from ewan.labs.congestion import library, source
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.record.experiment import Clock
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import KernelModule


def modules(run: ScenarioRun, used: Collection[str], clock: Clock) -> tuple[KernelModule, ...] | None:
    """The modules of a run; None where it needs none. A control of `cc:` comes before an added one of its name."""
    wanted = set(used)
    written = [name for name in run.document.cc if name in wanted]
    if clock == "live":
        for name in written:
            raise run.places.error(
                ("cc", name),
                "is a module of the virtual kernel, and this run is in the live clock: write --runtime virtual",
            )
        return None
    found: dict[str, KernelModule] = {}
    for name in written:
        module = _module(run, name)
        before = found.setdefault(module.name, module)
        if (before.source, before.parameters) != (module.source, module.parameters):
            raise run.places.error(
                ("cc", name), f"another control of this run has the module {module.name}: write another file name"
            )
        found[module.name] = replace(before, controls=tuple(dict.fromkeys([*before.controls, name])))
    for module in library.modules(wanted.difference(written), os.environ) or ():
        if module.name in found:
            raise run.places.error(
                ("cc",), f"has a module {module.name}, as the library of added controls has: write another file name"
            )
        found[module.name] = module
    return tuple(found.values()) or None


def sources(run: ScenarioRun) -> list[ModuleSource]:
    """The sources of all controls of `cc:`."""
    return [_module(run, name).source for name in run.document.cc]


def _path(run: ScenarioRun, name: str) -> Path:
    folder = Path(str(run.scenario.file)).absolute().parent
    return folder / Path(run.document.cc[name].source).expanduser()


def _module(run: ScenarioRun, name: str) -> KernelModule:
    control = run.document.cc[name]
    for key, value in control.parameters.items():
        if not (key.isidentifier() and key.isascii()) or any(each.isspace() for each in str(value)):
            raise run.places.error(
                ("cc", name, "parameters", key), 'write a parameter of the module and its value, like "alpha: 2"', value
            )
    try:
        given = source.read(_path(run, name))
    except LabError as error:
        raise run.places.error(("cc", name, "source"), str(error)) from None
    words = " ".join(f"{key}={value}" for key, value in sorted(control.parameters.items()))
    return KernelModule(given, (name,), words)
