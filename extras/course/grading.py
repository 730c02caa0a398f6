"""Grading: what a student handed in, held against what is true for that student. Its own process does it, for one.

In: the bytes of a file. Out: a `Grade`, whatever the bytes are. The lab and its truths follow from the names of lab and
student in it; its answers are judged as `ewan course check` does, and its runs are held against the same runs, executed
here or taken from the store. Nothing that the file holds is executed: a value that a student chose is one within the
limits that the lab sets.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.experiments.engine.unit import Tools, Unit
from ewan.experiments.store import Store, key
from ewan.extras.course import (
    amounts,
    answer_check,
    answers,
    confirmation,
    doubts,
    grade,
    parameters,
    reading,
    records,
    rendering,
    submission,
    truths,
    verdicts,
    words,
)
from ewan.extras.course.confirmation import KnownRun, StudentVersions
from ewan.extras.course.fields import Question
from ewan.extras.course.folder import RECORD
from ewan.extras.course.grade import Grade
from ewan.extras.course.local_executor import LocalExecutor
from ewan.extras.course.reading import Lab
from ewan.extras.course.required_runs import RequiredRuns
from ewan.extras.course.runs import Files, See, Student
from ewan.extras.course.submission import Submission, SubmissionError
from ewan.extras.course.verdicts import QuestionVerdict, Truth
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import one_line, read_bytes
from ewan.labs.base.reporter import SilentReporter
from ewan.labs.base.units import NS_PER_SECOND, UnitError
from ewan.labs.record.experiment import DOCUMENT as EXPERIMENT
from ewan.labs.spec import DescriptionError, names

PROJECT = ("analysis", "experiments", "extras/course", "generator", "labs")
"""Whose sources decide a grade, beside the labs of the course."""
MOST_LINE = 300
_PLACES = {RECORD: "a student's folder", EXPERIMENT: "an experiment's directory"}
"""A directory that has such a file is called so. `sources.below` gives the file in its place."""


@dataclass(frozen=True, slots=True)
class GradingMachine:
    """The tools that grades are made with; it can be pickled. `store` None: nothing is kept. `labs`: the directory of
    all."""

    see: See
    tools: Tools
    store: Path | None
    scratch: Path
    labs: Path = reading.LABS


@dataclass(frozen=True, slots=True)
class GradingTask:
    """A file that was handed in; see `sources.Source`."""

    file: str
    path: Path
    sha256: str


def basis(machine: GradingMachine) -> str:
    """SHA-256 of all that decides a grade beside the submission: labs, this project, what runs are executed with."""
    result = hashlib.sha256(f"{machine.tools.versions} {key.tables_digest()}".encode())
    own = [*key.sources(PROJECT), *sorted(path for path in machine.labs.rglob("*") if path.is_file())]
    for path in own:
        content = path.read_bytes()
        result.update(f"\n{path} {len(content)}\n".encode())
        result.update(content)
    return result.hexdigest()


def graded(machine: GradingMachine, task: GradingTask) -> Grade:
    """The grade of a file. What is wrong with it, or hinders its grading here, is in the grade."""
    begun = time.monotonic_ns()
    told: Submission | None = None

    def failed(status: grade.Status, error: Exception) -> Grade:
        lab, student = (told.lab, told.student) if told else ("", "")
        line = one_line(str(error) or type(error).__name__, MOST_LINE)
        return Grade(file=task.file, sha256=task.sha256, status=status, error=line, lab=lab, student=student)

    try:
        content = read_bytes(task.path, submission.MOST_BYTES)
        if (place := _PLACES.get(task.path.name)) is not None:
            raise SubmissionError(f"is {place}: hand in the file that `ewan course hand-in` writes")
        told = submission.read(content)
        lab = _lab(told, machine.labs)
        drawing = parameters.drawn(lab.name, told.student, lab.course.parameters)
    except OSError as error:
        return failed("refused", ValueError(error.strerror))
    except (SubmissionError, DescriptionError) as error:
        return failed("refused", error)
    try:
        with tempfile.TemporaryDirectory(prefix="grade-", dir=machine.scratch) as scratch:
            reporter = SilentReporter()
            store = None if machine.store is None else Store(machine.store)
            executor = LocalExecutor(
                reporter, machine.tools.binary, store, Path(scratch), workers=1, _tools=machine.tools
            )
            with Student(lab, drawing, executor, machine.see) as student:
                found = _found(told, student, executor)
    except Exception as error:  # whatever it is, it must not stop the others; the teacher reads it
        return failed("failed", error)
    questions, runs, own, notes = found
    return Grade(
        file=task.file,
        sha256=task.sha256,
        lab=told.lab,
        student=drawing.student,
        language=lab.language,
        questions=tuple(questions),
        runs=tuple(runs),
        own=tuple(own),
        checks=max(len(told.checks), told.journal.checks if told.journal else 0),
        latest=told.latest,
        seconds=round((time.monotonic_ns() - begun) / NS_PER_SECOND, 3),
        notes=tuple(notes),
    )


def _lab(told: Submission, root: Path) -> Lab:
    """The lab that was handed in, in the student's language where it is in it."""
    lab = reading.find(told.lab, root=root)
    return reading.translated(lab, told.language) if told.language in lab.languages else lab


def _found(
    told: Submission, student: Student, executor: LocalExecutor
) -> tuple[list[grade.QuestionGrade], list[grade.RunGrade], list[str], list[str]]:
    """Questions, runs, the inputs of the student's own runs, what to look at."""
    lab = student.lab
    given = answers.from_data(told.answers, lab.questions)
    true = truths.of(student)
    recorded = verdicts.recorded_predictions(each.verdicts for each in told.checks)
    judged = answer_check.every(student, true, given, recorded)
    questions = [
        _question(each, verdict, true[each.name], lab.language)
        for each, verdict in zip(lab.course.questions, judged, strict=True)
    ]
    texts = {
        name.removesuffix(names.SCENARIO): hashlib.sha256(content).hexdigest()
        for name, content in rendering.files(lab, student.drawing).items()
        if name.endswith(names.SCENARIO)
    }
    known = list(_known(told, RequiredRuns(student, texts).units(given, told.experiments), executor))
    versions = executor.tools.versions
    runs = confirmation.confirm(told.experiments, known, StudentVersions(versions.kernel, versions.binary, texts))
    notes = [*_notes(told, lab, questions), *doubts.of(told, lab, questions, runs, known)]
    return questions, runs, [each.inputs for each in known], notes


def _question(question: Question, verdict: QuestionVerdict, truth: Truth, language: str) -> grade.QuestionGrade:
    return grade.QuestionGrade(
        name=question.name,
        kind=question.answer,
        verdict=verdict.state,
        points=float(verdict.points or 0),
        most=float(verdict.most),
        answer=verdict.answer,
        value=_value(question, verdict.answer, language),
        truth=verdicts.told(question, truth),
        say=verdict.say,
    )


def _value(question: Question, answer: str, language: str) -> float | None:
    if question.kind is None:
        return None
    try:
        return float(amounts.typed(answer, question.kind, words.of(language).comma, question.asked).amount)
    except UnitError:
        return None


def _known(told: Submission, units: Iterable[Unit], executor: LocalExecutor) -> Iterator[KnownRun]:
    """The runs that the lab asks this student for, each with what it leaves here; only those that were handed in are
    executed."""
    handed_in = {run.inputs for experiment in told.experiments for run in experiment.runs}
    for work in {each.key: each for each in units}.values():
        inputs = inputs_of(work)
        left, error = _left(executor, work) if inputs in handed_in else (None, "")
        yield KnownRun(work.scenario, work.name, work.key, inputs, left, error)


def _left(executor: LocalExecutor, work: Unit) -> tuple[str | None, str]:
    """The checksum of a run's tables, or why it could not be executed."""
    try:
        (files,) = executor.results([work])
    except UserError as error:
        return None, one_line(str(error), MOST_LINE)
    return tables_of(files), ""


def tables_of(files: Files) -> str:
    """See `records.tables`."""
    return records.tables({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})


def inputs_of(work: Unit) -> str:
    """See `records.inputs`."""
    return records.digest(hashlib.sha256(each).hexdigest() for each in (work.plan, work.program, work.schedule))


def _notes(told: Submission, lab: Lab, questions: Sequence[grade.QuestionGrade]) -> Iterator[str]:
    """Yield the notes for the teacher."""
    if told.content != lab.content:
        yield "the student had another version of the lab"
    if strange := sorted(told.answers.keys() - lab.questions.keys()):
        yield f"answers to unknown questions: {', '.join(strange)}"
    if unknown := [each for each in questions if each.verdict == "unknown"]:
        yield f"could not be checked: {'; '.join(f'{each.name}: {each.say}' for each in unknown)}"
