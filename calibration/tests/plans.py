"""Plans and answers for tests: one link "core" between r1 and r2, one pair left → right; forward comes first."""

from __future__ import annotations

from typing import Any, get_args, get_origin, get_type_hints

from ewan.calibration.expect import expectations
from ewan.calibration.expectation import Expectations
from ewan.calibration.probe import LiveProbes
from ewan.calibration.probing import ProbePlan, plan_probes
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct, replace
from ewan.labs.link import Bare, Direction, DropTail, Framing, Queue, plain_direction
from ewan.labs.plan import Containers, End, Hop, Interface, Link, NetworkPath, Node, Pair, Plan, Spinner, Wire
from ewan.labs.runtime.probe_documents import ProbeAnswer, ProbeResult

WIRE = Framing(overhead_bytes=38, minimum_bytes=84)
DROP_TAIL = DropTail()


def direction(**changes: Any) -> Direction:
    """1 Gbit/s, 50 ms, 1 BDP of 100 ms."""
    plain = plain_direction(WIRE, 1_000_000_000, Queue(None, 12_500_000, DROP_TAIL), 50_000_000)
    return replace(plain, **{"seed": 1, "store_packets": 100_000, "store_bytes": 100_000_000, **changes})


def plan(**changes: Any) -> Plan:
    """With the same changes to both directions."""
    nodes = (
        _node("left", "host", "10.64.0.1/30", "fd00::1/126"),
        _node("r1", "router", "10.64.1.1/30", "fd00::5/126"),
        Node("core", "emulator", (), (), {}, (), (), None, None),
        _node("r2", "router", "10.64.1.2/30", "fd00::6/126"),
        _node("right", "host", "10.64.2.1/30", "fd00::9/126"),
    )
    both = direction(**changes)
    ends = (End("r1", "eth0"), End("r2", "eth0"))
    link = Link("core", "wan", "user", "core", "eth0", "eth1", *ends, both, both)
    names = "access-left", "core", "access-right"
    there = Hop(names[0], "forward"), Hop("core", "forward"), Hop(names[2], "backward")
    back = Hop(names[2], "forward"), Hop("core", "backward"), Hop(names[0], "backward")
    pair = Pair("left", "right", 100_000_000, *(NetworkPath(hops, 1, both.rate_bps) for hops in (there, back)))
    wires = (
        Wire(names[0], End("left", "eth0"), End("r1", "eth1")),
        Wire(names[2], End("right", "eth0"), End("r2", "eth1")),
    )
    return Plan(
        "t", "dumbbell", 1, "static", Containers(), nodes, wires, (link,), (Spinner(1, ("core",)),), (pair,), (0,)
    )


def _node(name: str, kind: Any, *addresses: str) -> Node:
    mac = "02:00:00:00:00:01"
    ports = [Interface("eth0", mac, 1500, addresses, (), Bare(), False)]
    if kind == "router":
        ports.append(Interface("eth1", mac, 1500, (), (), Bare(), False))
    return Node(name, kind, tuple(ports), (), {}, (), (), None, None)


def asked(probing: ProbePlan) -> Any:
    """The probes as a request has them."""
    return codec.data_of(probing.probes)


def told(answer: Any) -> ProbeAnswer:
    """An answer of which tests give what matters to them; what they leave out is 0, empty or null."""
    results = [
        filled(next(each for each in get_args(ProbeResult) if _tag(each) == told["kind"]), told)
        for told in answer["results"]
    ]
    return ProbeAnswer(tuple(results))


def _tag(kind: Any) -> str:
    return str(kind.__struct_config__.tag)


def filled(kind: Any, data: Any) -> Any:
    """A value of this type; whole numbers where the type has them."""
    if data is None or not (isinstance(kind, type) and issubclass(kind, Struct)):
        return _plain(kind, data)
    hints = get_type_hints(kind)
    return kind(**{name: _plain(hints[name], data.get(name)) for name in kind.__struct_fields__})


def _plain(kind: Any, data: Any) -> Any:
    options = [each for each in get_args(kind) if each is not type(None)] if type(None) in get_args(kind) else [kind]
    inner = options[0]
    if data is None and (len(options) < len(get_args(kind)) or inner is not kind):
        return None
    if get_origin(inner) is tuple:
        return tuple(filled(get_args(inner)[0], each) for each in data or ())
    if isinstance(inner, type) and issubclass(inner, Struct):
        return filled(inner, data or {})
    return inner() if data is None else round(data) if inner is int else data


def delays(base_ns: int, late_ns: int = 5_000) -> dict[str, float]:
    names = ("min_ns", "p1_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "mean_ns")
    return {**dict.fromkeys(names, base_ns + late_ns), "min_ns": base_ns, "deviation_ns": 0.0}


def spread(delay: dict[str, float], packets: int) -> list[float]:
    """Delays of so many packets with these percentiles."""
    tail = max(packets // 50, 1)
    return [delay["min_ns"]] + [delay["p50_ns"]] * max(packets - 1 - tail, 0) + [delay["p99_ns"]] * tail


def stream(wanted: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A stream's result: everything sent, everything arrived 50 ms + serialisation later."""
    count = wanted["packets"]
    base = 50_000_000 + (wanted["packet_bytes"] + 38) * 8
    result = {
        "name": wanted["name"],
        "packet_bytes": wanted["packet_bytes"],
        "sent_packets": count,
        "refused_packets": 0,
        "refused_why": None,
        "unsent_packets": 0,
        "sending_ns": (count - 1) * wanted["interval_ns"],
        "longest_sender_gap_ns": wanted["interval_ns"],
        "received_packets": count,
        "lost_packets": 0,
        "duplicated_packets": 0,
        "reordered_packets": 0,
        "socket_drops_packets": 0,
        "delay": delays(base),
        "jitter_ns": 0.0,
        "steady": None,
    }
    found = {**result, **changes}
    return {"delays_ns": spread(found["delay"], found["received_packets"]), **found} if found["delay"] else found


def saturated(wanted: dict[str, Any], rate_bps: float, queue_bytes: int) -> dict[str, Any]:
    """0.8 s of full packets at `rate_bps` through a queue that is full."""
    framed = wanted["packet_bytes"] + 38
    packets = 65_000
    base = 50_000_000 + framed * 8
    steady = {
        "packets": packets,
        "l3_bytes": packets * wanted["packet_bytes"],
        "window_ns": round(packets * framed * 8e9 / rate_bps),
        "fitted_window_ns": packets * framed * 8e9 / rate_bps,
        "longest_gap_ns": 20_000,
        "busy_packets": 40_000,
        "busy_window_ns": round(40_000 * framed * 8e9 / rate_bps),
        "delay": delays(base + round(queue_bytes * 8e9 / rate_bps)),
    }
    return stream(wanted, delay=delays(base), steady=steady)


def answer(probing: ProbePlan, rate_bps: float = 1e9, queue_bytes: int = 12_499_326, **changes: Any) -> dict[str, Any]:
    """What `ewan-node probe` would say of an honest link; `changes` to every stream of a delay or loss probe."""
    results = []
    for probe in asked(probing):
        result = {"kind": probe["kind"], "name": probe["name"], "elapsed_ns": 1, "clock_step_ns": 0}
        if probe["kind"] == "saturate":
            result["streams"] = [saturated(wanted, rate_bps, queue_bytes) for wanted in probe["streams"]]
        elif probe["kind"] == "tcp":
            sample = {"time_ns": 0, "cwnd_segments": 10_000}
            result |= {
                "congestion": "reno",
                "goodput_bps": 941e6,
                "steady_ns": 1_000_000_000,
                "segment_bytes": 1448,
                "retransmitted_segments": 0,
                "series": [sample],
            }
        elif probe["kind"] == "rtt":
            result["streams"] = [stream(wanted, delay=delays(100_002_208)) for wanted in probe["streams"]]
        else:
            result["streams"] = [stream(wanted, **changes) for wanted in probe["streams"]]
        results.append(result)
    return {"format": "ewan-probe/1", "results": results}


def prepared(lab: Plan) -> tuple[Expectations, ProbePlan]:
    expected = expectations(lab)
    return expected, plan_probes(expected, lab.lab, LiveProbes())
