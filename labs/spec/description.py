"""Reads the lab description that a person writes: its file, and the same keys on the command line.

Comes in: a YAML file, or a template's name with overrides as text. Goes out: a `Spec`, typed and without any
default applied (the compiler does that, once). Unknown keys and bare numbers are refused with the line and what
to write instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import JsonSchemaValue

from ewan.labs.base.codec import JsonValue
from ewan.labs.base.model import Model
from ewan.labs.base.reading import read_text
from ewan.labs.base.source import DescriptionError, Path, Places, read_yaml
from ewan.labs.base.source import Place as _Place
from ewan.labs.base.wording import nearest
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.spec import unwritable
from ewan.labs.spec.fields import Description, Topology, card

MOST_TABLE, MOST_TABLES = 16 << 20, 64 << 20
"""Bytes of a file of delays or losses, and of all that a description names."""

# Words of the command line → where they are in a description; topology settings come from the topology itself.
_ON_COMMAND_LINE: dict[str, Path] = {
    **{key: (key,) for key in ("name", "rtt", "mtu", "ip", "seed", "emulator", "dither", "routing", "kernel")},
    **{key: ("wan", key) for key in DirectionKeys.model_fields if key != "trace"},
    "access": ("access", "rate"),
    "switch": ("access", "switch"),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """A description and where each of its values was written; `raw` is the data that it was read from."""

    description: Description
    places: Places
    raw: dict[str, JsonValue]
    folder: File

    def error(self, path: Path, message: str, value: object = None) -> DescriptionError:
        """An error that points to where `path` was written."""
        return self.places.error(path, message, value)


def load(path: File | str) -> Spec:
    """Reads a description; files that it names (delays, loss patterns) are relative to it."""
    file = File(path)
    return parse(text_of(file, "write the path of a description (*.lab.yaml)"), file)


def text_of(file: File, instead: str) -> str:
    """The content of a YAML file. Other files are not read: under root, an error could show a line of a secret file."""
    if file.suffix not in (".yaml", ".yml"):
        raise DescriptionError(f"{file}: its name does not end in .yaml: {instead}")
    try:
        return read_text(file)
    except OSError as error:
        raise DescriptionError(f"{file}: {error.strerror or 'cannot be read'}: {instead}") from None


def parse(text: str, file: File, *, alone: bool = False) -> Spec:
    """The description in `text`, which was read from `file`: errors, the lab's name and other files go by that.
    `alone`: one that names files is refused, and no file is looked at."""
    raw, places = read_yaml(text, str(file))
    if not isinstance(raw, dict):
        raise places.error((), 'a description consists of keys: write at least "topology: dumbbell"')
    if "name" not in raw:
        stem = file.name.removesuffix(".yaml").removesuffix(".yml").removesuffix(".lab").lower().replace("_", "-")
        raw["name"] = stem
    return from_data(raw, places, file.parent, alone=alone)


def from_template(name: str, overrides: Mapping[str, str]) -> Spec:
    """A topology with everything else at its default, then `overrides` as `override` does."""
    places = Places()
    places.known[()] = _Place("", "TOPO", None)
    places.known[("topology",)] = _Place("", "TOPO", name)
    if name == "graph":
        message = "has no template: write the path of its description, like labs/library/graph.lab.yaml"
        raise places.error(("topology",), message)
    return override(from_data({"topology": {name: {}}}, places, File()), overrides)


def override(spec: Spec, overrides: Mapping[str, str]) -> Spec:
    """The same description with words of the command line in place of its own values.

    Link settings replace those of `wan:`; what a description says of one direction or one link stays.
    """
    if not overrides:
        return spec
    raw = json.loads(json.dumps(spec.raw))
    places = Places(spec.places.file, dict(spec.places.known))
    topology = _topology_mapping(raw)
    kind = next(iter(topology))
    settings = list(Topology.parameters(kind))
    for key, text in overrides.items():
        shown = key.upper().replace("_", "-")
        path: Path = _ON_COMMAND_LINE.get(key, ("topology", kind, key))
        if key not in _ON_COMMAND_LINE and key not in settings:
            known = [*_ON_COMMAND_LINE, *settings]
            if key in Topology.all_parameters():
                has = " and ".join(word.upper().replace("_", "-") for word in settings) or "none"
                raise DescriptionError(f'{shown} "{text}": {kind} has no such setting, write its own: {has}')
            raise DescriptionError(f'{shown} "{text}": unknown setting, {nearest(key, known)}')
        value: Any = text.split(",") if key == "rtt" and "," in text else text
        if text.startswith("{"):
            value, _ = read_yaml(text, shown)
        place: dict[str, JsonValue] = raw
        for part in path[:-1]:
            inner = place.get(str(part))
            if not isinstance(inner, dict):
                inner = place[str(part)] = {}
            place = inner
        ways = {way: place.get(way) for way in ("forward", "backward")}
        hidden = [way for way, own in ways.items() if isinstance(own, dict) and path[-1] in own]
        if len(hidden) == 2:
            where = places.find((*path[:-1], "forward", path[-1])).prefix
            raise DescriptionError(f'{shown} "{text}": {where}both directions say their own: write it there')
        place[str(path[-1])] = value
        for known_path in [known for known in places.known if known[: len(path)] == path]:
            del places.known[known_path]
        places.known[path] = _Place("", shown, text)
    return from_data(raw, places, spec.folder)


def json_schema() -> JsonSchemaValue:
    """The description format as JSON Schema."""
    return Description.model_json_schema(by_alias=True)


def markdown() -> str:
    """The description format as a page: every key with type, default, meaning, example."""
    from ewan.labs.spec.manual import page

    return page()


def _topology_mapping(raw: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """`topology: star` written out as `topology: {star: {}}`, in place."""
    said = raw["topology"]
    assert isinstance(said, str | dict)
    kind = said if isinstance(said, str) else next(iter(said))
    raw["topology"] = topology = {kind: {} if isinstance(said, str) else said[kind] or {}}
    return topology


def from_data(raw: dict[str, JsonValue], places: Places, folder: File, *, alone: bool = False) -> Spec:
    """The description in `raw`, whose values were written at `places`; files that it names are relative to `folder`.
    `alone`: as `parse` has it."""

    left = MOST_TABLES

    def read(name: str) -> str:
        nonlocal left
        text = read_text(folder / name, min(MOST_TABLE, left))
        left -= len(text)
        return text

    for name, place in card.written(raw.get("external")).items():
        places.moved["external", name] = ("external", *place)
    try:
        context = {} if alone else {"read": read, "folder": folder}
        description = Description.model_validate(raw, context=context)
    except ValidationError as error:
        raise translate(error, places, Description, "docs/reference/description.md") from None
    return Spec(description, places, raw, folder)


def translate(error: ValidationError, places: Places, root: type[Model], page: str) -> DescriptionError:
    """The first of pydantic's errors about a `root`, in the words of the person who wrote it; `page` explains it."""
    found = error.errors(include_url=False)
    # A misspelt key is both unknown and missing: the first says what to put right.
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    first = first if found[0]["type"] == "missing" else found[0]
    path: Path = tuple(first["loc"])
    value = first["input"] if isinstance(first["input"], (str, int, float)) else None
    if path[-1:] == ("[key]",):  # pydantic's word for the key itself
        path, value = path[:-1], None
    context = first.get("ctx", {})
    match first["type"]:
        case "extra_forbidden":
            key = str(path[-1])
            if root is Description and (message := unwritable.of_key(path)) is not None:
                return places.error(path, message, None)
            known, what = root.keys_at(path[:-1])
            return places.error(path, f"unknown {what}, {nearest(key, known)}", None)
        case "missing" if isinstance(path[-1], int):
            return places.error(path[:-1], f"has {path[-1]} in its list: write {path[-1] + 1}, like [a, b]")
        case "missing":
            return places.error(path, f'is missing: write "{path[-1]}:" too')
        case "value_error":
            return places.error(path, str(context["error"]), value)
        case "literal_error":
            return places.error(path, f"write {context['expected'].replace(chr(39), chr(34))}", value)
        case "bool_type" | "bool_parsing":
            return places.error(path, 'write "true" or "false"', value)
        case "model_type" | "model_attributes_type" | "dict_type":
            return places.error(path, "is a group of keys: write its keys below it", value)
        case "tuple_type" | "list_type":
            return places.error(path, "is a list: write it as [a, b]", value)
        case "too_short":
            return places.error(
                path, f"has {context['actual_length']} in its list: write {context['min_length']} or more"
            )
        case "too_long":
            return places.error(path, f"has too many in its list: write {context['max_length']} at most")
        case "string_too_short":
            return places.error(path, "is empty: write some text, or leave the key out", value)
        case "string_type":
            return places.error(path, "is a word: write text", value)
        case _:
            message = first["msg"]
            return places.error(path, f"{message[:1].lower()}{message[1:]}, see {page}", value)
