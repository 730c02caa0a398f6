"""The folder of a student: made by `ewan course start`, read by `check` and by whoever hands it in.

In: a lab and a student's number. Out: `bufferbloat/` with the text, scenarios with this student's values, a notebook,
answers.yaml to fill, and course.json, which says whose it is. A folder is there whole or not at all, and may be moved.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ewan.extras.course import answers, markdown, notebook, parameters, reading, rendering, words
from ewan.extras.course.parameters import StudentParameters
from ewan.extras.course.reading import Lab
from ewan.labs.base import codec
from ewan.labs.base.codec import Document, replace
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import one_line, read_bytes
from ewan.labs.base.writing import trouble, write

RECORD = "course.json"
MOST_RECORD = 64 << 10


class FolderError(UserError):
    """A fault of a student's folder, in one line."""


class FolderRecord(Document, tag="ewan-course/1", omit_defaults=False):
    """course.json. `content`: SHA-256 of the lab's questions and files when the folder was made; `checks`: how many
    checks were made since then, and `last_check`: the digest of the last one (see `history.py`)."""

    lab: str
    student: str
    language: str
    content: str
    checks: int = 0
    last_check: str = ""


@dataclass(frozen=True, slots=True)
class Folder:
    """A student's folder and the lab that it is of, as that is now."""

    path: Path
    record: FolderRecord
    lab: Lab
    drawing: StudentParameters

    @property
    def answers(self) -> Path:
        """The file in which the student writes."""
        return self.path / answers.FILE

    @property
    def older(self) -> bool:
        """The lab has changed since the folder was made."""
        return self.record.content != self.lab.content


def contents(lab: Lab, number: str) -> dict[str, bytes]:
    """All files of a student's folder, by name; DescriptionError where the lab or the number is wrong."""
    drawing = parameters.drawn(lab.name, number, lab.course.parameters)
    own = words.of(lab.language)
    text = rendering.text(lab, drawing, markdown.marker)
    record = FolderRecord(lab.name, drawing.student, lab.language, lab.content)
    return {
        **rendering.files(lab, drawing),
        **markdown.pictures(text),
        f"{lab.name}.md": markdown.page(text, lab.questions, own).encode(),
        f"{lab.name}.ipynb": notebook.write(lab, text, own),
        answers.FILE: blank(lab).encode(),
        RECORD: codec.ordered(record),
    }


def noted(path: Path) -> int:
    """Return the number of checks that were made; FolderError where the record cannot be read."""
    return read(_bytes(path / RECORD), str(path / RECORD)).checks


def note(path: Path, checks: int, last: str) -> None:
    """Keeps in a student's folder how many checks were made, and the digest of the last one; OSError where it cannot be
    written, FolderError where there is no record."""
    record = read(_bytes(path / RECORD), str(path / RECORD))
    made = replace(record, checks=checks, last_check=last)
    write(path / RECORD, codec.ordered(made))


def blank(lab: Lab) -> str:
    """answers.yaml as a student gets it: each question as a comment, its key, nothing behind it."""
    own = words.of(lab.language)
    lines = [f"# {lab.course.title}", f"# {own.how}"]
    for question in lab.course.questions:
        kind = "" if question.predicts is None else f"{own.prediction}{own.colon} "
        lines += ["", *(f"# {line}".rstrip() for line in f"{kind}{question.ask.strip()}".splitlines())]
        lines += [f"# ({markdown.how(question, own)})", f"{question.name}:"]
        lines += [f"  {name}:" for name in question.settings or {}]
    return "\n".join(lines) + "\n"


def start(lab: Lab, number: str, path: Path) -> Path:
    """Makes a student's folder, which only that user may read; FolderError where something is there, in a folder of the
    same lab, or where nothing can be written."""
    if path.exists() or path.is_symlink():
        raise FolderError(f"{path}: is there already: go on in it, or write --folder with another name")
    if (outer := _folder_around(path, lab.name)) is not None:
        raise FolderError(
            f"{path}: would be inside {outer}, which is a folder of {lab.name} already: go on in that one, "
            "or write --folder with a place outside it"
        )
    made = contents(lab, number)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise _unwritable(error, path) from None
    try:
        for name, content in made.items():
            (new / name).write_bytes(content)
        new.rename(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise FolderError(f"{path}: is there already: go on in it, or write --folder with another name") from None
        raise _unwritable(error, path) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return path


def _unwritable(error: OSError, path: Path) -> FolderError:
    own = OSError(error.errno, error.strerror, str(path))  # it may name the folder that was to become this one
    return FolderError(trouble(own, path, "name a place where you may write"))


def _folder_around(path: Path, lab: str) -> Path | None:
    """The folder of a lab that a path is in; None: it is in no such folder."""
    return next((each for each in path.absolute().parents if _lab_of(each) == lab), None)


def _lab_of(path: Path) -> str | None:
    """The lab that a folder is of; None: it is no student's folder, or its record cannot be read."""
    try:
        return read(_bytes(path / RECORD), str(path / RECORD)).lab
    except UserError:
        return None


def find(word: str | None, here: Path | None = None, root: Path = reading.LABS) -> Folder:
    """The folder that is meant: a path, a lab's name below here, or here itself, which may be named by its lab too;
    FolderError where it is none."""
    place = here or Path()
    path = place if word is None else place / word
    if word is not None and not path.exists() and _is_named(place, word):
        path = place
    if not (path / RECORD).is_file():
        if word is None:
            raise FolderError(f"there is no {RECORD} here: name the folder that ewan course start made, or go into it")
        if not path.is_dir():
            named = one_line(word, 80)
            raise FolderError(f"{named}: there is no such folder: ewan course start {named} --student NUMBER makes one")
        raise FolderError(f"{path}: has no {RECORD}: name a folder that ewan course start made")
    return load(path, root)


def _is_named(path: Path, word: str) -> bool:
    """Return whether a word names a student's folder in which one stands: by its lab, or as it is called."""
    lab = _lab_of(path)
    return lab is not None and word.rstrip("/") in (lab, path.absolute().name)


def load(path: Path, root: Path = reading.LABS) -> Folder:
    """A student's folder; FolderError where its record is damaged, DescriptionError for an unknown lab."""
    record = read(_bytes(path / RECORD), str(path / RECORD))
    lab = reading.find(record.lab, root=root)
    if record.language in lab.languages:
        lab = reading.translated(lab, record.language)
    return Folder(path, record, lab, parameters.drawn(lab.name, record.student, lab.course.parameters))


def read(content: bytes, file: str) -> FolderRecord:
    """A record from its bytes; FolderError for others."""
    try:
        record = codec.decode(FolderRecord, content, "course")
    except ValueError as error:
        raise FolderError(f"{file}: is no record of a course's folder ({one_line(str(error), 80)})") from None
    parameters.student(record.student)
    return record


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path, MOST_RECORD)
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror}") from None
