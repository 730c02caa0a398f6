"""What a node of the plan is made of where the description says so: `nodes:` and `kinds:`.

The keys are those of `labs/node/src/own.rs`, which refuses unknown ones too. What is not said is not in the plan, so
that a plan of a lab that says nothing of its nodes is what it always was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or directory of this machine that a node sees: `source`, absolute, at `target`.

    `outside`: it is not below the folder of the description.
    """

    source: str
    target: str
    read_only: bool
    outside: bool


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a node that is published at an address of this machine."""

    address: str
    port: int
    node_port: int
    protocol: Literal["tcp", "udp"]


@dataclass(frozen=True, slots=True)
class Own:
    """`exec`: commands that are run in the node when the lab is there, as words. `startup`: what becomes of a router's
    configuration by the one that the description names: it is added to ours, or stands in its place.

    Of containers alone: `image`; `entrypoint` and `cmd`, the program that runs beside the node's own (empty: as the
    image says); `binds`, `ports`.
    """

    image: str | None = None
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()
    ports: tuple[Port, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    exec: tuple[tuple[str, ...], ...] = ()
    startup: Literal["merge", "replace"] | None = None

    SPARSE: ClassVar[bool] = True

    def to_data(self) -> dict[str, Any]:
        """As the plan has it: without what is not said."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name))}
