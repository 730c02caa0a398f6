"""A run of a scenario on a plan: the request of the traffic generator, the commands of other tools, events on links.

Comes in: a run and the plan of its lab. Goes out: the program that either clock executes, and the document that says
which flow is what, for tables and analysis. Pure and deterministic: what is drawn comes from the run's seed.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from generator import external, traffic_request
from generator.scenario import captures, demand, estimate, flows
from generator.scenario.events import events
from generator.scenario.fields import MOST_EXCHANGES, MOST_FLOWS, ScenarioDescription, Step
from generator.scenario.flow_paths import FlowPaths
from generator.scenario.laws import draw
from generator.scenario.patterns import PatternError, members
from generator.scenario.runs import ScenarioRun
from labs.forwarding import Forwarding
from labs.plan import Plan
from labs.record import disturbances, paths
from labs.record.bounds import RELEASE_P99_NS
from labs.record.demand import Demand
from labs.runtime.program import Command, DisturbanceWatch, Program
from labs.shell import argv
from labs.spec.source import Path
from labs.units import Duration

FORMAT = "ewan-schedule/2"
WATCHED = DisturbanceWatch(disturbances.EVERY_NS, RELEASE_P99_NS)
"""In the live clock."""

Clock = Literal["live", "virtual"]

Member = tuple[str, str, str, tuple[str, ...]]
"""Name, source, sink and ranks."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """`document` is schedule.json: the flows by their number in the tables, and what each command is.

    Its `paths` are the links, with directions, that the flows' payload crosses from each source to each sink.
    `demand` counts, which takes longer than all the rest.
    """

    program: Program
    document: dict[str, Any]
    demand: Callable[[], Demand]


@dataclass(frozen=True, slots=True)
class Start:
    """One member of a step, in one of its rounds; `sink` is empty for a command, `members` are ranks."""

    source: str
    sink: str
    at_ns: int
    name: str
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class _Parts:
    """What the steps add up to."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    described: list[dict[str, Any]] = field(default_factory=list)
    external: list[dict[str, Any]] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    loads: list[estimate.FlowDemand] = field(default_factory=list)
    asked: list[demand.Asked] = field(default_factory=list)
    transfers: int = 0


def schedule(run: ScenarioRun, plan: Plan, clock: Clock) -> Schedule:
    """DescriptionError for what this plan cannot do."""
    return _Scheduler(run, plan, clock).schedule()


class _Scheduler:
    def __init__(self, run: ScenarioRun, plan: Plan, clock: Clock) -> None:
        self._run, self._plan, self._clock = run, plan, clock
        self._document: ScenarioDescription = run.document
        self._addresses = traffic_request.addresses_of(plan)
        self._forwarding = Forwarding(plan)
        self._paths = FlowPaths(self._forwarding)
        self._parts = _Parts()
        self._flows = self._exchanges = 0
        self._node_congestion: dict[str, str] = {}

    def schedule(self) -> Schedule:
        steps, places = self._document.steps, self._run.places
        flows.check_buffers(self._document.defaults, lambda path, message: places.error(("defaults", *path), message))
        starts = [self._starts(index, step) for index, step in enumerate(steps)]
        begin_ns = self._begin(starts)
        for index, (step, members_of) in enumerate(zip(steps, starts, strict=True)):
            self._add(index, step, [replace(start, at_ns=start.at_ns + begin_ns) for start in members_of])
        parts = self._parts
        if not parts.requests and not parts.commands:
            raise self._run.places.error(("steps",), "nothing is sent: write a step with at least one member")
        for command in captures.commands(self._run, self._plan, self._nodes):
            self._tell(captures.STEP, command, None, captures.STEP)
        expected_ns = estimate.expected_ns(self._forwarding, parts.loads)
        longest_ns = self._longest(expected_ns, begin_ns)
        self._check_ends(starts, longest_ns - begin_ns)
        program = Program(
            commands=tuple(parts.commands),
            longest_ns=longest_ns,
            expected_ns=min(expected_ns, longest_ns),
            traffic=self._request(longest_ns) if parts.requests else None,
            events=events(self._run, self._plan, begin_ns, longest_ns),
            watch_ns=self._document.watch.ns,
            disturbances=WATCHED if self._clock == "live" else None,
        )
        described = [*parts.described, *parts.external]
        document = {
            "format": FORMAT,
            "scenario": self._run.scenario.name,
            "run": self._run.name,
            "parameters": self._run.parameters,
            "seed": self._run.seed,
            "clock": self._clock,
            "begin_ns": begin_ns,
            "longest_ns": longest_ns,
            "series_ns": self._document.series.ns,
            "paths": paths.to_data(self._paths.found()),
            "flows": [{"number": number, **flow} for number, flow in enumerate(described)],
            "commands": parts.told,
        }
        return Schedule(
            program, document, functools.partial(demand.of, self._plan, self._forwarding, parts.asked, program)
        )

    def _request(self, longest_ns: int) -> dict[str, Any]:
        return {
            **traffic_request.request(self._plan, self._parts.requests, self._clock, longest_ns),
            "sample_ns": self._document.sample.ns,
            "series_ns": self._document.series.ns,
        }

    # When and who

    def _error(self, index: int) -> flows.Error:
        """Makes errors that point to a key of a step."""
        return lambda path, message: self._run.places.error(("steps", index, *path), message)

    def _starts(self, index: int, step: Step) -> list[Start]:
        """Every member of a step in every round, in the order of members, then rounds."""
        error = self._error(index)
        flows.check(step, error)
        result: list[Start] = []
        stream = random.Random(f"{self._run.seed} {step.name}")
        before_ns = 0
        members_of = self._members(step, error)
        self._count(step, members_of, error)
        for number, (name, source, sink, ranks) in enumerate(members_of):
            if number:
                before_ns += draw(step.offset, stream)
            at_ns = draw(step.at, stream) + before_ns
            rounds = 1 if step.repeat is None else step.repeat.times
            for turn in range(rounds):
                shown = f"{name} round {turn + 1}" if rounds > 1 else name
                result.append(Start(source, sink, at_ns, shown, ranks))
                if step.repeat is not None:
                    at_ns += draw(step.repeat.every, stream)
        return result

    def _count(self, step: Step, members_of: Sequence[Member], error: flows.Error) -> None:
        """Refuses what is too much before any of it is made; `streams`, rounds and members multiply."""
        rounds = 1 if step.repeat is None else step.repeat.times
        streams = 1 if step.kind == "run" else flows.settings(step, self._document.defaults).streams
        count = len(members_of) * rounds * streams
        self._flows += count
        if self._flows > MOST_FLOWS:
            parts = f"{len(members_of)} members × {rounds} rounds × {streams} streams"
            all_steps = "" if count == self._flows else f", with the steps before it {self._flows}"
            raise error((), f"is {count} flows or commands ({parts}){all_steps}: write at most {MOST_FLOWS} in all")
        each = (getattr(step.work, "count", None) or 0) if step.kind in ("arrivals", "requests") else 0
        if step.kind == "messages":
            each = step.work.iterations * max((len(ranks) for *_, ranks in members_of), default=0)
        self._exchanges += count * each
        if self._exchanges > MOST_EXCHANGES:
            what = "arrivals, requests and iterations of ranks"
            raise error((), f"brings them to {self._exchanges} {what}: write at most {MOST_EXCHANGES} in all")

    def _members(self, step: Step, error: flows.Error) -> list[Member]:
        """Name, source, sink and ranks of each member."""
        if step.kind == "run":
            nodes = self._nodes(step.on, "on", error, any_node=True)
            return [(f"{step.name} on {node}", node, "", ()) for node in nodes]
        if step.kind == "messages":
            ranks = self._nodes(step.ranks, "ranks", error)
            if ranks and len(ranks) < 2:
                raise error(("ranks",), "is one node alone: write at least two")
            if len(set(ranks)) < len(ranks):
                raise error(("ranks",), "names a node twice: write each once")
            if step.work.pattern == "ping-pong" and len(ranks) % 2:
                raise error(("ranks",), f"are {len(ranks)}, and ping-pong goes in twos: write an even number")
            return [(step.name, ranks[0], ranks[1], tuple(ranks))] if ranks else []
        sources, sinks = self._nodes(step.from_, "from", error), self._nodes(step.to, "to", error)
        count = max(len(sources), len(sinks)) if sources and sinks else 0
        if (not sources) != (not sinks) or len({1, count, len(sources), len(sinks)} - {0}) > (2 if count > 1 else 1):
            message = f"{len(sources)} send to {len(sinks)}: write as many as send, or one of either"
            raise error(("to",), message)
        ends = list(zip(_stretched(sources, count), _stretched(sinks, count), strict=True))
        times = Counter(ends)
        for source, sink in ends:
            if source == sink:
                raise error(("to",), f"{source} sends to itself: write another node")
            if times[source, sink] > 1:
                raise error(("to",), f'{source} sends to {sink} twice: write "streams: 2", or a step for each')
        return [(f"{step.name} {source} to {sink}", source, sink, ()) for source, sink in ends]

    def _nodes(self, written: Any, key: str, error: flows.Error, *, any_node: bool = False) -> list[str]:
        """Names of nodes, of hosts alone unless `any_node`."""
        known = [node.name for node in self._plan.nodes if any_node or node.name in self._addresses]
        try:
            return members(written, self._document.roles, known)
        except PatternError as wrong:
            raise error((key,), str(wrong)) from None

    def _begin(self, starts: Sequence[Sequence[Start]]) -> int:
        """How long after T0 the schedule begins: at once, unless servers or captures must be listening by then."""
        least_ns = external.LEAD_NS if self._document.capture else 0
        leads = [
            max(least_ns, external.lead_ns(flows.settings(step, self._document.defaults).generator)) - start.at_ns
            for step, of_step in zip(self._document.steps, starts, strict=True)
            for start in of_step
        ]
        return max(0, *leads, 0)

    # What

    def _add(self, index: int, step: Step, starts: Sequence[Start]) -> None:
        """All that a step sends or runs."""
        error = self._error(index)
        if step.kind == "run":
            self._add_commands(step, starts, error)
            return
        settings = flows.settings(step, self._document.defaults)
        works = flows.works(step, settings.streams, error)
        if settings.generator != "ewan":
            obstacle = external.obstacle(settings.generator, step, settings)
            if obstacle is not None:
                key, why = obstacle
                # The error points to the step even where `defaults` set the key, since the step can override it.
                raise error((key,), f"{settings.generator} {why}")
        for start in starts:
            self._paths.add(step, start.source, start.sink, start.members)
            stop_ns = None if step.for_ is None else start.at_ns + step.for_.ns
            described = [self._describe(step, start, settings, volume) for _, volume in works]
            for number, flow in enumerate(described):
                flow["name"] += f" stream {number + 1}" if len(described) > 1 else ""
            self._parts.transfers += 1
            ends = (start.source, start.sink)
            self._parts.asked.append(demand.Asked(step, settings, *ends, start.at_ns, stop_ns, start.members))
            self._parts.loads.append(estimate.load(self._forwarding, step, settings, *ends, start.at_ns, stop_ns))
            if settings.generator != "ewan":
                self._add_external(step, start, settings, stop_ns, described, error)
                continue
            for (work, _), flow in zip(works, described, strict=True):
                flow["request"] = len(self._parts.requests)
                self._parts.described.append(flow)
                self._parts.requests.append(self._flow(start, flow["name"], stop_ns, settings, work))

    def _describe(self, step: Step, start: Start, settings: flows.FlowSettings, volume: int | None) -> dict[str, Any]:
        both = step.kind == "bidirectional"
        flow: dict[str, Any] = {
            "name": start.name,
            "step": step.name,
            "role": step.role or "load",
            "transfer": self._parts.transfers,
            "kind": "bulk" if both else step.kind,
            "generator": settings.generator,
            "source": start.source,
            "sink": start.sink,
            "congestion": settings.congestion,
            "scheduled_ns": start.at_ns,
            "volume_bytes": volume,
        }
        flow |= {"members": list(start.members)} if start.members else {}
        return flow | ({"bidirectional": True} if both else {})

    def _flow(
        self, start: Start, name: str, stop_ns: int | None, settings: flows.FlowSettings, work: dict[str, Any]
    ) -> dict[str, Any]:
        flow: dict[str, Any] = {"name": name, "start_ns": start.at_ns, "stop_ns": stop_ns, "socket": settings.socket}
        if start.members:
            return {**flow, "work": {**work, "ranks": [self._end(name) for name in start.members]}}
        return {**flow, "from": self._end(start.source), "to": self._end(start.sink), "work": work}

    def _end(self, node: str) -> dict[str, str]:
        return traffic_request.end(self._plan.lab, node, self._addresses[node])

    def _add_external(
        self,
        step: Step,
        start: Start,
        settings: flows.FlowSettings,
        stop_ns: int | None,
        described: list[dict[str, Any]],
        error: flows.Error,
    ) -> None:
        address = self._addresses[start.sink]
        transfer = external.Transfer(
            step=step,
            settings=settings,
            source=start.source,
            sink=start.sink,
            address=address,
            at_ns=start.at_ns,
            for_ns=None if stop_ns is None else stop_ns - start.at_ns,
            number=len(self._parts.commands),
            series_ns=self._document.series.ns,
            seed=self._run.seed,
            members=start.members,
        )
        made = external.commands(settings.generator, transfer)
        for node, congestion in made.node_congestion.items():
            other = self._node_congestion.setdefault(node, congestion)
            if other != congestion:
                message = f"{settings.generator} sets it for all of {node}, where another step has {other}"
                raise error(("congestion",), f"{message}: write the same in both")
        for command in made.commands:
            client = command is made.commands[made.client]
            self._tell(step.name, command, settings.generator, "client" if client else "server")
        for stream, flow in enumerate(described):
            flow["command"] = transfer.number + made.client
            flow["tool"] = {**made.tool, "stream": stream}
            self._parts.external.append(flow)

    def _add_commands(self, step: Step, starts: Sequence[Start], error: flows.Error) -> None:
        try:
            words = argv(step.run or "")
        except ValueError as wrong:
            raise error(("run",), str(wrong)) from None
        for start in starts:
            self._tell(step.name, Command(start.source, words, start.at_ns, step.service), None, "command")
            self._parts.loads.append(estimate.FlowDemand(start.at_ns))

    def _tell(self, step: str, command: Command, tool: str | None, part: str) -> None:
        self._parts.told.append(
            {
                "index": len(self._parts.commands),
                "step": step,
                "node": command.node,
                "at_ns": command.at_ns,
                "service": command.service,
                "tool": tool,
                "part": part,
            }
        )
        self._parts.commands.append(command)

    # How long

    def _longest(self, expected_ns: int, begin_ns: int) -> int:
        if self._document.longest is None:
            return begin_ns + estimate.longest_ns(expected_ns, self._parts.loads)
        if not self._document.longest.ns:
            raise self._run.places.error(("longest",), 'is no time at all: write a duration like "60s"')
        return begin_ns + self._document.longest.ns

    def _check_ends(self, starts: Sequence[Sequence[Start]], longest_ns: int) -> None:
        """Nothing starts when all is over."""
        for index, of_step in enumerate(starts):
            last = max((start.at_ns for start in of_step), default=0)
            if last >= longest_ns:
                late = f"its last member starts at {Duration(last)}, and all ends at {Duration(longest_ns)}"
                path: Path = ("at",) if ("steps", index, "at") in self._run.places.known else ()
                raise self._error(index)(path, f'{late}: write a larger "longest:"')


def _stretched(names: Sequence[str], count: int) -> list[str]:
    return list(itertools.islice(itertools.cycle(names), count)) if len(names) == 1 else list(names[:count])
