"""The grade of a submission: verdicts with points, which of its runs were confirmed, what is to be looked at.

In: what the grader found. Out: a `Grade`, which the ledger keeps and the formats write. It is plain data. A key
may be missing that has a default, and all are written.
"""

from __future__ import annotations

from typing import Literal

from ewan.extras.course.verdicts import State
from ewan.labs.base.codec import Struct, replace

TEACHER: State = "teacher"
Status = Literal["graded", "refused", "failed", "missing"]
"""Refused: it is no submission that can be read. Failed: it could not be graded here. Missing: it was not handed in."""

CONFIRMED = "confirmed"
NOT_CONFIRMED = "not confirmed: "
OTHER_TOOLS = f"{NOT_CONFIRMED}made by another kernel or node binary"
OTHER_VERSION = f"{NOT_CONFIRMED}made by another version"
CHANGED = f"{NOT_CONFIRMED}changed scenario"
TRIED = f"{NOT_CONFIRMED}settings that the lab does not ask for"
DIFFER = f"{NOT_CONFIRMED}bytes differ"
TOO_MANY = f"{NOT_CONFIRMED}too many"


class QuestionGrade(Struct, kw_only=True, omit_defaults=False):
    """A question with what was answered. `points` of `most`; `value`: the answer as a number in SI base units, where it
    is one; `truth` is only for the teacher; `say`: the message to the student."""

    name: str
    kind: str
    """As the lab calls what is to be answered: time, rate, choice, words, …"""
    verdict: State
    points: float
    most: float
    answer: str = ""
    value: float | None = None
    truth: str = ""
    say: str = ""

    @property
    def by_teacher(self) -> bool:
        """A person judges it, where it was answered."""
        return self.kind == "words"

    @property
    def prediction(self) -> bool:
        """Return whether it is a prediction, which is recorded and not judged."""
        return self.verdict in ("predicted", "unpredicted")

    @property
    def quantity(self) -> bool:
        """The answer is a number that depends on the student's own parameters, and of which there are many: what is
        counted is a small number, which many students share."""
        return self.kind not in ("words", "choice", "settings", "count")


class RunGrade(Struct, kw_only=True):
    """A run of a student: `said` is `confirmed`, or why it is not. `inputs`: what it executed, as a checksum."""

    scenario: str
    name: str
    inputs: str
    said: str

    @property
    def confirmed(self) -> bool:
        """It was executed again, and left the same bytes."""
        return self.said == CONFIRMED


class Grade(Struct, kw_only=True, omit_defaults=False):
    """A submission. `file`: its path below the directory of submissions; `sha256`: of its bytes.

    `own`: checksums of what the runs of this student's own scenarios execute. `notes`: what a teacher should look at.
    """

    file: str
    sha256: str = ""
    status: Status = "graded"
    error: str = ""
    lab: str = ""
    student: str = ""
    language: str = "en"
    """In which the student reads it."""
    questions: tuple[QuestionGrade, ...] = ()
    runs: tuple[RunGrade, ...] = ()
    own: tuple[str, ...] = ()
    checks: int = 0
    latest: str = ""
    """When the student checked or ran something for the last time, in UTC; empty: never, or not known."""
    replaced: str = ""
    """The file of the same student and lab that counts in place of this one; empty: this one counts."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The points of all questions that a machine can judge."""
        return sum(each.points for each in self.questions)

    @property
    def most(self) -> float:
        """The points that could be had, without those that the teacher gives."""
        return sum(each.most for each in self.questions if not each.by_teacher)

    @property
    def by_teacher(self) -> float:
        """The points that the teacher gives, at most."""
        return sum(each.most for each in self.questions if each.verdict == TEACHER)

    def count(self, verdict: State) -> int:
        """Return the number of answers with this verdict."""
        return sum(each.verdict == verdict for each in self.questions)

    @property
    def confirmed(self) -> int:
        """The number of runs that were confirmed."""
        return sum(each.confirmed for each in self.runs)

    def noted(self, *lines: str) -> Grade:
        """The same with more to be looked at."""
        return replace(self, notes=(*self.notes, *lines))
