"""`capture:` of a scenario as commands: which interfaces of which nodes, and how much of their packets is kept. Pure.

In: a run and the plan of its lab. Out: a service for each node, `ewan-node capture`, which listens from T0 on, or from
shortly before the first packet that it keeps; for a point of a link one with sockets at both of its sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ewan.generator import external
from ewan.generator.readers.captures import FILE
from ewan.generator.scenario.fields import CaptureKeys
from ewan.generator.scenario.flows import Error
from ewan.generator.scenario.runs import ScenarioRun
from ewan.labs.base.units import Duration
from ewan.labs.base.wording import nearest
from ewan.labs.capture import points
from ewan.labs.capture.words import Bounds, options
from ewan.labs.plan import Node, Plan
from ewan.labs.record.schedule import CAPTURE
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.services import OURSELVES

_MOST = "--most-bytes"

Members = Callable[..., list[str]]


def commands(run: ScenarioRun, plan: Plan, members: Members, begin_ns: int, longest_ns: int) -> Iterator[Command]:
    """The commands of a run's captures. `members` finds the nodes that a text names. `begin_ns`: when the schedule
    begins, `longest_ns`: when all is over, both after T0. DescriptionError for nodes and interfaces that are not in the
    plan, for times that never come, and for an interface that is captured twice."""
    nodes = {node.name: node for node in plan.nodes}
    taken: set[tuple[str, str]] = set()
    for index, capture in enumerate(run.document.capture):
        error = _error(run, index)
        from_ns, when = _when(capture, begin_ns, longest_ns, error)
        sizes = ("--snap-bytes", str(capture.snap.bytes), _MOST, str(capture.most.bytes))
        starts_ns = max(from_ns - external.LEAD_NS, 0)
        if capture.point is not None:
            taps = _taps(plan, capture, error)
            _once(taken, [(each.node, each.interface) for each in taps], error)
            words = options(plan.lab, taps, Bounds(capture.snap.bytes, capture.most.bytes), "")
            yield Command(taps[0].node, (OURSELVES, CAPTURE, *words, *when, FILE), starts_ns, service=True)
            continue
        if capture.node is None:
            raise error((), 'says nowhere: write "node: left1", or "point: core" for both sides of a link')
        for name in members(capture.node, "node", error, any_node=True):
            interfaces = _interfaces(plan, nodes[name], capture.link, error)
            _once(taken, [(name, interface) for interface in interfaces], error)
            words = [word for interface in interfaces for word in ("--interface", interface)]
            yield Command(name, (OURSELVES, CAPTURE, *words, *sizes, *when, FILE), starts_ns, service=True)


def _taps(plan: Plan, capture: CaptureKeys, error: Error) -> list[points.Tap]:
    for key in ("node", "link"):
        if getattr(capture, key) is not None:
            raise error((key,), "and point both say where: leave one of them out")
    text = capture.point or ""
    link = next((each for each in plan.links if text.partition(":")[0] in (each.name, each.node)), None)
    if link is not None and link.backend == "hardware":
        raise error(("point",), f"is a device outside, whose sides are cards: write {link.a.node}:{link.a.interface}")
    try:
        return points.taps(plan, text)
    except points.PointError as found:
        raise error(("point",), f"is no place: {found}") from None


def _once(taken: set[tuple[str, str]], places: list[tuple[str, str]], error: Error) -> None:
    if again := [place for place in places if place in taken]:
        raise error((), f"captures {again[0][1]} of {again[0][0]} once more: write each interface once")
    taken |= set(places)


def most_bytes(program: Program) -> int:
    """The most bytes that all captures of a run may write, with the table of their packets, which is smaller."""
    captures = [command.argv for command in program.commands if command.argv[:2] == (OURSELVES, CAPTURE)]
    return 2 * sum(int(argv[argv.index(_MOST) + 1]) for argv in captures)


def _when(capture: CaptureKeys, begin_ns: int, longest_ns: int, error: Error) -> tuple[int, tuple[str, ...]]:
    """The beginning (after T0), and the words for it, where anything is left out."""
    if capture.at is None and capture.for_ is None:
        return 0, ()
    from_ns = begin_ns + capture.at.ns if capture.at is not None else 0
    if from_ns >= longest_ns:
        over = Duration(longest_ns - begin_ns)
        raise error(("at",), f'is when all is over, at {over}: write an earlier time, or a larger "longest:"')
    if capture.for_ is None:
        return from_ns, ("--from-ns", str(from_ns))
    if not capture.for_.ns:
        raise error(("for",), 'is no time at all: write a duration like "5s"')
    until_ns = max(from_ns, begin_ns) + capture.for_.ns
    return from_ns, ("--from-ns", str(from_ns), "--until-ns", str(until_ns))


def _error(run: ScenarioRun, index: int) -> Error:
    return lambda path, message: run.places.error(("capture", index, *path), message)


def _interfaces(plan: Plan, node: Node, link: str | None, error: Error) -> list[str]:
    """All of a node, or the one to a link."""
    if node.kind == "emulator":
        raise error(("node",), f"{node.name} is a link: write a node at one of its ends")
    if link is None:
        return [interface.name for interface in node.interfaces]
    if link not in (known := {wire.link for wire in plan.wires}):
        raise error(("link",), f"is no link: {nearest(link, known)}")
    ends = [end for wire in plan.wires if wire.link == link for end in (wire.a, wire.b)]
    found = [end.interface for end in ends if end.node == node.name]
    if not found:
        raise error(("link",), f"is not at {node.name}: write a link that ends there, or no link for all of them")
    return found
