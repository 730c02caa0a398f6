"""A scenario: a lab, what is sent over it and when, and the parameters that are varied.

Comes in: a YAML file (*.scenario.yaml). Goes out: a `Scenario`, and from it the runs that it stands for, each checked
as a whole before any begins: all that can be wrong is a DescriptionError with the line and what to write instead.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from generator.scenario import fields, parameters
from generator.scenario.parameters import MOST_RUNS, Point
from labs import spec as specs
from labs.compile import HostFacts
from labs.compile import compile as compile_spec
from labs.plan import Plan
from labs.record.metrics import METRICS
from labs.spec import DescriptionError, Spec, names, translate
from labs.spec.source import Path, Places, nearest
from labs.spec.values import Count
from labs.units import PPB, parse_published

if TYPE_CHECKING:
    from generator.scenario.schedule import Clock, Schedule

PAGE = "docs/scenario.md"
MOST_WORK = 500_000
"""Nodes, flows, commands and values of all runs together, which are checked and kept before the first one starts: about
a minute, and 2 GB."""

_SEED = Count(0, 2**63 - 1)
_SEEDS = Count(1, MOST_RUNS)


@dataclass(frozen=True, slots=True)
class Stop:
    """Repeat with more seeds until the half width of the interval of `metric` is at most `within` of its mean."""

    metric: str
    within: float
    confidence: float
    at_least: int
    at_most: int


@dataclass(frozen=True)
class Scenario:
    """What a file says; `parameters` with their defaults. `beside`: published values with their unit."""

    file: File
    text: str
    name: str
    title: str
    about: str
    source: str
    parameters: Point
    scales: tuple[str, ...]
    stop: Stop | None
    normalise: dict[str, str | int] | None
    beside: tuple[dict[str, Any], ...]
    metrics: tuple[str, ...]
    _raw: dict[str, Any]
    _places: Places

    @property
    def description(self) -> str:
        return self.about

    def runs(
        self, settings: Mapping[str, str] | None = None, scale: str | None = None, seeds: int | None = None
    ) -> tuple[ScenarioRun, ...]:
        """Every run, checked: values, nodes, links, laws.

        `settings`: values of parameters as text, several with commas between. `seeds`: how many, whatever the scenario
        says.
        """
        raw, places = parameters.scaled(self._raw, self._places, scale)
        found, varying = parameters.points(raw, places, settings or {})
        said = _seeds(raw, places) if seeds is None else []
        each = max(1, len(said)) if seeds is None else seeds
        if len(found) * each > MOST_RUNS:
            message = f"stands for {len(found)} points of {each} seeds: write at most {MOST_RUNS} runs in all"
            raise places.error(("sweep",), message)
        wanted = said if seeds is None else list(range(1, seeds + 1))
        runs: list[ScenarioRun] = []
        plans: dict[str, Plan] = {}
        work = 0
        for number, point in enumerate(found, 1):
            seeds_of = wanted or [_own_seed(self, raw, places, point)]
            for turn, seed in enumerate(seeds_of):
                runs.append(_run(self, raw, places, point, varying, seed, len(runs) + 1))
                size = _check(runs[-1], plans)
                # Seeds of a point hardly differ: with the first, all are counted.
                work += 0 if turn else size * len(seeds_of)
                if work > MOST_WORK:
                    have = f"{number} of {len(found)} points have {work} nodes, flows, commands and values in all runs"
                    raise places.error(
                        ("sweep",), f"{have}: write fewer points, seeds or steps, for at most {MOST_WORK}"
                    )
        return tuple(runs)

    def stop_at(self, scale: str | None) -> Stop | None:
        """The stop condition of a scale: its own, or the scenario's."""
        raw, places = parameters.scaled(self._raw, self._places, scale)
        return _scenario(self.file, self.text, raw, places, self._raw, self._places).stop


@dataclass(frozen=True)
class ScenarioRun:
    """One run: values of all parameters, the lab with its seed, and the steps."""

    number: int
    name: str
    parameters: Point
    seed: int
    spec: Spec
    document: fields.ScenarioDescription
    places: Places
    raw: dict[str, Any]
    scenario: Scenario
    varying: tuple[str, ...]

    def schedule(self, plan: Plan, clock: Clock) -> Schedule:
        """What the nodes of `plan`, which was compiled from `spec`, do in this run."""
        from generator.scenario.schedule import schedule

        return schedule(self, plan, clock)

    def again(self, number: int, seed: int) -> ScenarioRun:
        """The same with another seed, for stop conditions."""
        spec = specs.override(self.spec, {"seed": str(seed)})
        name = _named(self.parameters, self.varying, seed)
        return replace(self, number=number, seed=seed, spec=spec, name=name)


def find(name: str | File) -> File:
    """The file that is meant: a path, or a scenario's name in the current directory or in labs/library."""
    file = File(name) if isinstance(name, File) else names.find(name, names.SCENARIO)
    if file is None:
        instead = names.near(str(name), names.known(names.SCENARIO), names.SCENARIO)
        raise DescriptionError(f"{name}: there is no such scenario, {instead}")
    return file


def load(path: File | str) -> Scenario:
    """Reads a scenario; labs that it names are relative to it."""
    file = find(path)
    return parse(specs.text_of(file, f"write the path of a scenario (*{names.SCENARIO})"), file)


def parse(text: str, file: File) -> Scenario:
    """The scenario in `text`; names of other files, and its own name, go by `file`. Every scale is looked at."""
    raw, places = parameters.read(text, str(file))
    scenario = _scenario(file, text, raw, places, raw, places)
    for scale in scenario.scales:
        _scenario(file, text, *parameters.scaled(raw, places, scale), raw, places)
    return scenario


def _scenario(
    file: File, text: str, raw: dict[str, Any], places: Places, own: dict[str, Any], own_places: Places
) -> Scenario:
    """`raw` is what holds, `own` what the file says."""
    found, _ = parameters.points(raw, places, {})
    _seeds(raw, places)
    document, put, _ = _document(raw, places, {**found[0], parameters.SEED: 1})
    name = document.name or file.name.removesuffix(".yaml").removesuffix(".scenario").lower().replace("_", "-")
    known = {*(name for point in found for name in point)}
    for index, each in enumerate(document.beside):
        for key, group in (("when", each.when), ("than", each.than or {})):
            for word in group:
                if word not in known:
                    path = ("beside", index, key, word)
                    raise put.error(path, f"unknown parameter, {nearest(word, known) if known else 'leave it out'}")
    if document.normalise is not None and document.normalise.by not in known:
        by = document.normalise.by
        raise put.error(("normalise", "by"), f"unknown parameter, {nearest(by, known) if known else 'leave it out'}")
    stop, normalise = document.stop, document.normalise
    kind = None if stop is None else METRICS[stop.metric].step
    if kind is not None and all(getattr(step, kind) is None for step in document.steps):
        raise put.error(("stop", "metric"), f'is of steps with "{kind}:", and there is none: write another metric')
    return Scenario(
        file=file,
        text=text,
        name=name,
        title=document.title or name,
        about=document.about or "",
        source=document.source or "",
        parameters=parameters.points({**raw, "sweep": None}, places, {})[0][0],
        scales=tuple(document.scales),
        stop=None if stop is None else Stop(stop.metric, *_shares(stop), stop.at_least, stop.at_most),
        normalise=None if normalise is None else {"by": normalise.by, "to": normalise.to},
        beside=tuple(_beside(each) for each in document.beside),
        metrics=document.metrics,
        _raw=own,
        _places=own_places,
    )


def _shares(stop: fields.Stop) -> tuple[float, float]:
    return stop.within.ppb / PPB, stop.confidence.ppb / PPB


def _beside(each: fields.Beside) -> dict[str, Any]:
    value, unit = parse_published(each.value)
    return {
        "source": each.source,
        "when": dict(each.when),
        "metric": each.metric,
        "value": value,
        "unit": unit,
        "text": each.value,
        "than": None if each.than is None else dict(each.than),
        "normalised": each.normalised,
        "note": each.note or "",
    }


def _document(
    raw: dict[str, Any], places: Places, point: Point
) -> tuple[fields.ScenarioDescription, Places, dict[str, Any]]:
    filled, put = parameters.put_in(raw, places, point)
    try:
        return fields.ScenarioDescription.model_validate(filled), put, filled
    except ValidationError as error:
        raise translate(error, put, fields.ScenarioDescription, PAGE) from None


def _seeds(raw: Mapping[str, Any], places: Places) -> list[int]:
    """Empty: the lab's own."""
    said = raw.get("seeds")
    if said is None:
        return []
    if isinstance(said, list):
        if not said or len(set(map(str, said))) < len(said):
            raise places.error(("seeds",), 'write seeds that differ, like "[1, 2, 3]"')
        return [_count(_SEED, each, ("seeds", index), places) for index, each in enumerate(said)]
    return list(range(1, _count(_SEEDS, said, ("seeds",), places) + 1))


def _count(kind: Count, value: Any, path: Path, places: Places) -> int:
    try:
        return kind.parse(value)
    except ValueError as error:
        raise places.error(path, str(error)) from None


def _own_seed(scenario: Scenario, raw: dict[str, Any], places: Places, point: Point) -> int:
    document, put, _ = _document(raw, places, {**point, parameters.SEED: 1})
    return _lab(scenario, document.lab, put).description.seed


def _run(
    scenario: Scenario, raw: dict[str, Any], places: Places, point: Point, varying: list[str], seed: int, number: int
) -> ScenarioRun:
    document, put, filled = _document(raw, places, {**point, parameters.SEED: seed})
    spec = specs.override(_lab(scenario, document.lab, put), {"seed": str(seed)})
    name = _named(point, varying, seed)
    return ScenarioRun(number, name, point, seed, spec, document, put, filled, scenario, tuple(varying))


def _check(run: ScenarioRun, plans: dict[str, Plan]) -> int:
    """Schedules it for nothing, on a plan that serves all seeds of the same lab: names and links are theirs too.

    Returns how many nodes, flows, commands and values it has.
    """
    lab = json.dumps({**run.spec.raw, "seed": None}, sort_keys=True, default=str)
    if lab not in plans:
        plans[lab] = _checked(run.spec)
    document = run.schedule(plans[lab], "virtual").document
    return len(plans[lab].nodes) + len(document["flows"]) + len(document["commands"]) + len(run.places.known)


def _named(point: Point, varying: list[str] | tuple[str, ...], seed: int) -> str:
    return " ".join([*(f"{name}={point[name]}" for name in varying), f"seed={seed}"])


def _lab(scenario: Scenario, lab: Any, places: Places) -> Spec:
    """A lab written out, or another file's, or one of the library."""
    folder = scenario.file.parent
    if isinstance(lab, dict):
        if not lab:
            raise places.error(("lab",), 'is empty: write at least "{topology: dumbbell}"')
        inner = Places(places.file, {path[1:]: place for path, place in places.known.items() if path[:1] == ("lab",)})
        raw = copy.deepcopy(lab)
        raw.setdefault("name", scenario.name)
        return specs.from_data(raw, inner, folder)
    if not isinstance(lab, str):
        raise places.error(("lab",), 'write a lab description, or the path or name of one, like "dumbbell"')
    file = names.find(lab, names.LAB, folder)
    if file is None:
        instead = names.near(lab, names.known(names.LAB, folder), names.LAB)
        raise places.error(("lab",), f"there is no such lab, {instead}")
    if not file.exists():
        raise places.error(("lab",), "there is no such file: write its path relative to the scenario")
    return specs.load(file)


_FACTS = (HostFacts((0, 1), (), "virtual"), HostFacts((0, 1), (), "live"))


def _checked(spec: Spec) -> Plan:
    """A plan to look up nodes and links in, of this machine or any other, in the first clock that can have it."""
    try:
        return compile_spec(spec, _FACTS[0])
    except DescriptionError as error:
        try:
            return compile_spec(spec, _FACTS[1])
        except DescriptionError:
            raise error from None
