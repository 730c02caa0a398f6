"""What a description says of its hosts by name or pattern, each host once.

Comes in: a spec and the lab's hosts. Goes out: for each host that is named, what is written of it, and where.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from labs.spec import Spec, fields
from labs.spec.patterns import PatternError, members
from labs.spec.source import Path


def written(spec: Spec, known: Collection[str]) -> dict[str, tuple[Path, fields.Host]]:
    """By host; DescriptionError for a name that is no host, and for a host of which two patterns speak."""
    of: dict[str, str] = {}
    hosts = spec.description.hosts
    for pattern in hosts:
        for name in names(spec, ("hosts", pattern), pattern, known):
            if name in of:
                raise spec.error(("hosts", pattern), f'says of {name} what "{of[name]}" says too: write it once')
            of[name] = pattern
    return {name: (("hosts", pattern), hosts[pattern]) for name, pattern in of.items()}


def names(spec: Spec, path: Path, pattern: str | Sequence[str], known: Collection[str]) -> list[str]:
    """The hosts that a pattern names."""
    try:
        return members(pattern, {}, known)
    except PatternError as error:
        raise spec.error(path, str(error)) from None
