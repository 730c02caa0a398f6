"""The program of a run in its lab: preparations, probes, then traffic, commands and changes of links side by side.
Pure.

In: a probe request, a traffic request, commands with their nodes and start times, changes of links with their times,
and the preparations. Out: the JSON that `ewan-node init` (virtual clock) and `ewan-node batch` (live clock) execute,
the same in both.
"""

from __future__ import annotations

import hashlib

from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct, replace
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.record.events import Event
from ewan.labs.record.traffic import TrafficRequest
from ewan.labs.runtime.probe_documents import ProbeRequest


class Command(Struct):
    """A program and its arguments in a node, `at_ns` after T0; a service is ended when all others have ended.

    `ready_port`: a service is ready when this port listens in its node, and then its step counts as ended for others.
    `step`: the number of the step that it is of. `after`: steps that must have ended; `at_ns` counts from then.
    `number`: in the whole program, from 0, where this is a machine's part of it; None: its place. `own_sockets`: its
    sockets are recorded, and those of the processes that it starts.
    """

    node: str
    argv: tuple[str, ...]
    at_ns: int = 0
    service: bool = False
    ready_port: int | None = None
    step: int | None = None
    after: tuple[int, ...] = ()
    number: int | None = None
    own_sockets: bool = False

    @property
    def ends_step(self) -> bool:
        """Return whether its step has ended, for those that wait for it, when it has, or is ready."""
        return not self.service or self.ready_port is not None


class Preparation(Struct):
    """A program and its arguments in a node, that runs before the probe; one that fails ends the run."""

    node: str
    argv: tuple[str, ...]


class DisturbanceWatch(Struct):
    """The interval at which disturbances of a live lab's links are counted from T0 on. A packet that leaves a link
    later than `late_ns` after its due time is late. See labs/record/disturbances.py."""

    every_ns: int
    late_ns: int


class CountedFlows(Struct):
    """The links that count each flow apart, at most so many at a time in each direction. Flows that have one of `ports`
    at either end are added up by their addresses, their protocol and this port, and keep their place."""

    links: tuple[str, ...]
    most: int
    ports: tuple[int, ...] = ()


class KernelModule(Struct):
    """A module that the virtual kernel loads before the lab is made, compiled of its source for that kernel; in the
    live clock it is this machine's kernel, while the program runs. `controls`: the congestion controls that it
    registers; `parameters`: as insmod takes them, `alpha=2 beta=3`."""

    source: ModuleSource
    controls: tuple[str, ...] = ()
    parameters: str = ""

    @property
    def name(self) -> str:
        """The name that the kernel knows it by, `tcp_mine`."""
        return self.source.name

    @property
    def key(self) -> str:
        """A text that modules of equal sources and parameters share, and no others."""
        return f"{self.source.digest} {self.parameters}"


class Controller(Struct):
    """A program that sets the windows of flows, beside the virtual kernel (labs/runtime/controllers.py). `argv`: its
    words; a Python file runs with this Python.

    `files`: its files by their paths in the folder in which it starts behind a wall, as the commands of a lab do; None:
    it starts in the current directory, without a wall.
    """

    argv: tuple[str, ...]
    files: dict[str, bytes] | None = None

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal digits, of its words and all files with their paths."""
        files = (part for name, text in (self.files or {}).items() for part in (name.encode(), text))
        parts = [*(word.encode() for word in self.argv), b"", *files]
        return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


class Program(Document, tag="ewan-program/1"):
    """`longest_ns`: how long after T0 commands may run. `expected_ns`: about how long all of it takes, for progress.

    `traffic` is a request for `ewan-node traffic`, with the same T0. `watch_ns`: the links' counters are read so often
    from T0 on, and at the end; 0: never. `disturbances`: how what disturbs them is watched; the virtual clock watches
    nothing. `flows`: the links that count flows, which are read at the same times. `drops`: the counters of hosts and
    routers whose growth is recorded (labs/record/host_drops.py).
    `elsewhere`: steps whose ends other machines tell, where this is a machine's part. `needs`: files and
    directories of this machine, by absolute paths, that commands read in the virtual clock; where symbolic links are on
    the way, what they lead to is among them. `modules`: what the virtual kernel loads; where this is not None, init
    records the congestion controls that the kernel has. `controller`: the program that sets the windows of the
    congestion control `external`. All ends when traffic
    and commands (services apart) have ended: an event whose time comes later is not made.
    """

    probe: ProbeRequest | None = None
    commands: tuple[Command, ...] = ()
    longest_ns: int = 0
    expected_ns: int = 0
    prepare: tuple[Preparation, ...] = ()
    traffic: TrafficRequest | None = None
    events: tuple[Event, ...] = ()
    watch_ns: int = 0
    disturbances: DisturbanceWatch | None = None
    flows: CountedFlows | None = None
    drops: tuple[str, ...] = ()
    elsewhere: tuple[int, ...] = ()
    needs: tuple[str, ...] = ()
    modules: tuple[KernelModule, ...] | None = None
    controller: Controller | None = None

    @property
    def sources(self) -> dict[str, dict[str, bytes]]:
        """The files of each module and of the controller, by a name with the beginning of their SHA-256."""
        found = {f"{each.name}-{each.source.digest[:8]}": each.source.files for each in self.modules or ()}
        if self.controller is not None:
            alone = replace(self.controller, argv=())
            found[f"controller-{alone.digest[:8]}"] = self.controller.files or {}
        return found

    def to_json(self) -> bytes:
        """The program as `emulator/batch/src` reads it."""
        return codec.document(replace(self, expected_ns=0))


def from_json(text: bytes, expected_ns: int) -> Program:
    """The program whose `to_json` is `text`; ValueError for another format, unknown keys and wrong types. `expected_ns`
    is not in the file."""
    found = codec.decode(Program, text, "program")
    if found.expected_ns:
        raise ValueError("program has an unknown key 'expected_ns'")
    words = [*(each.argv for each in found.commands), *(each.argv for each in found.prepare)]
    if not all(words):
        raise ValueError("the program has a command without words")
    return replace(found, expected_ns=expected_ns)
