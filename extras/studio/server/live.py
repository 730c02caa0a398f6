"""Labs that are up: their list, the state of their links at each moment, changes of them.

In: names of labs and links, settings in the words of `ewan lab set`. Out: data for the page. All of it blocks for some
milliseconds and is called in threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from ewan.extras.studio.server.drawing import DrawnLink, lines
from ewan.labs import change, link_changes, routed_paths
from ewan.labs.base import codec
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import NS_PER_MS, mean_rate_bps
from ewan.labs.context import Context
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.requests import ActivityRequest, ActivitySums, ChangesRequest
from ewan.labs.runtime.state_documents import SettingsChange

FRAME_MS = 50
"""Between two frames: 20 a second."""
ANSWERS_S = 1.0
"""A lab whose look takes longer does not answer."""
HEADINGS: tuple[Heading, ...] = get_args(Heading)


@dataclass(frozen=True, slots=True)
class Up:
    """A lab that is up. One whose `state` is `silent` does not answer now; its links are the last that were known."""

    lab: str
    runtime: str
    state: Literal["complete", "incomplete", "down", "silent"]
    links: tuple[DrawnLink, ...]
    down: tuple[str, ...] = ()
    """Links that were taken down."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A direction of a link over the last frame."""

    link: str
    direction: Heading
    rate_bps: int
    queue_bytes: int
    dropped_packets: int
    marked_packets: int
    lateness_ns: int


@dataclass(frozen=True, slots=True)
class Paths:
    """Between two hosts, each way."""

    there: routed_paths.RoutedPath
    back: routed_paths.RoutedPath


@dataclass(frozen=True, slots=True)
class CarrierSet:
    """The result of a link's failure or repair: the time of the routes' recovery (None: longer than was waited for),
    the pairs of hosts without a route and without any path, by `from` and `to`; `words` for people."""

    recovered_ns: int | None
    unreachable: list[dict[str, str]]
    cut_off: list[dict[str, str]]
    words: str


def check_hosts(plan: Plan, *names: str) -> None:
    """LabError for a name that is no host of a lab."""
    hosts = {node.name for node in plan.nodes if node.kind == "host"}
    for name in names:
        if name not in hosts:
            raise LabError(f"{plan.lab} has no host {name}")


def planned(plan: Plan, source: str, sink: str) -> Paths:
    """The paths of packets between two hosts by the plan; LabError."""
    check_hosts(plan, source, sink)
    return Paths(routed_paths.planned(plan, source, sink), routed_paths.planned(plan, sink, source))


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a lab: its result, and its beginning by time.monotonic."""

    begun: float
    found: Future[Up]


class Looks:
    """Looks at labs, each in a thread of its own. Requests for a lab share a look that goes on, so a lab that does not
    answer takes one thread, however often it is asked for."""

    def __init__(self, look: Callable[[str], Up]) -> None:
        self._look, self._lock = look, threading.Lock()
        self._begun: dict[str, Look] = {}

    def begin(self, name: str) -> Look:
        """The look at a lab that goes on, or a new one."""
        with self._lock:
            self._begun = {lab: each for lab, each in self._begun.items() if not each.found.done()}
            look = self._begun.get(name)
            if look is None:
                look = self._begun[name] = Look(time.monotonic(), Future())
                threading.Thread(target=self._run, args=(name, look.found), daemon=True).start()
            return look

    def _run(self, name: str, found: Future[Up]) -> None:
        try:
            found.set_result(self._look(name))
        except Exception as error:
            found.set_exception(error)


class Live:
    """The live labs of this machine."""

    def __init__(self, context: Context) -> None:
        self._labs = context.live()
        self._looks = Looks(self.one)
        self._known: dict[str, Up] = {}
        self._lines: dict[str, tuple[Plan, list[Any], tuple[DrawnLink, ...]]] = {}

    def every(self) -> list[Up]:
        """Labs that are up, whole or in part."""
        looks = {name: self._looks.begin(name) for name in self._labs.names()}
        self._known = {name: known for name, known in self._known.items() if name in looks}
        return [found for name, look in looks.items() if (found := self._seen(name, look)) is not None]

    def _seen(self, name: str, look: Look) -> Up | None:
        """The result of a look in time; for a lab that did not answer by then, its last known state; None for a lab
        that is gone."""
        try:
            found = self._known[name] = look.found.result(max(look.begun + ANSWERS_S - time.monotonic(), 0))
        except (TimeoutError, UserError):
            if name not in self._labs.names():
                return None
            known = self._known.get(name) or Up(name, str(self._labs.runtime_of(name)), "silent", ())
            return replace(known, state="silent")
        return found

    def one(self, name: str) -> Up:
        """One lab, its links as they are after the changes that were made to them; LabError where it is not up."""
        known = self._labs.status(name)
        links = self._links(self.plan(name)) if known.state == "complete" else ()
        down = known.links_down or ()
        return Up(name, str(self._labs.runtime_of(name)), known.state, links, down)

    def _links(self, plan: Plan) -> tuple[DrawnLink, ...]:
        past = [
            each
            for number in range(len(plan.spinners))
            for each in self._labs.control(plan.lab, number, ChangesRequest()).changes
        ]
        known = self._lines.get(plan.lab)
        if known is None or known[0] is not plan or known[1] != past:
            known = self._lines[plan.lab] = (plan, past, lines(change.plan_as_it_is(plan, past)))
        return known[2]

    def plan(self, name: str) -> Plan:
        """The plan of a lab that is up; LabError."""
        return self._labs.load(name).plan

    def set(
        self, name: str, link: str, words: Mapping[str, str], direction: Heading | Literal["both"]
    ) -> dict[Heading, link_changes.LinkChangeMade]:
        """Changes a link; LabError and DescriptionError, in one line."""
        return link_changes.set_link(self._labs, name, link, words, direction)

    def carrier(self, name: str, link: str, up: bool) -> CarrierSet:
        """Fails a link, or mends it, and waits for the routes; LabError."""
        plan = self.plan(name)
        told = link_changes.set_carrier(self._labs, name, link, up)
        words = change.carrier_words(plan, link, up, told)
        unreachable, cut_off = codec.data_of((told.unreachable, told.cut_off))
        return CarrierSet(told.recovered_ns, unreachable, cut_off, words)

    def routes(self, name: str, node: str) -> list[routed_paths.TableRoute]:
        """A node's routing table; LabError."""
        told = self._labs.routes(name)
        if node not in told:
            raise LabError(f"{node} of lab {name} has no routing table")
        return routed_paths.routes(told[node])

    def paths(self, name: str, source: str, sink: str) -> Paths:
        """The present paths of packets between two hosts; LabError."""
        plan = self.plan(name)
        check_hosts(plan, source, sink)
        told = self._labs.routes(name)
        there, back = ((source, sink), (sink, source))
        return Paths(routed_paths.followed(plan, told, *there), routed_paths.followed(plan, told, *back))

    def done(self, name: str) -> list[SettingsChange]:
        """The changes in a lab, by their times; LabError."""
        return link_changes.done(self._labs, name)

    def frames(self, name: str) -> Frames:
        """A follower of the links of a lab; LabError."""
        return Frames(self._labs, self.plan(name))


class Frames:
    """The links of one lab over time: each call returns the activity since the one before it."""

    def __init__(self, labs: Any, plan: Plan) -> None:
        self._labs, self._plan = labs, plan
        self._until_ms: dict[int, int] = {}
        self._queue_bytes: dict[tuple[str, str], int] = {}

    def next(self) -> list[Moment]:
        """Each direction of each link that has a spinner; LabError when the lab is down."""
        found: list[Moment] = []
        for number, spinner in enumerate(self._plan.spinners):
            told = self._labs.control(self._plan.lab, number, ActivityRequest(self._until_ms.get(number)))
            self._until_ms[number] = told.end_ms
            passed_ms = max(1, told.end_ms - told.first_ms)
            for link in spinner.links:
                sums = told.links.get(link, {})
                found += [self._moment(link, heading, sums.get(heading), passed_ms) for heading in HEADINGS]
        return found

    def _moment(self, link: str, heading: Heading, sums: ActivitySums | None, passed_ms: int) -> Moment:
        """A moment of one direction. `sums`: None for a direction without activity, whose queue is unchanged."""
        if sums is None:
            return Moment(link, heading, 0, self._queue_bytes.get((link, heading), 0), 0, 0, 0)
        self._queue_bytes[link, heading] = sums.queue_bytes
        return Moment(
            link,
            heading,
            mean_rate_bps(sums.out_bytes, passed_ms * NS_PER_MS),
            sums.queue_max_bytes,
            sums.lost + sums.queue_full + sums.aqm + sums.store_full,
            sums.ce_packets,
            sums.lateness_max_ns,
        )
