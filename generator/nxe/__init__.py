"""Experiments of NXE, the Network eXperiment Engine: its XML becomes a scenario, and a scenario its XML."""

from __future__ import annotations

from pathlib import Path

from ewan.generator import scenario as scenarios
from ewan.generator.nxe.read import ENDING, Experiment, load, parse
from ewan.generator.scenario import Scenario
from ewan.labs.spec import names

__all__ = ["ENDING", "Experiment", "file_of", "load", "parse", "scenario"]


def file_of(name: str) -> Path | None:
    """The file in NXE's XML that is meant: a path, or a name here or in labs/library; None if a scenario in YAML is."""
    if not name.endswith(ENDING):
        other = names.is_path(name) or names.find(name, names.SCENARIO) is not None
        return None if other else names.find(name, ENDING)
    file = Path(name)
    return file if "/" in name else names.find(name.removesuffix(ENDING), ENDING) or file


def scenario(name: str) -> Scenario:
    """The scenario that is meant: a file in YAML, one of NXE's in XML, or a name of labs/library."""
    file = file_of(name)
    return scenarios.load(name) if file is None else load(file).scenario
