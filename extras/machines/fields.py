"""The keys of machines.yaml, which names the machines that a lab stretches over."""

from __future__ import annotations

import ipaddress
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from ewan.labs.base.model import Model
from ewan.labs.base.values import Name
from ewan.labs.spec.fields.card import CardName

MOST_MACHINES = 64


def _address(text: str) -> str:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError('write an IP address, like "10.0.0.1" or "fd00::1"') from None
    if found.is_loopback or found.is_multicast or found.is_unspecified:
        raise ValueError("no other machine reaches that address: write that of the interface")
    return str(found)


def _word(text: str) -> str:
    if not text or not text.isprintable() or any(letter.isspace() for letter in text) or text.startswith("-"):
        raise ValueError('write it without blanks, like "root@node-1"')
    return text


class MachineDescription(Model):
    """One machine."""

    what: ClassVar[str] = "key of a machine"

    ssh: Annotated[str, AfterValidator(_word)] = Field(
        description="where its SSH is: host, user@host, user@host:port, or a Host of SSH's own configuration",
        examples=["root@node-1"],
    )
    interface: CardName = Field(
        description="the network interface there that reaches the other machines", examples=["eth1"]
    )
    address: Annotated[str, AfterValidator(_address)] | None = Field(
        default=None,
        description="its address at that interface, where it has several (default: the first IPv4, else IPv6)",
        examples=["10.0.0.1"],
    )
    cpus: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(
        default=None, description="CPUs that labs may have there (default: all)", examples=[[2, 3]]
    )
    sudo: bool = Field(default=False, description="what needs root goes through `sudo -n` there")


class ClusterDescription(Model):
    """machines.yaml."""

    what: ClassVar[str] = "key of a file of machines"

    machines: dict[Name, MachineDescription] = Field(description="by name", min_length=1, max_length=MOST_MACHINES)
    ssh_config: str | None = Field(
        default=None,
        description="SSH's configuration, in place of ~/.ssh/config; relative to this file",
        examples=["ssh_config"],
    )
    placement: dict[str, str] = Field(
        default={},
        description="which nodes are where: names or patterns of them, as in scenarios, and a machine each",
        examples=[{"r1,left[1-3]": "one"}],
    )
