"""Answers put into answers.yaml by a program, with all else of the file as it was. Pure.

In: the file's text, a question, an answer. Out: the text with the answer behind the question's name; comments, other
answers and the order stay, whatever the other answers look like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ewan.extras.course import entries
from ewan.extras.course.fields import Question

_COMMENT = re.compile(r"[ \t]+#[^\n\"']*$", re.MULTILINE)
_PLAIN = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z ._%/+-]*[0-9A-Za-z._%/+-])?")


def put(text: str, name: str, answer: str | Mapping[str, str], questions: Mapping[str, Question], file: str) -> str:
    """The text with an answer; `answer`: of settings a value for each."""
    there, _ = entries.found(text, questions, file)
    mine = next((each for each in there if each.name == name), None)
    if mine is None:
        ended = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{ended}{name}: {_written(answer)}\n"
    replaced = text[mine.first : mine.last]
    comments = "" if questions[name].answer == "words" else "".join(_COMMENT.findall(replaced))
    return f"{text[: mine.first]} {_written(answer)}{comments}{text[mine.last :]}"


def _written(answer: str | Mapping[str, str]) -> str:
    """On one line, so that it is read as the same text."""
    if isinstance(answer, str):
        return answer if _PLAIN.fullmatch(answer) else json.dumps(answer, ensure_ascii=False)
    return "{" + ", ".join(f"{name}: {_written(each)}" for name, each in answer.items()) + "}"
