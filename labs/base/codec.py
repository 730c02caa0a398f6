"""The documents that machines write and read: typed values as JSON, by msgspec.

In: a type and bytes, or JSON data. Out: a value of that type, or a ValueError that names the place in the document: an
unknown or missing key, an unknown kind, a value of the wrong type. The other way, bytes or data of a value.

A document is a `Document`, whose `tag` is its format and version, under the key `format`. Its parts are `Struct`s,
whose values do not change. A field that has a default is left out where it has its default; one without a default is
always there. The members of a union are `Variant`s: the key `kind` has the word that `tag` gives each of them. What
people write is read by pydantic instead (labs/base/model.py).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast, dataclass_transform, get_args

import msgspec
from msgspec import Meta, field
from msgspec.structs import replace

from ewan.labs.base.reading import one_line

__all__ = [
    "Document",
    "JsonValue",
    "Meta",
    "MutableStruct",
    "OtherVersionError",
    "Struct",
    "Variant",
    "compact",
    "data_of",
    "decode",
    "document",
    "field",
    "from_data",
    "line",
    "ordered",
    "replace",
    "sorted_line",
    "tags",
]

T = TypeVar("T")

JsonValue = None | bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
"""A value of JSON or YAML that other programs or people wrote."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A type of a document, or of a part of it."""


@dataclass_transform(field_specifiers=(field,))
class MutableStruct(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The same for a document that grows in memory: its fields may be set anew."""


class Variant(Struct, tag_field="kind"):
    """A member of a union, which is told apart from the others by its `kind`."""

    @property
    def kind(self) -> str:
        """The word that tells it apart."""
        return str(self.__struct_config__.tag)


class Document(Struct, tag_field="format"):
    """A whole document."""

    @property
    def format(self) -> str:
        """Its format and version, like `ewan-plan/3`."""
        return str(self.__struct_config__.tag)


class OtherVersionError(ValueError):
    """A document of a format that this version does not read, but another one."""


def tags(union: Any) -> tuple[str, ...]:
    """The words by which the members of a union are told apart, in its order."""
    return tuple(str(member.__struct_config__.tag) for member in get_args(union) or (union,))


def decode(kind: type[T], text: bytes, where: str) -> T:
    """The value in a document's bytes; ValueError that names the wrong place below `where`.

    OtherVersionError where another version wrote it.
    """
    try:
        found = _decoder(cast(Any, kind)).decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _refused(kind, error, where, lambda: msgspec.json.decode(text)) from None
    return cast(T, _of_kind(kind, found))


def from_data(kind: type[T], data: Any, where: str) -> T:
    """The value in JSON data, as `decode`."""
    _decoder(cast(Any, kind))  # which knows the whole type, also for the threads beside this one
    try:
        found = msgspec.convert(data, _tagged(cast(Any, kind)))
    except (msgspec.ValidationError, RecursionError) as error:
        raise _refused(kind, error, where, lambda: data) from None
    return cast(T, _of_kind(kind, found))


def compact(value: object) -> bytes:
    """The bytes of a document in one line, its keys in the order of the fields."""
    return _COMPACT.encode(value)


def document(value: object, *, fields_sorted: bool = True) -> bytes:
    """The bytes of a document that people may look at: indented, keys sorted. Equal values give equal bytes.

    Without `fields_sorted` the fields of types are in the order of their definition.
    """
    return msgspec.json.format((_SORTED if fields_sorted else _DEFINED).encode(value), indent=2) + b"\n"


def ordered(value: object) -> bytes:
    """As `document`, with the keys in the order of the fields, and those of dictionaries in theirs."""
    return msgspec.json.format(_COMPACT.encode(value), indent=2) + b"\n"


def line(value: object) -> bytes:
    """As `compact`, with the line's end."""
    return compact(value) + b"\n"


def sorted_line(value: object) -> bytes:
    """As `line`, with the keys sorted: equal values give equal bytes."""
    return _SORTED.encode(value) + b"\n"


def data_of(value: object) -> Any:
    """The JSON data of a value: dictionaries, lists, strings, numbers."""
    return msgspec.json.decode(_COMPACT.encode(value))


_COMPACT = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="sorted")
_DEFINED = msgspec.json.Encoder(order="deterministic")


_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_ONE_AT_A_TIME = threading.Lock()


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type. Only one thread makes decoders: msgspec 0.22 notes what it knows of a `Struct` at the
    `Struct` before it knows all of it, and another thread that reads by that note at the moment reads beyond it."""
    found = _DECODERS.get(kind)
    if found is None:
        with _ONE_AT_A_TIME:
            found = _DECODERS.setdefault(kind, msgspec.json.Decoder(_tagged(kind)))
    return found


def _tagged(kind: Any) -> Any:
    """The type, or of a document a union: msgspec looks for the tags of unions only, and for them before all else."""
    return kind | _NoFormat if _is_document(kind) else kind


class _NoFormat(msgspec.Struct, tag_field="format", tag=""):
    """A document whose format is empty, which is none."""


def _of_kind(kind: Any, found: Any) -> Any:
    if isinstance(found, _NoFormat):
        raise _of_another_format(kind, "is ''")
    return found


MOST_SHOWN = 80
"""Characters of a value, or of a place, that is wrong."""
_TYPES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}

_NAMES = {"NoneType": "null", "list": "array", "tuple": "array", "dict": "object"}
"""msgspec's names of Python's types in JSON, where they differ."""


def _refused(kind: Any, error: Exception, where: str, data: Callable[[], Any]) -> ValueError:
    """msgspec's message, as `What - at `$.place``, in the words of this product: `where.place what`."""
    what, _, at = str(error).partition(" - at ")
    place = at.removeprefix("`key` in ").strip("`").removeprefix("$")
    if not isinstance(error, msgspec.ValidationError):
        return ValueError(f"{where} is no JSON: {one_line(what, MOST_SHOWN)}".strip())
    matched = re.match(r"Expected `([^`]*)`(.*)", what)
    if found := re.match(r"Object (contains unknown|missing required) field `(.*)`", what):
        more, key = found[1].startswith("contains"), found[2]
        place, _ = _located(data, place, lambda value: isinstance(value, dict) and (key in value) == more)
        said = f"has {'an unknown' if more else 'no'} key {key!r}"
    elif at.startswith("`key` in ") and (found := re.match(r"Invalid enum value (.*)", what)):
        said = f"has an unknown key {found[1]}"
    elif matched:
        limit, _, got = matched[2].replace("`", "").partition(", got ")
        place, value = _located(data, place, lambda value: not got or _name(value) == _NAMES.get(got, got))
        said = f"is {value}, not {' or '.join(_TYPES.get(each, each) for each in matched[1].split(' | '))}{limit}"
    elif found := re.match(r"Invalid (?:enum )?value '?(.*?)'?$", what):
        word = found[1]
        place, value = _located(data, place, lambda value: str(value) == word)
        said = f"is {value}"
    elif what.startswith(("Integer", "Number")):
        said = "is a number out of range"
    else:  # of a `__post_init__`
        subject = _joined(where, place)
        return ValueError(f"{subject}: {what}" if subject else what)
    if place == ".format" and _is_document(kind):
        return _of_another_format(kind, said)
    subject = _joined(where, place) or ("" if said.startswith("has ") else "it")
    return ValueError(f"{subject} {said}".strip())


def _of_another_format(kind: Any, said: str) -> ValueError:
    """The error about a document whose format is `said` and not that of its type."""
    ours = str(kind.__struct_config__.tag)
    another_version = said.startswith(f"is '{ours.partition('/')[0]}/")
    return (OtherVersionError if another_version else ValueError)(f"format {said}, this version reads {ours!r}")


def _joined(where: str, place: str) -> str:
    """The place within the document that `where` names; `where` may end with a colon, or be empty."""
    if where.endswith(":"):
        return f"{where} {place.removeprefix('.')}"
    return where + place if where else place.removeprefix(".")


def _name(value: Any) -> str:
    """msgspec's name of a value's type."""
    name = type(value).__name__
    return _NAMES.get(name, name)


def _located(data: Callable[[], Any], place: str, is_wrong: Callable[[Any], bool]) -> tuple[str, str]:
    """A place as msgspec writes it, `.nodes[0].links[...].name`, and the value there, as it is shown.

    `[...]` stands for any key of a dictionary: it becomes the first one below which a wrong value is found.
    """
    steps = re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", place)

    def search(value: Any, at: int) -> tuple[str, Any] | None:
        if at == len(steps):
            return ("", value) if is_wrong(value) else None
        name, number = steps[at]
        keys = [int(number)] if number.isdigit() else [name] if name else list(value)
        for key in keys:
            if found := search(value[key], at + 1):
                return (f"[{key}]" if number.isdigit() else f".{key}") + found[0], found[1]
        return None

    try:
        known = search(data(), 0)
    except (RecursionError, KeyError, IndexError, TypeError):
        known = None
    return (place, "wrong") if known is None else (known[0], shown(known[1]))


def shown(value: Any) -> str:
    """A value's beginning. Of a long text no more is written out, and of a long number nothing is converted."""
    if isinstance(value, int) and value.bit_length() > 4 * MOST_SHOWN:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, dict | list) and len(value) > MOST_SHOWN:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)} entries"
    return one_line(repr(value[:MOST_SHOWN] if isinstance(value, str) else value), MOST_SHOWN)


def _is_document(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__struct_config__.tag_field == "format"
