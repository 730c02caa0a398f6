"""Finds the hosts and nodes that a description names, by name or pattern, each at most once.

Comes in: a spec and the lab's hosts or nodes. Goes out: for each that is named, its written value and the path of that
value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from ewan.labs.base.source import Path
from ewan.labs.spec import Spec, fields
from ewan.labs.spec.patterns import PatternError, members

Written = TypeVar("Written")


def written(spec: Spec, known: Collection[str]) -> dict[str, tuple[Path, fields.Host]]:
    """By host; DescriptionError for a name that is no host, and for a host of which two patterns speak."""
    return by_name(spec, "hosts", spec.description.hosts, known)


def by_name(
    spec: Spec, key: str, patterns: Mapping[str, Written], known: Collection[str]
) -> dict[str, tuple[Path, Written]]:
    """The value below `key`, and its path, for each node that the patterns name; a node that two patterns name is an
    error."""
    of: dict[str, str] = {}
    for pattern in patterns:
        for name in names(spec, (key, pattern), pattern, known):
            if name in of:
                raise spec.error((key, pattern), f'says of {name} what "{of[name]}" says too: write it once')
            of[name] = pattern
    return {name: ((key, pattern), patterns[pattern]) for name, pattern in of.items()}


def names(spec: Spec, path: Path, pattern: str | Sequence[str], known: Collection[str]) -> list[str]:
    """The nodes that a pattern names."""
    try:
        return members(pattern, {}, known)
    except PatternError as error:
        raise spec.error(path, str(error)) from None
