"""A change in one direction of a running link; emulator/model/src/change.rs is the same in Rust."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from msgspec import defstruct
from msgspec.structs import asdict

from ewan.labs.base.codec import Struct, replace
from ewan.labs.link.direction import TABLE
from ewan.labs.link.keys import Direction
from ewan.labs.link.row import KeyRow

_ORDER = sorted(TABLE, key=lambda key: 0 if key == "rate" else 1 if TABLE[key].line else 2)
LIVE: Mapping[str, KeyRow] = {key: TABLE[key] for key in _ORDER if TABLE[key].live}
"""The rows of all keys that change while a link runs, in the order in which a change tells them."""

_HINTS = get_type_hints(Direction)
_VALUES: list[tuple[str, Any, None]] = [
    (name, _HINTS[name] | None, None) for name in dict.fromkeys(name for row in LIVE.values() for name in row.plan)
]


class Change(
    defstruct("_Values", [*_VALUES, ("restart_trace", bool | None, None)], bases=(Struct,))  # type: ignore[misc]
):
    """Values of fields of a `Direction`, and whether its trace begins anew; a value of None stays as it is.

    The control socket, a program and the journal of a kernel link say it without what stays.
    """

    def applied(self, direction: Direction) -> Direction:
        """The direction after this change."""
        values = {name: value for name, value in asdict(self).items() if value is not None and name != "restart_trace"}
        return replace(direction, **values)


def words(change: Change) -> str:
    """A change of a running link in the words of `ewan lab set`."""
    said = [
        f"{key}={row.said(change)}"
        for key, row in LIVE.items()
        if row.words is not None and any(value is not None for value in row.values(change))
    ]
    return " ".join([*said, "trace=restarted"] if change.restart_trace else said)
