"""The runs of a target's experiments: a scenario with its scale, parameters and seeds.

In: a target's experiment, and the scale. Out: `TargetExperiment`, whose key is the same for equal runs, so that targets
share them; DescriptionError where the scenario is wrong. A measurement without a scenario has only its name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from ewan.extras.papers.targets import ExperimentKeys, PaperTarget, Scale
from ewan.extras.suites import hstts
from ewan.extras.suites.application import OURS
from ewan.extras.suites.applications import APPLICATIONS
from ewan.extras.suites.hstts import SuiteRequest
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import Scenario
from ewan.labs.spec import DescriptionError

PAPERS_SCALE = "paper"
"""A scenario's scale at the paper's sizes; one without it has them by itself."""


@dataclass(frozen=True)
class TargetExperiment:
    """An experiment that a target asks for; `scenario` is None for a measurement without one."""

    key: str
    name: str
    measured: str | None
    scenario: Scenario | None
    scale: str | None
    settings: Mapping[str, str]
    seeds: int | None


def wanted(target: PaperTarget, scale: Scale) -> dict[str, TargetExperiment]:
    """All experiments of a target, by name."""
    return {name: _wanted(target, name, each, scale) for name, each in target.description.experiments.items()}


def _wanted(target: PaperTarget, name: str, each: ExperimentKeys, scale: Scale) -> TargetExperiment:
    size = each.size(scale)
    seeds = size.seeds if size.seeds is not None else each.seeds
    settings = {key: str(value) for key, value in {**each.set, **size.set}.items()}
    if each.measured is not None:
        return TargetExperiment(_key("measured", each.measured), name, each.measured, None, None, {}, None)
    if each.hstts is not None:
        scenario, own = _hstts(target, name, scale, {**each.hstts, **size.hstts}, seeds), None
    else:
        scenario = _scenario(target, name, each)
        own = size.scale or _scale(scenario, scale)
    key = _key(scenario.text, own, sorted(settings.items()), seeds)
    return TargetExperiment(key, name, None, scenario, own, settings, seeds)


def _scenario(target: PaperTarget, name: str, each: ExperimentKeys) -> Scenario:
    """A named one, or the keys that the target has; these go by the target's file."""
    if isinstance(each.scenario, str):
        return scenarios.load(each.scenario)
    if not isinstance(each.scenario, dict):
        raise target.places.error(("experiments", name, "scenario"), "write a scenario's name, or its keys")
    keys = {"name": target.name, **each.scenario}
    text = yaml.safe_dump(keys, sort_keys=False, allow_unicode=True, width=float("inf"))
    return scenarios.parse(text, target.file.with_name(f"{target.name}.scenario.yaml"))


def _scale(scenario: Scenario, scale: Scale) -> str | None:
    """The scenario's own scale for one of ours; at full scale one that has no `paper` is as it is written."""
    name = scale if scale == "quick" else PAPERS_SCALE
    return name if name in scenario.scales else None


def _hstts(target: PaperTarget, name: str, scale: Scale, words: Mapping[str, str | int], seeds: int | None) -> Scenario:
    given = {key: str(value) for key, value in words.items()}
    app = given.pop("app", "").upper()
    if app not in APPLICATIONS:
        message = f"write one application: {', '.join(APPLICATIONS)}"
        raise target.places.error(("experiments", name, "hstts", "app"), message)
    reference = given.pop("normalise", "reno")
    controls, _ = hstts.congestion_controls(given.pop("cc", reference), reference)
    try:
        sends = hstts.generators(given.pop("generator", OURS))
    except DescriptionError as error:
        raise target.places.error(("experiments", name, "hstts", "generator"), str(error)) from None
    asked = SuiteRequest(
        (app,),
        given.pop("topo", "dumbbell"),
        {key.upper(): value for key, value in given.items()},
        "quick" if scale == "quick" else PAPERS_SCALE,
        controls,
        reference,
        seeds,
        target.beside[name],
        sends,
    )
    try:
        (built,) = hstts.build(asked)
        return scenarios.parse(built.text, built.file)
    except DescriptionError as error:
        raise target.places.error(("experiments", name, "hstts"), str(error)) from None


def _key(*parts: Any) -> str:
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:16]
