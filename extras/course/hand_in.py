"""The file that a student hands in, made of the student's folder.

In: the folder, with answers, results and checks. Out: a `Submission`, and a line for each thing that is missing in it.
Nothing is run, and nothing is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ewan.extras.course import answers, history, records, submission
from ewan.extras.course.folder import Folder
from ewan.extras.course.submission import NOTEBOOK, Submission
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import read_bytes

ENDING = ".zip"


class HandingError(UserError):
    """Why nothing can be handed in, in one line."""


@dataclass(frozen=True, slots=True)
class HandIn:
    """`unanswered`: the names of questions; `notes`: what was not taken, a line each."""

    submission: Submission
    content: bytes
    unanswered: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.submission.lab}-{self.submission.student}{ENDING}"

    @property
    def runs(self) -> int:
        """The number of different runs in it: a run of two experiments counts once, as the grader counts it."""
        return len({(run.inputs, run.tables) for each in self.submission.experiments for run in each.runs})


def made(folder: Folder, with_notebook: bool = False) -> HandIn:
    """Return the file to hand in for a folder; DescriptionError where answers.yaml cannot be read, HandingError where
    the rest cannot."""
    given = answers.load(folder.answers, folder.lab.questions)
    experiments, notes = records.found(folder.path)
    told = Submission(
        lab=folder.lab.name,
        student=folder.drawing.student,
        language=folder.record.language,
        content=folder.record.content,
        answers=dict(answers.plain(given)),
        experiments=tuple(experiments),
        checks=history.read(folder.path),
        journal=submission.CheckJournal(checks=folder.record.checks, last=folder.record.last_check),
    )
    try:
        content = submission.packed(told, _notebook(folder) if with_notebook else None)
    except submission.SubmissionError as error:
        raise HandingError(f"{folder.path}: {error}") from None
    unanswered = tuple(name for name, each in given.items() if each.empty)
    unread = [f"{each.place}{name}: {each.wrong}" for name, each in given.items() if each.wrong]
    return HandIn(told, content, unanswered, (*given.strange, *unread, *notes))


def _notebook(folder: Folder) -> bytes:
    path = folder.path / f"{folder.lab.name}{Path(NOTEBOOK).suffix}"
    try:
        return read_bytes(path, submission.MOST_NOTEBOOK_BYTES)
    except OSError as error:
        raise HandingError(f"{path}: {error.strerror}: leave --notebook out") from None
