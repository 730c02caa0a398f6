"""The times at which the steps of a run were active, and at which links were changed.

In: a request; the flows, commands and events of one run. Out: a drawing with a row for each step, and its CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import polars as pl

from ewan.analysis.figures import style
from ewan.analysis.figures.request import FigureError, Request
from ewan.analysis.figures.style import Drawing, Row
from ewan.analysis.flows import active
from ewan.analysis.load import RunResults
from ewan.analysis.rundata import RunData
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import written
from ewan.labs.record.events import EventOutcome
from ewan.labs.record.quantities import ROLES

Span = tuple[int, int]


class Happenings(NamedTuple):
    """The rows of the figure. `steps`: by name, the role and the spans in which any of its flows or commands was active
    (ns); `events`: the time and the name of each."""

    steps: Mapping[str, tuple[str, list[Span]]]
    events: list[tuple[int, str]]


class _Command(Struct, forbid_unknown_fields=False):
    node: str
    argv: tuple[str, ...]
    started_ns: int | None = None
    ended_ns: int | None = None


class _Commands(Struct, forbid_unknown_fields=False):
    commands: tuple[_Command, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """The figure that is being made: of the run that is named, else of the first."""

    request: Request

    @cached_property
    def number(self) -> int:
        """The number of the run that is drawn."""
        numbers = [number for place in self.request.layout.places for number in place.point.runs]
        return self.request.spec.run or min(numbers)

    def wants(self, run: RunResults) -> bool:
        """Return whether the figure needs this run."""
        return run.number == self.number

    def gather(self, run: RunResults, data: RunData) -> Happenings:
        """The spans of steps and commands of a run, and its changes of links."""
        steps: dict[str, tuple[str, list[Span]]] = {}
        for (step, role), own in data.all_flows.group_by("step", "role", maintain_order=True):
            steps[str(step)] = (str(role), active(own.filter(pl.col("started_ns").is_not_null())))
        done = run.document(_Commands, "commands.json")
        for each in done.commands if done else ():
            if each.started_ns is not None and each.ended_ns is not None:
                name = f"{each.node}: {each.argv[-1] if each.argv else ''}"[:40]
                steps.setdefault(name, ("command", []))[1].append((max(each.started_ns, 0), each.ended_ns))
        events = [(each.applied_ns, words_of(each)) for each in run.events if each.applied_ns is not None]
        return Happenings(steps, sorted(events))

    def draw(self, gathered: Mapping[int, Happenings]) -> Drawing:
        """FigureError where nothing happened in the run."""
        request, spec = self.request, self.request.spec
        found = gathered.get(self.number)
        if found is None or not found.steps:
            raise FigureError(f'"{spec.line}": run {self.number} has no flows: write the number of another run')
        roles = [*ROLES, "command"]
        with style.sheet(1, 0.5 + 0.22 * len(found.steps), 1, look=request.look) as (figure, axes):
            axis = axes[0]
            seen: set[str] = set()
            for row, (role, spans) in enumerate(found.steps.values()):
                number = roles.index(role) if role in roles else 0
                bars = [(start / NS_PER_SECOND, (end - start) / NS_PER_SECOND) for start, end in spans]
                label = role if role not in seen else None
                colour, hatch = style.COLOURS[number], style.HATCHES[number]
                axis.broken_barh(bars, (row - 0.36, 0.72), facecolor=colour, hatch=hatch, edgecolor=style.INK,
                                 linewidth=0.5, label=label)  # fmt: skip
                seen.add(role)
            for number, (moment, _) in enumerate(found.events):
                axis.axvline(moment / NS_PER_SECOND, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)),
                             label="link changed" if number == 0 else None)  # fmt: skip
            tops = dict.fromkeys(moment for moment, _ in found.events)
            for moment in tops:
                words = dict.fromkeys(each for at, each in found.events if at == moment)
                axis.annotate("\n".join(words), (moment / NS_PER_SECOND, 1), xycoords=("data", "axes fraction"),
                              xytext=(2, 2), textcoords="offset points", fontsize=0.85 * request.look.font)  # fmt: skip
            axis.set_yticks(range(len(found.steps)), list(found.steps))
            axis.set_ylim(len(found.steps) - 0.4, -0.6)
            axis.grid(False, axis="y")
            begin = (spec.from_ns or 0) / NS_PER_SECOND
            axis.set_xlim(begin, spec.to_ns / NS_PER_SECOND if spec.to_ns is not None else None)
            axis.set_xlabel("time (s)")
            style.legend(figure, axes)
            rows: list[Row] = [
                {"step": step, "role": role, "begin (s)": start / NS_PER_SECOND, "end (s)": end / NS_PER_SECOND}
                for step, (role, spans) in found.steps.items()
                for start, end in spans
            ]
            rows += [{"step": words, "role": "event", "begin (s)": at / NS_PER_SECOND} for at, words in found.events]
            said = "When flows of each step were under way, and when links were changed. " + request.made_of(
                [self.number]
            )
            title = spec.title or "Steps and events"
            return style.drawn(figure, spec.file, title, said, rows, request.kinds)


def words_of(event: EventOutcome) -> str:
    """`core: rate 10 Mbit/s`, `core down when mode DRAIN of bulk`."""
    return _change(event) + (f" when {event.when}" if event.when else "")


def _change(event: EventOutcome) -> str:
    link = event.link
    if event.down is not None:
        return f"{link} {'down' if event.down else 'up'}"
    parts = []
    for key, value in sorted(codec.data_of(event.change).items()):
        name, _, unit = key.rpartition("_")
        units = {"bps": "bit/s", "ns": "ns", "bytes": "B"}
        plain = isinstance(value, int | float) and unit in units
        parts.append(f"{name} {written(value, units[unit])}" if plain else name or key)
    return f"{link}: {', '.join(parts)}" if parts else f"{link} changed"
