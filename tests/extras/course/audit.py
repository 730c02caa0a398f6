"""Whether a lab can be used in a class: truths exist, agree with formulas, can be told from known mistakes and from
those of other students.

`python -m tests.extras.course.audit --students 50 [LAB…]` prints a table. In: labs, student numbers. Out: what is
wrong, in words, of each student; and how many pairs of students have answers most of which would pass for the other's.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import click

from ewan.analysis.one_run import SingleRun
from ewan.extras.course import amounts, parameters, reading, truths, verdicts, words
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.fields import Question
from ewan.extras.course.local_executor import LocalExecutor
from ewan.extras.course.reading import Lab
from ewan.extras.course.runs import RunExecutor, Student
from ewan.extras.course.verdicts import Truth
from ewan.labs.context import Context
from tests.extras.course.desk import written

ALIKE = 0.75
"""Two students' truths are alike where more than this share of one's would be right for the other."""


@dataclass
class Audit:
    """Of one lab. `found`: the truths of each student."""

    lab: Lab
    found: dict[str, Mapping[str, Truth]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def add(self, student: str, executor: RunExecutor) -> None:
        """Looks at one student."""
        begun = _cpu_s()
        drawing = parameters.drawn(self.lab.name, student, self.lab.course.parameters)
        with Student(self.lab, drawing, executor, SingleRun) as own:
            self.found[student] = truths.of(own)
        self.cpu_s.append(_cpu_s() - begun)
        self.problems += [f"{self.lab.name}, {student}: {line}" for line in wrong(self.lab, self.found[student])]

    def ranges(self) -> Iterator[str]:
        """From where to where each amount goes over all students, for teacher.md."""
        for question in checked(self.lab):
            values = [float(each[question.name].value or 0) for each in self.found.values()] if question.kind else []
            if values:
                yield f"{question.name}: {answered(question, min(values))} to {answered(question, max(values))}"

    def alike(self) -> list[tuple[str, str]]:
        """Pairs of students that copying would not be told of."""
        return [
            (one, other)
            for one, other in combinations(self.found, 2)
            if passing(self.lab, self.found[one], self.found[other]) > ALIKE
        ]


def _cpu_s() -> float:
    told = os.times()
    return told.user + told.system + told.children_user + told.children_system


def checked(lab: Lab) -> list[Question]:
    """The questions that have a truth."""
    return [each for each in lab.course.questions if each.truth is not None]


def wrong(lab: Lab, found: Mapping[str, Truth]) -> Iterator[str]:
    """What is wrong with a student's truths, a line each."""
    for question in checked(lab):
        truth = found[question.name]
        if truth.value is None:
            yield f"{question.name}: no truth: {truth.why}"
            continue
        given = WrittenAnswer(answer_of(question, truth))
        verdict = verdicts.judge(question, truth, given, words.of("en"))
        if verdict.state != "right":
            yield f"{question.name}: the truth itself, {given.text}, is {verdict.state}: {verdict.say}"
        if question.kind is None:
            continue
        value = float(truth.value)
        if truth.closed is not None:
            within = float(amounts.read_as(question.within, "share"))
            if abs(value - truth.closed) > within * abs(truth.closed):
                yield f"{question.name}: run {value:.6g}, formula {truth.closed:.6g}: not within {within:.0%}"
        if not question.exact:
            three = verdicts.judge(
                question, truth, WrittenAnswer(answered(question, value, verdicts.DIGITS)), words.of("en")
            )
            if three.state != "right":
                yield f"{question.name}: the truth with three digits, {three.answer}, is {three.state}: {three.say}"
        for known in truth.known:
            if verdicts.apart(known, value) or (question.exact and known.value == value):
                told = WrittenAnswer(answered(question, float(known.value)))
                if verdicts.judge(question, truth, told, words.of("en")).state == "right":
                    yield f"{question.name}: a mistake ({known.say}) gives {told.text}, right is {value:.6g}"


def answer_of(question: Question, truth: Truth) -> str:
    """The truth as a student would write it."""
    if isinstance(truth.value, str) or question.kind is None:
        return str(truth.value)
    return answered(question, float(truth.value or 0))


def answered(question: Question, value: float, digits: int = 5) -> str:
    """An amount as a student would write it."""
    return written(value, question.answer, digits)


def passing(lab: Lab, one: Mapping[str, Truth], other: Mapping[str, Truth]) -> float:
    """The share of one student's amounts that would be right for another."""
    amounts_asked = [each for each in checked(lab) if each.kind is not None]
    right = 0
    for question in amounts_asked:
        mine, theirs = one[question.name].value, other[question.name].value
        if mine is not None and theirs is not None:
            right += verdicts.agrees(float(mine), float(theirs), question.margin)
    return right / len(amounts_asked) if amounts_asked else 0.0


def audited(lab: Lab, students: Sequence[str], executor: RunExecutor) -> Audit:
    """A lab with several students."""
    audit = Audit(lab)
    for student in students:
        audit.add(student, executor)
    return audit


@click.command()
@click.argument("names", metavar="[LAB…]", nargs=-1)
@click.option("--students", type=click.IntRange(2), default=50, show_default=True, help="How many.")
@click.option("--ranges", is_flag=True, help="Print from where to where each amount goes, too.")
def main(names: tuple[str, ...], students: int, ranges: bool) -> None:
    """Audit labs of the course."""
    context = dataclasses.replace(Context.of(os.environ), runtime="virtual")
    failed = False
    print("| lab | students | questions | undecidable | pairs alike | CPU a student | wall |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in names or reading.known():
        lab = reading.find(name)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="ewan-audit-") as scratch:
            executor = LocalExecutor(context.reporter, context.binary, None, Path(scratch))
            audit = audited(lab, [f"{each:04}" for each in range(1, students + 1)], executor)
        alike, pairs = len(audit.alike()), students * (students - 1) // 2
        cpu = sum(audit.cpu_s) / students
        print(
            f"| {name} | {students} | {len(checked(lab))} | {len(audit.problems)} | {alike} of {pairs} "
            f"| {cpu:.1f} s | {time.monotonic() - begun:.0f} s |",
            flush=True,
        )
        for line in audit.ranges() if ranges else ():
            print(f"  {line}", flush=True)
        for line in audit.problems:
            print(f"  {line}", file=sys.stderr, flush=True)
        failed |= bool(audit.problems)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
