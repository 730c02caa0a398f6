"""What was measured of a path, as a document: `ewan characterise` writes it, `ewan advise` reads it.

In: estimates with their uncertainties. Out: JSON, and back. A person may change a value and ask for advice again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from ewan.labs.base.reading import MOST_DIGITS
from ewan.labs.record import Uncertainty

FORMAT = "ewan-characterisation/1"
MOST_SHOWN = 80

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_CLOSED = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value in its unit; None: it was not found, and `note` says why. `truth`: what the plan of a lab says."""

    __pydantic_config__ = _CLOSED

    value: Amount | None
    unit: Literal["ns", "bit/s", "bytes", "ppb"]
    uncertainty: Uncertainty | None
    truth: Amount | None = None
    note: str = ""

    @property
    def expanded(self) -> float:
        """U, k = 2, in the value's unit; 0 where none is known."""
        return 0.0 if self.uncertainty is None else self.uncertainty.expanded


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of a path. Rates and sizes are of IP packets as long as the path's MTU (RFC 5136, section 2.3)."""

    __pydantic_config__ = _CLOSED

    capacity: Estimate
    """Of the bottleneck, in bit/s."""
    buffer: Estimate
    """Of the bottleneck, in bytes."""
    buffer_time: Estimate
    """The longest wait in it, in ns."""
    loss: Estimate
    """Of small packets beside little load, in ppb."""
    cross: Estimate
    """What others sent through the bottleneck meanwhile, in bit/s."""
    doubts: tuple[str, ...] = ()
    """Where what was seen is not what one bottleneck with one drop-tail queue does."""


@dataclass(frozen=True, slots=True)
class Characterisation:
    """Of the path from `source` to `sink`. `forward` is that way. `lab`: of ours; empty for other paths. `load`: what
    was sent beside the probes on purpose."""

    __pydantic_config__ = _CLOSED

    source: str
    sink: str
    lab: str
    clock: Literal["live", "virtual"]
    time: str
    mtu_bytes: Annotated[int, Field(ge=68, le=65535)]
    packet_bytes: Annotated[int, Field(ge=28, le=65535)]
    """Of the IP packets that measured the RTT."""
    base_rtt: Estimate
    """Of a packet of `packet_bytes` and its answer, without queueing, in ns."""
    forward: Way
    backward: Way
    load: tuple[str, ...] = ()
    plan_sha256: str | None = None
    instrument: dict[str, Any] | None = None
    """What the probes add themselves, in the live clock."""

    def ways(self) -> Mapping[str, Way]:
        """Both directions by their names."""
        return {"forward": self.forward, "backward": self.backward}


_ADAPTER = TypeAdapter(Characterisation)


def to_json(found: Characterisation) -> bytes:
    """With its format; keys in the order of their meaning."""
    return orjson.dumps(
        {"format": FORMAT, **dataclasses.asdict(found)}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    )


def from_json(text: bytes) -> Characterisation:
    """ValueError, one line without the file's name, for what is no characterisation of this format."""
    try:
        raw = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is no JSON ({error}): write a file of ewan characterise -o FILE") from None
    found = raw.pop("format", None) if isinstance(raw, dict) else None
    if found != FORMAT:
        said = repr(found)[:MOST_SHOWN]
        raise ValueError(f"format is {said}, this version reads {FORMAT!r}: write a file of ewan characterise -o FILE")
    try:
        return _ADAPTER.validate_json(orjson.dumps(raw))
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in wrong["loc"])[:MOST_SHOWN]
        raise ValueError(f"{place or 'it'}: {wrong['msg'].lower()}"[: MOST_SHOWN * 2 + MOST_DIGITS]) from None


def schema() -> str:
    """JSON Schema of the document, draft 2020-12, as `docs/characterisation.schema.json` has it."""
    made: dict[str, Any] = _ADAPTER.json_schema()
    made["properties"]["format"] = {"const": FORMAT, "title": "Format", "type": "string"}
    made["required"] = sorted({*made["required"], "format"})
    made["$defs"]["Uncertainty"]["additionalProperties"] = False
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':')}",
        "title": "Characterisation of a path: RTT, capacity, buffer, loss and cross traffic with their uncertainties",
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps({**made, **head}, option=options).decode()
