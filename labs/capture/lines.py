"""A captured packet in one line, as tcpdump would say it. Pure.

In: a frame, and when and where it was captured. Out: `14:03:05.123456789 core:r1 in 10.64.0.5 > 10.64.0.9 icmp echo
request, id 7, seq 1, 98 bytes`. dpkt takes the frame apart; what it does not know, or what is cut off, is named by
its number.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Any

import dpkt

from ewan.labs.base.units import NS_PER_SECOND

_FLAGS = ((dpkt.tcp.TH_SYN, "S"), (dpkt.tcp.TH_FIN, "F"), (dpkt.tcp.TH_RST, "R"), (dpkt.tcp.TH_PUSH, "P"))
_MORE_FLAGS = ((dpkt.tcp.TH_ECE, "E"), (dpkt.tcp.TH_CWR, "W"), (dpkt.tcp.TH_ACK, "."))
_ICMP = {
    dpkt.icmp.ICMP_ECHOREPLY: "echo reply",
    dpkt.icmp.ICMP_ECHO: "echo request",
    dpkt.icmp.ICMP_UNREACH: "unreachable",
    dpkt.icmp.ICMP_TIMEXCEED: "time exceeded",
    dpkt.icmp.ICMP_REDIRECT: "redirect",
}
# RFC 4443, RFC 4861, RFC 3810
_ICMP6 = {
    1: "unreachable",
    2: "packet too big",
    3: "time exceeded",
    128: "echo request",
    129: "echo reply",
    133: "router solicitation",
    134: "router advertisement",
    135: "neighbour solicitation",
    136: "neighbour advertisement",
    143: "multicast listener report",
}
_OSPF = {1: "hello", 2: "database description", 3: "request", 4: "update", 5: "acknowledgment"}
_ECN = ("", "ECT(1)", "ECT(0)", "CE")
_ECHOES = {"echo request", "echo reply"}
_OSI = b"\xfe\xfe\x03"
"""LLC of IS-IS (ISO 10589)."""


def line(frame: bytes, length: int, time_ns: int, point: str, way: str) -> str:
    """`length`: of the whole packet, in bytes; `time_ns`: since 1970, shown as local time; `way`: in, out or ""."""
    seconds, rest = divmod(time_ns, NS_PER_SECOND)
    stamp = time.strftime("%H:%M:%S", time.localtime(seconds))
    return " ".join(filter(None, (f"{stamp}.{rest:09d}", point, f"{way:3}", described(frame, length))))


def described(frame: bytes, length: int) -> str:
    """Who sends what to whom."""
    try:
        ethernet = dpkt.ethernet.Ethernet(frame)
    except dpkt.UnpackError:
        return f"frame of {length} bytes"
    tags = "".join(f"vlan {tag.id} " for tag in getattr(ethernet, "vlan_tags", ()))
    labels = "".join(f"mpls {label.val} " for label in getattr(ethernet, "mpls_labels", ()))
    return f"{tags}{labels}{_of_frame(ethernet)}, {length} bytes"


def _of_frame(ethernet: Any) -> str:
    match ethernet.data:
        case dpkt.ip.IP() | dpkt.ip6.IP6() as packet:
            return _of_packet(packet)
        case dpkt.arp.ARP() as arp:
            sender, target = _address(arp.spa), _address(arp.tpa)
            asks = arp.op == dpkt.arp.ARP_OP_REQUEST
            return f"arp who has {target}, tell {sender}" if asks else f"arp {sender} is at {_mac(arp.sha)}"
        case _:
            raw = bytes(ethernet.data)
            kind = "isis" if raw.startswith(_OSI) else f"EtherType 0x{ethernet.type:04x}"
            return f"{_mac(ethernet.src)} > {_mac(ethernet.dst)} {kind}"


def _of_packet(packet: Any) -> str:
    v6 = isinstance(packet, dpkt.ip6.IP6)
    mark = _ECN[(packet.fc if v6 else packet.tos) & 3]
    source, sink = _address(packet.src), _address(packet.dst)
    payload, protocol = packet.data, packet.p
    match payload:
        case dpkt.tcp.TCP() | dpkt.udp.UDP():
            source, sink = f"{source}.{payload.sport}", f"{sink}.{payload.dport}"
            what = _TRANSPORT[type(payload)](payload, _payload_bytes(packet, v6))
        case dpkt.icmp.ICMP():
            what = _of_icmp("icmp", _ICMP, payload.type, payload.code, bytes(payload)[4:8])
        case dpkt.icmp6.ICMP6():
            what = _of_icmp("icmp6", _ICMP6, payload.type, payload.code, bytes(payload)[4:8])
        case dpkt.ospf.OSPF():
            what = f"ospf {_OSPF.get(payload.type, payload.type)}"
        case _ if not v6 and packet.offset:
            what = f"fragment of protocol {protocol} at {packet.offset}"
        case _:
            what = "ospf" if protocol == dpkt.ip.IP_PROTO_OSPF else f"protocol {protocol}"
    return f"{source} > {sink} {what}" + (f", {mark}" if mark else "")


def _payload_bytes(packet: Any, v6: bool) -> int:
    """The payload of the IP packet by its header, whether or not all of it was kept."""
    return int(packet.plen if v6 else packet.len - packet.hl * 4)


def _of_tcp(tcp: Any, bytes_: int) -> str:
    flags = "".join(letter for bit, letter in (*_FLAGS, *_MORE_FLAGS) if tcp.flags & bit) or "none"
    ack = f", ack {tcp.ack}" if tcp.flags & dpkt.tcp.TH_ACK else ""
    return f"tcp [{flags}] seq {tcp.seq}{ack}, win {tcp.win}, payload {max(bytes_ - tcp.off * 4, 0)}"


def _of_udp(udp: Any, bytes_: int) -> str:
    return f"udp payload {max(udp.ulen - 8, 0)}"


_TRANSPORT: dict[type, Callable[[Any, int], str]] = {dpkt.tcp.TCP: _of_tcp, dpkt.udp.UDP: _of_udp}


def _of_icmp(name: str, words: dict[int, str], kind: int, code: int, rest: bytes) -> str:
    said = words.get(kind, f"type {kind} code {code}")
    if said in _ECHOES and len(rest) == 4:
        said += f", id {int.from_bytes(rest[:2])}, seq {int.from_bytes(rest[2:])}"
    return f"{name} {said}"


def _address(raw: bytes) -> str:
    try:
        return str(ipaddress.ip_address(raw))
    except ValueError:
        return raw.hex(":")


def _mac(raw: bytes) -> str:
    return raw.hex(":")
