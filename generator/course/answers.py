"""What a student answers: answers.yaml, a key for each question. Pure but for `load`.

In: the text of the file, or the same as JSON data. Out: what is written behind each key, not yet judged. Unknown keys,
keys written twice, tags and what is no YAML are a DescriptionError with its line; what an answer is worth is said by
`verdicts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

import yaml

from generator.course.fields import Question
from labs.reading import one_line, read_text
from labs.spec import DescriptionError
from labs.spec.source import Path, Places, read_yaml
from labs.wording import nearest

FILE = "answers.yaml"
MOST_BYTES = 256 << 10
MOST_LETTERS = 20_000
"""Of one answer."""
_TAB = "found character that cannot start any token"
"""What libyaml says of a tab where there should be spaces."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Given:
    """What is written for one question. `text`: None where nothing is; `settings`: of one that has several values.

    `place`: `answers.yaml:7: `, before what is said of it."""

    text: str | None = None
    settings: Mapping[str, str | None] = field(default_factory=dict)
    place: str = ""

    @property
    def empty(self) -> bool:
        """Nothing was answered yet."""
        blank = self.text is None or not self.text.strip()
        return blank and all(each is None or not each.strip() for each in self.settings.values())


def load(file: File, questions: Mapping[str, Question]) -> dict[str, Given]:
    """The answers in a file; DescriptionError where they cannot be read."""
    try:
        text = read_text(file, MOST_BYTES)
    except OSError as error:
        most = f"{MOST_BYTES >> 10} KiB"
        reason = f"is larger than {most}, the most that is read" if "larger" in str(error.strerror) else error.strerror
        raise DescriptionError(f"{file}: {reason}: answers are written there, `pipe: 1.2MB`") from None
    return read(text, str(file), questions)


def read(text: str, file: str, questions: Mapping[str, Question]) -> dict[str, Given]:
    """The answer to every question; `file` names the text in errors. DescriptionError where it is no answers' file."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise DescriptionError(f"{file}: is larger than {MOST_BYTES >> 10} KiB, the most that is read: write less")
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        return {name: Given() for name in questions}
    _refuse_tags(text, file)
    try:
        raw, places = read_yaml(text, file, "pipe: 1.2MB")
    except DescriptionError as error:
        if _TAB in str(error) and "\t" in text:
            raise DescriptionError(str(error).replace(_TAB, "has a tab").replace("YAML", "spaces")) from None
        raise
    return from_data(raw, places, questions)


def from_data(raw: Any, places: Places, questions: Mapping[str, Question]) -> dict[str, Given]:
    """The same of plain data, as a file of YAML or JSON gave it; `places` know where each value was written."""
    if not isinstance(raw, dict):
        first = next(iter(questions))
        raise places.error((), f'consists of keys: write an answer behind the question\'s name, "{first}: …"')
    found = {name: Given() for name in questions}
    for name, value in raw.items():
        if name not in questions:
            raise places.error((name,), f"unknown question, {nearest(str(name), questions)}")
        prefix = places.find((name,)).prefix
        wanted = questions[name].settings
        if wanted is None:
            found[name] = Given(_written(value, (name,), places), place=prefix)
            continue
        if value is not None and not isinstance(value, dict):
            keys = ", ".join(f"{key}: …" for key in wanted)
            raise places.error((name,), f"has several values: write them as {{{keys}}}")
        chosen: dict[str, str | None] = dict.fromkeys(wanted)
        for key, each in (value or {}).items():
            if key not in chosen:
                raise places.error((name, key), f"unknown setting, {nearest(str(key), chosen)}")
            chosen[key] = _written(each, (name, key), places)
        found[name] = Given(settings=chosen, place=prefix)
    return found


def plain(given: Mapping[str, Given]) -> dict[str, str | dict[str, str]]:
    """Answers as JSON data, those that are not empty; `from_data` reads them."""
    result: dict[str, str | dict[str, str]] = {}
    for name, each in given.items():
        if each.settings:
            result[name] = {key: text for key, text in each.settings.items() if text is not None}
        elif each.text is not None:
            result[name] = each.text
    return {name: each for name, each in result.items() if each}


def _written(value: Any, path: Path, places: Places) -> str | None:
    """What stands behind a key, as it was typed; nothing is no answer."""
    if isinstance(value, dict | list):
        raise places.error(path, "is one answer: write it behind the name, on the same line")
    place = places.find(path)
    text = place.text if path in places.known else value
    if value is None or text is None or text == "":
        return None
    if len(str(text)) > MOST_LETTERS:
        raise DescriptionError(f"{place.prefix}{place.key}: is longer than {MOST_LETTERS} letters: write less")
    return str(text)


def _refuse_tags(text: str, file: str) -> None:
    """DescriptionError for a tag: an answer is plain text."""
    event: Any
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if getattr(event, "tag", None):
                line, tag = event.start_mark.line + 1, one_line(str(event.tag), 40)
                raise DescriptionError(f'{file}:{line}: has a tag, "{tag}": write the answer alone')
    except (yaml.YAMLError, UnicodeError):
        return  # `read_yaml` says what is wrong
