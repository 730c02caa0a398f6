"""Whether the labs of a course lab pass their verification for the students at the ends of its parameters.

`ewan run` verifies a lab before it runs anything, and truths do not: a student at an end could be refused what the text
asks for. `python -m tests.extras.course.ends [LAB…]` verifies the labs of each scenario, for each parameter with its
least and its largest value.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import click

from ewan.analysis.one_run import SingleRun
from ewan.calibration.certificates import certify
from ewan.experiments.engine.experiment import family
from ewan.experiments.engine.verification import refusal
from ewan.extras.course import parameters, reading
from ewan.extras.course.local_executor import LocalExecutor
from ewan.extras.course.reading import Lab
from ewan.extras.course.runs import Student
from ewan.labs import plan as plans
from ewan.labs.context import Context
from ewan.labs.plan import Plan

MOST = 5000
"""Student numbers that are tried to find one at an end."""


def students(lab: Lab) -> list[str]:
    """For each parameter one student who has its first value, and one who has its last."""
    found: dict[tuple[str, str], str] = {}
    wanted = {(name, each.values[at]) for name, each in lab.course.parameters.items() for at in (0, -1)}
    for number in range(1, MOST):
        drawn = parameters.drawn(lab.name, f"{number:04}", lab.course.parameters)
        for pair in wanted & set(drawn.texts.items()):
            found.setdefault(pair, drawn.student)
        if len(found) == len(wanted):
            break
    return sorted(set(found.values()))


def refused(lab: Lab, student: str, context: Context, place: Path) -> Iterator[str]:
    """Why labs of a student are not to be believed, a line each."""
    executor = LocalExecutor(context.reporter, context.binary, None, place)
    drawing = parameters.drawn(lab.name, student, lab.course.parameters)
    kinds: dict[str, tuple[str, Plan]] = {}
    with Student(lab, drawing, executor, SingleRun) as own:
        for scenario in lab.scenarios:
            for work in own.units(scenario):
                plan = plans.from_json(work.plan)
                kinds.setdefault(family(plans.to_json(plan)), (f"{scenario}, {work.name}", plan))
    for number, (name, plan) in enumerate(kinds.values()):
        directory = place / f"{student}-{number}"
        directory.mkdir()
        if why := refusal(certify(context, plan, directory, True, threading.Event())):
            yield f"{lab.name}, student {student} ({', '.join(drawing.texts.values())}), {name}: {why}"


@click.command()
@click.argument("names", metavar="[LAB…]", nargs=-1)
def main(names: tuple[str, ...]) -> None:
    """Verify the labs of students at the ends of all parameters."""
    context = dataclasses.replace(Context.of(os.environ), runtime="virtual")
    failed = False
    for name in names or reading.known():
        lab = reading.find(name)
        who = students(lab)
        problems: list[str] = []
        for student in who:
            with tempfile.TemporaryDirectory(prefix="ewan-ends-") as place:
                problems += refused(lab, student, context, Path(place))
        print(f"{name}: {len(who)} students, {len(problems)} labs refused", flush=True)
        for line in problems:
            print(f"  {line}", flush=True)
        failed |= bool(problems)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
