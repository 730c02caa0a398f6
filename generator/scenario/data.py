"""A scenario as a program writes it, before it is read: plain data with the keys of docs/reference/scenario.md. Types
only.

`${name}` may stand for any value, so that these are wider than the types of what is read (`fields.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ScenarioValue = str | int | float | bool | None | Sequence["ScenarioValue"] | Mapping[str, "ScenarioValue"]
ScenarioMapping = Mapping[str, ScenarioValue]
"""A step, a lab, a law: keys with their values."""
