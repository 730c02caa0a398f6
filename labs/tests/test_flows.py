"""TCP flows of a live lab: what the kernel's answers say, and what flows achieve from one look to the next."""

from __future__ import annotations

import base64
import ipaddress
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ewan.labs import flows
from ewan.labs.compile import HostFacts, compile
from ewan.labs.flows import Flows
from ewan.labs.plan import Plan
from ewan.labs.runtime import connections
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.connections import ConnectionState, Namespaces
from ewan.labs.spec import from_template

# What Linux 6.18 told of one transfer of iperf3, at its sender (IPv4) and at its receiver, whose socket is one of IPv6.
SENDER = """
pAEAABQAAgABAAAAkDcAAAIBAQCM+hRRCkAABQAAAAAAAAAAAAAAAApAAAkAAAAAAAAAAAAAAAAAAAAADQAAAAAAAAAwAAAAAAAAACDBCwAAAAAA1U0G
AAUACAAAAAAACAAPAAAAAAAMABUAAQAAAAAAAAAGABYAUgAAABwBAgABAAAAAAd3AABrAwAAAAAAqAUAABgCAABXAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAsAsAAAAAAADcBQAAWPoAADtTAAAJAQAAUgAAAFcAAACoBQAAAwAAAAAAAACQOAAAqAAAANVBbAAAAAAA//////////8GVQIBAAAAAAAAAAAA
AAAAri4AAJYVAAAI1QkAIE4AAAAAAACsLgAA28FKAAAAAACgeC0AAAAAAAAAAAAAAAAAAAAAAAAAAACuLQAAAAAAAF33BwEAAAAAQLYDAAAAAAAAAAAA
AAAAAAAAAACAtCIAAPsAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACQAEAHJlbm8AAAAA
"""
RECEIVER = """
pAEAABQAAgABAAAAkDcAAAoBAAAUUYz6AAAAAAAAAAAAAP//CkAACQAAAAAAAAAAAAD//wpAAAUAAAAADwAAAAAAAAAAAAAAqAUAAAAAAAAAAAAA1k0G
AAUACAAAAAAACAAPAAAAAAAMABUAAQAAAAAAAAAGABYAEgAAABwBAgABAAAAAAd3AQBrAwBAnAAAqAUAAKgFAAAAAAAAAAAAAAAAAAAAAAAAAAAAALAL
AAAAAAAAAAAAAAAAAADcBQAAUbQiAOROAAByJwAA////fwoAAACoBQAAAwAAAO9TAABogAUAAAAAAFvhFQAAAAAA//////////8AAAAAAAAAAA2uAwEA
AAAAtBUAAOwtAAAAAAAA5E4AAOotAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAD4CAAAA+wAAgLQiAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACQAEAHJlbm8AAAAA
"""
DONE = base64.b64decode("FAAAAAMAAgABAAAA4y8AAAAAAAA=")


def test_an_answer_of_the_kernel_is_read() -> None:
    sender = base64.b64decode(SENDER)
    (told,), last = connections.read(sender)
    assert (str(told.local), told.local_port, str(told.remote), told.remote_port) == (
        *("10.64.0.5", 36090),
        *("10.64.0.9", 5201),
    )
    assert (told.congestion, told.segment_bytes, told.cwnd_segments) == ("reno", 1448, 87)
    assert (told.rtt_ns, told.min_rtt_ns, told.retransmitted_segments) == (21_307_000, 20_000_000, 168)
    assert (told.acked_bytes, told.received_bytes, last) == (16_930_054, 0, False)
    assert connections.read(sender + DONE) == ([told], True)


def test_an_ipv4_connection_of_an_ipv6_socket_has_ipv4_addresses() -> None:
    (told,), _ = connections.read(base64.b64decode(RECEIVER))
    assert (str(told.local), str(told.remote), told.remote_port) == ("10.64.0.9", "10.64.0.5", 36090)
    assert told.received_bytes > 0 == told.acked_bytes


def test_a_refusal_of_the_kernel_is_an_error_and_an_older_one_tells_less() -> None:
    with pytest.raises(PermissionError):
        connections.read(struct.pack("=IHHIIi", 20, connections.NLMSG_ERROR, 0, 1, 0, -1))
    header = struct.pack("=IHHII", 16 + connections.MESSAGE.size, connections.SOCK_DIAG_BY_FAMILY, 0, 1, 0)
    plain = base64.b64decode(SENDER)[16 : 16 + connections.MESSAGE.size]
    (told,), _ = connections.read(header + plain)
    assert (told.local_port, told.congestion, told.cwnd_segments, told.acked_bytes) == (36090, "", 0, 0)


def test_who_may_not_enter_or_finds_no_namespace_is_told() -> None:
    with pytest.raises(LabError, match="network namespace no-such-namespace: No such file"):
        Namespaces({"a": "no-such-namespace"})


def connection(
    local: str, remote: str, acked: int = 0, received: int = 0, cookie: str = "1", **more: Any
) -> ConnectionState:
    here, there = ipaddress.ip_address(local), ipaddress.ip_address(remote)
    base = ConnectionState(cookie, here, 1000, there, 2000, "cubic", 1448, 10, 20_000_000, None, 0, acked, received, 0)
    return replace(base, **more)


class Kernel:
    """In place of namespaces: tells what the test says."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.told: dict[str, list[ConnectionState]] = {}
        self.late: Callable[[], None] = lambda: None
        """What happens once all but the last have answered."""

    def ask(self) -> Iterator[tuple[str, list[ConnectionState]]]:
        for number, (name, told) in enumerate(self.told.items()):
            if number:
                self.late()
            yield name, told

    def close(self) -> None:
        return


@pytest.fixture
def plan() -> Plan:
    return compile(from_template("dumbbell", {"name": "d"}), HostFacts(cpus=(0, 1), networks=()))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now_ns=0, step_ns=0)

    def monotonic_ns() -> int:
        clock.now_ns += clock.step_ns
        return int(clock.now_ns)

    monkeypatch.setattr(flows, "time", SimpleNamespace(monotonic_ns=monotonic_ns))
    return clock


def opened(monkeypatch: pytest.MonkeyPatch, plan: Plan, node: str | None = None, elsewhere: Any = None) -> Flows:
    monkeypatch.setattr(flows, "Namespaces", Kernel)
    labs: Any = SimpleNamespace(elsewhere=lambda name: elsewhere or {})
    return Flows(labs, plan, node)


def kernel(of: Flows) -> Kernel:
    found: Any = of._namespaces
    return found  # type: ignore[no-any-return]


def addresses(plan: Plan) -> dict[str, str]:
    hosts = [node for node in plan.nodes if node.kind == "host"]
    return {node.name: node.interfaces[0].addresses[0].partition("/")[0] for node in hosts}


def test_a_node_that_answers_late_makes_no_other_node_s_flows_faster(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, clock: SimpleNamespace
) -> None:
    at = addresses(plan)
    looks = opened(monkeypatch, plan)

    def late() -> None:
        clock.now_ns += 200_000_000

    kernel(looks).told = {"left1": [connection(at["left1"], at["right1"], acked=0)], "right1": []}
    kernel(looks).late = late
    looks.look()
    kernel(looks).late = lambda: None
    clock.now_ns += 50_000_000  # 250 ms after left1 was asked before
    kernel(looks).told["left1"] = [connection(at["left1"], at["right1"], acked=625_000)]
    (flow,) = looks.look()
    assert flow.sent_bps == 20_000_000


def test_goodput_is_what_was_acknowledged_since_the_last_look(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, clock: SimpleNamespace
) -> None:
    at = addresses(plan)
    looks = opened(monkeypatch, plan)
    kernel(looks).told = {"left1": [connection(at["left1"], at["right1"], acked=1000)]}
    (first,) = looks.look()
    assert (first.node, first.peer, first.sent_bps, first.cwnd_bytes) == ("left1", "right1", None, 14_480)
    clock.now_ns += 10**9 // 2
    kernel(looks).told = {"left1": [connection(at["left1"], at["right1"], acked=126_000)]}
    (second,) = looks.look()
    assert (second.sent_bps, second.received_bps, second.id) == (2_000_000, 0, first.id)


def test_a_flow_is_told_once_by_the_end_that_sends_more_and_at_its_node_by_both(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, clock: SimpleNamespace
) -> None:
    at = addresses(plan)
    told = {
        "left1": [connection(at["left1"], at["right1"], acked=500)],
        "right1": [
            connection(at["right1"], at["left1"], received=500, local_port=2000, remote_port=1000),
            connection(at["right1"], "192.0.2.1", received=9, cookie="2"),  # its other end is no node
        ],
    }
    looks = opened(monkeypatch, plan)
    assert set(kernel(looks).names) == {node.name for node in plan.nodes if node.kind in ("host", "router")}
    kernel(looks).told = told
    assert {(flow.node, flow.peer) for flow in looks.look()} == {("left1", "right1"), ("right1", "192.0.2.1")}
    kernel(looks).told = {
        "left1": [connection(at["left1"], at["right1"])],
        "right1": [connection(at["right1"], at["left1"], local_port=2000, remote_port=1000)],
    }
    assert len(looks.look()) == 1  # an idle one, too

    own = opened(monkeypatch, plan, "right1")
    assert kernel(own).names == {"right1": "ewan-d-right1"}
    kernel(own).told = {"right1": told["right1"]}
    assert len(own.look()) == 2


def test_looking_takes_a_twentieth_of_the_time(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, clock: SimpleNamespace
) -> None:
    looks = opened(monkeypatch, plan)
    looks.look()
    assert looks.wait_s == flows.EVERY_S
    clock.step_ns = 10**9
    looks.look()
    assert looks.wait_s == pytest.approx(20)


def test_of_many_flows_those_that_send_most_are_told(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, clock: SimpleNamespace
) -> None:
    at = addresses(plan)
    looks = opened(monkeypatch, plan, "left1")

    def told(factor: int) -> dict[str, list[ConnectionState]]:
        return {
            "left1": [
                connection(at["left1"], at["right1"], acked=factor * number, cookie=f"{number:04}")
                for number in range(flows.MOST + 50)
            ]
        }

    for factor in (1, 1000):
        kernel(looks).told = told(factor)
        found = looks.look()
        clock.now_ns += 10**9
    assert len(found) == flows.MOST and found[0].id == f"left1 {flows.MOST + 49:04}"
    assert "left1:1000 → right1:2000" in str(flows.view(plan, found).rows)


def test_what_there_is_not_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    with pytest.raises(LabError, match="d has no node nobody: it has left1"):
        opened(monkeypatch, plan, "nobody")
    with pytest.raises(LabError, match="only for labs on one machine"):
        opened(monkeypatch, plan, elsewhere={"m1": None})


@pytest.mark.skipif(sys.byteorder != "little", reason="what was captured is of a machine of this order")
def test_the_kernel_is_asked_for_both_families() -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        asked = connections.request(family)
        assert len(asked) == struct.unpack_from("=I", asked)[0] == 72 and asked[16] == family
