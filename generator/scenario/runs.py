"""The runs that a scenario stands for: each point of its parameters with each seed.

Comes in: a scenario's data and its points. Goes out: runs, made one by one when they are asked for, and each with the
plan of its lab and its schedule, which is when all of it is checked. No run is kept here: a sweep of ten thousand needs
the memory of one. A lab is read once, and once more for each set of parameters that makes it another one.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from pydantic import ValidationError

from ewan.generator.scenario import fields, parameters
from ewan.generator.scenario.parameters import Point
from ewan.labs import spec as specs
from ewan.labs.base import reading
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.source import Place, Places
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.plan import Plan
from ewan.labs.record.schedule import Clock
from ewan.labs.spec import Spec, names, translate

if TYPE_CHECKING:
    from ewan.generator.scenario.scenario import Scenario
    from ewan.generator.scenario.schedule import ScheduledRun

PAGE = "docs/reference/scenario.md"
MOST_LABS = 16
"""Labs that are kept at one time, of those that a sweep's parameters make."""
MOST_WORK = 500_000
"""Nodes, flows, commands and values of all runs that are checked before the first one starts: a minute."""


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
    raw: dict[str, JsonValue]
    scenario: Scenario

    def written(self, key: Literal["steps", "events"], number: int) -> dict[str, JsonValue]:
        """A step or an event with the keys that were written, whose values `document` has typed."""
        return cast(list[dict[str, JsonValue]], self.raw[key])[number]

    def schedule(self, plan: Plan, clock: Clock) -> ScheduledRun:
        """The schedule of the nodes of `plan`, which was compiled from `spec`, in this run."""
        from ewan.generator.scenario.schedule import schedule

        return schedule(self, plan, clock)


_Filled = tuple[fields.ScenarioDescription, Places, dict[str, JsonValue]]


class _Lab:
    """A lab as it was read, and with other seeds. `files`: those that it was read from, with their status."""

    def __init__(self, spec: Spec, files: Mapping[File, os.stat_result]) -> None:
        self.files, self.seed = files, spec.description.seed
        self._seeded = specs.override(spec, {"seed": str(spec.description.seed)})

    def of(self, seed: int) -> Spec:
        """The lab with this seed, which is within the bounds of any lab's."""
        before = self._seeded
        text = str(seed)
        places = replace(before.places, known={**before.places.known, ("seed",): Place("", "SEED", text)})
        description = before.description.model_copy(update={"seed": seed})
        return replace(before, description=description, places=places, raw={**before.raw, "seed": text})


class Runs(Sequence[ScenarioRun]):
    """Every point with every seed, points outermost. Without `seeds`, each point has the seed of its lab.

    DescriptionError when a run is made whose values or lab are wrong; its schedule checks nodes, links and laws.
    """

    def __init__(
        self,
        scenario: Scenario,
        raw: dict[str, JsonValue],
        places: Places,
        points: Sequence[Point],
        varying: tuple[str, ...],
        seeds: Sequence[int],
    ) -> None:
        self._scenario, self._raw, self._places = scenario, raw, places
        self.points, self._varying, self._seeds = points, varying, seeds
        self._with_seed = parameters.SEED in parameters.used(raw)
        self._labs: dict[str, _Lab] = {}
        self._last: tuple[Point, _Filled] | None = None

    @property
    def varying(self) -> tuple[str, ...]:
        """Names of the parameters that vary or were set."""
        return self._varying

    def __len__(self) -> int:
        return len(self.points) * self.seeds

    @property
    def seeds(self) -> int:
        """The number of runs that each point has."""
        return max(1, len(self._seeds))

    @property
    def firsts(self) -> range:
        """The number of the first run of each point."""
        return range(1, len(self) + 1, self.seeds)

    @property
    def alike(self) -> bool:
        """Return whether the runs of a point have one lab and the same steps. Then the seed, which the scenario uses
        nowhere, decides only about draws, such as the beginning of a step."""
        return bool(self._seeds) and not self._with_seed

    def others(self, first: int) -> Iterator[tuple[int, str, int]]:
        """The other runs of a point by the number of its first one: number, name and seed of each."""
        point = self.points[(first - 1) // self.seeds]
        for turn, seed in enumerate(self._seeds):
            if turn:
                yield first + turn, self._named(point, seed), seed

    @overload
    def __getitem__(self, index: int) -> ScenarioRun: ...
    @overload
    def __getitem__(self, index: slice) -> list[ScenarioRun]: ...
    def __getitem__(self, index: int | slice) -> ScenarioRun | list[ScenarioRun]:
        numbers = range(len(self))[index]
        return self._run(numbers) if isinstance(numbers, int) else [self._run(number) for number in numbers]

    def _run(self, index: int) -> ScenarioRun:
        point, turn = divmod(index, self.seeds)
        return self.of(self.points[point], index + 1, self._seeds[turn] if self._seeds else None)

    def of(self, point: Point, number: int, seed: int | None) -> ScenarioRun:
        """One run; seed None: its lab's own."""
        if seed is None:
            document, put, _ = self._filled(point, 1)
            seed = self._lab(document, put).seed
        document, put, filled = self._filled(point, seed)
        spec = self._lab(document, put).of(seed)
        named = self._named(point, seed)
        return ScenarioRun(number, named, point, seed, spec, document, put, filled, self._scenario)

    def _filled(self, point: Point, seed: int) -> _Filled:
        """The scenario with the values of a point; that of the last point again, where no seed is in it."""
        if self._last is not None and self._last[0] == point:
            return self._last[1]
        found = document_of(self._raw, self._places, {**point, parameters.SEED: seed})
        if not self._with_seed:
            self._last = point, found
        return found

    def _lab(self, document: fields.ScenarioDescription, put: Places) -> _Lab:
        """The lab that `lab` means, read once; its files are noted again for a caller that records which files are
        read."""
        lab, kernel = document.lab, document.kernel
        key = repr((lab, kernel))
        found = self._labs.get(key)
        if found is None:
            with reading.noted() as files:
                spec = lab_of(self._scenario.file, self._scenario.name, lab, put)
            found = _Lab(spec if kernel is None else _with_kernel(spec, kernel, put), files)
            if len(self._labs) >= MOST_LABS:
                self._labs.clear()
            self._labs[key] = found
        reading.note(found.files)
        return found

    def _named(self, point: Point, seed: int) -> str:
        return " ".join([*(f"{name}={point[name]}" for name in self._varying), f"seed={seed}"])

    def scheduled(
        self, facts: HostFacts, clock: Clock, numbers: Sequence[int] | None = None
    ) -> Iterator[tuple[ScenarioRun, Plan, ScheduledRun]]:
        """Each run, or each of these numbers, with its plan and its schedule, made when it is asked for;
        DescriptionError where it cannot be, and for runs that have more than MOST_WORK in all."""
        work, before = 0, -1
        for number in numbers or range(1, len(self) + 1):
            run = self[number - 1]
            plan = compile_spec(run.spec, facts)
            schedule = run.schedule(plan, clock)
            point = (number - 1) // self.seeds
            if point != before:  # runs of a point differ only by their seeds: the first one stands for all
                document, before = schedule.document, point
                values = len(document.flows) + len(document.commands) + len(run.places.known)
                work += (len(plan.nodes) + values) * (self.seeds if numbers is None else 1)
            if work > MOST_WORK:
                have = f"{point + 1} of {len(self.points)} points have {work} nodes, flows, commands and values"
                message = f"{have} in all runs: write fewer points, seeds or steps, for at most {MOST_WORK}"
                raise self._places.error(("sweep",), message)
            yield run, schedule.plan, schedule


def _with_kernel(spec: Spec, kernel: str, put: Places) -> Spec:
    """The lab with the kernel that the scenario names."""
    places = replace(spec.places, known={**spec.places.known, ("kernel",): put.find(("kernel",))})
    description = spec.description.model_copy(update={"kernel": kernel})
    return replace(spec, description=description, places=places, raw={**spec.raw, "kernel": kernel})


def document_of(
    raw: dict[str, JsonValue], places: Places, point: Point
) -> tuple[fields.ScenarioDescription, Places, dict[str, JsonValue]]:
    """A scenario with the values of a point in it: typed, with the place of each value, and as plain data."""
    filled, put = parameters.put_in(raw, places, point)
    try:
        return fields.ScenarioDescription.model_validate(filled), put, filled
    except ValidationError as error:
        raise translate(error, put, fields.ScenarioDescription, PAGE) from None


def lab_of(beside: File, name: str, lab: Any, places: Places) -> Spec:
    """The lab that the key `lab` of a file means: a lab written out, which is called `name` unless it has its own,
    another file's, relative to this one, or one of the library."""
    folder = beside.parent
    if isinstance(lab, dict):
        if not lab:
            raise places.error(("lab",), 'is empty: write at least "{topology: dumbbell}"')
        inner = Places(places.file, {path[1:]: place for path, place in places.known.items() if path[:1] == ("lab",)})
        raw = copy.deepcopy(lab)
        raw.setdefault("name", name)
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
