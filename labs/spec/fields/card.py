"""The keys of the host's own network cards: as interfaces of nodes, and with machines plugged into them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, WithJsonSchema

from ewan.labs.base.model import Model
from ewan.labs.base.values import Name

# As emulator/plan/src/layout.rs has it; the kernel takes 15 letters at most.
_CARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
EXTERNAL = "external"
"""The name of a single one that has none; several are numbered."""


def _card(value: object) -> str:
    if isinstance(value, str) and _CARD.fullmatch(value):
        return value
    raise ValueError('write the name of a network card of this machine, as "ip link" shows it, like "eth1"')


CardName = Annotated[
    str, PlainValidator(_card), WithJsonSchema({"type": "string", "title": "card", "examples": ["eth1"]})
]


def _interface(value: object) -> str | dict[str, str]:
    if isinstance(value, Mapping):
        if not value:
            raise ValueError('write a card for a neighbour, like "{r1: eth1}"')
        return {str(neighbour): _card(card) for neighbour, card in value.items()}
    return _card(value)


NodeCards = Annotated[
    str | dict[str, str],
    PlainValidator(_interface),
    WithJsonSchema({"type": ["string", "object"], "title": "card, or cards by neighbour", "examples": ["eth1"]}),
]


class ExternalKeys(Model):
    """A card into which machines are plugged that are ends of the lab."""

    what: ClassVar[str] = "key of an external end"
    at: Name = Field(description="the router at which they are", examples=["r1"])
    interface: CardName = Field(description="the card of this machine that their cable leads to", examples=["eth1"])


def named(value: Any) -> Any:
    """`external:` as a mapping by name, whichever way it is written."""
    if isinstance(value, Mapping) and not isinstance(value.get("at", {}), Mapping):
        return {EXTERNAL: value}
    if isinstance(value, Mapping) and value.keys() & ExternalKeys.model_fields.keys() and "at" not in value:
        return {EXTERNAL: value}
    if isinstance(value, (list, tuple)):
        return {f"{EXTERNAL}{number}": each for number, each in enumerate(value, 1)}
    return value


def written(value: Any) -> dict[str, tuple[int, ...]]:
    """The positions in `external:` of the ends to which `named` gave a name, by that name."""
    if isinstance(value, (list, tuple)):
        return {name: (number,) for number, name in enumerate(named(value))}
    return {EXTERNAL: ()} if named(value) is not value else {}
