"""The keys of nodes of one's own: what a node is made of."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from ewan.labs.base.model import Model
from ewan.labs.spec.fields.card import NodeCards
from ewan.labs.spec.node_values import BindText, Command, Environment, ImageName, PortText
from ewan.labs.spec.values import NamedFile


class Startup(Model):
    """A router's own configuration. The file's name without more stands for it with `merge`."""

    what: ClassVar[str] = "key of a startup"
    file: NamedFile = Field(description="FRRouting's configuration (frr.conf), relative to the description")
    mode: Literal["merge", "replace"] = Field(
        "merge", description="merge: added to that of `routing:`; replace: in its place; merge if absent"
    )

    @model_validator(mode="before")
    @classmethod
    def _file(cls, value: Any) -> Any:
        return {"file": value} if isinstance(value, str) else value


class NodeKeys(Model):
    """The overrides of a node; a key that is not written keeps its default."""

    what: ClassVar[str] = "key of a node"
    image: ImageName | None = Field(
        None,
        description="the container's image (only `containerlab`), which needs nothing of ours; that of the node's "
        "kind if absent",
        examples=["my/app:1"],
    )
    entrypoint: Command | None = Field(
        None, description="in place of the image's entrypoint, which runs when the node is ready (only `containerlab`)"
    )
    cmd: Command | None = Field(
        None, description="in place of the image's command (only `containerlab`)", examples=["nginx -g 'daemon off;'"]
    )
    binds: tuple[BindText, ...] = Field(
        (),
        description="files and directories of this machine that the node sees, SOURCE:TARGET or SOURCE:TARGET:ro, the "
        "source relative to the description (only `containerlab`); none if absent",
        examples=["[www:/var/www:ro]"],
    )
    ports: tuple[PortText, ...] = Field(
        (),
        description="ports of the node at this machine's, PORT:NODE_PORT or ADDRESS:PORT:NODE_PORT, at 127.0.0.1 where "
        "no address is written; turns `containers: {management: true}` on (only `containerlab`); none if absent",
        examples=['["8080:80"]'],
    )
    env: Environment = Field(
        {},
        description="environment variables of programs that are run in the node; none if absent",
        examples=["{LEVEL: debug}"],
    )
    exec: tuple[Command, ...] = Field(
        (),
        description="commands that are run in the node, in this order, when the lab is there and before it is "
        "verified; without a shell; one that fails ends the lab; none if absent",
        examples=["[ip route add blackhole 192.0.2.0/24]"],
    )
    startup: Startup | None = Field(
        None, description="a router's own configuration of FRRouting, where `routing:` is a protocol; none if absent"
    )
    too_big: Literal["reported", "silent"] | None = Field(
        None,
        description="of a router, for packets longer than the `mtu` of the next link that may not be fragmented. "
        'reported: it discards them and sends the MTU to their sender (ICMP "fragmentation needed", ICMPv6 "packet too '
        'big"), so that path-MTU discovery works; silent: it only discards them; reported if absent',
        examples=["silent"],
    )
    interface: NodeCards | None = Field(
        None,
        description="a network card of this machine in place of its interface, or cards by neighbour; the other end of "
        "the cable is a card of the neighbour (live, only `netns`, docs/how-to/labs/hardware.md); none if absent",
        examples=["eth1", "{left1: eth2, left2: eth3}"],
    )


class Kinds(Model):
    """The overrides of all nodes of a kind; a node's own keys take precedence."""

    what: ClassVar[str] = "kind of node"
    host: NodeKeys | None = Field(None, description="hosts")
    router: NodeKeys | None = Field(None, description="routers", examples=["{image: my/frr:10}"])
    switch: NodeKeys | None = Field(None, description="switches")
    emulator: NodeKeys | None = Field(None, description="emulated links")
