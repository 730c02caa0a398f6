"""The keys of a host's TCP, and the profiles that have names.

A profile is what the documentation of a system says of its TCP, as far as settings of Linux can imitate it. Each names
its sources; what no setting imitates is in docs/how-to/labs/stacks.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from ewan.labs.base.model import Model
from ewan.labs.base.wording import nearest
from ewan.labs.spec.values import SocketBufferText, WindowText

Switch = Literal["on", "off"]


def _profile(value: object) -> str:
    if isinstance(value, str) and value in PROFILES:
        return value
    raise ValueError(f"unknown profile, {nearest(str(value), PROFILES)}")


ProfileName = Annotated[str, PlainValidator(_profile), WithJsonSchema({"type": "string", "title": "profile"})]


class StackKeys(Model):
    """The behaviour of a host's TCP; None: as the profile sets it, else the default of all hosts.

    The name of a profile can be written in place of the group, so that a sweep can go over profiles.
    """

    what: ClassVar[str] = "key of a stack"
    profile: ProfileName | None = Field(
        None, description="a system's settings, which the other keys change; none if absent", examples=["windows-xp"]
    )
    window_scaling: Switch | None = Field(
        None, description="RFC 7323; off: the window is 65535 bytes at most, both ways; on if absent", examples=["off"]
    )
    sack: Switch | None = Field(
        None, description="selective acknowledgements (RFC 2018), of both ends; on if absent", examples=["off"]
    )
    timestamps: Switch | None = Field(
        None, description="RFC 7323, 12 bytes of each segment, of both ends; on if absent", examples=["off"]
    )
    mtu_probing: Switch | None = Field(
        None,
        description="on: a sender whose segments are lost again and again tries shorter ones (RFC 4821), which finds "
        "the MTU of a path whose routers are silent; off if absent",
        examples=["on"],
    )
    delayed_ack: Switch | None = Field(
        None,
        description="off: each segment is acknowledged at once; on: every second one, as Linux does it; on if absent",
        examples=["off"],
    )
    window: WindowText | None = Field(
        None,
        description="the receive buffer is made for this window and does not grow; the window opens by two segments "
        "for each that comes, which Linux acknowledges at once until then; `auto`: more than the lab's longest path "
        "and largest queue hold; as `rmem` if absent",
    )
    rmem: SocketBufferText | None = Field(
        None,
        description="the receive buffer grows to this size by itself; about 60% of it is offered as window; four "
        "times the BDP, 4 MiB at least, if absent",
        examples=["6MiB"],
    )
    wmem: SocketBufferText | None = Field(
        None,
        description="the send buffer grows to this size by itself; about 45% of it is payload; four times the BDP, "
        "4 MiB at least, if absent",
        examples=["4MiB"],
    )

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"profile": value}
        if not isinstance(value, dict) or not value:
            raise ValueError('write the name of a profile, like "windows-xp", or keys, like "{sack: off}"')
        return value

    @model_validator(mode="after")
    def _one_window(self) -> StackKeys:
        if self.window is not None and self.rmem is not None:
            raise ValueError('"window" stays, "rmem" grows: write one of them')
        return self

    def written_out(self) -> StackKeys:
        """The same with the profile's own keys where nothing else is written."""
        if self.profile is None:
            return self
        own = {key: getattr(self, key) for key in StackKeys.model_fields if getattr(self, key) is not None}
        values = {key: value for key, value in PROFILES[self.profile].stack if value is not None}
        if "rmem" in own:
            values.pop("window", None)
        if "window" in own:
            values.pop("rmem", None)
        return StackKeys.model_construct(**{**values, **own})


@dataclass(frozen=True, slots=True)
class Profile:
    """A system's settings, and where they are documented."""

    stack: StackKeys
    about: str
    sources: str


def _written(**keys: str) -> StackKeys:
    return StackKeys.model_validate(keys)


_KB_224829 = "Microsoft, Description of Windows TCP features (KB 224829)"
_MS_TCP = "Microsoft, TCP/IP and NBT configuration parameters (`TcpWindowSize`, `Tcp1323Opts`, `SackOpts`)"
_BSD_TCP = "FreeBSD tcp(4) and tuning(7) (`net.inet.tcp.recvspace`, `sendspace`, `rfc1323`, `sack.enable`)"
_JGN2 = "JGN II slides: “expand socket buffer size, set RFC1323 etc.”"

PROFILES: Mapping[str, Profile] = {
    "linux": Profile(
        _written(rmem="6MiB", wmem="4MiB"),
        "as a Linux host is without a word: a buffer that grows to 6 MiB",
        "Linux, Documentation/networking/ip-sysctl (`tcp_rmem`, `tcp_wmem`; 6 MiB until Linux 6.15)",
    ),
    "linux-2.4-tuned": Profile(
        _written(window="auto"),
        "a buffer for the lab's path that does not grow; each segment is acknowledged while its window opens",
        f"Linux 2.4 (net/ipv4/tcp_input.c, `tcp_grow_window`); {_JGN2}",
    ),
    "freebsd-5.3": Profile(
        _written(window="64KiB", wmem="72KiB"),
        "a window of 64 KiB that does not grow; RFC 1323 and SACK on; 32 KiB of payload in the send buffer",
        _BSD_TCP,
    ),
    "freebsd-5.3-tuned": Profile(
        _written(delayed_ack="on"),
        "buffers for the lab's path, an ACK for every second segment: as hosts of a lab are",
        f"{_BSD_TCP}; {_JGN2}",
    ),
    "windows-xp": Profile(
        _written(window="17520B", window_scaling="off", timestamps="off"),
        "12 segments of 1460 bytes, as on Ethernet of up to 100 Mbit/s; RFC 1323 off, SACK on",
        f"{_KB_224829}; {_MS_TCP}",
    ),
    "windows-xp-tuned": Profile(
        _written(delayed_ack="on"),
        "`Tcp1323Opts` 3, buffers for the lab's path, an ACK for every second segment: as hosts of a lab are",
        f"{_KB_224829}; {_JGN2}",
    ),
}
"""By name. The tuned ones are the receivers of the experiments on JGN II."""
