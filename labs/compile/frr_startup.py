"""A router's own configuration of FRRouting, added to ours or in its place.

Comes in: the services of a router, and the text of its frr.conf. Goes out: services in which the same daemons, and
those that the text speaks of besides, are started, and FRRouting's own shell then hands each its lines of the text.
What a daemon refuses makes the shell fail, and its last line says which one it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ewan.labs.plan import Service

FIRST = "zebra"
_FILE = "startup.conf"
_SPOKEN_OF = {
    "bfdd": r"bfd\b|(?:ip ospf|ipv6 ospf6|isis) bfd|neighbor \S+ bfd",
    "bgpd": r"router bgp",
    "ospfd": r"router ospf(?! *6)\b|ip ospf",
    "ospf6d": r"router ospf6|ipv6 ospf6",
    "isisd": r"router isis|ip(?:v6)? router isis|isis ",
    "ripd": r"router rip\b|ip rip",
    "ripngd": r"router ripng|ipv6 ripng",
    "eigrpd": r"router eigrp",
    "babeld": r"router babel|babel ",
    "fabricd": r"router openfabric|ip(?:v6)? router openfabric",
    "ldpd": r"mpls ldp",
    "nhrpd": r"ip nhrp|ipv6 nhrp",
    "pbrd": r"pbr-map|pbr-policy",
    "pimd": r"ip pim|ip igmp|ip mroute",
    "vrrpd": r"vrrp ",
    "staticd": r"ip(?:v6)? route ",
}
"""By daemon how its lines begin (FRRouting 8.4); the shell passes over lines of a daemon that does not run."""


def spoken_of(text: str) -> list[str]:
    """The daemons that a configuration speaks of, apart from zebra."""
    lines = [line.strip() for line in text.splitlines()]
    return [
        daemon for daemon, words in _SPOKEN_OF.items() if any(re.match(rf"(?:no )?(?:{words})", line) for line in lines)
    ]


def added(services: Sequence[Service], router: str, text: str, *, replace: bool) -> tuple[Service, ...]:
    """The router's services with its own configuration; `replace`: with nothing of ours."""
    ours = {service.name: service for service in services}
    names = spoken_of(text)
    names = [*names] if replace else [*(name for name in ours if name != FIRST), *(n for n in names if n not in ours)]
    plain = f"hostname {router}\n"
    started = [_like(ours[FIRST], FIRST, plain if replace else ours[FIRST].files[f"{FIRST}.conf"])]
    for name in names:
        known = ours.get(name)
        started.append(known if known is not None and not replace else _like(ours[FIRST], name, plain))
    shell = ("vtysh", "--vty_socket", "{run}", "-f", f"{{run}}/{_FILE}")
    return (*started, Service("startup", "setup", shell, {_FILE: text}, None))


def _like(zebra: Service, name: str, text: str) -> Service:
    """A daemon that is started as zebra is, and ready when the shell can speak to it."""
    argv = tuple(word.replace(f"{FIRST}.", f"{name}.") for word in zebra.argv[1:])
    return Service(name, "daemon", (name, *argv), {f"{name}.conf": text}, f"{name}.vty")
