"""How long the submissions of a class take to grade: 40 students, five labs of the course.

In: a context that can run the virtual kernel. Out: seconds and counts; a table of them for `tests/bench`. What is
graded is made by the same functions as students' commands use, each student's truths computed and runs executed for
it, with a store of its own: the grader finds none of them done. Of four students one is all right, one is wrong here
and there, one has the answers of another, one guesses and has run nothing. Grading is a process of its own, so that
its start counts.
"""

from __future__ import annotations

import functools
import hashlib
import resource
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ewan.analysis.one_run import SingleRun
from ewan.experiments.engine.unit import Tools
from ewan.experiments.store import Store
from ewan.extras.course import amounts, grading, parameters, pool, reading, rendering, submission, truths
from ewan.extras.course.fields import Question, SettingChoice
from ewan.extras.course.grading import GradingMachine
from ewan.extras.course.local_executor import LocalExecutor
from ewan.extras.course.pool import LostCall
from ewan.extras.course.reading import Lab
from ewan.extras.course.runs import Student
from ewan.extras.course.submission import Answer, Submission, SubmittedExperiment, SubmittedRun
from ewan.extras.course.verdicts import Truth
from ewan.labs.base import processes
from ewan.labs.base.reporter import SilentReporter
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.context import COMMAND, STORE_VARIABLE, Context
from ewan.labs.runtime import kernel
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.spec import names

LABS = 5
STUDENTS, QUICK_STUDENTS = 40, 4
LONGEST_S = 600.0
GOOD, SLIPS, COPIES, GUESSES = range(4)
"""Kinds of students, by their number."""
SLIP_EVERY = 3
"""Of the questions, those that are wrong of who is wrong here and there."""
UNITS = {"time": "s", "rate": "bit/s", "size": "B", "packets": "packets", "share": "%"}
PERCENT = 100


@dataclass(frozen=True, slots=True)
class Whose:
    """A submission that is to be made: the lab's name and the place of the student in the class."""

    lab: str
    number: int


def measure(context: Context, quick: bool, show: Callable[[str], None]) -> dict[str, Any]:
    """All measurements, as JSON has them; LabError where there is no lab."""
    labs = list(reading.known())[:LABS]
    if not labs:
        raise LabError(f"{reading.LABS}: there is no lab")
    students = QUICK_STUDENTS if quick else STUDENTS
    tools = Tools(kernel.kernel(context.reporter.tell), node_binary(context.binary))
    with tempfile.TemporaryDirectory(prefix="ewan-bench-course-") as above:
        place = Path(above)
        machine = GradingMachine(SingleRun, tools, place / "students", place)
        wanted = [Whose(lab, number) for lab in labs for number in range(students)]
        made_s = _make(machine, wanted, place / "in", show)
        show(f"grading {len(wanted)} submissions")
        first, second = _grade(context, place, "first"), _grade(context, place, "again")
        told = orjson.loads((place / "grades" / "grades.json").read_bytes())["grades"]
    runs = [run["said"] for each in told for run in each["runs"]]
    return {
        "labs": labs,
        "students": students,
        "submissions": len(wanted),
        "cpus": processes.cpus(),
        "made_s": made_s,
        "graded": first,
        "again": second,
        "statuses": dict(Counter(each["status"] for each in told)),
        "verdicts": dict(Counter(question["verdict"] for each in told for question in each["questions"])),
        "runs": dict(Counter(runs)),
        "to_be_looked_at": sum(bool(each["notes"]) for each in told),
    }


def tables(found: Mapping[str, Any]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, columns and rows."""
    count, graded, again = found["submissions"], found["graded"], found["again"]
    row = [
        str(count),
        str(len(found["labs"])),
        str(found["cpus"]),
        *(_seconds(graded[key]) for key in ("wall_s", "cpu_s")),
        _seconds(graded["wall_s"] / count),
        _seconds(again["wall_s"]),
        f"{found['runs'].get('confirmed', 0)} of {sum(found['runs'].values())}",
        str(found["to_be_looked_at"]),
    ]
    columns = ["submissions", "labs", "CPUs", "graded in", "CPU time", "each", "again", "runs confirmed", "to look at"]
    yield "Grading a class", columns, [row]


def _make(machine: GradingMachine, wanted: Sequence[Whose], place: Path, show: Callable[[str], None]) -> float:
    """Writes what students hand in; how long that took."""
    begun = time.monotonic()
    place.mkdir()
    found = pool.each(functools.partial(handed_in, machine), wanted, processes.cpus(), LONGEST_S)
    for done, (index, made) in enumerate(found, 1):
        if isinstance(made, LostCall):
            raise LabError(f"{wanted[index]}: {made.why}")
        show(f"{done} of {len(wanted)} students at work")
        (place / f"{wanted[index].lab}-{_student(wanted[index].number)}.zip").write_bytes(made)
    return time.monotonic() - begun


def handed_in(machine: GradingMachine, whose: Whose) -> bytes:
    """The bytes of a file that a student hands in."""
    lab = reading.find(whose.lab)
    kind = whose.number % 4
    with tempfile.TemporaryDirectory(prefix="student-", dir=machine.scratch) as scratch:
        assert machine.store is not None
        executor = LocalExecutor(
            SilentReporter(), machine.tools.binary, Store(machine.store), Path(scratch), 1, _tools=machine.tools
        )

        def true(number: int) -> dict[str, Truth]:
            drawing = parameters.drawn(lab.name, _student(number), lab.course.parameters)
            with Student(lab, drawing, executor, machine.see) as student:
                return truths.of(student)

        drawing = parameters.drawn(lab.name, _student(whose.number), lab.course.parameters)
        found = {} if kind == GUESSES else true(whose.number - 1 if kind == COPIES else whose.number)
        answers = {
            each.name: answer
            for at, each in enumerate(lab.course.questions)
            if (answer := _answer(each, found.get(each.name, Truth()), kind, at)) is not None
        }
        experiments: list[SubmittedExperiment] = []
        if kind != GUESSES:
            with Student(lab, drawing, executor, machine.see) as student:
                experiments = [_experiment(student, executor, name) for name in _own(lab)]
    told = Submission(
        lab=lab.name,
        student=drawing.student,
        language=lab.language,
        content=lab.content,
        answers=answers,
        experiments=tuple(experiments),
        checks=(),
    )
    return submission.packed(told)


def _own(lab: Lab) -> list[str]:
    """The scenarios that a student has."""
    plain = [name.removesuffix(reading.TEMPLATE) for name in lab.files]
    return [name.removesuffix(names.SCENARIO) for name in plain if name.endswith(names.SCENARIO)]


def _experiment(student: Student, executor: LocalExecutor, scenario: str) -> SubmittedExperiment:
    work = list(student.units(scenario))
    left = executor.results(work)
    runs = [
        SubmittedRun(name=each.name, key=each.key, inputs=grading.inputs_of(each), tables=grading.tables_of(files))
        for each, files in zip(work, left, strict=True)
    ]
    content = rendering.files(student.lab, student.drawing)[f"{scenario}{names.SCENARIO}"]
    versions = executor.tools.versions
    return SubmittedExperiment(
        scenario=scenario,
        started="",
        command=f"ewan run {scenario}{names.SCENARIO} --runtime virtual",
        text=hashlib.sha256(content).hexdigest(),
        changed=False,
        kernel=versions.kernel,
        binary=versions.binary,
        runs=tuple(runs),
    )


def _answer(question: Question, truth: Truth, kind: int, at: int) -> Answer | None:
    """What this kind of student writes."""
    if question.answer == "words":
        return f"It is so because of {question.name}."
    if question.settings is not None:
        return {name: _middle(each) for name, each in question.settings.items()}
    if question.choices is not None:
        return question.choices[0] if kind == GUESSES or truth.value is None else str(truth.value)
    if kind == GUESSES and at % 2:
        return None
    value = 1.0 if truth.value is None else float(truth.value)
    if kind == SLIPS and at % SLIP_EVERY == 0:
        value *= 3
    unit = UNITS.get(question.answer, "")
    return f"{value * (PERCENT if unit == '%' else 1):.9g}{unit}"


def _middle(setting: SettingChoice) -> str:
    """A value that may be chosen: the first, or the geometric mean of the two ends."""
    if setting.one_of is not None:
        return str(setting.one_of[0])
    low, high = (amounts.read(each) for each in (setting.low, setting.high))
    unit = UNITS.get(low.kind, "")
    middle = (float(low.value) * float(high.value)) ** 0.5
    return f"{middle * (PERCENT if unit == '%' else 1):.3g}{unit}"


def _student(number: int) -> str:
    return f"{4700 + number}"


def _grade(context: Context, place: Path, name: str) -> dict[str, float]:
    """Grades all of it by the command: wall and CPU time."""
    environment = {**context.environment, STORE_VARIABLE: str(place / "store")}
    command = [*COMMAND, "course", "grade", "in", "--format", "json"]
    before, begun = _cpu_s(), time.monotonic()
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"grading, {name}: {done.stderr.strip() or done.stdout.strip()}")
    return {"wall_s": time.monotonic() - begun, "cpu_s": _cpu_s() - before}


def _cpu_s() -> float:
    """Of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seconds(value: float) -> str:
    return about(value * NS_PER_SECOND, "time", 3)
