"""Experiments of NXE, the Network eXperiment Engine: its XML becomes a scenario, and a scenario its XML."""

from __future__ import annotations

from pathlib import Path

from generator import scenario as scenarios
from generator.nxe.read import ENDING, Experiment, load, parse
from generator.scenario import Scenario

__all__ = ["ENDING", "Experiment", "load", "parse", "scenario"]


def scenario(name: str) -> Scenario:
    """The scenario that is meant: a file in YAML, one of NXE's in XML, or a name of labs/library."""
    return load(Path(name)).scenario if name.endswith(ENDING) else scenarios.load(name)
