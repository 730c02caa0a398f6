"""How what was found of this host is kept: JSON, versioned, unknown keys refused.

In: a document (a frozen dataclass with a key `format`). Out: its JSON, and the same document again.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Protocol, TypeVar, cast

import orjson

from ewan.labs.base.typed import read_typed


class Document(Protocol):
    """A frozen dataclass that says which version it is of."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def format(self) -> str:
        """Name and version."""


D = TypeVar("D", bound=Document)


def to_json(document: Document) -> bytes:
    """As JSON, keys in order, with a line's end."""
    fields = {field.name: getattr(document, field.name) for field in dataclasses.fields(document)}
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def from_json(kind: type[D], text: bytes) -> D:
    """ValueError, one line, for another format, an unknown or missing key, or a value of the wrong type."""
    data = orjson.loads(text)
    what = kind.__name__.lower()
    wanted = next(field.default for field in dataclasses.fields(kind) if field.name == "format")
    if not isinstance(data, dict):
        raise ValueError(f"{what}: no JSON object")
    if data.get("format") != wanted:
        raise ValueError(f"{what}: format is {data.get('format')!r}, this version reads {wanted!r}")
    return cast(D, read_typed(kind, data, what))
