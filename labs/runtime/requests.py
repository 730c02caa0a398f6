"""Requests over the control sockets of a lab's links, and the answer of each.

In and out: a line of JSON each. A spinner (emulator/datapath/src/control.rs) and the keeper of a device
(labs/runtime/keeper.py) answer; a link of the kernel's parts has no socket, and the runtime answers for it.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast, get_args

from msgspec.structs import asdict

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct, tags
from ewan.labs.hardware.device_answers import DeviceCounters, DeviceRows, DeviceSeries, DeviceStatus
from ewan.labs.link import Change
from ewan.labs.link.direction import Heading
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.spinner_stats import SpinnerStats
from ewan.labs.runtime.state_documents import Direction

Answer = TypeVar("Answer")


class SeriesColumns(Struct, forbid_unknown_fields=False):
    """The values of one direction, one for each millisecond, in the columns that the request names."""

    in_packets: tuple[int, ...] = ()
    in_bytes: tuple[int, ...] = ()
    out_packets: tuple[int, ...] = ()
    out_bytes: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    queue_full: tuple[int, ...] = ()
    aqm: tuple[int, ...] = ()
    store_full: tuple[int, ...] = ()
    ce_packets: tuple[int, ...] = ()
    queue_packets: tuple[int, ...] = ()
    queue_bytes: tuple[int, ...] = ()
    queue_max_bytes: tuple[int, ...] = ()
    delay_line_packets: tuple[int, ...] = ()
    lateness_max_ns: tuple[int, ...] = ()
    lateness_sum_ns: tuple[int, ...] = ()


class LinkSeriesAnswer(Struct, forbid_unknown_fields=False):
    """The milliseconds of a link from `first_ms` on; before `end_ms` all are complete."""

    link: str
    first_ms: int
    end_ms: int
    overwritten_ms: int
    forward: SeriesColumns
    backward: SeriesColumns


class ActivitySums(Struct, forbid_unknown_fields=False):
    """The sums of a series of one direction: counts added up, the most of maxima."""

    in_packets: int
    in_bytes: int
    out_packets: int
    out_bytes: int
    lost: int
    queue_full: int
    aqm: int
    store_full: int
    ce_packets: int
    queue_packets: int
    queue_bytes: int
    queue_max_bytes: int
    delay_line_packets: int
    lateness_max_ns: int
    lateness_sum_ns: int


class Activity(Struct, forbid_unknown_fields=False):
    """From `first_ms` to before `end_ms`, by link and direction; those that did nothing are left out."""

    first_ms: int
    end_ms: int
    links: dict[str, dict[Heading, ActivitySums]]


class AppliedChange(Struct, forbid_unknown_fields=False):
    """A change that was made. `requested_ns`: since the spinner started, `late_ns`: after that; others say neither."""

    link: str
    direction: Heading
    change: Change
    requested_ns: int = 0
    late_ns: int = 0


class AppliedChanges(Struct, forbid_unknown_fields=False):
    """All changes since the lab came up, in their order."""

    changes: tuple[AppliedChange, ...]


class SetAnswer(Struct, forbid_unknown_fields=False, kw_only=True):
    """`at_ns`: when the change is due, since the links started; a link of the kernel's parts does not say it.

    `ids`: by which a spinner tells its changes apart.
    """

    at_ns: int | None = None
    ids: tuple[int, ...] | None = None
    ok: bool


class LinkRequest(Struct, Generic[Answer], tag_field="command"):
    """A request; the parameter of its class is the type of the answer."""

    @classmethod
    def answer_type(cls) -> type[Answer]:
        """The type of the answer."""
        (found,) = get_args(cast(Any, cls).__orig_bases__[0])
        return cast(type[Answer], found)


class StatsRequest(LinkRequest[SpinnerStats], tag="stats"):
    """The request for all counters of a spinner, or those of one of its links."""

    link: str | None = None


class LinkSeriesRequest(LinkRequest[LinkSeriesAnswer], tag="series"):
    """The milliseconds of a spinner's link. `most`: rows at most; `columns`: the wanted ones, None for all."""

    link: str
    since_ms: int = 0
    most: int | None = None
    columns: tuple[str, ...] | None = None


class ActivityRequest(LinkRequest[Activity], tag="activity"):
    """The request for the activity of all links of a spinner; `since_ms`: None for the time from now on."""

    since_ms: int | None = None


class ChangesRequest(LinkRequest[AppliedChanges], tag="changes"):
    """The request for the changes that were made."""


class LinkSetRequest(LinkRequest[SetAnswer], Change, tag="set", kw_only=True):
    """A change of a link's direction in `in_ns`; its values are beside the keys that say of what."""

    link: str
    direction: Direction
    in_ns: int = 0

    @classmethod
    def of(cls, change: Change, link: str, direction: Direction, in_ns: int = 0) -> LinkSetRequest:
        """The request for a change."""
        return cls(link=link, direction=direction, in_ns=in_ns, **asdict(change))

    @property
    def change(self) -> Change:
        """The change without its link and time."""
        return Change(**{name: getattr(self, name) for name in Change.__struct_fields__})


class DeviceRequest(LinkRequest[DeviceStatus], tag="device"):
    """The request for a device's description, readings and settings."""


class CountersRequest(LinkRequest[DeviceCounters], tag="counters"):
    """The request for a device's counters."""


class DeviceSeriesRequest(LinkRequest[DeviceSeries], tag="series"):
    """The milliseconds of a device; `since_ms` below 0: the last so many."""

    link: str = ""
    since_ms: int = 0


class ReadoutRequest(LinkRequest[DeviceRows], tag="readout"):
    """The rows of a device with their times; `since` below 0: none yet, but where to go on."""

    since: int = 0


KeeperRequest = (
    LinkSetRequest
    | ChangesRequest
    | DeviceSeriesRequest
    | ReadoutRequest
    | CountersRequest
    | DeviceRequest
    | StatsRequest
)
"""The requests that the keeper of a device answers; it answers `stats` as `device`."""


class _Head(Struct, forbid_unknown_fields=False):
    ok: bool
    error: str | None = None


class _CommandName(Struct, forbid_unknown_fields=False):
    command: str = ""


def answer_in(request: LinkRequest[Answer], line: bytes, who: str) -> Answer:
    """The answer in a line; LabError when it is a refusal, ValueError where it is none. `who` answered."""
    head = codec.decode(_Head, line, "")
    if not head.ok:
        raise LabError(head.error if head.error is not None else f"{who} refused")
    return codec.decode(request.answer_type(), line, "")


def read_keeper_request(line: bytes) -> KeeperRequest:
    """Reads a request to a keeper from a line; ValueError, one line, for a request that it does not answer."""
    command, known = codec.decode(_CommandName, line, "").command, tags(KeeperRequest)
    if command not in known:
        raise ValueError(f"command {command!r}: write {', '.join(known)}")
    found: KeeperRequest = codec.decode(cast(Any, KeeperRequest), line, "")
    return found
