"""The order of a scenario's steps by the steps that they wait for (`after:`), and about when each begins. Pure.

In: the steps of a run. Out: an order in which each comes after those that it waits for; for each, the numbers of the
steps that must have ended. Unknown names, circles, and steps that end with the run are refused."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ewan.generator.scenario.fields import ScenarioStep
from ewan.generator.scenario.flows import Error
from ewan.labs.base.wording import nearest


@dataclass(frozen=True, slots=True)
class StepTurn:
    """The turn of a step: its number, those of the steps that it waits for, and the time from which its times count:
    about when those have ended, or the beginning of the schedule."""

    number: int
    after: tuple[int, ...]
    begin_ns: int

    def counted(self, at_ns: int) -> int:
        """A time of the step as a program has it: from T0, or from the end of the steps that it waits for."""
        return at_ns if self.after else self.begin_ns + at_ns


def sequence(steps: Sequence[ScenarioStep], error: Callable[[int], Error]) -> list[int]:
    """Numbers of all steps, each after those that it waits for; else as they are written. `error`: makes errors of the
    step of a number."""
    numbers = {step.name: number for number, step in enumerate(steps)}
    before: dict[int, set[int]] = {}
    followers: dict[int, list[int]] = {number: [] for number in range(len(steps))}
    for number, step in enumerate(steps):
        for name in step.after:
            _check(step, name, steps, numbers, error(number))
        watched = [] if step.when is None else [step.when.flow]
        before[number] = {numbers[name] for name in (*step.after, *watched)}
        for earlier in before[number]:
            followers[earlier].append(number)
    ready = [number for number, earlier in before.items() if not earlier]
    result: list[int] = []
    while ready:
        result.append(heapq.heappop(ready))
        for follower in followers[result[-1]]:
            before[follower].discard(result[-1])
            if not before[follower]:
                heapq.heappush(ready, follower)
    if len(result) < len(steps):
        circle = _circle({number: earlier for number, earlier in before.items() if earlier})
        names = " after ".join(steps[number].name for number in [*circle, circle[0]])
        key = "after" if steps[circle[0]].after else "when"
        raise error(circle[0])((key,), f"{names}: a circle, in which no step starts: leave one of them out")
    return result


def _check(
    step: ScenarioStep,
    name: str,
    steps: Sequence[ScenarioStep],
    numbers: Mapping[str, int],
    error: Error,
) -> None:
    if step.service:
        raise error(("after",), "a service is there from its `at` on, whatever ends: leave one of the two out")
    if name == step.name:
        raise error(("after",), f"{name} waits for itself: write another step")
    if name not in numbers:
        others = [other for other in numbers if other != step.name]
        instead = nearest(name, others) if others else "leave it out"
        quoted = f'"{name}": ' if len(step.after) > 1 else ""  # else the error itself shows it
        raise error(("after",), f"{quoted}there is no such step, {instead}")
    if steps[numbers[name]].service and steps[numbers[name]].ready is None:
        message = (
            f'{name} is a service, which ends with the run: write the port at which it listens, {name}\'s "ready:"'
        )
        raise error(("after",), message)


def _circle(before: Mapping[int, Collection[int]]) -> list[int]:
    """One circle among steps each of which waits for one of the others."""
    trail = [min(before)]
    while (earlier := min(number for number in before[trail[-1]] if number in before)) not in trail:
        trail.append(earlier)
    return trail[trail.index(earlier) :]


def waited(
    steps: Sequence[ScenarioStep],
    order: Sequence[int],
    empty: Collection[int],
    condition: Callable[[int], tuple[int, ...]],
) -> list[tuple[int, ...]]:
    """For each step, the numbers of the steps that must have ended; a step without members stands for those that it
    waits for. `condition`: the number that a step's own condition counts as, where it has one."""
    numbers = {step.name: number for number, step in enumerate(steps)}
    found: list[tuple[int, ...]] = [()] * len(steps)
    for number in order:
        named = (numbers[name] for name in steps[number].after)
        all_of_them = (each for name in named for each in (found[name] if name in empty else (name,)))
        found[number] = tuple(dict.fromkeys((*all_of_them, *condition(number))))
    return found
