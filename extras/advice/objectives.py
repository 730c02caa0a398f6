"""Objectives for a path, as scenarios on the lab that was derived from it. Pure.

In: an objective, protocols, the amount to send. Out: the scenario's text, and the metric that decides. The measured
traffic of others is sent as packets at random times (Poisson): traffic that yields to no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ewan.extras.advice.derived_lab import DerivedLab, crossing
from ewan.generator.scenario.data import ScenarioMapping, ScenarioValue
from ewan.generator.scenario.writing import to_yaml
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND, Duration, Size
from ewan.labs.record.characterisation import Characterisation

Word = Literal["completion", "fairness", "smooth"]
PROTOCOLS = ("reno", "cubic", "htcp", "scalable", "bbr", "bbr3")
LENGTH_NS, LENGTH_ROUND_TRIPS, LONGEST_NS = 20 * NS_PER_SECOND, 100, 60 * NS_PER_SECOND
MOST_PACKETS = 800_000
"""Packets of a run, where the user gives no amount."""
IP_UDP_BYTES = 28
LEAST_PAYLOAD_BYTES = 24


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective. `metric` decides; `beside`: the other metrics that are shown."""

    title: str
    metric: str
    beside: tuple[str, ...]


OBJECTIVES: dict[Word, Objective] = {
    "completion": Objective(
        "files are there soon", "mean completion time", ("max completion time", "aggregate goodput", "retransmissions")
    ),
    "fairness": Objective(
        "flows get equal shares", "fairness per flow", ("steady goodput", "utilisation", "convergence time")
    ),
    "smooth": Objective(
        "packets wait little in the bottleneck's queue",
        "queueing delay p95",
        ("smoothness", "steady goodput", "utilisation"),
    ),
}


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """A request for advice. `volume_bytes`: the bytes of each flow, for files; `length_ns`: the time of the flows, for
    the other objectives."""

    objective: Word
    protocols: tuple[str, ...]
    flows: int
    seeds: int
    volume_bytes: int
    length_ns: int


def pairs(found: Characterisation, flows: int) -> int:
    """The number of pairs of hosts: one for each flow, and one for the traffic of others where there is some."""
    return flows + any(crossing(way) for way in found.ways().values())


def usual_length_ns(found: Characterisation) -> int:
    """20 s, or 100 round trips where that is longer; at most 60 s, and 800 000 packets."""
    trips = LENGTH_ROUND_TRIPS * (found.base_rtt.value or 0.0)
    packets_ns = MOST_PACKETS * found.mtu_bytes * BITS_PER_BYTE * NS_PER_SECOND / (found.forward.capacity.value or 1.0)
    length = min(max(float(LENGTH_NS), trips), float(LONGEST_NS), packets_ns)
    return max(round(length / NS_PER_MS), 1) * NS_PER_MS


def usual_volume_bytes(found: Characterisation, flows: int) -> int:
    """A flow's share of the bytes that the path carries in the usual time, to two digits."""
    free = max((found.forward.capacity.value or 0.0) - crossing(found.forward), 0.0)
    share = free * usual_length_ns(found) / NS_PER_SECOND / BITS_PER_BYTE / flows
    return max(int(float(f"{share:.1e}")), 100_000)


def scenario(found: Characterisation, derived: DerivedLab, wanted: AdviceRequest) -> str:
    """The text of the scenario, whose sweep goes over the protocols."""
    objective = OBJECTIVES[wanted.objective]
    return to_yaml(
        {
            "name": f"advice-{wanted.objective}",
            "title": f"Which protocol suits the path from {found.source} to {found.sink}: {objective.title}",
            "about": f"The lab is derived from a characterisation; {objective.metric} decides.",
            "parameters": {"congestion": wanted.protocols[0]},
            "sweep": {"congestion": list(wanted.protocols)},
            "seeds": wanted.seeds,
            "lab": derived.lab,
            "steps": [_load(wanted), *_others(found, wanted)],
            "metrics": [objective.metric, *objective.beside],
        }
    )


def _load(wanted: AdviceRequest) -> ScenarioMapping:
    """Flows begin within half a second, at random."""
    step: dict[str, ScenarioValue] = {
        "name": "flows",
        "at": {"uniform": {"low": "0ms", "high": "500ms"}},
        "from": _hosts("left", wanted.flows),
        "to": _hosts("right", wanted.flows),
        "congestion": "${congestion}",
    }
    if wanted.objective == "completion":
        return step | {"bulk": str(Size(wanted.volume_bytes))}
    return step | {"for": str(Duration(wanted.length_ns)), "bulk": None}


def _others(found: Characterisation, wanted: AdviceRequest) -> list[ScenarioMapping]:
    """A step for each way that others use, for as long as any flow sends."""
    steps: list[ScenarioMapping] = []
    number = wanted.flows + 1
    ends = {"forward": ("left", "right"), "backward": ("right", "left")}
    size = max(found.mtu_bytes - IP_UDP_BYTES, LEAST_PAYLOAD_BYTES)
    for name, way in found.ways().items():
        if rate := crossing(way):
            mean = Duration(round(found.mtu_bytes * BITS_PER_BYTE * NS_PER_SECOND / rate))
            udp: ScenarioMapping = {"size": f"{size}B", "interval": {"exponential": {"mean": str(mean)}}}
            a, b = (f"{side}{number}" for side in ends[name])
            steps.append(
                {
                    "name": f"others-{name}",
                    "role": "background",
                    "from": a,
                    "to": b,
                    "for": _lasting(found, wanted),
                    "udp": udp,
                }
            )
    return steps


def _lasting(found: Characterisation, wanted: AdviceRequest) -> str:
    """The time for which the traffic of others lasts. For files it is four times as long as they would take without
    losses: slow protocols have company, too."""
    if wanted.objective != "completion":
        return str(Duration(wanted.length_ns + NS_PER_SECOND))
    free = max((found.forward.capacity.value or 0.0) - crossing(found.forward), 1.0)
    each = wanted.volume_bytes * wanted.flows * BITS_PER_BYTE * NS_PER_SECOND / free
    return str(Duration(round((4 * each + NS_PER_SECOND) / NS_PER_MS) * NS_PER_MS))


def _hosts(side: str, count: int) -> str:
    return f"{side}1" if count == 1 else f"{side}[1-{count}]"


def protocols_of(text: str) -> Sequence[str]:
    """The names in `reno,cubic,bbr`, each once."""
    return list(dict.fromkeys(text.replace(",", " ").split()))
