"""A run of a scenario on a plan: the request of the traffic generator, the commands of other tools, events on links.

Comes in: a run and the plan of its lab. Goes out: the program that either clock executes, and the document that says
which flow is what, for tables and analysis. Pure and deterministic: what is drawn comes from the run's seed.
"""

from __future__ import annotations

import functools
import os.path
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, Literal

from ewan.generator import external, traffic_request
from ewan.generator.scenario import captures, command_flows, controls, demand, estimate, flows, order
from ewan.generator.scenario.conditions import Conditions
from ewan.generator.scenario.events import events
from ewan.generator.scenario.fields import MOST_EXCHANGES, MOST_FLOWS, ScenarioDescription, ScenarioStep
from ewan.generator.scenario.flow_paths import FlowPaths
from ewan.generator.scenario.laws import draw
from ewan.generator.scenario.machines import Machines
from ewan.generator.scenario.multipath import MultipathFlows
from ewan.generator.scenario.order import StepTurn
from ewan.generator.scenario.pacing import PacedClasses
from ewan.generator.scenario.participants import Member, participants
from ewan.generator.scenario.runs import ScenarioRun
from ewan.generator.scenario.transit import longest_transit_ns
from ewan.labs.base import codec
from ewan.labs.base.shell import argv
from ewan.labs.base.source import DescriptionError, Path
from ewan.labs.base.units import NS_PER_DAY, NS_PER_SECOND, Duration
from ewan.labs.compile.pacing import PacingError
from ewan.labs.forwarding import BETWEEN, Forwarding, node_of
from ewan.labs.plan import Plan
from ewan.labs.record import disturbances, host_drops
from ewan.labs.record.bounds import RELEASE_P99_NS
from ewan.labs.record.demand import Demand
from ewan.labs.record.events import Event
from ewan.labs.record.schedule import CAPTURE, COMMAND_FLOW, Clock, Flow, NamedSchedule, Part, ScheduledCommand
from ewan.labs.record.traffic import Endpoint, FlowRequest, MediaWork, MessagesWork, TrafficRequest, UdpWork, Work
from ewan.labs.runtime.program import Command, CountedFlows, DisturbanceWatch, Program
from ewan.labs.spec.patterns import PatternError, members

WATCHED = DisturbanceWatch(disturbances.EVERY_NS, RELEASE_P99_NS)
"""In the live clock."""

MOST_LIVE_TRANSIT_NS = 60 * NS_PER_SECOND
"""For longer no live run waits for packets that may have been lost."""


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """`plan` is the lab's, with the classes that pace the run's flows; `document` is schedule.json.

    `demand` counts, which takes longer than all the rest. `spans`: when each step is at work, for people.
    """

    plan: Plan
    program: Program
    document: NamedSchedule
    demand: Callable[[], Demand]
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A transfer or a command in time, from the start of the schedule; `end_ns` None: it is not known when it ends.

    `exact`: the clock ends it; else the end is approximate, as if no other were on its path."""

    start_ns: int
    end_ns: int | None
    exact: bool


@dataclass(frozen=True, slots=True)
class Span:
    """A step in time: its transfers or commands for each member and round, in their order."""

    step: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """One member of a step, in one of its rounds; `sink` is empty for a command, `members` are ranks.

    `at_ns` counts from T0, or from the end of the steps that the step waits for.
    """

    source: str
    sink: str
    at_ns: int
    name: str
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class _Parts:
    """The parts that the steps add up to."""

    requests: list[FlowRequest] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    external: list[Flow] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    scheduled: list[ScheduledCommand] = field(default_factory=list)
    ports: dict[int, int | None] = field(default_factory=dict)
    """The ports of sinks of transfers by the number of the client's command; None where several flows share it."""
    loads: list[estimate.FlowDemand] = field(default_factory=list)
    asked: list[demand.DemandMember] = field(default_factory=list)
    transfers: int = 0


def schedule(run: ScenarioRun, plan: Plan, clock: Clock) -> ScheduledRun:
    """The schedule of a run; DescriptionError for a step that this plan cannot do."""
    return _Scheduler(run, plan, clock).schedule()


def needed(run: ScenarioRun) -> tuple[str, ...]:
    """Absolute paths of the files that its commands read, and of the targets of their symbolic links; ~ is the home of
    the user who runs it."""
    folder = FilePath(str(run.scenario.file)).absolute().parent
    named = [os.path.normpath(folder / FilePath(text).expanduser()) for text in run.document.needs]
    return tuple(dict.fromkeys(each for path in named for each in (path, _led(path))))


@functools.cache
def _led(path: str) -> str:
    """The real path of `path`: a link that is changed later does not lead the runs elsewhere than was checked."""
    return os.path.realpath(path)


class _Scheduler:
    def __init__(self, run: ScenarioRun, plan: Plan, clock: Clock) -> None:
        self._run, self._plan, self._clock = run, plan, clock
        self._document: ScenarioDescription = run.document
        self._addresses = traffic_request.addresses_of(plan)
        self._machines = Machines(plan)
        self._forwarding = Forwarding(plan)
        self._paths = FlowPaths(self._forwarding)
        self._multipath = MultipathFlows(plan, self._forwarding, clock)
        self._classes = PacedClasses(plan, self._forwarding, virtual=clock == "virtual")
        self._parts = _Parts()
        self._flows = self._exchanges = 0
        self._counted = command_flows.CountedLinks(plan, self._forwarding)
        self._conditions = Conditions(run, clock)
        self._ordered = any(step.after for step in run.document.steps) or bool(self._conditions.requests)
        self._spans: dict[int, Span] = {}
        self._node_congestion: dict[str, str] = {}

    def schedule(self) -> ScheduledRun:
        steps, places = self._document.steps, self._run.places
        flows.check_buffers(self._document.defaults, lambda path, message: places.error(("defaults", *path), message))
        starts = [self._starts(index, step) for index, step in enumerate(steps)]
        begin_ns = self._begin(starts)
        turns = self._turns(starts, begin_ns)
        parts = self._parts
        if not parts.requests and not parts.commands:
            raise self._run.places.error(("steps",), "nothing is sent: write a step with at least one member")
        expected_ns = estimate.expected_ns(self._forwarding, parts.loads)
        longest_ns = self._longest(expected_ns, begin_ns)
        changes = events(self._run, self._plan, self._conditions, begin_ns, longest_ns)
        congestion = self._congestion()
        transit_ns = self._let_arrive(changes)
        if self._document.longest is None:
            longest_ns += max(0, transit_ns - estimate.AFTER_STOP_NS // 2)
        for command in captures.commands(self._run, self._plan, self._nodes, begin_ns, longest_ns):
            self._tell(CAPTURE, command, None, CAPTURE)
        self._check_ends(turns, starts, begin_ns, longest_ns)
        counted = self._flows_at_links()
        program = Program(
            commands=tuple(parts.commands),
            longest_ns=longest_ns,
            expected_ns=min(expected_ns, longest_ns),
            traffic=self._request(longest_ns, changes, counted is not None) if parts.requests else None,
            events=changes,
            watch_ns=self._document.watch.ns,
            disturbances=WATCHED if self._clock == "live" else None,
            flows=counted,
            drops=host_drops.NAMES,
            needs=needed(self._run) if parts.commands and self._clock == "virtual" else (),
            modules=controls.modules(self._run, congestion, self._clock),
            controller=controls.controller(self._run, congestion),
        )
        own = len(parts.flows)
        known = (
            *parts.flows,
            *(codec.replace(each, number=number) for number, each in enumerate(parts.external, own)),
        )
        document = NamedSchedule(
            scenario=self._run.scenario.name,
            run=self._run.name,
            parameters=self._run.parameters,
            seed=self._run.seed,
            clock=self._clock,
            begin_ns=begin_ns,
            longest_ns=longest_ns,
            series_ns=self._document.series.ns,
            paths=self._paths.found(),
            flows=known if program.flows is None else tuple(map(self._known_at_links, known)),
            commands=tuple(parts.scheduled),
        )
        return ScheduledRun(
            self._classes.plan(),
            program,
            document,
            functools.partial(demand.of, self._plan, self._forwarding, parts.asked, program),
            tuple(self._spans[index] for index in sorted(self._spans)),
        )

    def _turns(self, starts: Sequence[Sequence[Start]], begin_ns: int) -> dict[int, StepTurn]:
        """All that the steps do, each after those that it waits for."""
        steps = self._document.steps
        in_order = order.sequence(steps, self._error)
        empty = {index for index, those in enumerate(starts) if not those}
        for each in self._conditions.requests:
            if each.of in empty:
                message = "has no member in this run, and so no state for which others could wait: leave their when out"
                raise self._error(each.of)((), message)
        waited = order.waited(steps, in_order, empty, lambda number: self._conditions.number("steps", number))
        turns: dict[int, StepTurn] = {}
        ends: dict[int, int] = {}
        for index in in_order:
            after = waited[index]
            turns[index] = turn = StepTurn(index, after, max((ends[each] for each in after), default=begin_ns))
            known = len(self._parts.loads)
            self._add(turn, steps[index], starts[index])
            ends[index] = estimate.latest_ns(self._parts.loads[known:], turn.begin_ns)
            ends |= dict.fromkeys(self._conditions.of(index), ends[index])  # as late as that the state may come
            bars = (_bar(steps[index], each, begin_ns) for each in self._parts.loads[known:])
            self._spans[index] = Span(index, tuple(bars))
        return turns

    def _request(self, longest_ns: int, changes: Sequence[Event], ports: bool) -> TrafficRequest:
        return traffic_request.request(
            self._plan,
            self._parts.requests,
            self._clock,
            longest_ns,
            sample_ns=self._document.sample.ns,
            series_ns=self._document.series.ns,
            commands=self._parts.commands,
            events=changes,
            conditions=self._conditions.requests,
            ports=ports,
        )

    def _let_arrive(self, changes: Sequence[Event]) -> int:
        """Sets for each flow over UDP how long its last packets may be on their way; returns the longest of these times
        (ns)."""
        links = {link.name: link for link in self._plan.links}
        mtu = max(interface.mtu for node in self._plan.nodes for interface in node.interfaces)
        most_ns = MOST_LIVE_TRANSIT_NS if self._clock == "live" else NS_PER_DAY
        longest_ns = 0
        for index, (flow, request) in enumerate(zip(self._parts.flows, self._parts.requests, strict=True)):
            if isinstance(request.work, UdpWork | MediaWork):
                hops = self._forwarding.path(flow.source, flow.sink).hops
                transit_ns = min(longest_transit_ns(links, hops, changes, mtu), most_ns)
                work = codec.replace(request.work, transit_ns=transit_ns)
                self._parts.requests[index] = codec.replace(request, work=work)
                longest_ns = max(longest_ns, transit_ns)
        return longest_ns

    # When and who

    def _error(self, index: int) -> flows.Error:
        """Makes errors that point to a key of a step."""
        return lambda path, message: self._run.places.error(("steps", index, *path), message)

    def _starts(self, index: int, step: ScenarioStep) -> list[Start]:
        """Every member of a step in every round, in the order of members, then rounds."""
        error = self._error(index)
        flows.check(step, error)
        result: list[Start] = []
        stream = random.Random(f"{self._run.seed} {step.name}")
        before_ns = 0
        any_node = step.kind == "run"
        members_of = participants(step, lambda key, text: self._nodes(text, key, error, any_node=any_node), error)
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

    def _count(self, step: ScenarioStep, members_of: Sequence[Member], error: flows.Error) -> None:
        """Refuses too many flows before any is made; `streams`, rounds and members multiply."""
        rounds = 1 if step.repeat is None else step.repeat.times
        streams = 1 if step.kind == "run" else flows.settings(step, self._document.defaults).streams
        count = len(members_of) * rounds * streams
        self._flows += count
        if self._flows > MOST_FLOWS:
            parts = f"{len(members_of)} members × {rounds} rounds × {streams} streams"
            all_steps = "" if count == self._flows else f", with the steps before it {self._flows}"
            raise error((), f"is {count} flows or commands ({parts}){all_steps}: write at most {MOST_FLOWS} in all")
        each = (getattr(step.work, "count", None) or 0) if step.kind in ("arrivals", "requests") else 0
        if step.kind == "quic" and step.work.http3 is not None:
            each = step.work.http3.count or 0
        if step.kind == "messages":
            each = step.work.iterations * max((len(ranks) for *_, ranks in members_of), default=0)
        if step.kind == "media" and step.for_ is not None:
            each = step.work.fps * step.for_.ns // NS_PER_SECOND
        self._exchanges += count * each
        if self._exchanges > MOST_EXCHANGES:
            what = "arrivals, requests, objects, frames and iterations of ranks"
            raise error((), f"brings them to {self._exchanges} {what}: write at most {MOST_EXCHANGES} in all")

    def _nodes(self, written: Any, key: str, error: flows.Error, *, any_node: bool = False) -> list[str]:
        """Names of nodes; only of hosts unless `any_node`."""
        known = [node.name for node in self._plan.nodes if any_node or node.name in self._addresses]
        if key in ("from", "to") and BETWEEN in f"{written}{self._document.roles}":
            known += [f"{name}{BETWEEN}{link}" for name in known for link in self._forwarding.links_of(name)]
        try:
            return members(written, self._document.roles, known)
        except PatternError as wrong:
            raise error((key,), str(wrong)) from None

    def _begin(self, starts: Sequence[Sequence[Start]]) -> int:
        """The beginning of the schedule in ns after T0: at once, unless servers or captures must be listening by
        then."""
        least_ns, defaults = external.LEAD_NS if self._document.capture else 0, self._document.defaults
        lead_ns = self._machines.lead_ns
        leads = [
            max(least_ns, lead_ns(flows.settings(step, defaults).generator, node_of(start.sink))) - start.at_ns
            for step, of_step in zip(self._document.steps, starts, strict=True)
            for start in of_step
        ]
        return max(0, *leads, 0)

    # What

    def _add(self, turn: StepTurn, step: ScenarioStep, starts: Sequence[Start]) -> None:
        """All that a step sends or runs."""
        error = self._error(turn.number)
        if step.kind == "run":
            self._add_commands(turn, step, starts, error)
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
            nodes = node_of(start.source), node_of(start.sink)
            if nodes != (start.source, start.sink) and not external.chooses_link(settings.generator):
                key = "from" if nodes[0] != start.source else "to"
                other = "" if step.kind == "quic" else ', or "generator: ewan"'
                raise error((key,), f"{settings.generator} chooses no link of a host: write only the host{other}")
            self._machines.check(step.kind, settings.generator, (*nodes, *start.members), error)
            multipath = self._multipath.of(settings, start.source, start.sink, error)
            beside = self._multipath.ends(multipath, start.source, start.sink)[1:] if multipath is not None else ()
            self._paths.add(step, start.source, start.sink, start.members, beside)
            ends, start_ns = (start.source, start.sink), turn.begin_ns + start.at_ns
            times = start_ns, None if step.for_ is None else start_ns + step.for_.ns
            paced_bps = None if start.members else self._classes.rate_bps(*ends, settings.pacing)
            self._parts.asked.append(demand.DemandMember(step, settings, *ends, *times, start.members, paced_bps))
            self._parts.loads.append(estimate.load(self._forwarding, step, settings, *ends, *times, paced_bps))
            described = self._describe(turn, step, start, settings, paced_bps)
            several = len(works) > 1
            names = [f"{start.name} stream {number}" if several else start.name for number in range(1, len(works) + 1)]
            streams = list(zip(names, works, strict=True))
            self._parts.transfers += 1
            if settings.generator != "ewan":
                named = [codec.replace(described, name=name, volume_bytes=volume) for name, (_, volume) in streams]
                self._add_external(turn, step, start, settings, named, works[0][0], error)
                continue
            asked = self._flow(turn, step, start, self._paced(start, settings, error), works[0][0])
            if multipath is not None:
                asked = codec.replace(asked, socket=codec.replace(asked.socket, multipath=multipath))
            for name, (work, volume) in streams:
                number = len(self._parts.requests)
                flow = codec.replace(described, name=name, volume_bytes=volume, number=number, request=number)
                self._parts.flows.append(flow)
                self._parts.requests.append(codec.replace(asked, name=name, work=self._among(start, work)))

    def _paced(self, start: Start, settings: flows.FlowSettings, error: flows.Error) -> flows.FlowSettings:
        """The settings with the class that one member's sockets name, if its step is paced."""
        if settings.pacing is None or start.members:
            return settings
        try:
            number = self._classes.own(start.source, start.sink, settings.pacing, settings.streams)
        except PacingError as wrong:
            raise error(("pacing",), str(wrong)) from None
        return replace(settings, socket=codec.replace(settings.socket, class_=number))

    def _describe(
        self, turn: StepTurn, step: ScenarioStep, start: Start, settings: flows.FlowSettings, paced_bps: int | None
    ) -> Flow:
        """The data that all streams of a transfer share."""
        both = step.kind == "bidirectional"
        return Flow(
            number=0,
            name=start.name,
            step=step.name,
            role=step.role or "load",
            transfer=self._parts.transfers,
            kind="bulk" if both else step.kind,
            generator=settings.generator,
            source=start.source,
            sink=start.sink,
            congestion=settings.congestion,
            scheduled_ns=None if turn.after else turn.counted(start.at_ns),
            volume_bytes=None,
            after=self._names(turn.after),
            members=start.members,
            bidirectional=both,
            paced_bps=paced_bps,
            when="" if step.when is None else step.when.said,
        )

    def _names(self, steps: Sequence[int]) -> tuple[str, ...]:
        """The names of steps; the conditions among them have none."""
        known = self._document.steps
        return tuple(known[number].name for number in steps if number < len(known))

    def _among(self, start: Start, work: Work) -> Work:
        """The work of a step; messages get the ends of their ranks."""
        if isinstance(work, MessagesWork):
            return codec.replace(work, ranks=tuple(self._end(name) for name in start.members))
        return work

    def _flow(
        self, turn: StepTurn, step: ScenarioStep, start: Start, settings: flows.FlowSettings, work: Work
    ) -> FlowRequest:
        """The request that all streams of a transfer share."""
        start_ns = turn.counted(start.at_ns)
        return FlowRequest(
            name=start.name,
            start_ns=start_ns,
            stop_ns=None if step.for_ is None else start_ns + step.for_.ns,
            socket=settings.socket,
            work=work,
            from_=None if start.members else self._end(start.source),
            to=None if start.members else self._end(start.sink),
            step=turn.number if self._ordered else None,
            after=tuple(turn.after) if self._ordered else None,
        )

    def _end(self, end: str) -> Endpoint:
        return traffic_request.end(self._plan.lab, node_of(end), self._address(end))

    def _address(self, end: str) -> str:
        """The address of a node, or that at one of its links."""
        return self._addresses[end] if end == node_of(end) else str(self._forwarding.address(end))

    def _add_external(
        self,
        turn: StepTurn,
        step: ScenarioStep,
        start: Start,
        settings: flows.FlowSettings,
        streams: Sequence[Flow],
        work: Work,
        error: flows.Error,
    ) -> None:
        address = self._address(start.sink)
        transfer = external.ToolTransfer(
            step=step,
            settings=settings,
            source=start.source,
            sink=start.sink,
            address=address,
            source_address=self._address(start.source),
            at_ns=turn.counted(start.at_ns),
            for_ns=None if step.for_ is None else step.for_.ns,
            number=len(self._parts.commands),
            series_ns=self._document.series.ns,
            sample_ns=self._document.sample.ns,
            seed=self._run.seed,
            members=start.members,
            waits=bool(turn.after),
            work=work,
        )
        made = external.commands(settings.generator, transfer)
        if settings.pacing is not None:
            protocol: Literal["tcp", "udp"] = "udp" if step.kind in ("udp", "quic", "media") else "tcp"
            try:
                self._classes.found(
                    start.source, start.sink, settings.pacing, settings.streams, (address, protocol, made.port)
                )
            except PacingError as wrong:
                raise error(("pacing",), str(wrong)) from None
        for node, congestion in made.node_congestion.items():
            other = self._node_congestion.setdefault(node, congestion)
            if other != congestion:
                message = f"{settings.generator} sets it for all of {node}, where another step has {other}"
                raise error(("congestion",), f"{message}: write the same in both")
        for command in made.commands:
            client = command is made.commands[made.client]
            # A server listens from the beginning on: when its client comes is not known before.
            timed = self._timed(command, turn) if client else codec.replace(command, at_ns=0) if turn.after else command
            timed = timed if client else self._machines.early(timed)
            self._tell(step.name, timed, settings.generator, "client" if client else "server")
        if made.port is not None:
            # Parallel streams have the same port at their sink.
            self._parts.ports[transfer.number + made.client] = made.port if len(streams) == 1 else None
        for stream, flow in enumerate(streams):
            tool = None if made.tool is None else codec.replace(made.tool, stream=stream)
            self._parts.external.append(codec.replace(flow, command=transfer.number + made.client, tool=tool))

    def _add_commands(self, turn: StepTurn, step: ScenarioStep, starts: Sequence[Start], error: flows.Error) -> None:
        try:
            words = argv(step.run or "")
        except ValueError as wrong:
            raise error(("run",), str(wrong)) from None
        pairs = self._command_ends(step, starts, error)
        for start, ends in zip(starts, pairs, strict=True):
            own = step.flows is not None and step.flows.sockets is not None
            at_ns = turn.counted(start.at_ns)
            command = Command(start.source, words, at_ns, step.service, step.ready, own_sockets=own)
            if own:
                self._machines.check_sockets(start.source, error)
            if step.ready is not None:
                self._machines.check_ready(start.source, error)
            if ends is not None:
                self._parts.external.append(self._command_flow(turn, step, start, ends, error))
            self._tell(step.name, self._timed(command, turn), None, "command")
            self._parts.loads.append(estimate.FlowDemand(turn.begin_ns + start.at_ns))

    def _command_ends(
        self, step: ScenarioStep, starts: Sequence[Start], error: flows.Error
    ) -> Sequence[tuple[str, str] | None]:
        """The two ends of the flow of each command, if they are flows."""
        if step.flows is None:
            return [None] * len(starts)
        nodes = [start.source for start in starts]

        def at_flows(path: Path, message: str) -> DescriptionError:
            return error(("flows", *path), message)

        return command_flows.ends(step, nodes, lambda text, key: self._nodes(text, key, at_flows), error)

    def _command_flow(
        self, turn: StepTurn, step: ScenarioStep, start: Start, ends: tuple[str, str], error: flows.Error
    ) -> Flow:
        source, sink = ends
        assert step.flows is not None
        self._paths.add(step, source, sink)
        self._parts.transfers += 1
        settings = flows.settings(step, self._document.defaults)
        described = self._describe(turn, step, replace(start, source=source, sink=sink), settings, None)
        return codec.replace(
            described,
            kind="program",
            generator=COMMAND_FLOW,
            command=len(self._parts.commands),
            tool=self._counted.tool(step.flows, start.name, source, sink, error),
        )

    def _known_at_links(self, flow: Flow) -> Flow:
        """The flow with the addresses, and perhaps the port, by which links know it."""
        if flow.request is not None:
            request = self._parts.requests[flow.request]
            if request.from_ is None or request.to is None:
                return flow
            return codec.replace(flow, addresses=(request.from_.address, request.to.address))
        if flow.command not in self._parts.ports or flow.sink is None:
            return flow
        port = self._parts.ports[flow.command]
        return codec.replace(flow, addresses=(self._address(flow.source), self._address(flow.sink)), port=port)

    def _flows_at_links(self) -> CountedFlows | None:
        """The links that count flows, and which of them; None: no link does."""
        numbers = {step.name: number for number, step in enumerate(self._document.steps)}
        for flow in (*self._parts.flows, *self._parts.external):
            if flow.generator != COMMAND_FLOW:
                self._counted.check_alone(flow.source, flow.sink, flow.step, lambda name: self._error(numbers[name]))
        wanted = self._counted.wanted(self._document.count_flows)
        if wanted is not None and not self._document.watch.ns:
            message = 'is 0, and flows are counted at these times: write a duration like "100ms"'
            raise self._run.places.error(("watch",), message)
        return wanted

    def _timed(self, command: Command, turn: StepTurn) -> Command:
        """A command that waits, and that others may wait for."""
        return codec.replace(command, step=turn.number, after=turn.after) if self._ordered else command

    def _tell(self, step: str, command: Command, tool: str | None, part: Part) -> None:
        self._parts.scheduled.append(
            ScheduledCommand(
                index=len(self._parts.commands),
                step=step,
                node=command.node,
                at_ns=None if command.after else command.at_ns,
                service=command.service,
                tool=tool,
                part=part,
                after=self._names(command.after),
            )
        )
        self._parts.commands.append(command)

    # How long

    def _congestion(self) -> set[str]:
        """The congestion controls of all flows, whichever generator makes them."""
        names = {each.congestion for each in (*self._parts.flows, *self._parts.external)}
        names |= {each.socket.congestion for each in self._parts.requests}
        return {name for name in names if name}

    def _longest(self, expected_ns: int, begin_ns: int) -> int:
        if self._document.longest is None:
            return begin_ns + estimate.longest_ns(expected_ns, self._parts.loads)
        if not self._document.longest.ns:
            raise self._run.places.error(("longest",), 'is no time at all: write a duration like "60s"')
        return begin_ns + self._document.longest.ns

    def _check_ends(
        self, turns: Mapping[int, StepTurn], starts: Sequence[Sequence[Start]], begin_ns: int, longest_ns: int
    ) -> None:
        """Refuses a schedule in which something starts after the end."""
        longest_ns -= begin_ns
        for index, of_step in enumerate(starts):
            last = turns[index].begin_ns - begin_ns + max((start.at_ns for start in of_step), default=0)
            if last >= longest_ns:
                late = f"its last member starts at {Duration(last)}, and all ends at {Duration(longest_ns)}"
                path: Path = ("at",) if ("steps", index, "at") in self._run.places.known else ()
                raise self._error(index)(path, f'{late}: write a larger "longest:"')


def _bar(step: ScenarioStep, load: estimate.FlowDemand, begin_ns: int) -> Bar:
    start_ns = load.start_ns - begin_ns
    if step.kind == "run":
        return Bar(start_ns, None, exact=False)
    if load.stop_ns is not None and not load.counted:
        return Bar(start_ns, load.stop_ns - begin_ns, exact=True)
    return Bar(start_ns, max(estimate.latest_ns([load], load.start_ns) - begin_ns, start_ns), exact=False)
