"""Reads YAML with the line of every value, and makes errors that point to that line.

Comes in: the text of a description, or words of the command line. Goes out: plain dicts, lists and scalars, and
`Places`, which finds the line for the path of any value. Scalars stay text unless they are a whole number,
true, false or null; a key written twice is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from ewan.labs.base.codec import JsonValue
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import MOST_DIGITS, one_line
from ewan.labs.base.wording import MOST_LETTERS

Path = tuple[str | int, ...]

DEEPEST = 50  # groups within groups; no format has a tenth of that
MOST_VALUES = 100_000
"""The values of a file, keys and aliases' copies included: half a million of them fill a machine's memory."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DescriptionError(UserError, ValueError):
    """One line: `file:line: key "value": what is wrong, write X instead`."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


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
    moved: dict[Path, Path] = field(default_factory=dict)
    """Where it was written what has got a name, as if it had been written with it: by the path with the name."""

    def find(self, path: Path) -> Place:
        """The place of `path`, or its nearest parent's line with the key spelled out."""
        for length in range(len(path), 0, -1) if self.moved else ():
            if path[:length] in self.moved:
                path = (*self.moved[path[:length]], *path[length:])
                break
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
        quoted = "" if shown is None else f' "{one_line(str(shown), MOST_LETTERS)}"'
        return DescriptionError(f"{place.prefix}{place.key}{quoted}: {message}")


def spell(path: Path) -> str:
    """`wan.forward.rate`, `links[2].between`."""
    words = ""
    for part in path:
        name = part if isinstance(part, int) else one_line(part, MOST_LETTERS)
        words += f"[{name}]" if isinstance(part, int) else f".{name}" if words else str(name)
    return words or "description"


def read_yaml(text: str, file: str, least: str = "topology: dumbbell") -> tuple[Any, Places]:
    """The description's data and the place of each of its values; `least` is what even the shortest one says."""
    places = Places(file)
    try:
        _check_size(text, file)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = (error.problem_mark.line + 1) if error.problem_mark else 1
        raise DescriptionError(f"{file}:{line}: {error.problem or 'is not YAML'}: write YAML") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise DescriptionError(f"{file}: {one_line(str(error), MOST_LETTERS)}: write YAML in UTF-8") from None
    if root is None:
        raise DescriptionError(f'{file}:1: is empty: write at least "{least}"')
    return _build(root, (), places), places


def _check_size(text: str, file: str) -> None:
    """DescriptionError for a document that is nested too deep or holds too many values, before it is composed.

    libyaml composes by recursion: deep nesting would overflow the stack and end the process.
    """
    depth = 0
    event: Any
    for number, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        here = f"{file}:{event.start_mark.line + 1}: "
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise DescriptionError(
                    f"{here}is nested more than {DEEPEST} deep: write fewer brackets or indentations"
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if number > 2 * MOST_VALUES:
            raise _too_many(here)


def _too_many(here: str) -> DescriptionError:
    return DescriptionError(f"{here}holds more than {MOST_VALUES} values: write fewer")


def _build(node: yaml.Node, path: Path, places: Places, key_line: int | None = None) -> Any:
    """The data of a YAML node; `places` then knows where each of its values is written. Raises DescriptionError."""
    line = node.start_mark.line + 1 if key_line is None else key_line
    prefix = f"{places.file}:{line}: "
    if len(places.known) >= MOST_VALUES:  # aliases multiply
        raise _too_many(prefix)
    if len(path) > DEEPEST:  # only an alias of what is around it goes deeper than the text
        raise DescriptionError(f"{prefix}contains itself (an alias): write it out")
    if isinstance(node, yaml.ScalarNode):
        # A file that is one bare word is no description: as root it may be one that others must not see.
        places.known[path] = Place(prefix, spell(path), node.value if path else None)
        return _scalar(node)
    places.known[path] = Place(prefix, spell(path), None)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, index), places) for index, item in enumerate(node.value)]
    result: dict[str, JsonValue] = {}
    for key, value in node.value:
        name = key.value
        if not isinstance(name, str):
            raise places.error(path, 'a key is one word: write a key like "rate:"')
        if name in result:
            here = f"{places.file}:{key.start_mark.line + 1}: "
            raise DescriptionError(f"{here}{spell((*path, name))}: is written twice: write it once")
        result[name] = _build(value, (*path, name), places, key.start_mark.line + 1)
    return result


# Only digits of ASCII, here and elsewhere: a number in other letters is more likely a slip than meant.
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{MOST_DIGITS}}}")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


def _scalar(node: yaml.ScalarNode) -> str | int | bool | None:
    return str(node.value) if node.style in ("'", '"', "|", ">") else scalar(str(node.value))


def scalar(text: str) -> str | int | bool | None:
    """YAML 1.2's core types only: `no` is a name and `1:30` no number."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return text
