"""The submission of a student: one document with answers, records of the experiments that were run, and the checks
made.

In: the bytes of a file that was handed in, a zip or just the document; or a `Submission`. Out: the other of the two;
why it is none, in one line. It is data: what it says is compared, and nothing in it is executed, opened or looked up as
a name. Each part of it has a limit, so that a hostile one costs no more than a large honest one. The same submission
gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import Annotated

from ewan.extras.course import archive
from ewan.extras.course.archive import ArchiveError
from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Meta, Struct, field
from ewan.labs.base.reading import one_line

DOCUMENT = "submission.json"
NOTEBOOK = "notebook.ipynb"
MOST_BYTES = 8 << 20
"""The most bytes of the file that is handed in."""
MOST_DOCUMENT_BYTES = 2 << 20
MOST_NOTEBOOK_BYTES = 6 << 20
MEMBERS = {DOCUMENT: MOST_DOCUMENT_BYTES, NOTEBOOK: MOST_NOTEBOOK_BYTES}
MOST_EXPERIMENTS = 64
MOST_RUNS = 256
"""The most runs of an experiment."""
MOST_CHECKS = 1000
MOST_SETTINGS = 16
"""The most settings of an experiment."""
MOST_QUESTIONS = 100
MOST_LETTERS = 20_000
"""The most letters of an answer in words: ten pages."""
MOST_SHOWN = 80
_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644

Name = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9_-]{0,63}\Z")]
"""The name of a lab, a scenario or a question."""
PARAMETER = "[A-Za-z_][A-Za-z0-9_-]{0,63}"
Parameter = Annotated[str, Meta(pattern=rf"\A{PARAMETER}\Z")]
"""A parameter of a scenario."""
Student = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9](?:[A-Za-z0-9._@-]{0,62}[A-Za-z0-9])?\Z")]
Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
"""SHA-256 in hexadecimal digits."""
Line = Annotated[str, Meta(max_length=200)]
Words = Annotated[str, Meta(max_length=MOST_LETTERS)]
Answer = Words | Annotated[dict[Name, Words], Meta(max_length=MOST_QUESTIONS)]
"""As it was typed; of settings one for each."""


class SubmissionError(ValueError):
    """Why a file is no submission that this version reads, in words that follow its name."""


class SubmittedRun(Struct):
    """A run that was completed. Of what it executed, and of what it left, only checksums."""

    name: Line
    key: Digest
    """The name of its results in the store (experiments/store/key.py)."""
    inputs: Digest
    """The digest of its plan, program and schedule (`records.inputs`): two runs of the same are the same run."""
    tables: Digest
    """The digest of the names and the bytes of its tables (`records.tables`)."""


class SubmittedExperiment(Struct, kw_only=True, omit_defaults=False):
    """One that was run in the virtual clock."""

    scenario: Name
    started: Line
    command: Line
    text: Digest
    """The digest of its scenario."""
    changed: bool
    """Parameters, a scale or seeds were given on the command line."""
    settings: Annotated[dict[Parameter, Line], Meta(max_length=MOST_SETTINGS)] = field(default_factory=dict)
    """Those parameters, where nothing else was given."""
    kernel: Digest
    binary: Digest
    runs: Annotated[tuple[SubmittedRun, ...], Meta(max_length=MOST_RUNS)]


class CheckRecord(Struct, kw_only=True, omit_defaults=False):
    """One call of `ewan course check`: when, in UTC, and the verdict on each question. They are a chain: `number`
    counts from 1, `before` is the digest of the check before it, empty for the first."""

    at: Line
    verdicts: Annotated[dict[Name, Line], Meta(max_length=MOST_QUESTIONS)]
    number: Annotated[int, Meta(ge=0)] = 0
    before: Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{64})?\Z")] = ""

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return hashlib.sha256(codec.sorted_line(self).removesuffix(b"\n")).hexdigest()


class CheckJournal(Struct):
    """The number of checks that were made in the student's folder, and the digest of the last one; kept beside the
    checks."""

    checks: Annotated[int, Meta(ge=0)]
    last: Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{64})?\Z")]


class Submission(Document, tag="ewan-submission/1", omit_defaults=False):
    """submission.json. `content`: SHA-256 of the lab as the student had it; `language`: of its text."""

    lab: Name
    student: Student
    language: Annotated[str, Meta(pattern=r"\A[a-z]{2}\Z")]
    content: Digest
    answers: Annotated[dict[Name, Answer], Meta(max_length=MOST_QUESTIONS)]
    experiments: Annotated[tuple[SubmittedExperiment, ...], Meta(max_length=MOST_EXPERIMENTS)]
    checks: Annotated[tuple[CheckRecord, ...], Meta(max_length=MOST_CHECKS)]
    journal: CheckJournal | None = None
    """None: an older version made the submission."""

    @property
    def latest(self) -> str:
        """When the student checked or ran something for the last time, in UTC; empty: never."""
        return max([*(each.at for each in self.checks), *(each.started for each in self.experiments)], default="")


def read(content: bytes) -> Submission:
    """The submission that the bytes of a file hold; SubmissionError where they hold none."""
    if len(content) > MOST_BYTES:
        raise SubmissionError(f"is larger than {MOST_BYTES >> 20} MiB, the most that is read")
    if content.lstrip()[:1] != b"{":
        try:
            found = archive.members(content, MEMBERS)
        except ArchiveError as error:
            raise SubmissionError(f"{error}: hand in the file that `ewan course hand-in` writes") from None
        if DOCUMENT not in found:
            raise SubmissionError(f"has no {DOCUMENT}: hand in the file that `ewan course hand-in` writes")
        content = found[DOCUMENT]
    return from_json(content)


def from_json(content: bytes) -> Submission:
    """The submission of a document's bytes; SubmissionError where they are none."""
    if len(content) > MOST_DOCUMENT_BYTES:
        raise SubmissionError(f"has a {DOCUMENT} of more than {MOST_DOCUMENT_BYTES >> 20} MiB")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        raise SubmissionError(f"has a {DOCUMENT} that is not text in UTF-8") from None
    try:
        return codec.decode(Submission, content, "")
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"has a {DOCUMENT} that is none: {one_line(str(error), 3 * MOST_SHOWN)}") from None


def to_json(submission: Submission) -> bytes:
    """The document's bytes."""
    return codec.document(submission)


def packed(submission: Submission, notebook: bytes | None = None) -> bytes:
    """The file that is handed in; SubmissionError where it would be refused. `notebook`: for a teacher who reads it."""
    contents = {DOCUMENT: to_json(submission)} | ({} if notebook is None else {NOTEBOOK: notebook})
    for name, content in contents.items():
        if len(content) > MEMBERS[name]:
            raise SubmissionError(f"{name} would have more than {MEMBERS[name] >> 20} MiB, the most that is taken")
    from_json(contents[DOCUMENT])
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in contents.items():
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, _MODE << 16
            file.writestr(member, content)
    return result.getvalue()
