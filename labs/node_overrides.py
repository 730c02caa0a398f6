"""What a node of the plan is made of where the description says so: `nodes:` and `kinds:`.

The keys are those of `emulator/plan/src/node_settings.rs`, which refuses unknown ones too. What is not said is not in
the plan, so that a plan of a lab that says nothing of its nodes is what it always was.
"""

from __future__ import annotations

from typing import Literal

from ewan.labs.base.codec import Struct, field


class Bind(Struct):
    """A file or directory of this machine that a node sees: `source`, absolute, at `target`.

    `outside`: it is not below the folder of the description.
    """

    source: str
    target: str
    read_only: bool
    outside: bool


class PublishedPort(Struct):
    """A port of a node that is published at an address of this machine."""

    address: str
    port: int
    node_port: int
    protocol: Literal["tcp", "udp"]


class NodeOverrides(Struct):
    """`exec`: commands that are run in the node when the lab is there, as words. `startup`: what becomes of a router's
    configuration by the one that the description names: it is added to ours, or stands in its place.

    Of containers alone: `image`; `entrypoint` and `cmd`, the program that runs beside the node's own (empty: as the
    image says); `binds`, `ports`.
    """

    image: str | None = None
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()
    ports: tuple[PublishedPort, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    exec: tuple[tuple[str, ...], ...] = ()
    startup: Literal["merge", "replace"] | None = None
