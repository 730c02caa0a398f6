"""A lab, and what happens in it, put together in Python: its programs, flows and changes of links.

In: a topology and its settings, in the words of a description; calls that add steps and events. Out: a scenario with
these, and its runs. Nothing is executed before `Lab.run`. Mistakes are an `ewan.UserError` of one line."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ewan.experiments.api.run import LabFlow, LabProgram, RunResult, execute
from ewan.experiments.api.values import Time, as_written, port, time_text
from ewan.generator.scenario import Scenario, scenario
from ewan.labs import descriptions, host
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.errors import UserError
from ewan.labs.base.source import Places
from ewan.labs.base.wording import nearest
from ewan.labs.compile import compile as compile_spec
from ewan.labs.plan import Plan
from ewan.labs.record.schedule import Clock
from ewan.labs.spec import Spec, from_data
from ewan.labs.spec.names import SCENARIO

OWN_KEYS = {"lab", "steps", "events", "needs", "seeds"}
"""Keys of a scenario that the functions of a lab write."""
Direction = str
"""`"forward"`, `"backward"` or `"both"`."""


def lab(topology: str | Path | Mapping[str, object] = "dumbbell", **settings: object) -> Lab:
    """A lab: a template or a ready lab by its name, the path of a description, or the keys of a description.

    `settings` are those of the command line: `ewan.lab("dumbbell", rtt="100ms", rate="20Mbit/s", pairs=2)`. Raises
    UserError for what a description could not say.
    """
    if isinstance(topology, Mapping):
        raw = as_written({"name": "lab", **topology, **settings})
        assert isinstance(raw, dict)
        return Lab(from_data(raw, Places(), Path.cwd()))
    if not isinstance(topology, (str, Path)):
        raise UserError(f"{topology!r}: write the name of a topology, the path of a description, or its keys")
    given = {key.replace("_", "-"): str(value) for key, value in settings.items()}
    return Lab(descriptions.describe(str(topology), given, lambda line: None))


@dataclass(eq=False)
class LabNode:
    """A node of a lab: a host, a router or a switch. Get it by `lab.node("left1")` or `lab.left1`."""

    name: str
    _lab: Lab = field(repr=False)

    def start(
        self,
        command: str | Sequence[str],
        *,
        at: Time = 0,
        ready: int | str | None = None,
        service: bool | None = None,
        after: Sequence[LabProgram | LabFlow] | None = None,
        flows: Mapping[str, object] | None = None,
        name: str | None = None,
    ) -> LabProgram:
        """Start a program in this node, by a shell if `command` is text.

        `ready`: the port at which it listens, as `"udp:4433"`; the program is a service then. `service`: it is ended
        with the run. `after`: it starts when these have ended, or when those with `ready` listen; without it, it waits
        for all services with `ready` that were added before. `at` counts from then, or from the begin of the run.
        `flows`: its packets that are a flow of the run, as `{"port": 4433, "to": "right1"}`
        (docs/how-to/experiments/programs.md). `name`: the name of the step.
        """
        listed = isinstance(command, Sequence) and all(isinstance(word, str) for word in command)
        if not listed:
            raise UserError(f"{command!r}: write a command as text, or as a list of words")
        words = command if isinstance(command, str) else shlex.join(command)
        if not words.strip():
            raise UserError(f"{command!r}: is empty: write a command as text, or as a list of words")
        if sys.executable in words and sys.prefix.startswith("/tmp/"):
            self._lab.allow_reading(sys.prefix)  # /tmp in a node is the node's own
        step: dict[str, JsonValue] = {"on": self.name, "run": words}
        listens = None if ready is None else port(ready)
        if listens is not None:
            step["ready"] = listens
        is_service = ready is not None if service is None else service
        if is_service:
            step["service"] = True
        if flows is not None:
            step["flows"] = as_written(flows)
        made = LabProgram(self._lab._step_name(name or "command"), self.name, words, listens)
        self._lab._add(made, step, at, after)
        return made

    def send(
        self,
        to: LabNode | str,
        *,
        at: Time = 0,
        after: Sequence[LabProgram | LabFlow] | None = None,
        name: str | None = None,
        **keys: object,
    ) -> LabFlow:
        """Send by the lab's own generator: `lab.left1.send("right1", bulk="5MB", congestion="cubic")`.

        `keys`: those of a step of a scenario (docs/reference/scenario.md): `bulk`, `udp`, `quic`, `media` and others,
        `congestion`, `for` as `duration`. `at` and `after` as `start` has them.
        """
        sink = to.name if isinstance(to, LabNode) else to
        step: dict[str, JsonValue] = {"from": self.name, "to": sink}
        step |= {"for" if key == "duration" else key: as_written(value) for key, value in keys.items()}
        made = LabFlow(self._lab._step_name(name or "flow"))
        self._lab._add(made, step, at, after)
        return made


@dataclass(eq=False)
class LinkMoment:
    """A link at a time of the run. Get it by `lab.core.at("2s")`."""

    _link: LabLink
    _at: Time

    def set(self, *, duration: Time | None = None, direction: Direction = "both", **settings: object) -> None:
        """Change settings of the link: `set(loss="30%", duration="50ms")`.

        `duration`: then the link is again as it was just before; without it the change stays. `settings`: those of a
        link that change while a lab runs, as `rate`, `delay`, `loss`, `buffer`.
        """
        self._link.add(self._at, duration, {"direction": direction, **settings})

    def down(self, *, duration: Time | None = None) -> None:
        """Take the link down, and bring it back after `duration`."""
        self._link.add(self._at, duration, {"down": True})

    def up(self) -> None:
        """Bring the link back."""
        self._link.add(self._at, None, {"up": True})


@dataclass(eq=False)
class LabLink:
    """An emulated link of a lab. Get it by `lab.link("core")` or `lab.core`."""

    name: str
    _lab: Lab = field(repr=False)

    def at(self, time: Time) -> LinkMoment:
        """The link at `time` after the begin of the run, where its settings can change."""
        return LinkMoment(self, time)

    def add(self, at: Time, duration: Time | None, settings: Mapping[str, object]) -> None:
        """Add an event of this link to the lab's scenario."""
        event: dict[str, JsonValue] = {"at": time_text(at), "link": self.name}
        if duration is not None:
            event["for"] = time_text(duration)
        event |= {key: as_written(value) for key, value in settings.items()}
        self._lab.events.append(event)


class Lab:
    """A lab with its programs, flows and changes of links. Make it by `ewan.lab`.

    Nodes and links are attributes, too: `lab.left1`, `lab.core`.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.events: list[dict[str, JsonValue]] = []
        """The changes of links, as a scenario writes them."""
        self._steps: list[tuple[LabProgram | LabFlow, dict[str, JsonValue]]] = []
        self._captures: list[JsonValue] = []
        self._ready: list[str] = []
        self._needs: list[str] = []

    @property
    def name(self) -> str:
        """The name of the lab."""
        return self.spec.description.name or "lab"

    @cached_property
    def plan(self) -> Plan:
        """The lab as it is made: nodes, addresses, links with all their settings."""
        return compile_spec(self.spec, host.virtual_facts())

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the hosts, routers and switches."""
        return tuple(node.name for node in self.plan.nodes if node.kind != "emulator")

    @property
    def links(self) -> tuple[str, ...]:
        """The names of the emulated links."""
        return tuple(link.name for link in self.plan.links)

    @property
    def commands(self) -> tuple[LabProgram, ...]:
        """The programs that were added, in their order."""
        return tuple(step for step, _ in self._steps if isinstance(step, LabProgram))

    def node(self, name: str) -> LabNode:
        """A node by its name; UserError if there is none."""
        if name not in self.nodes:
            raise UserError(f"lab {self.name} has no node {name}: {nearest(name, self.nodes)}")
        return LabNode(name, self)

    def link(self, name: str) -> LabLink:
        """An emulated link by its name; UserError if there is none."""
        if name not in self.links:
            raise UserError(f"lab {self.name} has no emulated link {name}: {nearest(name, self.links)}")
        return LabLink(name, self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        written = name.replace("_", "-")
        for word in (name, written):
            if word in self.nodes:
                return LabNode(word, self)
            if word in self.links:
                return LabLink(word, self)
        known = (*self.nodes, *self.links)
        raise AttributeError(f"lab {self.name} has no node or link {name}: {nearest(name, known)}")

    def allow_reading(self, path: str | Path) -> None:
        """Let programs read a file or a folder beside the current directory and the system's."""
        self._needs.append(str(Path(path).absolute()))

    def capture(self, where: LabNode | str) -> None:
        """Keep the packets at a node, or at a point of a link as `"core:forward"`, in pcapng files and in the table
        `packets`."""
        name = where.name if isinstance(where, LabNode) else where
        if not isinstance(name, str):
            raise UserError(f'{where!r}: write a node, or a point of a link as "core:forward"')
        self._captures.append({"point": name} if ":" in name or name in self.links else {"node": name})

    def _step_name(self, wanted: str) -> str:
        """A name that no step has: `wanted`, or that with a number."""
        taken = {step.name for step, _ in self._steps}
        if wanted in ("command", "flow"):
            return f"{wanted}-{len(taken) + 1}"
        if wanted in taken:
            raise UserError(f'name="{wanted}": another step has this name: write another one')
        return wanted

    def _add(
        self,
        made: LabProgram | LabFlow,
        step: Mapping[str, JsonValue],
        at: Time,
        after: Sequence[LabProgram | LabFlow] | None,
    ) -> None:
        """Add a step to the lab's scenario."""
        known = [step for step, _ in self._steps]
        if isinstance(after, (LabProgram, LabFlow, str)):
            raise UserError(f"after={after!r}: write a list of what start or send returned")
        for each in after or ():
            if each not in known:
                raise UserError(f"after={each!r}: is no program or flow of this lab: write what start or send returned")
        waits = self._ready if after is None else [each.name for each in after]
        keys: dict[str, JsonValue] = {"name": made.name, "at": time_text(at)}
        if waits and "ready" not in step:
            keys["after"] = list(waits)
        if "ready" in step:
            self._ready.append(made.name)
        self._steps.append((made, {**keys, **step}))

    def scenario(self, seed: int | None = None, **keys: object) -> Scenario:
        """The scenario of all that was added; `keys`: further keys of it, as `watch="10ms"`. UserError for mistakes."""
        for key in OWN_KEYS & keys.keys():
            raise UserError(f"{key}={keys[key]!r}: the lab has its own: leave {key} out")
        raw: dict[str, JsonValue] = {"lab": self.spec.raw, "steps": [step for _, step in self._steps]}
        if not self._steps:
            raise UserError(f"lab {self.name} has nothing to run: add a program by lab.{self.nodes[0]}.start(...)")
        if self.events:
            raw["events"] = self.events
        if self._captures:
            raw["capture"] = self._captures
        if self._needs:
            raw["needs"] = list(self._needs)
        raw |= {key: as_written(value) for key, value in keys.items()}
        if seed is not None:
            raw["seeds"] = [seed]
        text = yaml.safe_dump(raw, sort_keys=False, allow_unicode=True, width=120)
        file = self.spec.folder.absolute() / f"{self.name}{SCENARIO}"
        return scenario.from_data(raw, Places(), text, file)

    def run(
        self,
        *,
        clock: Clock = "virtual",
        seed: int | None = None,
        directory: str | Path | None = None,
        **keys: object,
    ) -> RunResult:
        """Run all that was added, and return what was measured. Programs then know their ends.

        `clock`: `"virtual"`, or `"live"`, which needs root, and verifies the lab before it runs. `seed`: of all that is
        drawn; that of the description if absent. `directory`: where the records stay; a temporary one, which is removed
        with the result, if absent. `keys`: further keys of a scenario, as `longest="60s"` or `watch="10ms"`. UserError
        where it cannot run, or where a flow of the generator failed; a program that fails is no error: see
        `LabProgram.exit_code`.
        """
        return self._run(clock, seed, None if directory is None else Path(directory), keys)

    def _run(self, clock: Clock, seed: int | None, directory: Path | None, keys: Mapping[str, object]) -> RunResult:
        made = [step for step, _ in self._steps]
        return execute(self.scenario(seed, **keys), made, clock, directory)

    async def run_async(self, **options: Any) -> RunResult:
        """Run as `run` does, in a thread, while other tasks go on."""
        return await asyncio.to_thread(self.run, **options)
