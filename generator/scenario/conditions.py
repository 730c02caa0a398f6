"""States of congestion controls that steps and events wait for (`when:`). Pure but for the library of added controls.

Comes in: a run, its clock. Goes out: its conditions, each with the number of the step that it counts as (those of the
scenario come first), for the request of the traffic generator; DescriptionError for what no flow's state can be.
"""

from __future__ import annotations

from ewan.generator.scenario import controls, flows
from ewan.generator.scenario.fields import When
from ewan.generator.scenario.runs import ScenarioRun
from ewan.labs.base.source import Path
from ewan.labs.base.wording import nearest
from ewan.labs.congestion import variables
from ewan.labs.record.schedule import Clock
from ewan.labs.record.traffic import StateCondition


class Conditions:
    """The conditions of a run. `requests`: as the generator has them."""

    def __init__(self, run: ScenarioRun, clock: Clock) -> None:
        self._run, self._clock = run, clock
        self._numbers = {step.name: number for number, step in enumerate(run.document.steps)}
        self._of: dict[tuple[str, int], int] = {}
        found: list[StateCondition] = []
        waiting = [
            *(("steps", index, step.when) for index, step in enumerate(run.document.steps)),
            *(("events", index, event.when) for index, event in enumerate(run.document.events)),
        ]
        for key, index, when in waiting:
            if when is not None:
                number = self._of[key, index] = len(self._numbers) + len(found)
                found.append(self._condition(number, when, (key, index, "when")))
        self.requests = tuple(found)
        for index, step in enumerate(run.document.steps):
            if step.when is not None and step.when.flow == step.name:
                raise run.places.error(
                    ("steps", index, "when", "flow"), f"{step.name} waits for itself: write another step"
                )

    def number(self, key: str, index: int) -> tuple[int, ...]:
        """The number that the condition of a step or an event (`key`) counts as; none where it has none."""
        found = self._of.get((key, index))
        return () if found is None else (found,)

    def of(self, step: int) -> list[int]:
        """The numbers of the conditions on flows of a step."""
        return [each.step for each in self.requests if each.of == step]

    def _condition(self, number: int, when: When, path: Path) -> StateCondition:
        run, places = self._run, self._run.places
        if when.flow not in self._numbers:
            raise places.error((*path, "flow"), f"there is no such step, {nearest(when.flow, self._numbers)}")
        step = run.document.steps[of := self._numbers[when.flow]]
        settings = flows.settings(step, run.document.defaults)
        control = settings.congestion
        if settings.generator != "ewan":
            raise places.error((*path, "flow"), f"{settings.generator} does not show it: write a step of our generator")
        if control is None:
            raise places.error((*path, "flow"), f"a step of kind {step.kind} has no congestion control: write another")
        if not when.state:
            raise places.error((*path, "state"), 'is empty: write what it is to be, like "{mode: DRAIN}"')
        is_own = controls.is_own(run, control)
        if is_own and self._clock == "live":
            raise places.error((*path, "flow"), f"{control} shows its state in the virtual clock: --runtime virtual")
        # The layout of a module is known when it is compiled, before the first run starts.
        for asked in when.state.values() if not is_own else ():
            if why := variables.refusal(control, variables.told(control), asked):
                raise places.error((*path, "state", asked.variable), why)
        return StateCondition(number, of, when.every.ns, tuple(when.state.values()))
