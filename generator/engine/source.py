"""The scenario that an experiment was made of, as its directory keeps it.

In: an experiment's directory. Out: the `Scenario`, and what was asked of it: scale, settings, seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from generator import scenario as scenarios
from generator.scenario import Scenario
from labs.reading import read_bytes, read_text
from labs.runtime.base import LabError

SCENARIO, SETTINGS = "scenario.yaml", "settings.json"


@dataclass(frozen=True, slots=True)
class Source:
    """A scenario and what was asked of it."""

    scenario: Scenario
    scale: str | None
    settings: dict[str, str]
    seeds: int | None
    machines: Path | None = None
    """The file of the machines over which its labs stretch."""


def kept(directory: Path, remedy: str = "") -> Source:
    """The same where it must be there; LabError where it is missing or damaged, which ends with `remedy`."""
    try:
        found = of(directory)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabError(f"{directory}: {SCENARIO} or {SETTINGS} is damaged ({error}){remedy}") from None
    if found is None:
        raise LabError(f"{directory}: {SCENARIO} or {SETTINGS} is missing{remedy}")
    return found


def of(directory: Path) -> Source | None:
    """None where no scenario is kept: `ewan rerun` makes such directories."""
    text, asked = directory / SCENARIO, directory / SETTINGS
    if not (text.exists() and asked.exists()):
        return None
    stored: dict[str, Any] = orjson.loads(read_bytes(asked))
    scenario = scenarios.parse(read_text(text), Path(stored["file"]))
    machines = Path(stored["machines"]) if "machines" in stored else None
    return Source(scenario, stored["scale"], stored["settings"], stored["seeds"], machines)
