"""JSON data as annotated types: dataclasses, tuples of one type, unions, literals, plain values.

In: a type and data as a JSON parser gives it. Out: a value of that type, or a ValueError that names the place in the
data: an unknown or missing key, an unknown kind, a value of the wrong type. A union of dataclasses is told apart by
the key `kind`, which is a literal in each of them; one of a dataclass and one that extends it by the keys that only the
latter has. A dataclass with `SPARSE: ClassVar[bool] = True` may lack keys that have defaults; where SPARSE is a set of
names, these keys alone. The readers are made once for each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

MOST_SHOWN = 80  # characters of a value that is wrong

KIND = "kind"
"""The key that tells the members of a union of dataclasses apart."""

_Reader = Callable[[Any], Any]


class _WrongDataError(Exception):
    """`steps` is the way to the value, the last step first."""

    def __init__(self, what: str, *steps: str) -> None:
        self.what = what
        self.steps = list(steps)


def read_typed(kind: Any, data: Any, where: str) -> Any:
    """`data` as the annotated type `kind`; ValueError that names the place below `where`."""
    try:
        return _reader(kind)(data)
    except _WrongDataError as wrong:
        place = where + "".join(reversed(wrong.steps))
        raise ValueError(f"{place} {wrong.what}") from None


@cache
def _reader(kind: Any) -> _Reader:
    if isinstance(kind, type) and is_dataclass(kind):
        return _of_dataclass(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _of_tuple(parts[0])
    if origin is Literal:
        return _of_literal(parts)
    if origin in (dict, Mapping):
        return _of_mapping(parts[1])
    words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
    if words:  # a word of a list, or nothing
        return _of_literal((*words, None)) if NoneType in parts else _of_literal(tuple(words))
    tagged = [part for part in parts if is_dataclass(part)]
    return _of_union(tagged, frozenset(parts) - frozenset(tagged)) if tagged else _of_plain(frozenset(parts or (kind,)))


def _of_dataclass(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    names = {field.name for field in fields(kind)}
    readers = [(field.name, _reader(hints[field.name])) for field in fields(kind) if field.init]
    fixed = [(field.name, _reader(hints[field.name])) for field in fields(kind) if not field.init]
    sparse = getattr(kind, "SPARSE", False)
    optional = {f.name for f in fields(kind) if f.default is not MISSING or f.default_factory is not MISSING}
    needed = names - (optional & (names if sparse is True else sparse or set()))
    by_keyword = sparse or any(field.kw_only for field in fields(kind))

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _WrongDataError("is no object")
        if not needed <= data.keys() <= names:
            key = sorted(data.keys() - names or needed - data.keys())[0]
            raise _WrongDataError(f"has {'an unknown' if key in data else 'no'} key {key!r}")
        values = []
        name = ""
        try:
            if by_keyword:
                given = {}
                for name, read_value in readers:
                    if name in data:
                        given[name] = read_value(data[name])
            else:
                for name, read_value in readers:
                    values.append(read_value(data[name]))
            for name, read_value in fixed:
                read_value(data[name])
        except _WrongDataError as wrong:
            wrong.steps.append(f".{name}")
            raise
        return kind(**given) if by_keyword else kind(*values)

    return read


def _of_tuple(part: Any) -> _Reader:
    read_item = _reader(part)

    def read(data: Any) -> Any:
        if not isinstance(data, list):
            raise _WrongDataError("is no list")
        items: list[Any] = []
        try:
            for item in data:
                items.append(read_item(item))
        except _WrongDataError as wrong:
            wrong.steps.append(f"[{len(items)}]")
            raise
        return tuple(items)

    return read


def _of_literal(allowed: tuple[Any, ...]) -> _Reader:
    def read(data: Any) -> Any:
        if data not in allowed:
            raise _wrong_value(data)
        return data

    return read


def _of_mapping(part: Any) -> _Reader:
    if get_origin(part) is not None or is_dataclass(part):
        read_value = _reader(part)

        def read_each(data: Any) -> Any:
            if not isinstance(data, dict):
                raise _wrong_value(data)
            return {key: read_value(value) for key, value in data.items()}

        return read_each

    def read(data: Any) -> Any:
        if not isinstance(data, dict) or not (part is Any or all(isinstance(value, part) for value in data.values())):
            raise _wrong_value(data)
        return data

    return read


def _of_plain(allowed: frozenset[Any]) -> _Reader:
    def read(data: Any) -> Any:
        if type(data) not in allowed:
            raise _wrong_value(data)
        return data

    return read


def _of_union(tagged: list[Any], plain: frozenset[Any]) -> _Reader:
    if not plain and len(tagged) == 2 and issubclass(tagged[1], tagged[0]):
        return _of_extended(*tagged)
    readers = {name: _reader(kind) for kind in tagged for name in kinds(kind)}
    if len(tagged) == 1 and plain == {NoneType}:
        (only,) = tagged
        read_only = _reader(only)
        return lambda data: None if data is None else read_only(data)

    def read(data: Any) -> Any:
        if type(data) in plain:
            return data
        if not isinstance(data, dict):
            raise _WrongDataError("is no object")
        if KIND not in data:
            raise _WrongDataError(f"has no key {KIND!r}")
        found = data[KIND]
        if not isinstance(found, str) or found not in readers:
            raise _WrongDataError(f"is {_shown(found)}: one of {', '.join(readers)}", f".{KIND}")
        return readers[found](data)

    return read


def _of_extended(base: Any, wider: Any) -> _Reader:
    read_base, read_wider = _reader(base), _reader(wider)
    more = {field.name for field in fields(wider)} - {field.name for field in fields(base)}
    return lambda data: (read_wider if isinstance(data, dict) and not more.isdisjoint(data) else read_base)(data)


def kinds(tagged: Any) -> tuple[str, ...]:
    """What the key `kind` may say in a dataclass, or in a union of dataclasses."""
    if is_dataclass(tagged):
        return get_args(get_type_hints(tagged).get(KIND))
    return tuple(name for part in get_args(tagged) for name in kinds(part))


def _wrong_value(data: Any) -> _WrongDataError:
    return _WrongDataError(f"is {_shown(data)}")


def _shown(data: Any) -> str:
    return repr(data)[:MOST_SHOWN]
