"""The keys of pacing at the source: of a host, of its packets to some destinations, of a flow."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from ewan.labs.base.model import Model
from ewan.labs.base.values import RateText
from ewan.labs.link.bucket import DepthText

KINDS = ("psp", "tbf", "fq")
_EXAMPLE = 'write "psp 400Mbit/s", "{psp: 400Mbit/s}", "{tbf: 490Mbit/s, burst: 100kB}", "{fq: 400Mbit/s}" or "none"'
_OWN: dict[str, str] = {"burst": "tbf", "gap": "psp"}
"""Keys that only one kind has."""


def _names(value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, (list, tuple)) else [value]
    if texts and all(isinstance(text, str) and text for text in texts):
        return tuple(texts)
    raise ValueError('write names of hosts, like "right1" or "right[1-10]"')


NamesText = Annotated[
    tuple[str, ...],
    PlainValidator(_names),
    WithJsonSchema({"type": "string", "title": "hosts", "examples": ["right1", "right[1-10]"]}),
]


class Pacing(Model):
    """The rate of a source, and the mechanism that limits it; without either it is not paced.

    A kind and its rate may be one text, `psp 400Mbit/s`, so that a sweep can go over them.
    """

    what: ClassVar[str] = "key of pacing"
    psp: RateText | None = Field(
        None, description="exact: each packet leaves when its time has come, evenly spaced", examples=["400Mbit/s"]
    )
    tbf: RateText | None = Field(
        None, description="a token bucket, which passes `burst` at once after a pause", examples=["490Mbit/s"]
    )
    fq: RateText | None = Field(
        None,
        description="the kernel's fq: each connection has this rate at most, in pieces of two packets; to 34Gbit/s",
        examples=["400Mbit/s"],
    )
    burst: DepthText | None = Field(
        None, description="of `tbf`; what the rate sends in 1 ms, 4 packets at least, if absent", examples=["100kB"]
    )
    framing: Literal["wire", "ethernet", "header", "ip"] | None = Field(
        None,
        description="what a packet's length counts beyond IP, as of a link; exact for all packets with `psp`, for full "
        "ones with `tbf` and `fq`; wire if absent",
    )
    gap: Literal["timer", "packets"] | None = Field(
        None,
        description="what `psp` waits by: timer, or PAUSE frames that fill the line, of a host whose interface is a "
        "real card; timer if absent",
    )

    @model_validator(mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        if value == "none":
            return {}
        if isinstance(value, str):
            kind, _, rate = value.strip().partition(" ")
            value = {kind: rate.strip()} if kind in KINDS else None
        if not isinstance(value, dict) or not value:
            raise ValueError(_EXAMPLE)
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> Pacing:
        said = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(said) > 1 or (not said and self.model_fields_set & Pacing.model_fields.keys()):
            raise ValueError(f"write exactly one of {', '.join(KINDS)}: {_EXAMPLE}")
        for key, kind in _OWN.items():
            if getattr(self, key) is not None and kind not in said:
                raise ValueError(f'"{key}:" is of {kind}: leave it out')
        return self

    @property
    def rate_bps(self) -> int | None:
        """The rate to which it is limited; None: it is not paced."""
        rate = self.psp or self.tbf or self.fq
        return None if rate is None else rate.bps


class HostPacing(Pacing):
    """The pacing of all packets that a host sends, or of those that it sends to some hosts."""

    to: NamesText | None = Field(
        None, description="of packets to these hosts, each of which has the rate; of all others if absent"
    )

    @model_validator(mode="after")
    def _of_something(self) -> HostPacing:
        if self.to is not None and self.rate_bps is None:
            raise ValueError(f"says no rate: {_EXAMPLE}")
        return self
