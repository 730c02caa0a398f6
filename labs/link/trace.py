"""Changes of a direction over time: rows of its settings, or opportunities at which packets leave.

A description names a file and a part of it (labs/traces reads it). A key that the trace sets must not be written beside
it. Times in the plan are in ns after the trace's beginning, rates in bit/s, losses in parts per billion. The other keys
of a direction hold the means of the trace's values.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, assert_never

from pydantic import Field, PlainValidator, PrivateAttr, ValidationInfo

from ewan.labs import traces
from ewan.labs.base.codec import Variant
from ewan.labs.base.model import Model
from ewan.labs.base.units import Duration
from ewan.labs.base.values import TextFile, read_file, written_as
from ewan.labs.link.context import LinkContext
from ewan.labs.traces import Opportunities, TraceSteps, bounds, peak_bps, reading

if TYPE_CHECKING:
    from ewan.labs.link.settings import DirectionSettings


def _trace_file(value: object, info: ValidationInfo) -> TextFile:
    if not isinstance(value, str) or not value:
        raise ValueError('write the file\'s path relative to the description, like "lte.csv"')
    text = read_file(value, info)
    _as_imported(value, text, info)
    return TextFile(value, text)


def _as_imported(name: str, text: str, info: ValidationInfo) -> None:
    """ValueError if the file differs from the description in its NAME.source.yaml (`ewan trace import`)."""
    try:
        beside = read_file(name + traces.SOURCE_SUFFIX, info)
    except ValueError:
        return
    told = re.search(r"^sha256: *[\"']?([0-9a-f]{64})\b", beside, re.MULTILINE)
    if told and told[1] != hashlib.sha256(text.encode()).hexdigest():
        is_another = f"{name}: is not the file that {name}{traces.SOURCE_SUFFIX} tells of (SHA-256)"
        raise ValueError(f"{is_another}: import it again if it was cut off; if you changed it, leave out its sha256")


TraceFile = Annotated[TextFile, PlainValidator(_trace_file), written_as("file", "lte.csv")]
TraceTime = Annotated[
    Duration, PlainValidator(lambda value: Duration.parse(value, traces.LONGEST_NS)), written_as("duration", "10s")
]


class TraceKeys(Model, defer_build=True):
    """A link's rate, delay, loss and buffer over time, from a file."""

    what: ClassVar[str] = "key of a trace"
    file: TraceFile = Field(description="beside the description", examples=["lte.csv"])
    format: Literal["csv", "mahimahi", "theaterq", "pensieve"] | None = Field(
        None,
        description="csv: a header `time,rate,delay,loss,buffer`; mahimahi: milliseconds, one a line; theaterq: "
        "`KEEP,LATENCY,RATE,LOSS,LIMIT`; pensieve: seconds and Mbit/s; what the first line shows if absent",
    )
    from_: TraceTime | None = Field(
        None, alias="from", description="the link begins at this time of the file; 0s if absent", examples=["10s"]
    )
    to: TraceTime | None = Field(
        None, description="the trace ends at this time of the file; at the file's end if absent", examples=["70s"]
    )
    after: Literal["repeat", "hold"] | None = Field(
        None, description="repeat: it begins again; hold: its last row holds; repeat if absent", examples=["hold"]
    )
    _trace: traces.Trace = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Reads what the file says; ValueError with its name and line."""
        file: TextFile = self.file
        whole = reading.parse(file.name, file.text, self.format)
        try:
            begin, end = (None if each is None else each.ns for each in (self.from_, self.to))
            self._trace = traces.window(whole, begin, end)
            traces.check(self._trace, self.after or "repeat")
        except traces.TraceError as error:
            raise traces.TraceError(f"{file.name} {error}") from None

    @property
    def trace(self) -> traces.Trace:
        """The trace that the link follows; its time 0 is `from`."""
        return self._trace


Said = traces.Column
"""A property of a direction that a trace may set."""


class NoTrace(Variant, tag="none"):
    """Nothing changes by itself."""


class TraceRows(Variant, tag="rows", kw_only=True):
    """Each row is (at_ns, rate_bps, delay_ns, loss_ppb, limit_bytes), None where it stays; the first says all.

    Repeated after `period_ns`; 0: the last row holds.
    """

    period_ns: int
    rows: tuple[tuple[int | None, ...], ...]


class TraceOpportunities(Variant, tag="opportunities", kw_only=True):
    """Each is (at_ns, count): so many times 1504 bytes of what waits leave then. Repeated after `period_ns`."""

    opportunities: tuple[tuple[int, ...], ...]
    period_ns: int


Trace = NoTrace | TraceRows | TraceOpportunities
NO_TRACE = NoTrace()


def said(trace: Trace) -> frozenset[Said]:
    """The keys of the direction that a trace replaces."""
    match trace:
        case NoTrace():
            return frozenset()
        case TraceOpportunities():
            return frozenset({"rate"})
        case TraceRows(rows=rows):
            names: tuple[Said, ...] = ("rate", "delay", "loss", "buffer")
            return frozenset(name for name, value in zip(names, rows[0][1:], strict=True) if value is not None)
        case _:
            assert_never(trace)


def length(trace: Trace) -> int:
    """Rows, or instants with opportunities."""
    match trace:
        case NoTrace():
            return 0
        case TraceRows(rows=rows):
            return len(rows)
        case TraceOpportunities(opportunities=opportunities):
            return len(opportunities)
        case _:
            assert_never(trace)


def beyond(trace: Trace, lasts_ns: int) -> str:
    """The end of a trace that is shorter than a run of `lasts_ns`, in words; empty if it is not shorter."""
    match trace:
        case NoTrace():
            return ""
        case TraceRows(period_ns=0, rows=rows):
            last = rows[-1][0] or 0
            return f"its trace ends after {Duration(last)}, and its last row holds" if 0 < last < lasts_ns else ""
        case TraceRows(period_ns=period) | TraceOpportunities(period_ns=period):
            if period >= lasts_ns:
                return ""
            return f"its trace of {Duration(period)} begins again, {lasts_ns / period:.3g} times in all"
        case _:
            assert_never(trace)


def words(trace: Trace) -> str:
    """`trace of 600 rows, 60s repeated`; empty for none."""
    match trace:
        case NoTrace():
            return ""
        case TraceRows(period_ns=period, rows=rows):
            return f"trace of {len(rows)} rows, {f'{Duration(period)} repeated' if period else 'then held'}"
        case TraceOpportunities(opportunities=opportunities, period_ns=period):
            count = sum(each[1] for each in opportunities)
            return f"trace of {count} opportunities, {Duration(period)} repeated"
        case _:
            assert_never(trace)


def compile_trace(way: DirectionSettings, at: LinkContext) -> Trace:
    """DescriptionError where a key says what the trace says."""
    written = way.written.trace
    if written is None:
        return NoTrace()
    trace = written.trace
    for column in trace.columns:
        for key in way.saying(column):
            message = f"the trace of {at.link} says the {column}: leave {key} out, or take another trace"
            raise at.error(way, key, message, getattr(way.written, key))
    queue = way.written.queue
    if "buffer" in trace.columns and queue is not None and queue.kind in ("priority", "weighted"):
        message = f"{queue.kind} has a buffer for each class: take a trace without a buffer"
        raise at.error(way, "trace", message, None)
    period = trace.end_ns if written.after != "hold" else 0
    match trace:
        case Opportunities(instants):
            return TraceOpportunities(opportunities=instants, period_ns=period)
        case TraceSteps(rows):
            # At the end of a period the first row holds again.
            kept = [row for row in rows if not period or row.at_ns < period]
            listed = ((row.at_ns, row.rate_bps, row.delay_ns, row.loss_ppb, row.limit_bytes) for row in kept)
            return TraceRows(period_ns=period, rows=tuple(listed))


def most(way: DirectionSettings, column: Literal["delay", "buffer"]) -> int | None:
    """The greatest delay (ns) or buffer (bytes) of the trace; None where it says none."""
    trace = way.traced(column)
    return None if trace is None else bounds(trace, column)[1]


def highest_bps(way: DirectionSettings, within_ns: int) -> int:
    """The rate of the link that its store must suffice for; `within_ns`: the longest delay."""
    trace = way.traced("rate")
    return way.rate.bps if trace is None else max(peak_bps(trace, within_ns), way.rate.bps)
