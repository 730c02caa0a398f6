"""A translated lab asks the same questions in the same order, and has the same commands and figures."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from ewan.extras.course import axes, markdown, parameters, reading, rendering
from ewan.extras.course.fields import Question

TRANSLATED = [
    (name, language)
    for name, folder in reading.known().items()
    for language in reading.read(folder).languages
    if language != reading.ENGLISH
]


def parts(name: str, language: str) -> tuple[list[str], list[tuple[str, str]], int]:
    """Questions, commands and figures of what a student reads, in their order, and how many sections it has."""
    lab = reading.find(name, language)
    asked: list[str] = []

    def write(question: Question) -> str:
        asked.append(question.name)
        return ""

    text = rendering.text(lab, parameters.drawn(lab.name, "4711", lab.course.parameters), write)
    found = list(markdown.blocks(text))
    blocks = [(str(block.kind), block.text) for block in found if block.kind in ("sh", "figure")]
    blocks += [
        ("axes", str([(axis.low, axis.high) for axis in axes.read(block.text)]))
        for block in found
        if block.kind == "axes"
    ]
    return asked, blocks, text.count("\n## ")


def test_there_is_a_translation() -> None:
    assert ("bufferbloat", "de") in TRANSLATED


@pytest.mark.parametrize(("name", "language"), TRANSLATED)
def test_a_translation_has_all_that_the_lab_has(name: str, language: str) -> None:
    assert parts(name, language) == parts(name, reading.ENGLISH)


def names_of_the_lab(lab: reading.Lab, choices: Sequence[str]) -> bool:
    """Whether all choices are names in its scenarios, like `r1` and `codel`, which no language translates."""
    scenarios = b" ".join(lab.files.values()).decode()
    return all(re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", scenarios) for each in choices)


@pytest.mark.parametrize(("name", "language"), TRANSLATED)
def test_a_translation_says_all_of_it_in_its_own_words(name: str, language: str) -> None:
    own, other = reading.find(name, language), reading.find(name)
    names_of_labs = other.before.keys()
    for mine_said, theirs_said in zip(
        (*own.course.goals, *own.course.prerequisites), (*other.course.goals, *other.course.prerequisites), strict=True
    ):
        assert (mine_said == theirs_said) == (theirs_said in names_of_labs), mine_said
    for mine, theirs in zip(own.course.questions, other.course.questions, strict=True):
        assert mine.ask != theirs.ask
        assert all(here.say != there.say for here, there in zip(mine.hints, theirs.hints, strict=True)), mine.name
        if not names_of_the_lab(other, theirs.shown):
            assert all(here != there for here, there in zip(mine.shown, theirs.shown, strict=True)), mine.name
    assert own.content == other.content, "answers would be judged otherwise"
