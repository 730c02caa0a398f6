"""What a run does in its lab: preparations, probes, then traffic, commands and changes of links side by side. Pure.

In: a probe request, a traffic request, commands with their nodes and start times, changes of links with their times,
and what must be done before all that. Out: the JSON that `ewan-node init` (virtual clock) and `ewan-node batch` (live
clock) execute, the same in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import orjson

from ewan.labs.link import Change

FORMAT = "ewan-program/1"


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments in a node, `at_ns` after T0; a service is ended when all others have ended.

    `step`: the number of the step that it is of. `after`: steps that must have ended; `at_ns` counts from then.
    `number`: in the whole program, from 0, where this is a machine's part of it; None: its place.
    """

    SPARSE: ClassVar[bool] = True
    node: str
    argv: tuple[str, ...]
    at_ns: int = 0
    service: bool = False
    step: int | None = None
    after: tuple[int, ...] = ()
    number: int | None = None

    def to_data(self) -> dict[str, Any]:
        """As the program says it; what is absent is left out."""
        data: dict[str, Any] = {"node": self.node, "argv": self.argv, "at_ns": self.at_ns, "service": self.service}
        data |= {} if self.step is None else {"step": self.step}
        data |= {} if self.number is None else {"number": self.number}
        return data | ({"after": self.after} if self.after else {})


@dataclass(frozen=True, slots=True)
class Preparation:
    """A program and its arguments in a node, that runs before the probe; one that fails ends the run."""

    node: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """One direction of a link changes `at_ns` after T0, as `ewan.labs.change.compile_change` says.

    With `down` the whole link goes down (true) or comes back (false) instead; direction and change mean nothing then.
    """

    at_ns: int
    link: str
    direction: Literal["forward", "backward"]
    change: Change
    down: bool | None = None

    def to_data(self) -> dict[str, Any]:
        """As the program says it."""
        return {**{field.name: getattr(self, field.name) for field in fields(self)}, "change": self.change.to_data()}


@dataclass(frozen=True, slots=True)
class DisturbanceWatch:
    """What disturbs the links of a live lab is counted so often from T0 on; what leaves a link later than `late_ns`
    after its due time is late. See labs/record/disturbances.py."""

    every_ns: int
    late_ns: int


@dataclass(frozen=True, slots=True)
class Program:
    """`longest_ns`: how long after T0 commands may run. `expected_ns`: about how long all of it takes, for progress.

    `traffic` is a request for `ewan-node traffic`, with the same T0. `watch_ns`: the links' counters are read so often
    from T0 on, and at the end; 0: never. `disturbances`: how what disturbs them is watched; the virtual clock watches
    nothing. `drops`: of these counters of hosts and routers is told how much they grew (labs/record/host_drops.py).
    `elsewhere`: steps whose ends other machines tell, where this is a machine's part. `needs`: files and
    directories of this machine, by absolute paths, that commands read in the virtual clock; where symbolic links are on
    the way, what they lead to is among them. All ends when traffic
    and commands (services apart) have ended: an event whose time comes later is not made.
    """

    probe: Mapping[str, Any] | None = None
    commands: tuple[Command, ...] = ()
    longest_ns: int = 0
    expected_ns: int = 0
    prepare: tuple[Preparation, ...] = ()
    traffic: Mapping[str, Any] | None = None
    events: tuple[Event, ...] = ()
    watch_ns: int = 0
    disturbances: DisturbanceWatch | None = None
    drops: tuple[str, ...] = ()
    elsewhere: tuple[int, ...] = ()
    needs: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """The program as `labs/node/src/batch` reads it; what is absent there is left out."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "probe": self.probe,
            "commands": [command.to_data() for command in self.commands],
            "longest_ns": self.longest_ns,
        }
        if self.prepare:
            document["prepare"] = self.prepare
        if self.traffic is not None:
            document["traffic"] = self.traffic
        if self.events:
            document["events"] = [event.to_data() for event in self.events]
        if self.watch_ns:
            document["watch_ns"] = self.watch_ns
        if self.disturbances is not None:
            document["disturbances"] = self.disturbances
        if self.drops:
            document["drops"] = self.drops
        if self.elsewhere:
            document["elsewhere"] = self.elsewhere
        if self.needs:
            document["needs"] = self.needs
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
