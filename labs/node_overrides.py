"""The overrides of a node in the plan: the keys `nodes:` and `kinds:` of a description.

The keys are those of `emulator/plan/src/node_settings.rs`, which refuses unknown ones too. Keys that are not written
are absent from the plan, so that the plan of a lab without overrides does not change.
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
    """`exec`: commands that are run in the node when the lab is there, as words. `startup`: the effect of a router's
    configuration in the description: it is added to ours, or stands in its place. `too_big`:
    silent, if a router sends no word to the senders of packets that are too long.

    Only containers have: `image`; `entrypoint` and `cmd`, the program that runs beside the node's own (empty: as the
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
    too_big: Literal["silent"] | None = None
