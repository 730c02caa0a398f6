"""One direction's settings put together from all the places where a description may say them.

Comes in: groups of keys and where each is written, the most general first. Goes out: what holds, and where it was
written, so that a refusal can point there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ewan.labs import traces
from ewan.labs.base.source import Path
from ewan.labs.base.units import Duration, Rate
from ewan.labs.link.delay import DelayFile
from ewan.labs.link.keys import ROWS, DirectionKeys
from ewan.labs.link.trace import TraceKeys


@dataclass(frozen=True, slots=True, eq=False)
class DirectionSettings:
    """One direction: its written values, and their places; `base` is where the rest would be written."""

    base: Path
    rate: Rate
    """As written, the mean of a trace, or the default."""
    written: DirectionKeys
    paths: Mapping[str, Path]

    def path(self, key: str) -> Path:
        """The path at which `key` is written, or would be."""
        return self.paths.get(key, (*self.base, key))

    def traced(self, column: traces.Column) -> traces.Trace | None:
        """The trace that says a column; None where none does."""
        trace = None if self.written.trace is None else self.written.trace.trace
        return trace if trace is not None and column in trace.columns else None

    def saying(self, column: traces.Column) -> list[str]:
        """The keys that were written and say what this column of a trace says."""
        return [key for key, row in ROWS.items() if row.trace == column and key in self.paths]

    @property
    def delay_ns(self) -> int | None:
        """One-way base delay if it was written; the mean of a table or of a trace."""
        delay, traced = self.written.delay, self.traced("delay")
        if traced is not None:
            return traces.mean(traced, "delay")
        if isinstance(delay, DelayFile):
            return delay.mean_ns
        return delay.ns if isinstance(delay, Duration) else None

    @property
    def impaired(self) -> bool:
        """Return whether the direction needs an emulator: a network card has only a rate and a drop-tail queue."""
        return any(not ROWS[key].on_card(getattr(self.written, key)) for key in self.paths)

    @property
    def why_impaired(self) -> Path | None:
        """The path of the first key, in alphabetical order, that needs an emulator."""
        keys = (key for key in sorted(self.paths) if not ROWS[key].on_card(getattr(self.written, key)))
        return next((self.paths[key] for key in keys), None)


Layer = tuple[Path, DirectionKeys]
"""A group of keys and where it is written."""


def settings(base: Path, default_rate: Rate, layers: Sequence[Layer]) -> DirectionSettings:
    """The settings of one direction, from all that is written about it, the most general first: the last one wins."""
    values: dict[str, object] = {}
    paths: dict[str, Path] = {}
    for path, layer in layers:
        if layer.trace is not None:
            for key in _said(layer.trace):
                values.pop(key, None)
                paths.pop(key, None)
        for key in layer.model_fields_set & DirectionKeys.model_fields.keys():
            value = getattr(layer, key)
            if value is not None:
                values[key] = value
                paths[key] = (*path, key)
    written = DirectionKeys.model_construct(**values)  # type: ignore[arg-type]
    way = DirectionSettings(base, written.rate or default_rate, written, paths)
    traced = way.traced("rate")
    return way if traced is None else replace(way, rate=Rate(traces.mean(traced, "rate")))


def _said(trace: TraceKeys) -> Iterable[str]:
    """Keys in whose place a trace comes that is written nearer to the link than they are."""
    return (key for key, row in ROWS.items() if row.trace in trace.trace.columns)
