"""What becomes different in one direction of a running link; emulator/model/src/change.rs is the same in Rust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, make_dataclass, replace
from typing import Any, ClassVar, get_type_hints

from ewan.labs.base.typed import read_typed
from ewan.labs.link.direction import TABLE, Direction
from ewan.labs.link.row import Row

_ORDER = sorted(TABLE, key=lambda key: 0 if key == "rate" else 1 if TABLE[key].line else 2)
LIVE: Mapping[str, Row] = {key: TABLE[key] for key in _ORDER if TABLE[key].live}
"""The rows of all keys that change while a link runs, in the order in which a change tells them."""

_HINTS = get_type_hints(Direction)
_VALUES: list[tuple[str, Any, None]] = [
    (name, _HINTS[name] | None, None) for name in dict.fromkeys(name for row in LIVE.values() for name in row.plan)
]


class Change(
    make_dataclass(  # type: ignore[misc]
        "_Values", [*_VALUES, ("restart_trace", bool | None, None)], frozen=True, slots=True
    )
):
    """Values of fields of a `Direction`, and whether its trace begins anew; what is None stays as it is."""

    __slots__ = ()
    SPARSE: ClassVar[bool] = True

    def applied(self, direction: Direction) -> Direction:
        """What a direction is after it."""
        return replace(direction, **{key: value for key, value in self._named().items() if key != "restart_trace"})

    def to_data(self) -> dict[str, Any]:
        """As the control socket, a program and the journal of a kernel link say it: without what stays."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Change:
        """The change that `to_data` wrote; ValueError for what is none."""
        change = read_typed(cls, dict(data), "change")
        assert isinstance(change, cls)
        return change

    def _named(self) -> dict[str, Any]:
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}


def words(change: Change) -> str:
    """A change of a running link in the words of `ewan set`."""
    said = [
        f"{key}={row.said(change)}"
        for key, row in LIVE.items()
        if row.words is not None and any(value is not None for value in row.values(change))
    ]
    return " ".join([*said, "trace=restarted"] if change.restart_trace else said)
