"""A translated lab says what the English one says: the same questions, placeholders and code, in other words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest
import yaml

from ewan.extras.course import axes, markdown, parameters, reading, rendering
from ewan.extras.course.amount_words import RepeatedWords
from ewan.extras.course.fields import Question

TRANSLATED = [
    (name, language)
    for name, folder in reading.known().items()
    for language in reading.read(folder).languages
    if language != reading.ENGLISH
]
IN_ALL_LABS = ("de", "fr")
"""Languages in which every lab is."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}")
_LABEL = re.compile(r"^([xy]): .*?,(?= -?[0-9.{]+.* to )", re.MULTILINE)
_FILE = re.compile(r"`([\w/*-]+\.(?:yaml|csv|html|json|out))`")
_WORDS_OF_A_LANGUAGE = re.compile(r"(?: else )?\"[^\"]*\"")


def fences(text: str) -> list[tuple[str, str]]:
    """Blocks that a machine reads, in order; of axes without labels. A picture in letters may be labelled otherwise."""
    found = ((match[1], match[2]) for match in _FENCE.finditer(text))
    return [(kind, _LABEL.sub(r"\1", body) if kind == "axes" else body) for kind, body in found if kind]


def placeholders(text: str) -> Counter[str]:
    """The places of a student's values, with their number. Words of a language inside of them do not count, nor those
    that choose between singular and plural, which a language may not need."""
    return Counter(
        each if each.startswith("{{ question(") else _WORDS_OF_A_LANGUAGE.sub("", each)
        for each in _PLACEHOLDER.findall(text)
        if " if " not in each
    )


@pytest.mark.parametrize("language", IN_ALL_LABS)
def test_every_lab_is_in_this_language(language: str) -> None:
    assert [name for name in reading.known() if (name, language) not in TRANSLATED] == []


@pytest.mark.parametrize(("name", "language"), TRANSLATED)
def test_a_translated_text_keeps_what_a_machine_reads(name: str, language: str) -> None:
    own, other = reading.find(name, language).text, reading.find(name).text
    assert fences(own) == fences(other)
    assert placeholders(own) == placeholders(other)
    assert set(_FILE.findall(own)) == set(_FILE.findall(other))


@pytest.mark.parametrize(("name", "language"), TRANSLATED)
def test_a_translated_text_has_the_parts_of_the_english_one(name: str, language: str) -> None:
    shapes = [
        [line.split(" ")[0] for line in _FENCE.sub("", lab.text).splitlines() if re.match(r"#+ |\| |- ", line)]
        for lab in (reading.find(name, language), reading.find(name))
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(("name", "language"), TRANSLATED)
def test_a_translation_has_the_questions_in_order_and_all_lists_of_each(name: str, language: str) -> None:
    lab = reading.find(name)
    said = yaml.safe_load((lab.folder / f"course.{language}.yaml").read_text())["questions"]
    assert list(said) == [question.name for question in lab.course.questions]
    for question in lab.course.questions:
        own, other = said[question.name], {"hints": question.hints, "else": question.holds}
        for key, those in other.items():
            assert len(own.get(key, ())) == len(those or ()), f"{question.name}: {key}"
        assert len(own.get("choices", question.choices or ())) == len(question.choices or ()), question.name


@pytest.mark.parametrize(("name", "language"), TRANSLATED)
def test_answers_may_be_in_multiples_of_the_bdp_where_they_may_in_english(name: str, language: str) -> None:
    own, other = reading.find(name, language), reading.find(name)
    for mine, theirs in zip(own.course.questions, other.course.questions, strict=True):
        assert RepeatedWords.of(mine.ask).bdps == RepeatedWords.of(theirs.ask).bdps, mine.name


@pytest.mark.parametrize(("name", "language"), TRANSLATED)
def test_a_translation_repeats_the_amounts_of_each_question(name: str, language: str) -> None:
    """Numbers are the same, with a decimal comma where the language has one, and names of metrics stay."""
    own, other = reading.find(name, language), reading.find(name)
    for mine, theirs in zip(own.course.questions, other.course.questions, strict=True):
        assert numbers(mine.ask) == numbers(theirs.ask), mine.name


def numbers(text: str) -> Counter[str]:
    """The numbers of a text, however its language writes them."""
    return Counter(each.replace(",", ".") for each in re.findall(r"[0-9]+(?:[.,][0-9]+)?", text))


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
    """Return whether all choices are names in the lab's scenarios, like `r1` and `codel`, which no language
    translates."""
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
