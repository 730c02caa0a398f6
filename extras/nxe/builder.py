"""A scenario while it is made of XML: its data, and the element that each value is from.

In: values with their paths in a scenario and their elements. Out: a `Scenario`, whose errors point into the XML.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from ewan.extras.nxe import vocabulary
from ewan.extras.nxe.tree import Element
from ewan.generator.scenario import Scenario, parameters, writing
from ewan.generator.scenario import scenario as scenarios
from ewan.generator.scenario.data import ScenarioValue
from ewan.labs.base.source import Path, Place, Places
from ewan.labs.spec import DescriptionError

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")


class ScenarioBuilder:
    """The parts of a scenario that have been written so far."""

    def __init__(self, file: str, root: Element) -> None:
        self._file = file
        self._data: dict[str, ScenarioValue] = {}
        self._places = Places(file)
        self.place((), root)

    def place(self, path: Path, element: Element) -> None:
        """Records that the value at a path was written in an element."""
        text = None if element.name in vocabulary.SCHEMA else parameters.marked(element.text)
        self._places.known[path] = Place(self.at(element), f"<{element.name}>", text if path else None)

    def put(self, path: Path, value: Any, element: Element) -> None:
        """A value of the scenario; groups and lists around it are made as they are needed."""
        here: Any = self._data
        for part, following in itertools.pairwise(path):
            empty: Any = [] if isinstance(following, int) else {}
            if isinstance(part, int):
                if part == len(here):
                    here.append(empty)
                here = here[part]
            else:
                here = here.setdefault(part, empty)
        if isinstance(path[-1], int):
            here.append(value)
        else:
            here[path[-1]] = value
        self.place(path, element)

    def move(self, path: Path, other: Path) -> None:
        """The value at `path` is one of another key of the same group."""
        here: Any = self._data
        for part in path[:-1]:
            here = here[part]
        here[other[-1]] = here.pop(path[-1])
        self._places.known[other] = self._places.known.pop(path)

    def has(self, path: Path) -> bool:
        """Return whether there is a value at a path."""
        return path in self._places.known

    def at(self, element: Element) -> str:
        """`file:line:column: ` of an element."""
        return f"{self._file}:{element.line}:{element.column}: "

    def error(self, element: Element, message: str) -> DescriptionError:
        """The error at an element."""
        return vocabulary.error(self._file, element, message)

    def amount(self, element: Element, unit: str) -> str | int:
        """An element's value with its unit: a bare number is in `unit`, and so is a parameter whose values are."""
        text = element.text
        alone = _REFERENCE.fullmatch(text)
        if alone is not None:
            swept = self._of_parameter("sweep", alone[1])
            values = [self._of_parameter("parameters", alone[1]), *(swept if isinstance(swept, list) else [])]
            bare = all(_NUMBER.fullmatch(str(value)) for value in values if value is not None)
        else:
            bare = _NUMBER.fullmatch(text) is not None
        if unit:
            return text + unit if bare else text
        return int(text) if text.isascii() and text.isdigit() else text

    def _of_parameter(self, group: str, name: str) -> ScenarioValue:
        """The value of a parameter in `parameters:` or `sweep:`."""
        found = self._data.get(group)
        return found.get(name) if isinstance(found, Mapping) else None

    def scenario(self, file: File) -> Scenario:
        """The whole; DescriptionError where it is none. Each scale and value is looked at, as of YAML."""
        text = writing.to_yaml(self._data)
        return scenarios.from_data(_marked(self._data), self._places, text, file)


def _marked(value: Any) -> Any:
    """References to parameters as `parameters.read` leaves them."""
    if isinstance(value, dict):
        return {key: _marked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_marked(inner) for inner in value]
    return parameters.marked(value) if isinstance(value, str) else value
