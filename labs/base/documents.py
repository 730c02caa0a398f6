"""The one door for JSON that machines wrote: certificates, settings, summaries, records of runs.

In: a path or bytes, and the type that is wanted. Out: a value of that type, or a `DocumentError`: one line that names
the file and the place in it. Files are regular, of a bounded size and in UTF-8 (labs/base/reading.py); values are
checked by pydantic in its strict mode, which converts nothing.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import orjson

from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import MOST_RECORD, one_line, read_bytes

if TYPE_CHECKING:  # it takes a tenth of a second, and commands that read plain objects need none of it
    from pydantic import TypeAdapter, ValidationError

MOST_VALUES, MOST_FOLDED = 8 << 20, 2 << 20
"""Values of a document, and lists and objects among them, which take the most memory. The record of 100,000 runs has 4
million values and 400,000 lists and objects; the plan of a chain of 100 hops has 100,000 and 26,000 in 3 MB, so one as
large as any that is read has 8 and 2 million."""
MOST_SHOWN = 80
"""Characters of a value, or of a place, that is wrong."""

T = TypeVar("T")
_UNION_MEMBERS = frozenset(("str", "int", "float", "bool", "none"))


class DocumentError(UserError, ValueError):
    """Why a document is not what it should be, in one line that begins with its path."""


def read(kind: type[T], path: Path, most: int = MOST_RECORD) -> T:
    """The document in a file as this type; DocumentError for what is none, FileNotFoundError where there is none."""
    return parse(kind, _content(path, most), str(path))


def _content(path: Path, most: int) -> bytes:
    try:
        return read_bytes(path, most)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}") from None


def parse(kind: type[T], content: bytes | str, name: str) -> T:
    """The same of bytes; `name` stands before what is wrong with them."""
    return checked(kind, json_of(content, name), name)


def checked(kind: type[T], data: Any, name: str) -> T:
    """The same of what `json_of` gave."""
    from pydantic import ValidationError

    try:
        # A number beyond 64 bits is a float by now, which is no whole number to pydantic. From Python's lists it would
        # make no tuples in its strict mode.
        return cast(T, _adapter(cast(Any, kind)).validate_json(orjson.dumps(data), strict=True))
    except ValidationError as error:
        raise DocumentError(f"{name}: {first_wrong(error)}") from None


def json_of(content: bytes | str, name: str) -> Any:
    """What JSON says; DocumentError for bytes that are none, for NaN, for what is no UTF-8, for values nested more
    than 1024 deep, and for too many values."""
    check_values(content.encode() if isinstance(content, str) else content, name)
    try:
        return orjson.loads(content)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise DocumentError(f"{name}: is no JSON: {one_line(str(error), MOST_SHOWN)}") from None


def check_values(content: bytes, name: str) -> None:
    """DocumentError for JSON that would fill the memory when it is read, by a look at its bytes alone: a few bytes of a
    file become a hundred times as many."""
    folded = content.count(b"[") + content.count(b"{")
    if folded > MOST_FOLDED or content.count(b",") + folded > MOST_VALUES:
        raise DocumentError(f"{name}: has more values than any record of a lab")


def read_object(path: Path, most: int = MOST_RECORD) -> dict[str, Any]:
    """The JSON object in a file, whose keys nobody has looked at; errors as `read`."""
    found = json_of(_content(path, most), str(path))
    if not isinstance(found, dict):
        raise DocumentError(f"{path}: is no JSON object")
    return found


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def first_wrong(error: ValidationError) -> str:
    """The first thing that pydantic found wrong, by the name of its key: `runs[0].number is "x"`."""
    wrong = error.errors(include_url=False)[0]
    *outer, last = wrong["loc"] or ("",)
    match wrong["type"]:
        case "missing":
            return f"{_where(outer)}has no key {_shown(str(last))}"
        case "extra_forbidden" | "unexpected_keyword_argument":
            return f"{_where(outer)}has an unknown key {_shown(str(last))}"
        case "value_error":
            return one_line(str(wrong["ctx"]["error"]), 4 * MOST_SHOWN)
        case "literal_error":
            is_key = last == "[key]"
            what = f"{_where(outer[:-1])}has an unknown key" if is_key else f"{_name([*outer, last])} is"
            return f"{what} {_shown(wrong['input'])}, not {wrong['ctx']['expected']}"
    parts = [*outer, last]
    if parts[-1] in _UNION_MEMBERS:  # pydantic's word for a member of a union
        parts.pop()
    limits = wrong.get("ctx", {})
    bounds = [f"{word} {limits[key]}" for key, word in _BOUNDS.items() if key in limits]
    return f"{_name(parts)} is {_shown(wrong['input'])}{f', not {bounds[0]}' if bounds else ''}"


_BOUNDS = {"ge": "at least", "le": "at most", "gt": "above", "lt": "below", "pattern": "as in"}


def _shown(value: Any) -> str:
    """A value's beginning. Of a long text no more is written out, and of a long number nothing is converted."""
    if isinstance(value, int) and value.bit_length() > 4 * MOST_SHOWN:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, dict | list) and len(value) > MOST_SHOWN:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)} entries"
    return one_line(repr(value[:MOST_SHOWN] if isinstance(value, str) else value), MOST_SHOWN)


def _where(parts: list[int | str]) -> str:
    return f"{_name(parts)} " if parts else ""


def _name(parts: list[int | str]) -> str:
    """`runs[0].number`; of the whole document `it`."""
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return one_line(name.removeprefix("."), MOST_SHOWN) or "it"
