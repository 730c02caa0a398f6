"""The scenario that a name means, and scenarios as files for other programs, which extras write.

In: a word of the command line: a file in YAML, a file of another format that an extra reads, or one of the library; or
an experiment's directory, for the scenario that it was made of. Out: the scenario, and a line for each part of its file
that has no use here; files of another format, one for each point of the parameters. All of them are made before any is
written, so that a refused one leaves no files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ewan.experiments.engine import source
from ewan.extra import installed
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import Runs, Scenario, ScenarioRun
from ewan.labs import host
from ewan.labs.compile import compile as compile_spec
from ewan.labs.plan import Plan
from ewan.labs.spec import DescriptionError, names


def load(name: str) -> tuple[Scenario, tuple[str, ...]]:
    """The scenario that is meant, and notes on its file; DescriptionError where it cannot be read."""
    if found := in_another_format(name):
        ending, file = found
        read: Callable[[Path], tuple[Scenario, tuple[str, ...]]] = installed().scenario_readers[ending]()
        return read(file)
    return scenarios.load(name), ()


def in_another_format(name: str) -> tuple[str, Path] | None:
    """The ending of the file's name, and the file: a path, or a name here or in the library; None for YAML."""
    is_name = "/" not in name
    if name.endswith((".yaml", ".yml")) or (is_name and names.find(name, names.SCENARIO)):
        return None
    for ending in installed().scenario_readers:
        if name.endswith(ending):
            file = Path(name)
            return ending, (is_name and names.find(name.removesuffix(ending), ending)) or file
        if is_name and (file_of_name := names.find(name, ending)):
            return ending, file_of_name
    return None


def files(
    kind: str, of: Path | str, target: Path, scale: str | None = None, settings: Mapping[str, str] | None = None
) -> dict[Path, bytes | str]:
    """The text of each file, by its path; nothing is written.

    `scale` and `settings` as for `ewan run`; of an experiment's directory those that it was made with, unless given.
    """
    export = installed().exports[kind]
    if target.suffix != export.ending:
        raise DescriptionError(f"--{kind} {target}: write the path of a file that ends in {export.ending}")
    runs, text_of = _runs(of, scale, settings or {}), export.load()
    return {_place(target, runs, run): text_of(run, plan, runs.seeds) for run, plan in _planned(runs)}


def _runs(of: Path | str, scale: str | None, settings: Mapping[str, str]) -> Runs:
    if not Path(of).is_dir():
        return load(str(of))[0].runs(settings, scale)
    stored = source.of(Path(of))
    if stored is None:
        raise DescriptionError(f"{of}: has no {source.SCENARIO}: name the directory of an experiment, or a scenario")
    return stored.scenario.runs({**stored.settings, **settings}, scale or stored.scale, stored.seeds)


def _planned(runs: Runs) -> Iterator[tuple[ScenarioRun, Plan]]:
    """The first run of each point, with its plan."""
    for run in runs[:: runs.seeds]:
        yield run, compile_spec(run.spec, host.virtual_facts())


def _place(target: Path, runs: Runs, run: ScenarioRun) -> Path:
    """The file of a point: `target` where there is one point, else with its values in the name."""
    if len(runs.points) == 1:
        return target
    values = "-".join(f"{name}-{run.parameters[name]}" for name in runs.varying)
    return target.with_name(f"{target.stem}-{re.sub(r'[^A-Za-z0-9._-]+', '', values)}{target.suffix}")
