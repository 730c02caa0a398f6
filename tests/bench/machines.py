"""A lab over several machines beside the same on this one: how long it takes, its delay's error, what a tunnel carries.

In: the machines of --machines, root here for the lab beside. Out: seconds, errors with their uncertainty and rates, and
tables of them. The bare VXLAN is measured by `ewan-node stretch` over the same machines, without a lab.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ewan.calibration.certify import LiveLab, verify_lab
from ewan.extras.machines.runtime import ClusterRuntime
from ewan.generator.traffic_request import end
from ewan.labs import host
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.compile import HostFacts, compile
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.record import Certificate
from ewan.labs.runtime.base import LabError, LiveClockRuntime
from ewan.labs.runtime.probe_documents import TcpProbe, TcpResult
from ewan.labs.spec import from_template
from tests.bench import timed

HOSTS = 90
RTT = "20ms"
RATE = "10Gbit/s"
"""More than the tunnel carries."""
CONNECTION = "cubic", 3 * NS_PER_SECOND, 2 * NS_PER_SECOND, 5 * NS_PER_SECOND
Sheet = tuple[str, list[str], list[list[str]]]


def measure(context: Context, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Of the machines and of this one: a star up and down, the error of a link's delay, TCP over a fast link."""
    if context.machines is None:
        raise LabError(
            "which machines? write --machines FILE (make: OPTS=--machines=FILE), see docs/how-to/labs/machines.md"
        )
    cluster = context.multi_machine(say)
    assert isinstance(cluster, ClusterRuntime)
    over, here = cluster.host_facts(), host.facts()
    beside = context.live("netns")
    hosts = 9 if quick else HOSTS
    found: dict[str, Any] = {"hosts": hosts}
    for where, runtime, facts in (("machines", cluster, over), ("here", beside, here)):
        say(f"a star of {hosts} hosts, {where}")
        found[where] = _star(runtime, facts, hosts) | _delay(context, runtime, facts, say)
    found["machines"] |= _rate(cluster, over, say)
    return found


def _plan(facts: HostFacts, topology: str, **settings: str) -> Plan:
    name = f"bench{os.getpid()}"  # of this run alone: a lab called bench is somebody's
    return compile(from_template(topology, {"name": name, "rtt": RTT, **settings}), facts)


def _star(runtime: LiveClockRuntime, facts: HostFacts, hosts: int) -> dict[str, float]:
    plan = _plan(facts, "star", arms=str(hosts), rate="100Mbit/s")
    try:
        up_s = timed(lambda: runtime.up(plan))
    finally:
        down_s = timed(lambda: runtime.down(plan.lab))
    return {"up_s": up_s, "down_s": down_s}


def _delay(context: Context, runtime: LiveClockRuntime, facts: HostFacts, say: Callable[[str], None]) -> dict[str, Any]:
    """The error of the median one-way delay of a dumbbell's core, each way, and its expanded uncertainty (ns)."""
    plan = _plan(facts, "dumbbell", rate="100Mbit/s")
    runtime.up(plan)
    try:
        certificate = verify_lab(runtime.load(plan.lab).plan, LiveLab(runtime, context.binary), progress=say)
    finally:
        runtime.down(plan.lab)
    return {way: _row(certificate, way) for way in ("forward", "backward")}


def _row(certificate: Certificate, way: str) -> dict[str, float | None]:
    found = next(
        row for row in certificate.rows if (row.link, row.direction, row.quantity) == ("core", way, "delay p50")
    )
    return {"error_ns": found.error, "U_ns": found.uncertainty.expanded if found.uncertainty is not None else None}


def _rate(cluster: ClusterRuntime, facts: HostFacts, say: Callable[[str], None]) -> dict[str, float]:
    """TCP over a link of `RATE` through a tunnel, and a burst over the bare tunnel (bit/s of payload)."""
    plan = _plan(facts, "dumbbell", rate=RATE)
    cluster.up(plan)
    try:
        nodes = {node.name: node for node in plan.nodes}
        addresses = ((name, nodes[name].interfaces[0].addresses[0].partition("/")[0]) for name in ("left1", "right1"))
        a, b = (end(plan.lab, *each) for each in addresses)
        probe = TcpProbe("tcp", a, b, *CONNECTION)
        told = cluster.probe(plan.lab, [probe], say).results[0]
        (tunnel,) = cluster.record(plan.lab).tunnels
    finally:
        cluster.down(plan.lab)
    return {
        "tcp_bps": told.goodput_bps if isinstance(told, TcpResult) else 0.0,
        "bare_bps": float(tunnel.there.rate_bps or 0),
    }


def tables(found: dict[str, Any]) -> list[Sheet]:
    """Title, columns, rows."""
    over, here = found["machines"], found["here"]
    times = []
    for what, key in (("up, links running", "up_s"), ("down", "down_s")):
        there, local = (about(side[key] * NS_PER_SECOND, "time") for side in (over, here))
        times.append([what, there, local, f"{over[key] / here[key]:.2f}"])
    errors = [[way, *(_error(side[way]) for side in (over, here))] for way in ("forward", "backward")]
    rates = [
        [about(over["tcp_bps"], "rate"), about(over["bare_bps"], "rate"), f"{over['tcp_bps'] / over['bare_bps']:.2f}"]
    ]
    return [
        (f"A star of {found['hosts']} hosts", ["", "over the machines", "on this one", "ratio"], times),
        (f"Median delay of a link ({RTT} RTT), error ± U", ["", "over a tunnel", "on this one"], errors),
        (f"A link of {RATE} over a tunnel", ["TCP", "bare VXLAN, a burst of UDP", "ratio"], rates),
    ]


def _error(row: dict[str, float | None]) -> str:
    error, uncertainty = row["error_ns"], row["U_ns"]
    if error is None:
        return "not measured"
    sign = "-" if error < 0 else "+"
    bound = "" if uncertainty is None else f" ± {about(uncertainty, 'time', 2)}"
    return f"{sign}{about(abs(error), 'time', 2)}{bound}"
