"""A ring of four routers, two of which have FRRouting configurations of their own, for tests in any runtime.

r1's stands in place of ours, as somebody may have it from elsewhere: it makes it a neighbour of the others in both IP
families, at default costs. r2's is added to ours. Each announces networks that no plan knows, which the others learn.
"""

from __future__ import annotations

from collections.abc import Mapping

ANNOUNCED: Mapping[str, tuple[str, str]] = {
    "r1": ("198.51.100.0/24", "2001:db8:1::/48"),
    "r2": ("203.0.113.0/24", "2001:db8:2::/48"),
}
PORTS = ("eth0", "eth2")
"""Of r1, to r2 and to r4; its host is at eth1."""
_NEIGHBOURS = {"10.64.0.2": 64513, "fd65:7761:6e00::2": 64513, "10.64.0.25": 64515, "fd65:7761:6e00:6::1": 64515}
_OSPF_PORT = """
 ip ospf area 0
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 12
 ipv6 ospf6 area 0
 ipv6 ospf6 network point-to-point
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 12
"""
_OSPF_HOST = "\n ip ospf area 0\n ip ospf passive\n ipv6 ospf6 area 0\n ipv6 ospf6 passive\n"
_ISIS_PORT = "\n ip router isis mine\n ipv6 router isis mine\n"
_ISIS_TIMERS = (
    " isis network point-to-point\n isis hello-interval 1\n isis hello-multiplier 12\n no isis hello padding\n"
)
_ISIS = """router isis mine
 net 49.0001.0000.0000.0001.00
 is-type level-2-only
 metric-style wide
 lsp-gen-interval 1
exit
"""


def merged(protocol: str) -> str:
    """What r2 has besides ours."""
    return _static("r2") + _announcing(protocol, "lab", 64513)


def replaced(protocol: str, first_port: int = 0) -> str:
    """All that r1 has; `first_port`: the number of its first interface in the lab."""
    there, back = (f"eth{first_port + int(port[3:])}" for port in PORTS)
    host = f"eth{first_port + 1}"
    if protocol == "ospf":
        ports = "".join(f"interface {port}{_OSPF_PORT}exit\n" for port in (there, back))
        ports += f"interface {host}{_OSPF_HOST}exit\n"
        ports += "router ospf\n ospf router-id 10.64.0.1\n maximum-paths 1\nexit\n"
        ports += "router ospf6\n ospf6 router-id 10.64.0.1\n maximum-paths 1\nexit\n"
    elif protocol == "isis":
        ports = "".join(f"interface {port}{_ISIS_PORT}{_ISIS_TIMERS}exit\n" for port in (there, back))
        ports = f"{_ISIS}{ports}interface {host}{_ISIS_PORT} isis passive\nexit\n"
    else:
        ports = "router bgp 64512\n bgp router-id 10.64.0.1\n no bgp ebgp-requires-policy\n timers bgp 3 10\n"
        ports += " bgp bestpath as-path ignore\n bgp always-compare-med\n"
        ports += "".join(
            f" neighbor {address} remote-as {number}\n neighbor {address} timers connect 2\n"
            for address, number in _NEIGHBOURS.items()
        )
        ports += " address-family ipv4 unicast\n  redistribute connected\n exit-address-family\n"
        six = "".join(f"  neighbor {address} activate\n" for address in _NEIGHBOURS if ":" in address)
        ports += f" address-family ipv6 unicast\n{six}  redistribute connected\n exit-address-family\nexit\n"
    return _static("r1") + ports + _announcing(protocol, "mine", 64512)


def _static(router: str) -> str:
    four, six = ANNOUNCED[router]
    return f"hostname {router}\nip route {four} blackhole\nipv6 route {six} blackhole\n"


def _announcing(protocol: str, area: str, number: int) -> str:
    """The static routes are told to the neighbours."""
    if protocol == "ospf":
        return "router ospf\n redistribute static\nexit\nrouter ospf6\n redistribute static\nexit\n"
    if protocol == "isis":
        told = "".join(f" redistribute {family} static level-2\n" for family in ("ipv4", "ipv6"))
        return f"router isis {area}\n{told}exit\n"
    one = " address-family {} unicast\n  redistribute static\n exit-address-family\n"
    told = one.format("ipv4") + one.format("ipv6")
    return f"router bgp {number}\n{told}exit\n"
