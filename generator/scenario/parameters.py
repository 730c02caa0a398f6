"""Parameters of a scenario: `${name}` in its text, sweeps over their values, scales, and words of the command line.

Comes in: the text. Goes out: for each point of the sweep the same data with values in place of names, and `Places`
that still know the line of each. Numbers that are put in are numbers again: `${pairs}` may stand wherever `4` may.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ewan.generator.scenario.fields import parameter
from ewan.labs.base import shell
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.source import DescriptionError, Path, Place, Places, read_yaml, scalar, spell
from ewan.labs.base.wording import nearest
from ewan.labs.spec.patterns import split

# `${name}` while YAML is read: as it is written, it would end a plain word within braces.
_BEGIN, _END = "\ue000", "\ue001"
_REFERENCE = re.compile(rf"{_BEGIN}([^{_BEGIN}{_END}]*){_END}")
_WRITTEN = re.compile(r"\$\{([^{}\n]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")

# Where values are given, not used.
_FIXED = ("name", "parameters", "sweep", "scales", "seeds")
SEED = "seed"
MOST_RUNS = 100_000

Point = dict[str, str | int]


def marked(text: str) -> str:
    """`text` with its references to parameters as they stand in a scenario's data."""
    return _WRITTEN.sub(rf"{_BEGIN}\1{_END}", text)


def unmarked(text: str) -> str:
    """The text that `marked` made, as it was written."""
    return _REFERENCE.sub(r"${\1}", text)


def read(text: str, file: str) -> tuple[dict[str, JsonValue], Places]:
    """The scenario's data, with references to parameters still in it."""
    raw, places = read_yaml(marked(text), file, "lab: dumbbell")
    check(raw, places)
    return raw, places


def check(raw: Any, places: Places) -> None:
    """DescriptionError for data of no scenario, and for parameters in places where they cannot be."""
    if not isinstance(raw, dict):
        raise places.error((), 'a scenario consists of keys: write "lab:" and "steps:"')
    for path, place in places.known.items():
        if _REFERENCE.search(spell(path)):
            raise DescriptionError(f"{place.prefix}{_shown(place.key)}: a key is no parameter: write it out")
        if path and path[0] in _FIXED and place.text is not None and _REFERENCE.search(place.text):
            message = f"{_shown(place.text)} is used where values are given: write the value"
            raise DescriptionError(f"{place.prefix}{place.key}: {message}")


def used(raw: Any) -> set[str]:
    """Names that are referred to."""
    if isinstance(raw, dict):
        return {name for inner in raw.values() for name in used(inner)}
    if isinstance(raw, list):
        return {name for inner in raw for name in used(inner)}
    return set(_REFERENCE.findall(raw)) if isinstance(raw, str) else set()


FULL = "full"
"""The size of a scenario as it is written, without one of its scales."""


def scaled(raw: dict[str, JsonValue], places: Places, scale: str | None) -> tuple[dict[str, JsonValue], Places]:
    """The data with the keys of a scale in place of its own; `parameters` are replaced one by one."""
    known: Any = raw.get("scales") or {}
    if scale is None or (scale == FULL and FULL not in known):
        return raw, places
    if scale not in known:
        has = nearest(scale, [*known, FULL])
        raise DescriptionError(f'--size "{scale}": unknown size, {has}')
    raw, moved = dict(raw), Places(places.file, dict(places.known))
    for key, value in (known[scale] or {}).items():
        if key == "parameters" and isinstance(value, dict):
            raw[key] = {**(own if isinstance(own := raw.get(key), dict) else {}), **value}
            for name in value:
                _move(moved, ("scales", scale, key, name), (key, name))
        elif key != "about":
            raw[key] = value
            _move(moved, ("scales", scale, key), (key,))
    return raw, moved


def _move(places: Places, source: Path, target: Path) -> None:
    for path in [path for path in places.known if path[: len(target)] == target]:
        del places.known[path]
    for path in [path for path in places.known if path[: len(source)] == source]:
        places.known[(*target, *path[len(source) :])] = places.known[path]


def points(raw: Mapping[str, JsonValue], places: Places, settings: Mapping[str, str]) -> tuple[list[Point], list[str]]:
    """All parameters of each point of the sweep, in order, and the names of those that vary or were set."""
    defaults = _group(raw.get("parameters"), ("parameters",), places)
    names = {**defaults}
    groups = _groups(raw.get("sweep"), places)
    for index, group in groups:
        for name in group:
            if name not in defaults and name not in used(raw):
                path = ("sweep", name) if index is None else ("sweep", index, name)
                raise places.error(path, f"unknown parameter, {_nearest(name, defaults)}")
            names.setdefault(name, 0)
    for name in [*defaults, *names]:
        if not _NAME.fullmatch(name) or name == SEED:
            path = ("parameters", name) if name in defaults else ("sweep", name)
            message = "is always there: write another name" if name == SEED else 'write a name like "pairs"'
            raise places.error(path, message)
    given: dict[str, list[str | int]] = {}
    for name, text in settings.items():
        if name not in names and name not in used(raw):
            raise DescriptionError(f"--set {name}={text}: unknown parameter, {_nearest(name, names)}")
        given[name] = [_typed(each, f"--set {name}={text}") for each in split(text)]
    varying = dict.fromkeys(name for _, group in groups for name in group)
    result: dict[tuple[Any, ...], Point] = {}
    all_axes = [
        {name: values for name, values in group.items() if name not in given} | given
        for _, group in groups or [(None, {})]
    ]
    count = sum(math.prod(len(values) for values in axes.values()) for axes in all_axes)
    if count > MOST_RUNS:
        raise places.error(("sweep",), f"stands for {count} runs of each seed: write at most {MOST_RUNS} in all")
    for axes in all_axes:
        for values in itertools.product(*axes.values()):
            point = {**defaults, **dict(zip(axes, values, strict=True))}
            result.setdefault(tuple(sorted(point.items(), key=lambda item: item[0])), point)
    return list(result.values()), list(dict.fromkeys([*varying, *given]))


def _typed(text: str, where: str) -> str | int:
    if not text:
        raise DescriptionError(f"{where}: is empty: write a value, or several with commas between")
    value = scalar(text)
    return parameter(text if value is None else value)


def _nearest(name: str, known: Mapping[str, JsonValue]) -> str:
    others = {each: value for each, value in known.items() if each != SEED}
    return nearest(name, known) if others else 'write it into "parameters:" too'


def _group(raw: Any, path: Path, places: Places) -> Point:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise places.error(path, 'is a group of keys: write names and values, like "{streams: 1}"')
    return {name: _parameter(value, (*path, name), places) for name, value in raw.items()}


def _parameter(value: Any, path: Path, places: Places) -> str | int:
    try:
        return parameter(value)
    except ValueError as error:
        raise places.error(path, str(error)) from None


def _groups(raw: Any, places: Places) -> list[tuple[int | None, dict[str, list[str | int]]]]:
    """Groups of a sweep, each with the values of its parameters."""
    if raw is None:
        return []
    listed = list(enumerate(raw)) if isinstance(raw, list) else [(None, raw)]
    if not listed:
        raise places.error(("sweep",), 'is empty: write values, like "{streams: [1, 2]}", or leave it out')
    groups: list[tuple[int | None, dict[str, list[str | int]]]] = []
    for index, group in listed:
        path: Path = ("sweep",) if index is None else ("sweep", index)
        if not isinstance(group, dict) or not group:
            raise places.error(path, 'write parameters with their values, like "{streams: [1, 2]}"')
        axes: dict[str, list[str | int]] = {}
        for name, values in group.items():
            several: Sequence[Any] = values if isinstance(values, list) else [values]
            if not several:
                raise places.error((*path, name), 'is empty: write values, like "[1, 2]"')
            axes[name] = [
                _parameter(value, (*path, name, at) if isinstance(values, list) else (*path, name), places)
                for at, value in enumerate(several)
            ]
        groups.append((index, axes))
    return groups


def put_in(
    raw: dict[str, JsonValue], places: Places, point: Mapping[str, str | int]
) -> tuple[dict[str, JsonValue], Places]:
    """The data with the values of `point`; errors show the value and the parameter that it is of."""
    known: dict[Path, Place] = {}
    for path, place in places.known.items():
        if place.text is None or not _REFERENCE.search(place.text):
            known[path] = place
            continue
        for name in _REFERENCE.findall(place.text):
            if name not in point:
                message = f"unknown parameter, {_nearest(name, point)}"
                if not name:
                    message = 'is no parameter: write "${name}", or in a command "$name" for a variable of the shell'
                raise DescriptionError(f"{place.prefix}{place.key}: ${{{name}}}: {message}")
        known[path] = Place(place.prefix, f"{place.key} {_shown(place.text)}", _filled(place.text, point))
    done = {key: value if key in _FIXED else _put(value, point, (key,)) for key, value in raw.items()}
    return done, Places(places.file, known)


def _put(raw: Any, point: Mapping[str, str | int], path: Path) -> Any:
    if isinstance(raw, dict):
        return {key: _put(value, point, (*path, key)) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_put(value, point, (*path, index)) for index, value in enumerate(raw)]
    if isinstance(raw, str) and _REFERENCE.search(raw):
        is_command = len(path) == 3 and path[0] == "steps" and path[2] == "run"
        return shell.put_in(raw, _REFERENCE, point) if is_command else scalar(_filled(raw, point))
    return raw


def _filled(text: str, point: Mapping[str, str | int]) -> str:
    return _REFERENCE.sub(lambda match: str(point[match[1]]), text)


def _shown(text: str) -> str:
    return _REFERENCE.sub(lambda match: f"${{{match[1]}}}", text)
