"""A lab's text for one student as Markdown, and the cells of a notebook made of the same text. Pure.

In: the rendered text. Out: its blocks: prose, commands (`sh`), figures (a line of docs/how-to/experiments/figures.md),
empty axes and questions, in order; and the page that a student reads, in which a figure is the command that draws it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ewan.extras.course import axes
from ewan.extras.course.choices import LETTERS
from ewan.extras.course.fields import Course, Question, SettingChoice
from ewan.extras.course.words import LanguageWords

_FENCE = re.compile(r"^```(?P<kind>[a-z]*)[^\n]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_ASKED = re.compile(r"^<!-- question (?P<name>[a-z0-9_]+) -->$", re.MULTILINE)

BlockKind = Literal["prose", "sh", "figure", "axes", "question"]
_FENCED: tuple[BlockKind, ...] = ("sh", "figure", "axes")
AXES = "axes-{}.svg"
"""The files of a student's folder with empty axes, numbered in their order."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a text. `text`: what is written; of a figure its line; of axes both; of a question its name."""

    kind: BlockKind
    text: str


def marker(question: Question) -> str:
    """Return the mark of a question in a rendered text until the page or the notebook is made of it."""
    return f"<!-- question {question.name} -->"


def blocks(text: str) -> Iterator[Block]:
    """The pieces of a rendered text, in order."""
    place = 0
    for found in _FENCE.finditer(text):
        kind = next((each for each in _FENCED if each == found["kind"]), None)
        if kind is None:
            continue
        yield from _prose(text[place : found.start()])
        body = found["body"].strip("\n")
        yield Block(kind, " ".join(body.split()) if kind == "figure" else body)
        place = found.end()
    yield from _prose(text[place:])


def _prose(text: str) -> Iterator[Block]:
    place = 0
    for found in _ASKED.finditer(text):
        if before := text[place : found.start()].strip("\n"):
            yield Block("prose", before)
        yield Block("question", found["name"])
        place = found.end()
    if rest := text[place:].strip("\n"):
        yield Block("prose", rest)


def asking(text: str, words: LanguageWords) -> Iterator[Block]:
    """The pieces of a rendered text, before the first question how precise answers are to be, and axes as pictures."""
    said, drawn = False, 0
    for block in blocks(text):
        if block.kind == "question" and not said:
            said = True
            yield Block("prose", words.precision)
        if block.kind == "axes":
            drawn += 1
            block = Block("prose", f"![{axes.title(block.text)}]({AXES.format(drawn)})")
        yield block


def headed(text: str, head: str) -> str:
    """A text with its head below the title."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{head}\n{rest}" if title.startswith("# ") else f"{head}\n\n{text}"


def head(course: Course, labs: Mapping[str, int], words: LanguageWords) -> str:
    """Return the head of a student's text: time, level, prerequisites, goals. `labs`: numbers of prerequisites that are
    labs."""
    known = [words.lab.format(number=labs[each], name=each) if each in labs else each for each in course.prerequisites]
    return "\n".join(
        [
            f"**{words.time}**{words.colon} {words.minutes.format(minutes=course.minutes)}. "
            f"**{words.level}**{words.colon} {words.levels[course.level]}.",
            *(["", f"**{words.prerequisites}**{words.colon}", "", *(f"- {each}" for each in known)] if known else []),
            "",
            f"**{words.goals}**{words.colon}",
            "",
            *(f"- {each}" for each in course.goals),
        ]
    )


def pictures(text: str) -> dict[str, bytes]:
    """The files with empty axes that a rendered text shows, by name."""
    found = [block.text for block in blocks(text) if block.kind == "axes"]
    return {AXES.format(number): axes.svg(each).encode() for number, each in enumerate(found, 1)}


def commands(text: str) -> list[str]:
    """The lines of a rendered text that are for a shell, in order."""
    lines = (line for block in blocks(text) if block.kind == "sh" for line in block.text.splitlines())
    return [line for line in lines if line.strip() and not line.startswith("#")]


def page(text: str, questions: dict[str, Question], words: LanguageWords) -> str:
    """Return the text for a terminal or an editor."""
    pieces: list[str] = []
    for block in asking(text, words):
        match block.kind:
            case "prose":
                pieces.append(block.text)
            case "sh":
                pieces.append(f"```sh\n{block.text}\n```")
            case "figure":
                pieces.append(f"```sh\newan results report --figure '{block.text}'\n```")
            case "question":
                pieces.append(asked(questions[block.text], words))
    return "\n\n".join(pieces) + "\n"


def asked(question: Question, words: LanguageWords, in_notebook: bool = False) -> str:
    """A question as the page asks it, or a notebook."""
    told = (words.write_here if in_notebook else words.write_behind).format(
        name=question.name, how=how(question, words)
    )
    kind, points = words.question, f" ({question.points})" if question.points != 1 else ""
    if question.predicts is not None:
        kind, points, told = words.prediction, "", f"{told} {words.unmarked}"
    said = f"**{kind} `{question.name}`**{points}{words.colon} {question.ask.strip()}"
    return "\n".join(f"> {line}".rstrip() for line in [said, "", told])


def how(question: Question, words: LanguageWords) -> str:
    """Return how the answer to a question is written."""
    chosen = question.settings or {}
    settings = ", ".join(f"{name}: {_example(each)}" for name, each in chosen.items())
    lists = "".join(
        words.one_of.format(name=name, choices=", ".join(map(str, each.one_of)))
        for name, each in chosen.items()
        if each.one_of is not None
    )
    return words.kinds[question.answer].format(choices="; ".join(lettered(question)), settings=settings + lists)


def lettered(question: Question) -> list[str]:
    """Its choices, each behind its letter."""
    return [f"{letter}) {each}" for letter, each in zip(LETTERS, question.shown, strict=False)]


def _example(setting: SettingChoice) -> str:
    """Return a value that may be chosen, and is hardly the best one."""
    if setting.bdp is not None:
        return "2BDP"
    return str(setting.low if setting.one_of is None else setting.one_of[0])
