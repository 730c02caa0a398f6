"""Ends of tunnels in a host that is a machine of its own: GRE, VXLAN and WireGuard of the machine's kernel.

In: an interface of the plan that is such an end. Out: lines of the script that sets the machine up (machines.py). They
make what emulator/lab/src/tunnel_ends.rs makes in other nodes.
"""

from __future__ import annotations

import base64

from ewan.labs.plan import Encapsulation, Interface

VXLAN_PORT, FIRST_WIREGUARD_PORT = 4789, 51_820
"""As in emulator/lab/src/tunnel_ends.rs."""


def lines(port: Interface, tunnel: Encapsulation, table: int) -> list[str]:
    """The lines that make the interface. `table`: the routing table for packets from the tunnel's own address."""
    ends = f"local {tunnel.local} remote {tunnel.remote}"
    match tunnel.kind:
        case "gre":
            v6 = ":" in tunnel.local
            kind, traffic_class = ("ip6gre", "encaplimit none tclass inherit") if v6 else ("gre", "tos inherit")
            return [f"ip link add {port.name} type {kind} {ends} ttl 255 {traffic_class}"]
        case "vxlan":
            ports = f"srcport {VXLAN_PORT} {VXLAN_PORT + 1} dstport {VXLAN_PORT}"
            how = f"id {tunnel.number} {ends} {ports} nolearning df set tos inherit"
            return [f"ip link add {port.name} address {port.mac} type vxlan {how}"]
        case "wireguard":
            return _wireguard(port.name, tunnel, table)


def _wireguard(name: str, tunnel: Encapsulation, table: int) -> list[str]:
    listens = FIRST_WIREGUARD_PORT + tunnel.number - 1
    key, peer = (base64.b64encode(bytes.fromhex(each)).decode() for each in (tunnel.private_key, tunnel.peer_key))
    v6 = ":" in tunnel.local
    endpoint = f"[{tunnel.remote}]:{listens}" if v6 else f"{tunnel.remote}:{listens}"
    made = [f"ip link add {name} type wireguard", f"echo {key} >/machine/{name}.key"]
    own = f"wg set {name} listen-port {listens} private-key /machine/{name}.key"
    if tunnel.over:
        made.append(f"ip -{6 if v6 else 4} rule add fwmark {tunnel.number} table {table} priority {table}")
        own += f" fwmark {tunnel.number}"
    other = f" peer {peer} endpoint {endpoint} allowed-ips 0.0.0.0/0,::/0"
    if tunnel.calls and tunnel.keepalive_s:
        other += f" persistent-keepalive {tunnel.keepalive_s}"
    return [*made, own + other]
