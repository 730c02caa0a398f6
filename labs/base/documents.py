"""The one door for JSON that machines wrote: certificates, settings, summaries, records of runs.

In: a path or bytes, and the type that is wanted. Out: a value of that type, or a `DocumentError`: one line that names
the file and the place in it. Files are regular, of a bounded size and in UTF-8 (labs/base/reading.py); values are
checked by the codec (labs/base/codec.py), which converts nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import orjson

from ewan.labs.base import codec
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import MOST_RECORD, one_line, read_bytes

MOST_VALUES, MOST_FOLDED = 8 << 20, 2 << 20
"""Values of a document, and lists and objects among them, which take the most memory. The record of 100,000 runs has 4
million values and 400,000 lists and objects; the plan of a chain of 100 hops has 100,000 and 26,000 in 3 MB, so one as
large as any that is read has 8 and 2 million."""

T = TypeVar("T")


class DocumentError(UserError, ValueError):
    """Why a document is not what it should be, in one line that begins with its path."""


def read(kind: type[T], path: Path, most: int = MOST_RECORD) -> T:
    """The document in a file as this type; DocumentError for any other content, FileNotFoundError where there is
    none."""
    return parse(kind, _content(path, most), str(path))


def _content(path: Path, most: int) -> bytes:
    try:
        return read_bytes(path, most)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}") from None


def parse(kind: type[T], content: bytes, name: str) -> T:
    """The same of bytes; `name` stands before what is wrong with them."""
    check_values(content, name)
    try:
        return codec.decode(kind, content, "")
    except ValueError as error:
        raise DocumentError(f"{name}: {error}") from None


def checked(kind: type[T], data: Any, name: str) -> T:
    """The same of what `json_of` gave."""
    try:
        return codec.from_data(kind, data, "")
    except ValueError as error:
        raise DocumentError(f"{name}: {error}") from None


def json_of(content: bytes | str, name: str) -> Any:
    """The value of a JSON document. DocumentError for bytes that are no JSON, for NaN, for text that is no UTF-8, for
    values nested more than 1024 deep, and for too many values."""
    check_values(content.encode() if isinstance(content, str) else content, name)
    try:
        return orjson.loads(content)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise DocumentError(f"{name}: is no JSON: {one_line(str(error), codec.MOST_SHOWN)}") from None


def check_values(content: bytes, name: str) -> None:
    """DocumentError for JSON that would fill the memory when it is read, by a look at its bytes only: a few bytes of a
    file become a hundred times as many."""
    folded = content.count(b"[") + content.count(b"{")
    if folded > MOST_FOLDED or content.count(b",") + folded > MOST_VALUES:
        raise DocumentError(f"{name}: has more values than any record of a lab")


def read_open(kind: type[Any], path: Path, most: int = MOST_RECORD) -> dict[str, JsonValue]:
    """The JSON object in a file, of which the keys of this type are checked, and others may be there; errors as
    `read`."""
    found = read_object(path, most)
    checked(kind, found, str(path))
    return found


def read_object(path: Path, most: int = MOST_RECORD) -> dict[str, JsonValue]:
    """The JSON object in a file, whose keys are not checked; errors as `read`."""
    found = json_of(_content(path, most), str(path))
    if not isinstance(found, dict):
        raise DocumentError(f"{path}: is no JSON object")
    return found
