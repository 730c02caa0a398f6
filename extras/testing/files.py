"""A file of tests: scenarios with what is expected of them.

In: a YAML file with the key `tests`. Out: tests, each with its scenario; DescriptionError for mistakes in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ewan.experiments.api.run import LabProgram
from ewan.extras.testing.expectations import Expectation
from ewan.generator.scenario import Scenario, parameters, scenario
from ewan.labs.base.model import Model
from ewan.labs.base.source import Places, read_yaml
from ewan.labs.base.wording import nearest
from ewan.labs.record import quantities
from ewan.labs.spec import translate
from ewan.labs.spec.description import text_of

EXAMPLE = 'tests: [{name: reaches, lab: dumbbell, steps: [{name: a, on: left1, run: "ping -c 1 right1"}]}]'
PAGE = "docs/how-to/testing/files.md"


class _Expected(Model):
    """The keys of a test beside those of its scenario."""

    expect: tuple[Expectation, ...] = ()


@dataclass(frozen=True)
class FileTest:
    """A test. `programs`: the steps that run a program, by name: node and command."""

    name: str
    scenario: Scenario
    expectations: tuple[Expectation, ...]

    @property
    def programs(self) -> dict[str, LabProgram]:
        """The programs of the steps that run one; each call makes them anew, as none has run."""
        steps = self.scenario.document.steps
        return {
            step.name: LabProgram(step.name, str(step.on), str(step.run), step.ready)
            for step in steps
            if step.run is not None
        }


def load(file: Path) -> tuple[FileTest, ...]:
    """The tests of a file, in their order."""
    text = text_of(file, "write the path of a file of tests (*.test.yaml)")
    raw, places = read_yaml(parameters.marked(text), str(file), EXAMPLE)
    if not isinstance(raw, dict) or set(raw) != {"tests"} or not isinstance(raw["tests"], list) or not raw["tests"]:
        raise places.error((), 'write "tests:" with a list of at least one test, and no other key')
    tests = [_test(each, index, places, file) for index, each in enumerate(raw["tests"])]
    names: set[str] = set()
    for index, test in enumerate(tests):
        if test.name in names:
            raise places.error(("tests", index, "name"), "is the name of another test: write another one")
        names.add(test.name)
    return tuple(tests)


def _test(raw: Any, index: int, places: Places, file: Path) -> FileTest:
    path = ("tests", index)
    if not isinstance(raw, dict):
        raise places.error(path, 'a test is a group of keys: write "name:", "lab:", "steps:" and "expect:"')
    if not isinstance(raw.get("name"), str):
        raise places.error(path, 'has no name: write "name:" too')
    own = {key: value for key, value in raw.items() if key != "expect"}
    inside = Places(places.file, {found[2:]: place for found, place in places.known.items() if found[:2] == path})
    try:
        expected = _Expected.model_validate({"expect": raw.get("expect") or []}).expect
    except ValidationError as error:
        raise translate(error, inside, _Expected, PAGE) from None
    text = parameters.unmarked(yaml.safe_dump(own, sort_keys=False, allow_unicode=True, width=120))
    read = scenario.from_data(own, inside, text, file)
    test = FileTest(raw["name"], read, expected)
    _check_steps(test, inside)
    return test


def _check_steps(test: FileTest, places: Places) -> None:
    """DescriptionError for an expectation of a step that is none."""
    steps, programs = [step.name for step in test.scenario.document.steps], test.programs
    for index, each in enumerate(test.expectations):
        chosen = None if each.metric is None else quantities.parse(each.metric).selection
        if chosen is not None and (missing := chosen.missing(steps)) is not None:
            raise places.error(("expect", index), f"{each.metric}: {missing}")
        if each.lost in steps and each.lost not in programs and not test.scenario.document.count_flows:
            raise places.error(("expect", index), f'links do not count {each.lost}: write "count_flows: true" too')
        if each.step is None:
            continue
        wanted = programs if each.exit or each.ended or each.output else steps
        if each.step not in wanted:
            why = "runs no program" if each.step in steps else "is no step"
            raise places.error(("expect", index), f"{each.step} {why}: {nearest(each.step, wanted)}")
