"""The answers of a student: answers.yaml, a name for each question. Pure but for `load`.

In: the text of the file, or the same as plain data. Out: the text behind each name, not yet judged. An answer
that cannot be read is marked, and the others are read: only a file without any question's name, or one that is
too large, is a DescriptionError. `verdicts.py` judges answers.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as File

from ewan.extras.course import entries
from ewan.extras.course.amounts import QUOTES
from ewan.extras.course.fields import Question
from ewan.labs.base.reading import decoded, one_line, read_bytes
from ewan.labs.base.wording import nearest
from ewan.labs.spec import DescriptionError

FILE = "answers.yaml"
MOST_BYTES = 256 << 10
MOST_LETTERS = 20_000
"""The most letters of an answer."""
MOST_SHOWN = 40
_BLOCK = re.compile(r"[|>][0-9+-]{0,2}(?:\s+#.*)?")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_SINGLE = re.compile(r"'((?:[^']|'')*)'")
_DOUBLE = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BULLET = re.compile(r"^\s*-\s+")
PlainAnswer = str | Mapping[str, str]
"""As a submission has it: the text, or of settings a text each."""
_NOTHING = ("~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """The text for one question. `text` is None where there is none; `settings` belong to a question of several values.

    `place`: `answers.yaml:7: `, which stands before messages about it; `wrong`: why it cannot be read, empty where it
    can."""

    text: str | None = None
    settings: Mapping[str, str | None] = field(default_factory=dict)
    place: str = ""
    wrong: str = ""

    @property
    def empty(self) -> bool:
        """Nothing was answered yet."""
        blank = self.text is None or not self.text.strip()
        return not self.wrong and blank and all(each is None or not each.strip() for each in self.settings.values())


class Answers(dict[str, WrittenAnswer]):
    """The text for each question, by its name. `strange`: a line for each part of the file that is no answer."""

    strange: tuple[str, ...] = ()


def load(file: File, questions: Mapping[str, Question]) -> Answers:
    """The answers in a file; DescriptionError where it cannot be read at all."""
    try:
        content = read_bytes(file, MOST_BYTES)
    except OSError as error:
        most = f"{MOST_BYTES >> 10} KiB"
        reason = f"is larger than {most}, the most that is read" if "larger" in str(error.strerror) else error.strerror
        raise DescriptionError(f"{file}: {reason}: answers are written there, `pipe: 1.2MB`") from None
    return read(decoded(content), str(file), questions)


def read(text: str, file: str, questions: Mapping[str, Question]) -> Answers:
    """The answer to every question; `file` names the text in errors. DescriptionError where it is no answers' file."""
    content = text.encode("utf-8", errors="replace")
    if len(content) > MOST_BYTES:
        raise DescriptionError(f"{file}: is larger than {MOST_BYTES >> 10} KiB, the most that is read: write less")
    text = content.decode("utf-8").removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    there, strange = entries.found(text, questions, file)
    if strange and not there:
        first = next(iter(questions))
        raise DescriptionError(f'{strange[0]} (like "{first}: …", at the beginning of a line)')
    result = Answers({name: _nothing(question) for name, question in questions.items()})
    result.strange = tuple(strange)
    first_lines: dict[str, int] = {}
    for each in there:
        given = _given(questions[each.name], text[each.first : each.last], f"{file}:{each.line}: ")
        if given.empty:
            continue
        if each.name in first_lines and questions[each.name].answer == "words":
            given = _joined(result[each.name], given)
        elif each.name in first_lines:
            wrong = f"is answered twice, in line {first_lines[each.name]} too: leave one answer"
            given = WrittenAnswer(place=given.place, wrong=wrong)
        first_lines.setdefault(each.name, each.line)
        result[each.name] = given
    return result


def from_data(raw: Mapping[str, PlainAnswer], questions: Mapping[str, Question]) -> Answers:
    """The same of plain data, as `plain` makes it; a value that does not have the form of its question is no answer."""
    result = Answers({name: _nothing(question) for name, question in questions.items()})
    for name, value in raw.items():
        wanted = questions[name].settings if name in questions else None
        if wanted is not None:
            chosen = {} if isinstance(value, str) else value
            result[name] = WrittenAnswer(settings={key: chosen.get(key) for key in wanted})
        elif name in questions and isinstance(value, str):
            result[name] = WrittenAnswer(value)
    return result


def plain(given: Mapping[str, WrittenAnswer]) -> dict[str, str | dict[str, str]]:
    """Answers as plain data, those that are not empty; `from_data` reads them."""
    result: dict[str, str | dict[str, str]] = {}
    for name, each in given.items():
        if each.settings:
            result[name] = {key: text for key, text in each.settings.items() if text is not None}
        elif each.text is not None:
            result[name] = each.text
    return {name: each for name, each in result.items() if each}


def _nothing(question: Question) -> WrittenAnswer:
    return WrittenAnswer(settings=dict.fromkeys(question.settings or {}))


def _joined(first: WrittenAnswer, more: WrittenAnswer) -> WrittenAnswer:
    """Free text that goes on behind its question's name written once more."""
    text, wrong = _cut(f"{first.text}\n\n{more.text}")
    return WrittenAnswer(text, place=first.place, wrong=first.wrong or more.wrong or wrong)


def _cut(text: str) -> tuple[str, str]:
    """As much as is handed in, and what is wrong with text that is longer."""
    if len(text) <= MOST_LETTERS:
        return text, ""
    return text[:MOST_LETTERS], f"is longer than {MOST_LETTERS} letters: write less"


def _given(question: Question, written: str, place: str) -> WrittenAnswer:
    """Return the text behind a question's name."""
    written, wrong = _cut(written)
    if question.settings is not None:
        settings, unread = _settings(written, question)
        return WrittenAnswer(settings=settings, place=place, wrong=wrong or unread)
    text = _words(written) if question.answer == "words" else _single(written)
    return WrittenAnswer(text or None, place=place, wrong=wrong)


def _words(written: str) -> str:
    """Free text: all of it as it was typed; marks of a block or quotes around it aside."""
    first, _, rest = written.partition("\n")
    rest = textwrap.dedent(rest)
    if _BLOCK.fullmatch(first.strip()):
        return rest.strip("\n")
    whole = f"{first.strip()}\n{rest}".strip()
    return _unquoted(whole) or whole


def _single(written: str) -> str:
    """One value; what stands in several lines is joined."""
    lines = [line.strip() for line in written.splitlines()]
    if lines and _BLOCK.fullmatch(lines[0]):
        lines = lines[1:]
    quoted = _unquoted(_COMMENT.sub("", " ".join(lines)).strip())
    found = quoted if quoted is not None else " ".join(_COMMENT.sub("", line) for line in lines).strip()
    found = found.strip(QUOTES)
    return "" if found in _NOTHING else found


def _unquoted(text: str) -> str | None:
    """Return the text between quotes; None where a part of it stands outside."""
    if (single := _SINGLE.fullmatch(text)) is not None:
        return single[1].replace("''", "'")
    if _DOUBLE.fullmatch(text) is None:
        return None
    try:
        return str(json.loads(text, strict=False)).encode("utf-8", errors="replace").decode()
    except ValueError:
        return text[1:-1]


def _settings(written: str, question: Question) -> tuple[dict[str, str | None], str]:
    """The value of each setting, and why they cannot be read. `{buffer: 40kB}`, a line each, and, where there is one
    setting only, just its value."""
    chosen: dict[str, str | None] = dict.fromkeys(question.settings or {})
    text = "\n".join(_BULLET.sub("", _COMMENT.sub("", line)) for line in written.splitlines())
    names = "|".join(name.replace("_", "[ _-]?") for name in chosen)
    pieces = re.split(rf"((?i:{names})|[A-Za-z_]\w*)[\"'`]?\s*[:=]", text)
    alone = _bare(pieces[0])
    for word, value in zip(pieces[1::2], map(_bare, pieces[2::2]), strict=True):
        key = question.setting_called(word) or word
        if key not in chosen:
            shown = f' "{one_line(value, MOST_SHOWN)}"' if value else ""
            return chosen, f"{key}{shown}: unknown setting, {nearest(key, chosen)}"
        if value and chosen[key] not in (None, value):
            return chosen, f"{key}: is written twice: write it once"
        chosen[key] = value or chosen[key]
    if alone and len(chosen) == 1 and not any(chosen.values()):
        return dict.fromkeys(chosen, alone), ""
    if alone:
        keys = ", ".join(f"{key}: …" for key in chosen)
        return chosen, f'"{one_line(alone, MOST_SHOWN)}": write the values as {{{keys}}}'
    return chosen, ""


def _bare(text: str) -> str | None:
    """A value without what stands around it."""
    found = text.strip(f" \t\n\r,;{{}}[]\"'{QUOTES}")
    return None if not found or found in _NOTHING else found
