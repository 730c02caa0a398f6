"""Where a person wrote what: YAML with the line of every value, and errors that point there.

Comes in: the text of a description, or words of the command line. Goes out: plain dicts, lists and scalars, and
`Places`, which finds the line for the path of any value. Scalars stay text unless they are a whole number,
true, false or null; a key written twice is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]

MOST_NAMES = 12  # in one line

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DescriptionError(ValueError):
    """One line: `file:line: key "value": what is wrong, write X instead`."""


@dataclass(frozen=True, slots=True)
class Place:
    """`prefix` is `file:line: ` or empty (command line); `text` is what was written, if it is one value."""

    prefix: str
    key: str
    text: str | None


@dataclass(slots=True)
class Places:
    """The place of each path; what was never written (a default) has its nearest parent's."""

    file: str = ""
    known: dict[Path, Place] = field(default_factory=dict)

    def find(self, path: Path) -> Place:
        """The place of `path`, or its nearest parent's line with the key spelled out."""
        for length in range(len(path), -1, -1):
            place = self.known.get(path[:length])
            if place is not None and not length and path and not place.prefix:
                return Place("", str(path[-1]).upper(), None)  # a template's default
            if place is not None:
                scalar_parent = place.text is not None or not place.prefix
                exact = length == len(path) or scalar_parent
                return place if exact else Place(place.prefix, spell(path), None)
        return Place(f"{self.file}: " if self.file else "", spell(path), None)

    def error(self, path: Path, message: str, value: object = None) -> DescriptionError:
        """The error at `path`; `value` is shown when nothing was written there (a default)."""
        place = self.find(path)
        shown = place.text if place.text is not None else value
        quoted = "" if shown is None else f' "{_one_line(str(shown))}"'
        return DescriptionError(f"{place.prefix}{place.key}{quoted}: {message}".replace("\n", " "))


def spell(path: Path) -> str:
    """`wan.forward.rate`, `links[2].between`."""
    words = ""
    for part in path:
        words += f"[{part}]" if isinstance(part, int) else f".{part}" if words else part
    return words or "description"


def nearest(word: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown word."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    shown = [*names[:MOST_NAMES], *(["…"] if len(names) > MOST_NAMES else [])]
    return f'write "{close[0]}"' if close else "write one of " + ", ".join(shown)


def read_yaml(text: str, file: str, least: str = "topology: dumbbell") -> tuple[Any, Places]:
    """The description's data and the place of each of its values; `least` is what even the shortest one says."""
    places = Places(file)
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = (error.problem_mark.line + 1) if error.problem_mark else 1
        raise DescriptionError(f"{file}:{line}: {error.problem or 'is not YAML'}: write YAML") from None
    except yaml.YAMLError as error:
        raise DescriptionError(f"{file}: {_one_line(str(error))}: write YAML in UTF-8") from None
    if root is None:
        raise DescriptionError(f'{file}:1: is empty: write at least "{least}"')
    try:
        return _build(root, (), places), places
    except RecursionError:
        raise DescriptionError(f"{file}: contains itself (an alias): write it out") from None


def _build(node: yaml.Node, path: Path, places: Places, key_line: int | None = None) -> Any:
    line = node.start_mark.line + 1 if key_line is None else key_line
    prefix = f"{places.file}:{line}: "
    if isinstance(node, yaml.ScalarNode):
        places.known[path] = Place(prefix, spell(path), node.value)
        return _scalar(node)
    places.known[path] = Place(prefix, spell(path), None)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, index), places) for index, item in enumerate(node.value)]
    result: dict[str, Any] = {}
    for key, value in node.value:
        name = key.value
        if not isinstance(name, str):
            raise places.error(path, 'a key is one word: write a key like "rate:"')
        if name in result:
            here = f"{places.file}:{key.start_mark.line + 1}: "
            raise DescriptionError(f"{here}{spell((*path, name))}: is written twice: write it once")
        result[name] = _build(value, (*path, name), places, key.start_mark.line + 1)
    return result


_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


def _scalar(node: yaml.ScalarNode) -> str | int | bool | None:
    return str(node.value) if node.style in ("'", '"', "|", ">") else scalar(str(node.value))


def scalar(text: str) -> str | int | bool | None:
    """YAML 1.2's core types only: `no` is a name and `1:30` no number."""
    if text in _WORDS:
        return _WORDS[text]
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return text


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:77] + "..."
