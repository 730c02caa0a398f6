"""The forms in which grades are written: a module for each.

In: grades. Out: files by their path below a directory; `alone`: for a single submission, whose file is in the directory
itself. A new form is a module with `FILE` and `write`, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from ewan.extras.course.formats import document, gradescope, inginious
from ewan.extras.course.formats import student_sheet as wide
from ewan.extras.course.grade import Grade
from ewan.extras.course.sources import folder_of

Files = Iterator[tuple[str, bytes]]


def _each(file: str, write: Callable[[Grade], bytes], grades: Sequence[Grade], alone: bool) -> Files:
    """A file of each submission that there is, in a directory of its own."""
    for each in grades:
        if each.file:
            yield (file if alone else (folder_of(each.file) / file).as_posix()), write(each)


def _all(file: str, write: Callable[[Sequence[Grade]], bytes], grades: Sequence[Grade], alone: bool) -> Files:
    """One file of all."""
    yield file, write(grades)


FORMATS: Mapping[str, Callable[[Sequence[Grade], bool], Files]] = {
    "gradescope": partial(_each, gradescope.FILE, gradescope.write),
    "inginious": partial(_each, inginious.FILE, inginious.write),
    "students": partial(_all, wide.FILE, wide.write),
    "json": partial(_all, document.FILE, document.write),
}
