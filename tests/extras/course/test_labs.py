"""Each lab of the course: solved as a good student would, and failed as three bad ones would.

A good student is `tests/extras/course/solutions/NN_name.py`: `solve(desk)` gives the answers. The bad ones are derived
of it: one writes wrong units, one guesses, one has the answers of somebody else.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ewan.analysis.one_run import SingleRun
from ewan.extras.course import (
    amounts,
    answer_check,
    answers,
    markdown,
    parameters,
    reading,
    rendering,
    truths,
    verdicts,
    words,
)
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.fields import Question
from ewan.extras.course.reading import Lab
from ewan.extras.course.runs import Student
from ewan.extras.course.verdicts import QuestionVerdict, Truth
from tests.conftest import ROOT
from tests.extras.course import audit
from tests.extras.course.desk import Desk, written

pytestmark = pytest.mark.virtual

SOLUTIONS = Path(__file__).parent / "solutions"
STUDENT, OTHER = "4711", "0815"
Answers = Mapping[str, str | Mapping[str, str]]


@dataclass
class Solved:
    """A lab with the answers of a good student, the truths of two, and what checks are made with."""

    desk: Desk
    given: Mapping[str, WrittenAnswer]
    student: Student
    found: Mapping[str, Truth]
    other: Mapping[str, Truth]

    @property
    def lab(self) -> Lab:
        return self.desk.lab

    def check(self, changed: Mapping[str, WrittenAnswer]) -> dict[str, QuestionVerdict]:
        """The verdicts on the good student's answers with some of them changed."""
        found = answer_check.every(self.student, self.found, {**self.given, **changed}, {})
        return {each.question: each for each in found}

    def amounts(self) -> Iterator[tuple[Question, str, float]]:
        """The questions that are answered by an amount, the good answer, and the same as a number."""
        for question in asked(self.lab):
            if question.kind is not None:
                text = self.given[question.name].text or ""
                yield question, text, float(amounts.read_as(text, question.kind))


def asked(lab: Lab) -> list[Question]:
    """The questions that are marked: all but predictions."""
    return [each for each in lab.course.questions if each.predicts is None]


def predicted(lab: Lab, said: Answers) -> dict[str, str]:
    """Predictions of somebody who knows: what will be measured, or the first choice."""
    predictions = [each for each in lab.course.questions if each.predicts is not None]
    return {each.name: "a" if each.answer == "choice" else str(said[each.predicts or ""]) for each in predictions}


def solution(name: str, folder: Path) -> Path:
    """The module of a lab's good student."""
    return SOLUTIONS / f"{folder.name.replace('-', '_')}.py"


@pytest.fixture(scope="module", params=reading.known().items(), ids=lambda item: item[0])
def solved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Solved]:
    name, folder = request.param
    place = tmp_path_factory.mktemp(name)
    desk = Desk.of(reading.read(folder), STUDENT, place, place / "store")
    spec = importlib.util.spec_from_file_location(f"solution_{name}", solution(name, folder))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    said: Answers = module.solve(desk)
    given = answers.from_data({**said, **predicted(desk.lab, said)}, desk.lab.questions)
    executor = desk.executor(place / "scratch")
    other = parameters.drawn(desk.lab.name, OTHER, desk.lab.course.parameters)
    with (
        Student(desk.lab, desk.folder.drawing, executor, SingleRun) as student,
        Student(desk.lab, other, executor, SingleRun) as somebody,
    ):
        yield Solved(desk, given, student, truths.of(student), truths.of(somebody))


def test_a_good_student_has_all_of_it_right(solved: Solved) -> None:
    verdicts_on_all = solved.check({})
    found = {each.name: verdicts_on_all[each.name] for each in asked(solved.lab)}
    assert all(each.state == "right" for name, each in found.items() if solved.lab.questions[name].answer != "words"), {
        name: (
            each.state,
            each.answer,
            each.say,
            verdicts.told(solved.lab.questions[name], solved.found.get(name, Truth())),
        )
        for name, each in found.items()
        if each.state not in ("right", "teacher")
    }
    assert {each.state for each in found.values()} <= {"right", "teacher"}


def test_predictions_stand_beside_what_was_measured(solved: Solved) -> None:
    found = solved.check({})
    own = words.of("en")
    predictions = [each for each in solved.lab.course.questions if each.predicts is not None]
    assert predictions, "each lab asks for a prediction"
    for question in predictions:
        verdict = found[question.name]
        begin = own.compared.partition("{")[0]
        assert (verdict.state, verdict.points, verdict.most) == ("predicted", None, 0)
        assert verdict.say.startswith(begin), (question.name, verdict.say)


def test_the_truths_can_be_used_in_a_class(solved: Solved) -> None:
    problems = [*audit.wrong(solved.lab, solved.found), *audit.wrong(solved.lab, solved.other)]
    assert not problems, "\n".join(problems)


def test_wrong_units_are_told(solved: Solved) -> None:
    """A number alone is refused with what to write; bits for bytes are wrong, with a hint at that."""
    for question, text, value in solved.amounts():
        bare = f"{value:.6g}" if question.answer not in ("count", "ratio", "packets", "share") else f"{value:.6g}ms"
        found = solved.check({question.name: WrittenAnswer(bare)})[question.name]
        assert found.state == "unreadable" and found.points == 0
        assert amounts.EXAMPLES[question.kind or "number"] in found.say, text
        if question.answer == "size" and value:
            found = solved.check({question.name: WrittenAnswer(written(value * 8, "size"))})[question.name]
            known = {each.say for each in solved.found[question.name].known}
            assert found.state == "wrong" and found.say in {words.of("en").bits, *known}


def test_rounding_is_told_from_error(solved: Solved) -> None:
    """By one rule in all labs: three digits are right, fewer are close, with a decimal comma too, never wrong."""
    for found in (solved.found, solved.other):
        for question in asked(solved.lab):
            if question.kind is None or question.exact:
                continue
            truth = found[question.name]
            for digits, states in ((3, {"right"}), (4, {"right"}), (2, {"right", "close"})):
                text = written(float(truth.value or 0), question.answer, digits)
                verdict = verdicts.judge(question, truth, WrittenAnswer(text), words.of("en"))
                assert verdict.state in states, (question.name, text, verdict)
                assert verdict.state != "close" or verdict.say == "give three digits"
                comma = verdicts.judge(question, truth, WrittenAnswer(text.replace(".", ",")), words.of("de"))
                assert comma.state == verdict.state


def test_a_guess_is_wrong_and_gets_a_hint_that_does_not_tell(solved: Solved) -> None:
    for question, text, value in solved.amounts():
        tolerance = question.margin.around(value)
        guess = value + 3.7 * tolerance + 0.037 * abs(value)
        found = solved.check({question.name: WrittenAnswer(written(guess, question.answer))})[question.name]
        assert found.state == "wrong" and found.say and found.points == 0, (question.name, text, guess)
        told = verdicts.told(question, solved.found[question.name])
        assert told not in found.say, f"{question.name}: the hint tells the truth"
    for question in asked(solved.lab):
        for choice in question.choices or ():
            state = solved.check({question.name: WrittenAnswer(choice)})[question.name].state
            assert state == ("right" if choice == solved.found[question.name].value else "wrong")


def test_somebody_elses_answers_do_not_pass(solved: Solved) -> None:
    copied = {
        question.name: WrittenAnswer(audit.answer_of(question, solved.other[question.name]))
        for question in audit.checked(solved.lab)
        if question.kind is not None
    }
    found = solved.check(copied)
    passed = [name for name in copied if found[name].state == "right"]
    assert len(passed) <= audit.ALIKE * len(copied), f"right for both: {passed}"


def test_every_lab_has_a_solution_and_every_solution_a_lab() -> None:
    wanted = {solution(name, folder).name for name, folder in reading.known().items()}
    assert wanted == {path.name for path in SOLUTIONS.glob("[0-9]*.py")}


def test_the_page_for_students_names_every_lab() -> None:
    rows = re.findall(
        r"^\| ([0-9]+) \| `([a-z0-9-]+)` \|", (ROOT / "docs/tutorials/course.md").read_text(), re.MULTILINE
    )
    assert {(lab.number, lab.name) for lab in reading.every()} <= {(int(number), name) for number, name in rows}
    assert [int(number) for number, _ in rows] == list(range(1, 13))


def test_a_translated_lab_has_all_that_the_english_one_has() -> None:
    """In each language the text asks every question once, and its blocks of commands and figures are the same."""
    for lab in reading.every():
        english = _blocks(lab)
        for language in lab.languages:
            assert _blocks(reading.translated(lab, language)) == english, f"{lab.name} in {language}"


def _blocks(lab: Lab) -> list[tuple[str, str]]:
    drawing = parameters.drawn(lab.name, STUDENT, lab.course.parameters)
    text = rendering.text(lab, drawing, markdown.marker)
    return [(block.kind, block.text) for block in markdown.blocks(text) if block.kind not in ("prose", "axes")]
