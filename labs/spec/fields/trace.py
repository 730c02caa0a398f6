"""The keys of a trace: which file, and which part of it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from ewan.labs import traces
from ewan.labs.spec.fields.model import Model
from ewan.labs.spec.values import TextFile, TraceFile, TraceTime
from ewan.labs.traces import reading


class Trace(Model):
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
        """What the link follows; its time 0 is `from`."""
        return self._trace
