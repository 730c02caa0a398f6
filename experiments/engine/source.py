"""The scenario that an experiment was made of, as its directory keeps it.

In: an experiment's directory. Out: the `Scenario`, and what was asked of it: scale, settings, seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ewan.generator import scenario as scenarios
from ewan.generator.scenario import Scenario
from ewan.labs.base import documents
from ewan.labs.base.codec import Meta, Struct
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.reading import read_text
from ewan.labs.runtime.base import LabError

SCENARIO, SETTINGS = "scenario.yaml", "settings.json"
_Path = Annotated[str, Meta(pattern=r"\A/?[^\x00]+\Z", max_length=4096)]


class _Settings(Struct):
    """The content of settings.json: the options of the command line."""

    file: _Path
    scale: str | None
    settings: dict[str, str]
    seeds: Annotated[int, Meta(ge=1)] | None
    machines: _Path | None = None


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """A scenario and the options of its runs."""

    scenario: Scenario
    scale: str | None
    settings: dict[str, str]
    seeds: int | None
    machines: Path | None = None
    """The file of the machines over which its labs stretch."""


def kept(directory: Path, remedy: str = "") -> ScenarioSource:
    """The same where it must be there; LabError where it is missing or damaged, which ends with `remedy`."""
    found = perhaps(directory, remedy)
    if found is None:
        raise LabError(f"{directory}: {SCENARIO} or {SETTINGS} is missing{remedy}")
    return found


def perhaps(directory: Path, remedy: str = "") -> ScenarioSource | None:
    """The same where it may be missing: None then."""
    try:
        return of(directory)
    except DocumentError as error:
        raise LabError(f"{error}{remedy}") from None
    except (OSError, ValueError) as error:
        raise LabError(f"{directory / SCENARIO}: is damaged ({error}){remedy}") from None


def of(directory: Path) -> ScenarioSource | None:
    """The source of an experiment; None where no scenario is kept, as in directories of `ewan exp rerun`."""
    text, asked = directory / SCENARIO, directory / SETTINGS
    if not (text.exists() and asked.exists()):
        return None
    stored = documents.read(_Settings, asked)
    scenario = scenarios.parse(read_text(text), Path(stored.file))
    machines = None if stored.machines is None else Path(stored.machines)
    return ScenarioSource(scenario, stored.scale, stored.settings, stored.seeds, machines)


def folder(directory: Path) -> Path | None:
    """The folder of the scenario that an experiment was made of; None where that file is missing or was changed.

    An experiment from elsewhere may name any file, and does not thereby show what lies beside it to its commands."""
    try:
        found = of(directory)
        if found is not None and read_text(Path(str(found.scenario.file))) == found.scenario.text:
            return Path(str(found.scenario.file)).resolve().parent
    except (DocumentError, OSError, ValueError):
        pass
    return None
