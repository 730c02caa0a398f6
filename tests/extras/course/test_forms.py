"""What grades are written as, held against what those who read them document."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any, Literal

import docutils.core  # type: ignore[import-untyped]
import orjson
import pytest
from pydantic import BaseModel, ConfigDict, Field

from ewan.extras.course import grade
from ewan.extras.course.formats import FORMATS, document, gradescope, inginious, sheet
from ewan.extras.course.formats import student_sheet as wide
from ewan.labs.base.codec import replace
from tests.extras.course.handed_in import graded, question

HOSTILE = '=HYPERLINK("http://x","y")'
MIXED = graded(
    "4711",
    question("pipe", truth="43.75kB", answer="44kB", value=44000.0),
    question("rtt", "wrong", say="Bits or bytes? *Really* `look` at_it", truth="42ms", answer="5.3ms", value=5.3e-3),
    question("law", "missing", kind="choice"),
    question("tuned", "unreadable", kind="settings", say='write a size as "1MB"'),
    question("why", grade.TEACHER, kind="words", most=2.0, answer=HOSTILE),
    runs=(
        grade.RunGrade(scenario="bloat", name="buffer=1BDP", inputs="a" * 64, said=grade.CONFIRMED),
        grade.RunGrade(scenario="bloat", name="buffer=2BDP", inputs="b" * 64, said=grade.CHANGED),
    ),
    own=("a" * 64,),
    notes=("2 wrong answers are the right ones of 4712",),
    seconds=1.25,
)
GRADES = [
    MIXED,
    graded("4712", question("pipe"), question("why", grade.TEACHER, kind="words", most=2.0)),
    grade.Grade(file="x/y.zip", sha256="1" * 64, status="refused", error="has a member '*..*': only submission.json"),
    grade.Grade(file="z.zip", sha256="2" * 64, status="failed", error="the virtual kernel ended without a word"),
    grade.Grade(file="", status="missing", lab="bufferbloat", student="4713", error="nothing was handed in"),
]

Visibility = Literal["hidden", "after_due_date", "after_published", "visible"]
Format = Literal["text", "html", "simple_format", "md", "ansi"]


class Documented(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class GradescopeTest(Documented):
    """A test case of results.json, each key as "Autograder Specifications", Output format, has it."""

    score: float | None = None
    max_score: float | None = None
    status: Literal["passed", "failed"] | None = None
    name: str | None = None
    name_format: Format | None = None
    number: str | None = None
    output: str | None = None
    output_format: Format | None = None
    tags: list[str] | None = None
    visibility: Visibility | None = None
    extra_data: dict[str, Any] | None = None


class GradescopeResults(Documented):
    score: float | None = None
    execution_time: float | None = None
    output: str | None = None
    output_format: Format | None = None
    test_output_format: Format | None = None
    test_name_format: Format | None = None
    visibility: Visibility | None = None
    stdout_visibility: Visibility | None = None
    extra_data: dict[str, Any] | None = None
    tests: list[GradescopeTest] | None = None
    leaderboard: list[dict[str, Any]] | None = None


class InginiousFeedback(Documented):
    """What INGInious' agent lets in of a container's feedback: keys, types, and names of problems and of custom values.

    Results are those that its documentation of a run file lists; any other counts as a crash.
    """

    result: Literal["success", "failed", "timeout", "overflow", "crash"]
    grade: float = Field(ge=0, le=100)
    text: str
    problems: dict[str, tuple[Literal["success", "failed", "timeout", "overflow", "crash"], str]]
    custom: dict[str, Any]


each_grade = pytest.mark.parametrize("given", GRADES, ids=lambda each: each.status + each.student)


@each_grade
def test_gradescope_reads_it(given: grade.Grade) -> None:
    found = GradescopeResults.model_validate_json(gradescope.write(given))
    assert found.score is not None and found.tests is not None
    # What a student has must not be more than what there is, nor must points be missing that the teacher gives.
    assert found.score == sum(test.score or 0 for test in found.tests)
    assert sum(test.max_score or 0 for test in found.tests) == given.most


@each_grade
def test_inginious_reads_it(given: grade.Grade) -> None:
    content = inginious.write(given)
    found = InginiousFeedback.model_validate_json(content)
    for name in (*found.problems, *found.custom):
        assert re.fullmatch(r"[a-z0-9\-\._]+", name, re.IGNORECASE)
    plain = orjson.loads(content)
    assert type(plain["grade"]) is float, "an int is refused as badly formatted"
    assert all(isinstance(each, list) for each in plain["problems"].values())


def test_inginious_shows_texts_as_they_are() -> None:
    """They are reStructuredText: whatever a hint or a file's name has in it must be neither markup nor a mistake."""
    for text in (MIXED.questions[1].say, ".. raw:: html", "`x`_ |y| *z", "a_ b__", "1. x", "- x", "\\", "=====", ":x:"):
        document = docutils.core.publish_doctree(inginious.plain(text), settings_overrides={"report_level": 5})
        assert [node.tagname for node in document.children] == ["paragraph"]
        assert document.astext() == text


@pytest.mark.parametrize("form", ["gradescope", "inginious"])
def test_what_students_see_has_no_truth_and_nothing_of_others(form: str) -> None:
    shown = json.loads({"gradescope": gradescope, "inginious": inginious}[form].write(MIXED))
    if form == "gradescope":
        hidden = [test for test in shown["tests"] if test["visibility"] == "hidden"]
        assert [test["output"] for test in hidden] == ["2 wrong answers are the right ones of 4712"]
        shown["tests"] = [test for test in shown["tests"] if test["visibility"] != "hidden"]
    text = json.dumps(shown)
    assert "43.75kB" not in text and "42ms" not in text and "4712" not in text
    assert "1 of 2 runs were repeated" in text.replace("\\\\", "")


def test_grades_of_teachers_add_nothing_to_what_machines_judge() -> None:
    assert (MIXED.points, MIXED.most, MIXED.by_teacher) == (1.0, 4.0, 2.0)
    assert orjson.loads(inginious.write(MIXED))["grade"] == 25.0
    assert orjson.loads(inginious.write(GRADES[1]))["result"] == "success"
    assert orjson.loads(inginious.write(GRADES[3]))["result"] == "crash"


def test_students_read_verdicts_in_their_language() -> None:
    found = gradescope.results(replace(MIXED, language="de")).tests
    assert [test.output for test in found[:5]] == [
        "richtig",
        "falsch: Bits or bytes? *Really* `look` at_it",
        "noch keine Antwort",
        'nicht lesbar: write a size as "1MB"',
        "für die Lehrkraft (2)",
    ]


def test_students_read_the_outcome_in_their_language() -> None:
    told = gradescope.write(replace(MIXED, language="de")).decode()
    assert "1 von 4 Punkten; 2 weitere von der Lehrkraft" in told
    assert "1 von 2 Läufen wurden mit denselben Bytes wiederholt; 1 nicht: geändertes Szenario" in told


def test_inginious_shows_hints_where_a_task_has_one_problem() -> None:
    """Of a task that takes a file, INGInious shows the text alone."""
    text = orjson.loads(inginious.write(MIXED))["text"]
    shown = docutils.core.publish_doctree(text, settings_overrides={"report_level": 5}).astext()
    for each in MIXED.questions:
        assert f"{each.name}: " in shown
    assert "rtt: wrong: Bits or bytes? *Really* `look` at_it" in shown and "43.75kB" not in shown


def test_one_row_a_student_and_each_lab_once() -> None:
    grades = [
        *GRADES,
        graded("4711", question("a"), lab="mathis", file="m.zip"),
        graded("4711", question("a"), question("b"), lab="mathis", file="old.zip", replaced="m.zip"),
    ]
    rows = list(csv.DictReader(io.StringIO(wide.write(grades).decode())))
    assert [row["student"] for row in rows] == ["4711", "4712", "4713"]
    assert (rows[0]["points"], rows[0]["of"], rows[0]["by the teacher"]) == ("2", "5", "2")
    assert (rows[0]["mathis: points"], rows[0]["mathis: of"], rows[0]["bufferbloat: points"]) == ("1", "1", "1")
    assert (rows[2]["bufferbloat: state"], rows[2]["points"], rows[1]["mathis: state"]) == ("missing", "0", "")
    assert {row["of"] for row in rows} == {"5"}, "a lab that was not handed in makes no share of the points larger"
    failed = graded("4711", lab="mathis", file="z.zip", status="failed", error="it took too long")
    (row, *_) = csv.DictReader(io.StringIO(wide.write([*grades, failed]).decode()))
    assert (row["mathis: state"], row["mathis: points"]) == ("graded", "1")
    assert "mathis: z.zip: it took too long" in row["to be looked at"]
    (long,) = (row for row in csv.DictReader(io.StringIO(sheet.text(grades))) if row["file"] == "old.zip")
    assert long["state"] == "replaced"


def test_json_has_all_of_it() -> None:
    (found,) = orjson.loads(document.write([MIXED]))["grades"]
    assert found["questions"][0]["truth"] == "43.75kB"
    assert found["questions"][4]["answer"] == HOSTILE
    assert found["points"] == 1.0 and found["confirmed"] == 1 and "own" not in found


def test_the_table_has_a_line_for_each_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(sheet.text(GRADES))))
    assert [row["student"] for row in rows] == ["4711", "4712", "4713", "", ""]
    assert rows[0]["points"] == "1" and rows[0]["of"] == "4" and rows[0]["by the teacher"] == "2"
    assert rows[0]["why not"] == "changed scenario: 1"
    assert rows[0]["answers in words"] == f"why: {HOSTILE}"
    assert rows[3]["state"] == "refused" and "only submission.json" in rows[3]["to be looked at"]
    assert rows[3]["points"] == ""
    assert rows[2]["to be looked at"] == "nothing was handed in"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("+49", "+49"),
        ("-0.5", "-0.5"),
        ("-x", "'-x"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "?=1"),
        ("a\x00b\x1b[2Jc\ud800", "a?b?[2Jc?"),
        ("x" * 40_000, "x" * 30_000),
        ("42ms", "42ms"),
    ],
)
def test_cells_are_no_formulas(text: str, shown: str) -> None:
    assert sheet.cell(text) == shown


def test_each_submission_has_a_place_of_its_own() -> None:
    moodle = graded("4711", file="A B_1_file_/bufferbloat-4711.zip")
    unpacked = graded("4712", file="C_2/submission.json")
    names = [name for name, _ in FORMATS["gradescope"]([moodle, unpacked, GRADES[4]], False)]
    assert names == ["A B_1_file_/bufferbloat-4711/results.json", "C_2/results.json"]
    assert [name for name, _ in FORMATS["inginious"]([moodle], True)] == ["__feedback.json"]
    two = [graded("1", file="x.zip"), graded("1", file="x.pdf"), graded("1", file="x.y.ZIP")]
    assert [name for name, _ in FORMATS["inginious"](two, False)] == [
        "x/__feedback.json",
        "x.pdf/__feedback.json",
        "x.y/__feedback.json",
    ]
    assert [name for name, _ in FORMATS["json"]([moodle, unpacked], False)] == ["grades.json"]
