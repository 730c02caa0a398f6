"""Waiting for the routes of a lab in which a protocol finds them, before anything is measured there.

In: a lab that is up, and its plan. Out: what `converge` of its runtime tells, or `NotConvergedError` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable

from ewan.labs.base.units.shown import about
from ewan.labs.change import PROTOCOLS
from ewan.labs.plan import Plan
from ewan.labs.routing_documents import Convergence
from ewan.labs.runtime.base import LabError, RouteConvergence


class NotConvergedError(LabError):
    """The routes do not carry every pair of hosts."""


def converged(
    labs: RouteConvergence, plan: Plan, progress: Callable[[str], None] = lambda text: None
) -> Convergence | None:
    """Waits for the routes; None at once where routing is static. NotConvergedError where they are not found."""
    if plan.routing == "static":
        return None
    protocol = PROTOCOLS[plan.routing]
    progress(f"waiting for {protocol}")
    found = labs.converge(plan.lab)
    if found is None:
        return None
    if not found.converged:
        first = [*found.unreachable, *found.astray][0]
        what = f"{'no route' if found.unreachable else 'a detour'} from {first.source} to {first.sink}"
        waited = about(found.waited_ns, "time", 3)
        raise NotConvergedError(f"{protocol} has not converged after {waited}, {what}{own_configurations(plan)}")
    if found.cut_off:
        first = found.cut_off[0]
        raise NotConvergedError(f"no path leads from {first.source} to {first.sink}, a link is down")
    return found


def own_configurations(plan: Plan) -> str:
    """A note that routes which differ from the plan's may come from the routers' own configurations; empty if no router
    has one."""
    routers = [node.name for node in plan.nodes if node.own is not None and node.own.startup is not None]
    if not routers:
        return ""
    words = f"the configurations of {', '.join(routers)} (startup) lead elsewhere than the plan's paths"
    return f": {words}, by which a lab is measured"
