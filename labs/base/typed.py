"""JSON data as annotated types: dataclasses, tuples of one type, unions, literals, plain values.

In: a type and data as a JSON parser gives it. Out: a value of that type, or a ValueError that names the place in the
data: an unknown or missing key, an unknown kind, a value of the wrong type. `plain` gives the data of a value again.

A union of dataclasses is told apart by the key `kind`, or the one that `TAG: ClassVar[str]` names in each of them,
which is a literal there; one of a dataclass and one that extends it by the keys that only the latter has. A dataclass
with `SPARSE: ClassVar[bool] = True` may lack keys that have defaults; where SPARSE is a set of names, these keys alone.
`plain` leaves them out where they have their defaults. The key of a field whose name ends in `_` is the name without
it. Readers and writers are made once for each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

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
    """`data` as the annotated type `kind`; ValueError that names the place below `where`, which may be empty."""
    try:
        return _reader(kind)(data)
    except _WrongDataError as wrong:
        place = (where + "".join(reversed(wrong.steps))).removeprefix(".") or "it"
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
    if not tagged and len(parts) == 2 and NoneType in parts and (whole := _whole(parts)) is not None:
        read_whole = _reader(whole)
        return lambda data: None if data is None else read_whole(data)
    return _of_union(tagged, frozenset(parts) - frozenset(tagged)) if tagged else _of_plain(frozenset(parts or (kind,)))


def _whole(parts: tuple[Any, ...]) -> Any:
    """Of a list or a mapping that may be None: its type; None for other unions."""
    return next((part for part in parts if get_origin(part) in (tuple, dict, Mapping)), None)


def _key(field: Field[Any]) -> str:
    return field.name.removesuffix("_")


def _of_dataclass(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    names = {_key(field) for field in fields(kind)}
    readers = [(_key(field), _reader(hints[field.name])) for field in fields(kind) if field.init]
    fixed = [(_key(field), _reader(hints[field.name])) for field in fields(kind) if not field.init]
    argument_of = {_key(field): field.name for field in fields(kind)}
    needed = names - {_key(field) for field in _sparse(kind)}
    by_keyword = getattr(kind, "SPARSE", False) or any(field.kw_only for field in fields(kind))

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
                        given[argument_of[name]] = read_value(data[name])
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


def _sparse(kind: Any) -> list[Field[Any]]:
    """The fields that data may lack."""
    sparse = getattr(kind, "SPARSE", False)
    return [
        field
        for field in fields(kind)
        if (sparse is True or (sparse and field.name in sparse))
        and (field.default is not MISSING or field.default_factory is not MISSING)
    ]


def plain(value: Any) -> Any:
    """The JSON data of a typed value, for `orjson`: objects for dataclasses, lists for tuples."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is tuple or kind is list:
        shared: dict[int, Any] = {}
        return [_writer(cast(Any, type(each)))(each, shared) if is_dataclass(each) else plain(each) for each in value]
    if is_dataclass(kind):
        return _writer(kind)(value, {})
    return {key: plain(each) for key, each in value.items()} if isinstance(value, Mapping) else value


_SCALARS = frozenset((str, int, float, bool, NoneType))


@cache
def _writer(kind: Any) -> Callable[[Any, dict[int, Any]], dict[str, Any]]:
    """`shared`: by its identity, the data of what several values of a list have in common."""
    hints, keys = get_type_hints(kind), [_key(field) for field in fields(kind)]
    unsaid = [
        (_key(field), field.default if field.default is not MISSING else cast(Any, field).default_factory())
        for field in _sparse(kind)
    ]
    folded = [_key(field) for field in fields(kind) if not _is_scalar(hints[field.name])]
    # Of many flows each has many keys: they are got at once. `attrgetter` gives a tuple of two names or more.
    values = attrgetter(*(field.name for field in fields(kind)), "__class__", "__class__")

    def write(value: Any, shared: dict[int, Any]) -> dict[str, Any]:
        result = dict(zip(keys, values(value), strict=False))
        for key, default in unsaid:
            if result[key] == default:
                del result[key]
        for key in folded:
            if (each := result.get(key)) is not None:
                result[key] = found = shared.get(id(each)) or plain(each)
                shared[id(each)] = found
        return result

    return write


def _is_scalar(hint: Any) -> bool:
    """Whether all values of a type are strings, numbers, true, false or null."""
    return hint in _SCALARS or get_origin(hint) is Literal or (bool(get_args(hint)) and _all_scalar(hint))


def _all_scalar(union: Any) -> bool:
    return get_origin(union) in (Union, UnionType) and all(map(_is_scalar, get_args(union)))


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
    tag = getattr(tagged[0], "TAG", KIND)
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
        if tag not in data:
            raise _WrongDataError(f"has no key {tag!r}")
        found = data[tag]
        if not isinstance(found, str | bool | None) or found not in readers:
            raise _WrongDataError(f"is {_shown(found)}: one of {', '.join(map(str, readers))}", f".{tag}")
        return readers[found](data)

    return read


def _of_extended(base: Any, wider: Any) -> _Reader:
    read_base, read_wider = _reader(base), _reader(wider)
    more = {field.name for field in fields(wider)} - {field.name for field in fields(base)}
    return lambda data: (read_wider if isinstance(data, dict) and not more.isdisjoint(data) else read_base)(data)


def kinds(tagged: Any) -> tuple[Any, ...]:
    """What the key that tells them apart may say in a dataclass, or in a union of dataclasses."""
    if is_dataclass(tagged):
        hint: Any = get_type_hints(tagged).get(getattr(tagged, "TAG", KIND))
        return _WHOLE.get(hint) or get_args(hint)
    return tuple(name for part in get_args(tagged) for name in kinds(part))


_WHOLE: dict[Any, tuple[Any, ...]] = {NoneType: (None,), bool: (True, False)}
"""What a type may say that is no list of words."""


def _wrong_value(data: Any) -> _WrongDataError:
    return _WrongDataError(f"is {_shown(data)}")


def _shown(data: Any) -> str:
    return repr(data)[:MOST_SHOWN]
