"""Configures the service for machines that are plugged into a router's port: addresses by DHCP and by router
advertisements.

Comes in: the port's addresses and the lab's networks. Goes out: a service of the router, dnsmasq, whose configuration
is for its ports and no others.

A machine gets an IPv4 address with the lab's networks as routes (RFC 3442), so that what else it reaches stays as it
is; a client that asks for no such routes gets the router as its gateway instead. Router advertisements (RFC 4861) have
no routes but the default one, which is given with low preference (RFC 4191). Both tell the lab's MTU.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from ewan.labs.plan import Service

NAME = "dnsmasq"
LEASES = f"{NAME}.leases"
V4_LENGTH = 24
NUMBERS = 1 << (30 - V4_LENGTH)
"""The links whose room in the address space a port takes."""
LINK_LOCAL = "fe80::1/64"
"""Router advertisements come from a link-local address (RFC 4861, section 4.2); nothing else of a lab has one."""
_LEASE = "10m"
_ADVERTISED_S, _ROUTER_S = 30, 1800


@dataclass(frozen=True, slots=True)
class RouterPort:
    """A port of the router: its addresses with their prefix lengths, but for the link-local one."""

    interface: str
    mtu: int
    addresses: tuple[str, ...]


def service(ports: Sequence[RouterPort], networks: Sequence[str]) -> Service:
    """`networks`: the lab's own, one of each family that it has."""
    lines = [
        "port=0",
        "bind-interfaces",
        "except-interface=lo",
        "no-resolv",
        "no-hosts",
        "no-ping",
        "user=root",
        "group=root",
        "dhcp-authoritative",
        f"dhcp-leasefile={{run}}/{LEASES}",
        f"pid-file={{run}}/{NAME}.pid",
        "log-facility=-",
    ]
    for port in ports:
        tag = port.interface
        lines.append(f"interface={tag}")
        for text in port.addresses:
            own = ipaddress.ip_interface(text)
            if isinstance(own, ipaddress.IPv4Interface):
                first, last = own.network[2], own.network[-2]
                lab = next(net for net in networks if ":" not in net)
                lines += [
                    f"dhcp-range=set:{tag},{first},{last},{own.netmask},{_LEASE}",
                    f"dhcp-option=tag:{tag},option:router,{own.ip}",
                    f"dhcp-option=tag:{tag},option:classless-static-route,{lab},{own.ip}",
                    f"dhcp-option=tag:{tag},option:mtu,{port.mtu}",
                    f"dhcp-option=tag:{tag},option:dns-server",
                ]
            else:
                lines += [
                    "enable-ra",
                    f"dhcp-range={own.network.network_address},ra-only,{own.network.prefixlen},{_LEASE}",
                    f"ra-param={tag},mtu:{port.mtu},low,{_ADVERTISED_S},{_ROUTER_S}",
                ]
    argv = (NAME, "--keep-in-foreground", f"--conf-file={{run}}/{NAME}.conf")
    text = "\n".join(dict.fromkeys(lines)) + "\n"
    return Service(NAME, "daemon", argv, {f"{NAME}.conf": text}, f"{NAME}.pid")
