"""The semester's plan for teachers says what the labs say of themselves, and keeps their order."""

from __future__ import annotations

import re

from ewan.extras.course import parameters, reading
from tests.conftest import ROOT

PAGE = (ROOT / "docs/how-to/teaching/semester.md").read_text()


def test_no_page_begins_a_lab_for_the_student_whose_answers_are_published() -> None:
    walk = "docs/how-to/teaching/walk.md"
    pages = ["README.md", "Makefile", "docs/tutorials/course.md", "docs/reference/commands.md", walk]
    numbers = {page: set(re.findall(r"(?:--student |STUDENT=)(\w+)", (ROOT / page).read_text())) for page in pages}
    (published,) = numbers.pop(walk)
    lab = reading.find("bufferbloat")
    own = parameters.drawn(lab.name, published, lab.course.parameters).texts
    for page, found in numbers.items():
        assert found, page
        for number in found - {"NUMBER"}:
            assert parameters.drawn(lab.name, number, lab.course.parameters).texts != own, page


def test_the_table_of_levels_is_that_of_the_labs() -> None:
    rows = [
        f"| {lab.number} | `{lab.name}` | {lab.course.level} | {lab.course.minutes} "
        f"| {', '.join(str(each) for each in sorted(lab.before.values()))} |"
        for lab in reading.every()
    ]
    assert re.findall(r"^\| [0-9]+ \| `.*", PAGE, re.MULTILINE) == rows


def test_the_weeks_have_every_lab_after_its_prerequisites() -> None:
    order = [int(lab) for lab in re.findall(r"^\| [0-9]+ \| [^|]* \| ([0-9]+) \|$", PAGE, re.MULTILINE)]
    labs = {lab.number: lab for lab in reading.every()}
    assert sorted(order) == sorted(labs)
    for place, number in enumerate(order):
        assert set(labs[number].before.values()) <= set(order[:place]), labs[number].name
