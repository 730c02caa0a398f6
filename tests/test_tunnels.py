"""Tunnels in the virtual clock: what TCP gets through each kind, what becomes of ECN (RFC 6040), and a branch whose
first uplink fails."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from ewan.labs.link.encapsulation import OVERHEAD, TunnelKind
from tests.conftest import Ewan
from tests.experiments import only

MS = 10**6
KINDS: tuple[TunnelKind, ...] = ("gre", "vxlan", "wireguard")
LAB = """
topology:
  graph:
    hosts: [pc, server]
    routers: [branch, isp, hub]
    links:
      - {between: [pc, branch]}
      - {name: dsl, between: [branch, isp], role: wan, rate: 10Mbit/s, delay: 10msQUEUE}
      - {name: metro, between: [isp, hub], delay: 5ms}
      - {between: [server, hub]}
    pairs: [[server, pc]]
ip: 4
tunnels:
  - {name: vpn, between: [branch, hub], kind: KIND}
"""
DOWNLOAD = """
name: download
lab: tunnelled.lab.yaml
steps:
  - {name: download, from: server, to: pc, for: 3s, bulk: }
"""
ENDS = """
import collections, socket, sys, time

def send(host):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for codepoint in range(4):
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x28 | codepoint)
        for _ in range(20):
            s.sendto(bytes([codepoint]) + bytes(499), (host, 5005))
        time.sleep(0.3)

def hear(seconds):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", 5005))
    s.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
    found = collections.Counter()
    for data, told in until(seconds, s, lambda: s.recvmsg(600, 64)[:2]):
        found[data[0], told[0][2][0]] += 1
    for (sent, came), count in sorted(found.items()):
        print(sent, came, count)

def outer(seconds):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    found = collections.Counter()
    for data, where in until(seconds, s, lambda: s.recvfrom(1600)):
        if where[2] != 4 and len(data) > 500:  # PACKET_OUTGOING
            found[data[1]] += 1
    for tos, count in sorted(found.items()):
        print(tos, count)

def until(seconds, s, receive):
    s.settimeout(0.1)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        try:
            yield receive()
        except TimeoutError:
            pass

{"send": send, "hear": hear, "outer": outer}[sys.argv[1]](sys.argv[2])
"""
"""`send`: 20 datagrams of each codepoint of ECN, of DSCP 10. `hear`: how many came, by codepoint sent and traffic
class. `outer`: how many outer packets came to a router, by traffic class."""
CODEPOINTS = """
name: codepoints
lab: tunnelled.lab.yaml
steps:
MARK
  - {name: hear, on: pc, service: true, run: "python3 FOLDER/ends.py hear 2.5"}
  - {name: outer, on: isp, service: true, run: "python3 FOLDER/ends.py outer 2.5"}
  - {name: handshake, at: 100ms, on: server, run: "ping -c 1 pc || true"}
  - {name: send, at: 500ms, on: server, run: "python3 FOLDER/ends.py send pc"}
  - {name: wait, at: 3s, on: pc, run: "true"}
"""
MARK = """
  - name: mark
    on: isp
    run: "nft 'table ip t { chain f { type filter hook forward priority 0; ip ecn set ce; }; }'"
"""
"""A router that writes CE into every packet, whatever it had before."""
NOT_ECT, ECT_1, ECT_0, CE = range(4)
DSCP = 0x28


def run(lab: str, scenario: str, place: Path, ewan: Ewan) -> Path:
    """The directory of the only run."""
    (place / "tunnelled.lab.yaml").write_text(lab)
    (place / "x.scenario.yaml").write_text(scenario)
    answer = ewan("run", "x", "--runtime", "virtual", cwd=place)
    assert answer.returncode == 0, answer.stderr
    return only(place) / "runs/001"


def of_kind(kind: TunnelKind, queue: str = "") -> str:
    return LAB.replace("KIND", kind).replace("QUEUE", queue)


def table(at: Path, pattern: str) -> dict[tuple[int, ...], int]:
    """The counts that a command printed, by the numbers before them."""
    (found,) = [each for each in at.glob(f"commands/{pattern}.out") if each.read_text()]
    rows = [tuple(map(int, line.split())) for line in found.read_text().splitlines()]
    return {row[:-1]: row[-1] for row in rows}


@pytest.mark.virtual
@pytest.mark.parametrize("kind", KINDS)
def test_tcp_gets_through_a_tunnel_what_its_headers_leave(kind: TunnelKind, tmp_path: Path, ewan: Ewan) -> None:
    at = run(of_kind(kind), DOWNLOAD, tmp_path, ewan)
    (flow,) = pl.read_parquet(at / "flows.parquet").iter_rows(named=True)
    payload = 1500 - OVERHEAD[kind][0] - 52
    assert 30 * MS < flow["min_rtt_ns"] < 34 * MS
    assert 0.85 < flow["goodput_bps"] / (10e6 * payload / 1538) < 1
    assert json.loads((at / "plan.json").read_text())["pairs"][0]["rtt_ns"] == 30 * MS


def codepoints(
    kind: TunnelKind, place: Path, ewan: Ewan, queue: str = "", mark: str = ""
) -> tuple[dict[tuple[int, ...], int], dict[tuple[int, ...], int]]:
    """What the sink and the router in between counted."""
    (place / "ends.py").write_text(ENDS)
    scenario = CODEPOINTS.replace("MARK", mark.strip("\n")).replace("FOLDER", str(place))
    at = run(of_kind(kind, queue), scenario, place, ewan)
    return table(at, "*-pc"), table(at, "*-isp")


@pytest.mark.virtual
@pytest.mark.parametrize("kind", KINDS)
def test_codepoints_are_those_of_rfc_6040_on_the_way_in(kind: TunnelKind, tmp_path: Path, ewan: Ewan) -> None:
    heard, outer = codepoints(kind, tmp_path, ewan)
    assert heard == {(sent, DSCP | sent): 20 for sent in range(4)}, "nothing changes where nothing marks"
    dscp = 0 if kind == "wireguard" else DSCP
    # Linux writes ECT(0) outside of CE, as RFC 3168 did; RFC 6040 writes CE.
    assert outer == {(dscp | NOT_ECT,): 20, (dscp | ECT_1,): 20, (dscp | ECT_0,): 40}


@pytest.mark.virtual
@pytest.mark.parametrize("kind", KINDS)
def test_marks_of_the_links_under_a_tunnel_come_out_of_it(kind: TunnelKind, tmp_path: Path, ewan: Ewan) -> None:
    heard, _ = codepoints(kind, tmp_path, ewan, ", queue: {step: {at: 2pkt}}")
    for sent in (ECT_0, ECT_1):
        assert heard[sent, DSCP | CE] >= 12, "all packets but those that find no queue"
        assert heard[sent, DSCP | CE] + heard[sent, DSCP | sent] == 20
    assert heard[NOT_ECT, DSCP | NOT_ECT] == 20
    assert heard[CE, DSCP | CE] == 20


@pytest.mark.virtual
@pytest.mark.parametrize("kind", KINDS)
def test_a_mark_on_a_packet_that_allows_none_is_a_loss(kind: TunnelKind, tmp_path: Path, ewan: Ewan) -> None:
    heard, _ = codepoints(kind, tmp_path, ewan, mark=MARK)
    marked = {(sent, DSCP | CE): 20 for sent in (ECT_0, ECT_1, CE)}
    # WireGuard differs from RFC 6040: it delivers the packet without a mark.
    assert heard == (marked | {(NOT_ECT, DSCP): 20} if kind == "wireguard" else marked)
