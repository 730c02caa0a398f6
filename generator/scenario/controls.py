"""The congestion controls of a run that are the user's own: modules of the kernel that it runs in, and a program beside
the virtual kernel.

In: the controls that its flows ask for, the scenario's `cc:`, and the library of added controls. Out: a module for each
of them, with its source, and the program with its files; DescriptionError where one cannot be read.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection
from pathlib import Path

from ewan.generator import congestion
from ewan.generator.scenario.runs import ScenarioRun
from ewan.labs.base.codec import replace
from ewan.labs.congestion import external_program, library, source
from ewan.labs.congestion.external_program import NAME
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.kernels import library as kernels
from ewan.labs.record.experiment import Clock
from ewan.labs.runtime import controllers
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Controller, KernelModule


def modules(run: ScenarioRun, used: Collection[str], clock: Clock) -> tuple[KernelModule, ...] | None:
    """The modules of a run; None where it needs none. A control of `cc:` comes before an added one of its name."""
    wanted = set(used)
    written = [name for name in run.document.cc if name in wanted]
    if clock == "live" and NAME in wanted:
        raise run.places.error(
            ("cc", NAME) if NAME in written else (),
            f"{NAME} is set by a program beside the virtual kernel, and this run is in the live clock: write "
            "--runtime virtual",
        )
    found: dict[str, KernelModule] = {}
    if NAME in wanted and NAME not in run.document.cc:
        raise run.places.error((), f"{NAME} is set by a program of yours: write cc: {{{NAME}: {{program: ./mine.py}}}}")
    for name in written:
        if clock == "virtual" and name in _built_in(run.spec.description.kernel):
            raise run.places.error(
                ("cc", name), "the virtual kernel has a congestion control of this name: write another"
            )
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


@functools.cache
def _built_in(kernel: str | None) -> tuple[str, ...]:
    of_kernel = None if kernel is None else kernels.congestion_of(kernel, os.environ)
    return congestion.in_virtual() if of_kernel is None else of_kernel


def controller(run: ScenarioRun, used: Collection[str]) -> Controller | None:
    """The program that sets the windows of `external`, with its files; None where no flow has that control."""
    return _controller(run) if NAME in used and NAME in run.document.cc else None


def is_own(run: ScenarioRun, name: str) -> bool:
    """Return whether a congestion control is one of `cc:`, or was added."""
    return name in run.document.cc or name in library.names(os.environ)


def sources(run: ScenarioRun) -> list[ModuleSource | Controller]:
    """The sources of all controls of `cc:`."""
    return [_controller(run) if name == NAME else _module(run, name).source for name in run.document.cc]


def _folder(run: ScenarioRun) -> Path:
    return Path(str(run.scenario.file)).absolute().parent


def _module(run: ScenarioRun, name: str) -> KernelModule:
    control = run.document.cc[name]
    if name == NAME:
        return external_program.module(control.thinks.ns)
    _refuse(run, name, ("program", "files", "thinks"), f"is of a program: name this congestion control {NAME}")
    if control.source is None:
        raise run.places.error(("cc", name), "write its source, like {source: tcp_mine.c}")
    for key, value in control.parameters.items():
        if not (key.isidentifier() and key.isascii()) or any(each.isspace() for each in str(value)):
            raise run.places.error(
                ("cc", name, "parameters", key), 'write a parameter of the module and its value, like "alpha: 2"', value
            )
    try:
        given = source.read(_folder(run) / Path(control.source).expanduser())
    except LabError as error:
        raise run.places.error(("cc", name, "source"), str(error)) from None
    words = " ".join(f"{key}={value}" for key, value in sorted(control.parameters.items()))
    return KernelModule(given, (name,), words)


def _controller(run: ScenarioRun) -> Controller:
    control = run.document.cc[NAME]
    _refuse(run, NAME, ("source", "parameters"), "is of a module: a program has program, files and thinks")
    if control.program is None:
        raise run.places.error(("cc", NAME), "write the program that sets its windows, like {program: ./mine.py}")
    folder = _folder(run)
    try:
        words = external_program.words(control.program)
        controllers.check(words, folder)
    except LabError as error:
        raise run.places.error(("cc", NAME, "program"), str(error)) from None
    try:
        named = [word for word in words if _names_a_file(folder, word)]
        return Controller(words, external_program.files(folder, [*named, *control.files]))
    except LabError as error:
        raise run.places.error(("cc", NAME, "files"), str(error)) from None


def _names_a_file(folder: Path, word: str) -> bool:
    try:
        return not word.startswith("/") and (folder / word).is_file()
    except (OSError, ValueError):
        return False


def _refuse(run: ScenarioRun, name: str, keys: tuple[str, ...], why: str) -> None:
    for key in keys:
        if ("cc", name, key) in run.places.known:
            raise run.places.error(("cc", name, key), why)
