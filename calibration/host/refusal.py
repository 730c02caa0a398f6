"""Checks, before anything is made, whether this host carries the load that a run's flows may put on its links.

In: a plan and the load of each of its links. Out: one line that says why the host does not and names the figure, or
nothing. The envelope is a past measurement: before a run is refused, the host is asked to carry that very load once
more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ewan.calibration import envelope
from ewan.calibration.envelope import Frontier, LinkDemand
from ewan.calibration.host import links, measurement
from ewan.labs.context import Context
from ewan.labs.link import Framing
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Plan

MTU_BYTES = 1500
MOST_LINKS = 64
"""So many links the host is asked to carry once more, in place of more of them."""


def outside(context: Context, plan: Plan, loads: Mapping[tuple[str, Heading], int]) -> str:
    """Empty where the host carries it, or where nothing tells that it does not."""
    wanted = demands(plan, loads)
    if not wanted:
        return ""
    found = measurement.of_this_host(context)
    for demand in wanted:
        why = refusal(found.links, demand)
        if why and not links.carries(context.live("netns"), demand, MOST_LINKS):
            return why
    return ""


def demands(plan: Plan, loads: Mapping[tuple[str, Heading], int]) -> list[LinkDemand]:
    """The demand on each spinner, and on the kernel: the number of loaded directions, each at the mean of their loads,
    with packets as large as the MTU."""
    spinner_of = {name: number for number, each in enumerate(plan.spinners) for name in each.links}
    known = {link.name: link for link in plan.links}
    by_worker: dict[tuple[str, int], list[int]] = defaultdict(list)
    framings: dict[tuple[str, int], Framing] = {}
    for (name, _), bps in sorted(loads.items()):
        worker = str(known[name].backend), spinner_of.get(name, -1)
        by_worker[worker].append(bps)
        framings[worker] = known[name].forward.framing
    mtu = least_mtu(plan)
    return [
        LinkDemand(max(sum(each) // len(each), 1), 0, mtu, len(each), framings[worker], worker[0])
        for worker, each in by_worker.items()
    ]


def least_mtu(plan: Plan) -> int:
    """The least MTU of all interfaces: full packets of the plan have this size."""
    return min((each.mtu for node in plan.nodes for each in node.interfaces), default=MTU_BYTES)


def refusal(frontiers: tuple[Frontier, ...], demand: LinkDemand) -> str:
    """Why a demand is outside the envelope; empty where it is inside, or where its back end was not measured."""
    try:
        prediction = envelope.predict(frontiers, demand)
    except envelope.NoEnvelopeError:
        return ""
    return "" if prediction.inside else prediction.why
