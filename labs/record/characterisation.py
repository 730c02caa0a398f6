"""The measurements of a path, as a document: `ewan measure path` writes it, `ewan suite advise` reads it.

In: estimates with their uncertainties. Out: JSON, and back. A person may change a value and ask for advice again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Meta, Struct
from ewan.labs.record import Uncertainty

Amount = Annotated[float, Meta(ge=0)]


class Estimate(Struct, omit_defaults=False):
    """A value in its unit; None: it was not found, and `note` says why. `truth`: what the plan of a lab says."""

    value: Amount | None
    unit: Literal["ns", "bit/s", "bytes", "ppb"]
    uncertainty: Uncertainty | None
    truth: Amount | None = None
    note: str = ""

    @property
    def expanded(self) -> float:
        """U, k = 2, in the value's unit; 0 where none is known."""
        return 0.0 if self.uncertainty is None else self.uncertainty.expanded


class PathDirection(Struct, omit_defaults=False):
    """One direction of a path. Rates and sizes are of IP packets as long as the path's MTU (RFC 5136, section 2.3)."""

    capacity: Estimate
    """The capacity of the bottleneck, in bit/s."""
    buffer: Estimate
    """The buffer of the bottleneck, in bytes."""
    buffer_time: Estimate
    """The longest wait in it, in ns."""
    loss: Estimate
    """The loss of small packets beside little load, in ppb."""
    cross: Estimate
    """The load of others through the bottleneck meanwhile, in bit/s."""
    doubts: tuple[str, ...] = ()
    """The observations that one bottleneck with one drop-tail queue does not explain."""


class Characterisation(Document, tag="ewan-characterisation/1", omit_defaults=False):
    """The characterisation of the path from `source` to `sink`. `forward` is that direction. `lab`: the lab that was
    measured; empty for other paths. `load`: the load that was sent beside the probes on purpose."""

    source: str
    sink: str
    lab: str
    clock: Literal["live", "virtual"]
    time: str
    mtu_bytes: Annotated[int, Meta(ge=68, le=65535)]
    packet_bytes: Annotated[int, Meta(ge=28, le=65535)]
    """The size of the IP packets that measured the RTT."""
    base_rtt: Estimate
    """The RTT of a packet of `packet_bytes` and its answer, without queueing, in ns."""
    forward: PathDirection
    backward: PathDirection
    load: tuple[str, ...] = ()
    plan_sha256: str | None = None
    instrument: Mapping[str, int | float | str] | None = None
    """The uncertainty that the probes add themselves, in the live clock."""

    def ways(self) -> Mapping[str, PathDirection]:
        """Both directions by their names."""
        return {"forward": self.forward, "backward": self.backward}


def to_json(found: Characterisation) -> bytes:
    """Keys in the order of their meaning."""
    return codec.ordered(found)


def from_json(text: bytes) -> Characterisation:
    """ValueError, one line without the file's name, for what is no characterisation of this format."""
    try:
        return codec.decode(Characterisation, text, "")
    except ValueError as error:
        raise ValueError(f"{error}: write a file of ewan measure path -o FILE") from None
