"""Facts about a machine of the cluster, from a few files and commands that every Linux has.

In: the output of `SCRIPT` there. Out: `ClusterMachineFacts`; LabError, in a line, for a machine on which no lab can
be."""

from __future__ import annotations

import ipaddress
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ewan.extras.machines.file import ClusterMachine
from ewan.labs.host import cpus_of, networks_of
from ewan.labs.runtime.base import LabError

SCRIPT = r"""
section() { printf '\n== %s\n' "$1"; }
section user; id -u
section kernel; uname -srm
section cpus; sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status
section ipv4; cat /proc/net/route
section ipv6; cat /proc/net/ipv6_route 2>/dev/null
section addresses; ip -o address show dev "$1" 2>&1
section mtu; cat "/sys/class/net/$1/mtu" 2>/dev/null
section vswitch; test -d /sys/module/openvswitch && echo yes
section clock; cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2>/dev/null
true
"""
"""For `sh -c`; its argument is the interface that reaches the other machines."""
ARCHITECTURE = platform.machine()
"""The architecture of the node binary that is sent: this machine's own."""
_ADDRESS = re.compile(r"\binet6? ([0-9a-fA-F.:]+)/[0-9]+.*?\bscope global\b")


@dataclass(frozen=True, slots=True)
class ClusterMachineFacts:
    """`address`: as the other machines reach it; `mtu`: of the interface that they reach, bytes of an IP packet."""

    machine: str
    kernel: str
    cpus: tuple[int, ...]
    networks: tuple[str, ...]
    address: str
    mtu: int
    vswitch: bool
    clock_source: str


def read(machine: ClusterMachine, text: str) -> ClusterMachineFacts:
    """The facts of a machine; LabError where it lacks a need of labs."""
    said = sections(text)
    name = machine.name
    if said.get("user") != "0":
        host = machine.ssh.rpartition("@")[2]
        remedy = "let that user use sudo without a password" if machine.sudo else f'write "sudo: true", or root@{host}'
        raise LabError(f"machine {name}: making a lab needs root, and {machine.ssh} is another user there: {remedy}")
    system, release, architecture = [*said.get("kernel", "").split(), "", "", ""][:3]
    if system != "Linux" or architecture != ARCHITECTURE:
        raise LabError(f"machine {name} runs {system} on {architecture}: a lab needs Linux on {ARCHITECTURE}")
    usable = cpus_of(said.get("cpus", ""))
    missing = sorted(set(machine.cpus or ()) - set(usable))
    if missing:
        raise LabError(
            f"machine {name}: cpus: {missing[0]} may not be used there: write some of {', '.join(map(str, usable))}"
        )
    found = _ADDRESS.findall(said.get("addresses", ""))
    if not said.get("mtu", "").isdigit():
        raise LabError(f"machine {name} has no interface {machine.interface}: write one that `ip link` shows there")
    return ClusterMachineFacts(
        name,
        release,
        machine.cpus or usable,
        tuple(networks_of(said.get("ipv4", "").splitlines(), said.get("ipv6", "").splitlines())),
        _address(machine, found),
        int(said["mtu"]),
        said.get("vswitch") == "yes",
        said.get("clock", ""),
    )


def _address(machine: ClusterMachine, found: list[str]) -> str:
    if machine.address is not None:
        if machine.address not in [str(ipaddress.ip_address(each)) for each in found]:
            raise LabError(
                f"machine {machine.name}: {machine.interface} there has no address {machine.address}: "
                f"write one of {', '.join(found) or 'its own, it has none'}"
            )
        return machine.address
    if not found:
        raise LabError(f"machine {machine.name}: {machine.interface} there has no address: name another interface")
    return min(found, key=lambda each: ":" in each)


def check_together(facts: Mapping[str, ClusterMachineFacts]) -> None:
    """LabError where two machines cannot reach each other as they stand."""
    families = {name: ":" in each.address for name, each in facts.items()}
    if len(set(families.values())) > 1:
        four, six = (next(name for name, v6 in families.items() if v6 is wanted) for wanted in (False, True))
        raise LabError(
            f"machine {four} has IPv4 ({facts[four].address}), {six} IPv6 ({facts[six].address}): "
            'write an "address:" of one family for all'
        )
    seen: dict[str, str] = {}
    for name, each in facts.items():
        other = seen.setdefault(each.address, name)
        if other != name:
            raise LabError(f"machines {other} and {name} have one address, {each.address}: write each machine once")


def sections(text: str) -> dict[str, str]:
    """The parts of a script's output that has a line `== NAME` before each part."""
    parts = re.split(r"^== (\w+)$", text, flags=re.MULTILINE)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}
