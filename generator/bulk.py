"""Bulk TCP transfers as a request for `ewan-node probe`, for the programs of both clocks. Pure.

In: a plan and who sends to whom, with which congestion control, when and how much. Out: the request
(generator/src/bulk.rs executes it); from its answer, each flow's record by name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from labs.plan import Plan


@dataclass(frozen=True, slots=True)
class Flow:
    """One transfer: `bytes` in all or `duration_ns` long, whichever ends first; one of the two is given."""

    source: str
    sink: str
    congestion: str = "cubic"
    start_ns: int = 0
    bytes: int | None = None
    duration_ns: int | None = None


def request(
    plan: Plan,
    flows: Sequence[Flow],
    clock: Literal["live", "virtual"],
    *,
    sample_ns: int = 0,
    series_ns: int = 0,
    longest_ns: int | None = None,
) -> dict[str, Any]:
    """All flows side by side. `sample_ns`: between two looks at TCP_INFO; `series_ns`: width of goodput bins; 0: none.

    The flow number n (from 0) is called "n source to sink".
    """
    addresses = {node.name: [a for each in node.interfaces for a in each.addresses] for node in plan.nodes}
    bulk: dict[str, Any] = {"kind": "bulk", "name": "bulk", "sample_ns": sample_ns, "series_ns": series_ns}
    bulk["flows"] = [
        {
            "name": f"{number} {flow.source} to {flow.sink}",
            "from": end(plan.lab, flow.source, _first(addresses[flow.source])),
            "to": end(plan.lab, flow.sink, _first(addresses[flow.sink])),
            "congestion": flow.congestion,
            "start_ns": flow.start_ns,
            "bytes": flow.bytes,
            "duration_ns": flow.duration_ns,
        }
        for number, flow in enumerate(flows)
    ]
    if longest_ns is not None:
        bulk["longest_ns"] = longest_ns
    return {"clock": clock, "cpus": list(plan.host_cpus), "probes": [bulk]}


def end(lab: str, node: str, address: str) -> dict[str, str]:
    """Where a flow or a stream of packets begins or ends."""
    return {"netns": f"/run/netns/ewan-{lab}-{node}", "address": address}


def _first(addresses: Sequence[str]) -> str:
    """A node's first address, IPv4 if it has one."""
    plain = [ipaddress.ip_interface(text).ip for text in addresses]
    return str(min(plain, key=lambda address: address.version))


def flows_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The flows of an answer, in the order of the request; RuntimeError with the first reason why one did not run."""
    (result,) = (result for result in answer["results"] if result["name"] == "bulk")
    if result["kind"] == "failed":
        raise RuntimeError(result["error"])
    flows: list[dict[str, Any]] = result["flows"]
    for flow in flows:
        if "error" in flow:
            raise RuntimeError(f"flow {flow['name']}: {flow['error']}")
    return flows
