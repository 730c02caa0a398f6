"""What grades are written as: a module for each form, of what one submission gives.

In: a grade. Out: the bytes of a file, and what it is called where that form is read. A new form is a module with `FILE`
and `write`, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from generator.course.formats import document, gradescope, inginious
from generator.course.grade import Grade


@dataclass(frozen=True, slots=True)
class Form:
    """`file`: what a submission's file is called; `write`: its bytes."""

    file: str
    write: Callable[[Grade], bytes]


FORMATS: Mapping[str, Form] = {
    "gradescope": Form(gradescope.FILE, gradescope.write),
    "inginious": Form(inginious.FILE, inginious.write),
    "json": Form(document.FILE, document.write),
}
