"""Where the answers stand in answers.yaml: a name at the beginning of a line, and all until the next name. Pure.

In: the file's text, the questions. Out: an `AnswerEntry` for each name, and in words what is no answer. The file looks
like YAML, and people write it by hand: free text holds colons, dashes and quotes, brackets are left open, lines are not
indented, or all of them are: a name may be indented where it is no part of what is above it. What is behind one name
never changes how another one is read.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ewan.extras.course.fields import Question
from ewan.labs.base.reading import one_line
from ewan.labs.base.wording import nearest

ALIKE = 0.75
"""The least likeness of an unknown name and a question's (difflib's ratio) for it to be a slip, and no word of a
text."""
MOST_SHOWN = 60
_KEY = re.compile(r"""(?P<quote>["']?)(?P<name>[^\s:"'#][^:"'#]{0,59}?)(?P=quote)[ \t]*:""")
_MARKS = ("---", "...", "%YAML")


@dataclass(slots=True)
class AnswerEntry:
    """`first` and `last`: where the text behind the name begins and ends; `line`: of the name, the first is 1;
    `indent`: how many letters are before the name."""

    name: str
    line: int
    first: int
    last: int
    indent: int


def found(text: str, questions: Mapping[str, Question], file: str) -> tuple[list[AnswerEntry], list[str]]:
    """The entries in their order, and a line for each piece that is none."""
    entries: list[AnswerEntry] = []
    strange: list[str] = []
    current: AnswerEntry | None = None
    begin = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        end, bare, inner = begin + len(line), line.rstrip(), line.lstrip(" \t")
        indent = len(line) - len(inner)
        key = _KEY.match(inner)
        inside = current is not None and indent > current.indent and _holds(questions[current.name], key)
        if key is not None and key["name"] in questions and not inside:
            first = indent + key.end()
            current = AnswerEntry(key["name"], number, begin + first, begin + max(first, len(bare)), indent)
            entries.append(current)
        elif not bare or bare.startswith(_MARKS) or (line if current else inner)[0] == "#":
            pass
        elif current and (indent or _goes_on(questions[current.name], bare, key, questions)):
            current.last = begin + len(bare)
        else:
            current = None
            strange.append(f"{file}:{number}: {_strange(inner.rstrip(), key, questions)}")
        begin = end
    return entries, strange


def _holds(question: Question, key: re.Match[str] | None) -> bool:
    """True for an indented line that may be a part of the answer above it."""
    return question.answer == "words" or (key is not None and question.setting_called(key["name"]) is not None)


def _goes_on(question: Question, line: str, key: re.Match[str] | None, questions: Mapping[str, Question]) -> bool:
    """True for a line that is not indented and yet is a part of the answer above it: of settings, a line with a
    setting's name or with brackets only; of free text, anything but a name that is nearly a question's."""
    if question.settings is not None:
        named = None if key is None else question.setting_called(key["name"].lstrip("-{[ "))
        return named is not None or not line.strip("{}[] ,")
    if question.answer != "words":
        return False
    return key is None or not difflib.get_close_matches(key["name"], questions, n=1, cutoff=ALIKE)


def _strange(line: str, key: re.Match[str] | None, questions: Mapping[str, Question]) -> str:
    shown = one_line(line, MOST_SHOWN)
    if key is None:
        return f'"{shown}": belongs to no question: write the question\'s name and a colon before it'
    return f'"{shown}": unknown question, {nearest(key["name"], questions)}'
