"""The documents that machines write and read: typed values as JSON, by msgspec.

In: a type and bytes, or JSON data. Out: a value of that type, or a ValueError that names the place in the document: an
unknown or missing key, an unknown kind, a value of the wrong type. The other way, bytes or data of a value.

A document is a `Document`, whose `tag` is its format and version, under the key `format`. Its parts are `Struct`s,
whose values do not change. A field that has a default is left out where it has its default; one without a default is
always there. The members of a union are `Variant`s: the key `kind` has the word that `tag` gives each of them. What
people write is read by pydantic instead (labs/base/model.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast, dataclass_transform, get_args

import msgspec
from msgspec import field
from msgspec.structs import replace

__all__ = [
    "Document",
    "OtherVersionError",
    "Struct",
    "Variant",
    "compact",
    "data_of",
    "decode",
    "document",
    "field",
    "from_data",
    "replace",
    "tags",
]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A type of a document, or of a part of it."""


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
        return cast(T, _decoder(cast(Any, kind)).decode(text))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _refused(kind, error, where, lambda: msgspec.json.decode(text)) from None


def from_data(kind: type[T], data: Any, where: str) -> T:
    """The value in JSON data, as `decode`."""
    try:
        return cast(T, msgspec.convert(data, _tagged(cast(Any, kind))))
    except msgspec.ValidationError as error:
        raise _refused(kind, error, where, lambda: data) from None


def compact(value: object) -> bytes:
    """The bytes of a document in one line, its keys in the order of the fields."""
    return _COMPACT.encode(value)


def document(value: object) -> bytes:
    """The bytes of a document that people may look at: indented, keys sorted. Equal values give equal bytes."""
    return msgspec.json.format(_SORTED.encode(value), indent=2) + b"\n"


def data_of(value: object) -> Any:
    """The JSON data of a value: dictionaries, lists, strings, numbers."""
    return msgspec.json.decode(_COMPACT.encode(value))


_COMPACT = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="sorted")


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_tagged(kind))


@functools.cache
def _tagged(kind: Any) -> Any:
    """The type, or of a document a union: msgspec looks for the tags of unions alone, and for them before all else."""
    if not (isinstance(kind, type) and issubclass(kind, Document)):
        return kind
    return kind | msgspec.defstruct("OtherFormat", [], tag_field="format", tag="")


MOST_SHOWN = 80  # characters of a value that is wrong
_TYPES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _refused(kind: Any, error: Exception, where: str, data: Callable[[], Any]) -> ValueError:
    """msgspec's message, `What - at `$.place``, in the words of this product: `where.place what`."""
    what, _, place = str(error).partition(" - at `$")
    place = place.removesuffix("`")
    if found := re.match(r"Object (contains unknown|missing required) field `(.*)`", what):
        said = f"has {'an unknown' if found[1].startswith('contains') else 'no'} key {found[2]!r}"
    elif not isinstance(error, msgspec.ValidationError):
        said = f"is no JSON: {what}"
    else:
        value = repr(_at(data(), place))[:MOST_SHOWN]
        wanted = re.match(r"Expected `([^`]*)`(.*)", what)
        limit = re.sub(r", got .*", "", wanted[2]) if wanted else ""
        said = f"is {value}" if wanted or what.startswith("Invalid") else f"is wrong: {what}"
        if wanted:
            said += f", not {' or '.join(_TYPES.get(each, each) for each in wanted[1].split(' | '))}{limit}"
    if place == ".format" and isinstance(kind, type) and issubclass(kind, Document):
        ours = str(kind.__struct_config__.tag)
        another = said.startswith(f"is '{ours.partition('/')[0]}/")
        return (OtherVersionError if another else ValueError)(f"format {said}, this version reads {ours!r}")
    return ValueError(f"{_joined(where, place)} {said}")


def _joined(where: str, place: str) -> str:
    """The place within the document that `where` names; `where` may end with a colon, or be empty."""
    if not where or where.endswith(":"):
        place = place.removeprefix(".") or "it"
        return f"{where} {place}" if where else place
    return where + place


def _at(data: Any, place: str) -> Any:
    """The value at a place as msgspec writes it, `.nodes[0].name`; `...` stands for a key of a dictionary."""
    for name, number in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", place):
        if number == "...":
            break
        data = data[int(number)] if number else data[name]
    return data
