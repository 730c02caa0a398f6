"""The scenario that a name means: a file in YAML, a file of another format that an extra reads, or one of the library.

In: a word of the command line. Out: the scenario, and a line for each thing of its file that has no use here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ewan.extra import installed
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import Scenario
from ewan.labs.spec import names


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
