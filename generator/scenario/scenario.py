"""A scenario: a lab, its traffic with its times, and the parameters that are varied.

Comes in: a YAML file (*.scenario.yaml). Goes out: a `Scenario`, and from it the runs that it stands for. Every mistake
is a DescriptionError with the line and the correction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from ewan.generator.scenario import fields, parameters
from ewan.generator.scenario.fields import ScenarioDescription
from ewan.generator.scenario.parameters import MOST_RUNS, Point
from ewan.generator.scenario.published import Stop
from ewan.generator.scenario.runs import Runs, document_of
from ewan.labs import spec as specs
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.source import Path, Places
from ewan.labs.base.values import Count
from ewan.labs.base.wording import nearest
from ewan.labs.record import figures, quantities
from ewan.labs.record.metric import StepKind
from ewan.labs.record.quantities import Selection
from ewan.labs.spec import DescriptionError, names

_SEED = Count(0, 2**63 - 1)
_SEEDS = Count(1, MOST_RUNS)


@dataclass(frozen=True)
class Scenario:
    """The content of a file. `document`: its keys, at the first point of its sweep; `parameters` with their
    defaults."""

    file: File
    text: str
    name: str
    document: ScenarioDescription
    parameters: Point
    _raw: dict[str, JsonValue]
    _places: Places

    @property
    def title(self) -> str:
        """One line, for people."""
        return self.document.title or self.name

    @property
    def description(self) -> str:
        """The purpose of the scenario, in the author's words."""
        return self.document.about or ""

    @property
    def scales(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.document.scales)

    def runs(
        self, settings: Mapping[str, str] | None = None, scale: str | None = None, seeds: int | None = None
    ) -> Runs:
        """Every run, each made when it is asked for; DescriptionError for more than MOST_RUNS.

        `settings`: values of parameters as text, several with commas between. `seeds`: how many, whatever the scenario
        says.
        """
        raw, places = parameters.scaled(self._raw, self._places, scale)
        points, varying = parameters.points(raw, places, settings or {})
        wanted = _seeds(raw, places) if seeds is None else range(1, seeds + 1)
        if len(points) * max(1, len(wanted)) > MOST_RUNS:
            each = max(1, len(wanted))
            message = f"stands for {len(points)} points of {each} seeds: write at most {MOST_RUNS} runs in all"
            raise places.error(("sweep",), message)
        return Runs(self, raw, places, points, tuple(varying), wanted)

    def stop_at(self, scale: str | None) -> Stop | None:
        """The stop condition of a scale: its own, or the scenario's."""
        raw, places = parameters.scaled(self._raw, self._places, scale)
        return _scenario(self.file, self.text, raw, places, self._raw, self._places).document.stop


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
    return _checked(*parameters.read(text, str(file)), text, file)


def from_data(raw: dict[str, JsonValue], places: Places, text: str, file: File) -> Scenario:
    """The scenario in `raw`, whose values were written at `places`, with references as `parameters.marked` leaves them.

    `text` is the same in YAML, for whoever reads it again.
    """
    parameters.check(raw, places)
    return _checked(raw, places, text, file)


def _checked(raw: dict[str, JsonValue], places: Places, text: str, file: File) -> Scenario:
    """The scenario, of which every scale was looked at."""
    scenario = _scenario(file, text, raw, places, raw, places)
    for scale in scenario.scales:
        _scenario(file, text, *parameters.scaled(raw, places, scale), raw, places)
    return scenario


def _scenario(
    file: File, text: str, raw: dict[str, JsonValue], places: Places, own: dict[str, JsonValue], own_places: Places
) -> Scenario:
    """The scenario of a file. `raw` holds the keys with defaults, `own` those of the file."""
    result, _ = parameters.points(raw, places, {})
    _seeds(raw, places)
    document, put, _ = document_of(raw, places, {**result[0], parameters.SEED: 1})
    name = document.name or file.name.removesuffix(".yaml").removesuffix(".scenario").lower().replace("_", "-")
    known = {*(name for point in result for name in point)}
    for index, each in enumerate(document.beside):
        for key, group in (("when", each.when), ("than", each.than or {})):
            for word in group:
                if word not in known:
                    path = ("beside", index, key, word)
                    raise put.error(path, f"unknown parameter, {nearest(word, known) if known else 'leave it out'}")
    if document.normalise is not None and document.normalise.by not in known:
        by = document.normalise.by
        raise put.error(("normalise", "by"), f"unknown parameter, {nearest(by, known) if known else 'leave it out'}")
    for index, compared in enumerate(document.compare):
        # A scale may leave out values that are compared at others.
        _check_comparison(compared, index, result, put, whole=raw is own)
    if raw is own:  # a scale may leave values out; its report then says which figure is of none
        _check_figures(document, {name: [point[name] for point in result if name in point] for name in known}, put)
    steps = [step.name for step in document.steps]
    for place, chosen in _selections(document):
        if (missing := chosen.missing(steps)) is not None:
            raise put.error(place, missing)
    if not document.capture:
        for place in _captured(document):
            raise put.error(place, 'is of captured packets: write "capture: [{node: [left1, right1]}]" with your nodes')
    kind = None if document.stop is None else quantities.parse(document.stop.metric).metric.step
    if kind is not None and not any(_measures(step, kind) for step in document.steps):
        raise put.error(("stop", "metric"), f'is of steps with "{kind}:", and there is none: write another metric')
    first = parameters.points({**raw, "sweep": None}, places, {})[0][0]
    return Scenario(file, text, name, document, first, own, own_places)


def _measures(step: fields.ScenarioStep, kind: StepKind) -> bool:
    """Return whether a step gives the metrics of a kind."""
    objects = kind == "requests" and step.quic is not None and step.quic.http3 is not None
    return objects or getattr(step, kind) is not None


def _check_comparison(compared: fields.Compare, index: int, points: Sequence[Point], put: Places, whole: bool) -> None:
    """DescriptionError where no run has the parameter, or its value; or where harm has no direction."""
    values = {str(point[compared.by]): None for point in points if compared.by in point}
    if not values:
        known = {name for point in points for name in point}
        instead = nearest(compared.by, known) if known else "leave it out"
        raise put.error(("compare", index, "by"), f"unknown parameter, {instead}")
    if whole and str(compared.to) not in values:
        raise put.error(("compare", index, "to"), f"no run has it, {nearest(str(compared.to), values)}")
    if whole and len(values) < 2:
        raise put.error(("compare", index, "by"), 'has one value: write others below "sweep:", or leave it out')
    for place, words in enumerate(compared.metrics):
        if compared.harm and quantities.parse(words).metric.better is None:
            message = "neither more nor less of it is better, so nothing harms it: write another metric"
            raise put.error(("compare", index, "metrics", place), message)


def _check_figures(document: ScenarioDescription, values: Mapping[str, Collection[Any]], put: Places) -> None:
    """DescriptionError for a figure of a parameter or a value that no run has, and for a name written twice."""
    files: dict[str, int] = {}
    for index, figure in enumerate(document.figures):
        try:
            figures.check(figure, values)
        except ValueError as error:
            raise put.error(("figures", index), str(error)) from None
        if (first := files.setdefault(figure.file, index)) != index:
            message = f'is called "{figure.file}" as figures[{first}] is: write another "name" for it'
            raise put.error(("figures", index), message)


def _named(document: ScenarioDescription) -> Iterator[tuple[Path, str]]:
    """Every quantity that a scenario names beside its figures, with where."""
    yield from ((("metrics", index), name) for index, name in enumerate(document.metrics))
    yield from ((("beside", index, "metric"), each.metric) for index, each in enumerate(document.beside))
    for index, compared in enumerate(document.compare):
        yield from ((("compare", index, "metrics", place), name) for place, name in enumerate(compared.metrics))
    if document.stop is not None:
        yield ("stop", "metric"), document.stop.metric


def _captured(document: ScenarioDescription) -> Iterator[Path]:
    """The places where a scenario names a quantity of captured packets."""
    yield from (place for place, words in _named(document) if quantities.parse(words).metric.captured)
    yield from (("figures", index) for index, figure in enumerate(document.figures) if figure.captured)


def _selections(document: ScenarioDescription) -> Iterator[tuple[Path, Selection]]:
    """The selection of every quantity that a scenario names, with its place."""
    for place, words in _named(document):
        if (chosen := quantities.parse(words).selection) is not None:
            yield place, chosen
    for index, figure in enumerate(document.figures):
        yield from ((("figures", index), chosen) for chosen in figure.selections)


def _seeds(raw: Mapping[str, JsonValue], places: Places) -> Sequence[int]:
    """Empty: the lab's own."""
    said = raw.get("seeds")
    if said is None:
        return []
    if isinstance(said, list):
        if not said or len(set(map(str, said))) < len(said):
            raise places.error(("seeds",), 'write seeds that differ, like "[1, 2, 3]"')
        return [_count(_SEED, each, ("seeds", index), places) for index, each in enumerate(said)]
    return range(1, _count(_SEEDS, said, ("seeds",), places) + 1)


def _count(kind: Count, value: Any, path: Path, places: Places) -> int:
    try:
        return kind.parse(value)
    except ValueError as error:
        raise places.error(path, str(error)) from None
