"""The parts that rows are made with: the probes' results by name, and a judge of one link and direction (or pair).
Pure.

In: the answer of `ewan-node probe`. Out: rows with their verdicts, and reasons why a result cannot be used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ewan.calibration.expectation import BYTE_NS
from ewan.calibration.probing import SENDER, ProbePlan
from ewan.calibration.spinner import CHANGED
from ewan.calibration.tolerances import Tolerances
from ewan.calibration.uncertainty import Components, Instrument, SampleCount, decide, deciding, expanded, recorded
from ewan.generator.traffic_request import FlowRecord
from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.base.units.shown import written
from ewan.labs.record import Row, Uncertainty
from ewan.labs.runtime.probe_documents import FailedResult, ProbeAnswer, StreamResult, TcpProbe, TcpResult


@dataclass(frozen=True, slots=True)
class ArrivedFlow:
    """A transfer of the virtual clock: its record, and what arrived in bins of equal length that follow one another
    (the end of each in ns, bytes). Its goodput is that of `busy_ns` of it."""

    told: FlowRecord
    arrived: Sequence[tuple[int, int]]
    busy_ns: int
    lasts_ns: int

    @property
    def data(self) -> Any:
        """As a certificate has it among the results of probes."""
        flow = codec.data_of(self.told) | {"arrived": self.arrived, "busy_ns": self.busy_ns}
        return {"kind": "bulk", "name": f"tcp {self.told.name}", "elapsed_ns": self.lasts_ns, "flows": [flow]}


@dataclass(frozen=True, slots=True)
class ProbeResults:
    """The results of `ewan-node probe` or `exact.answer`, by kind and by the name of the stream (of the probe for
    TCP)."""

    streams: Mapping[tuple[str, str], StreamResult]
    transfers: Mapping[str, TcpResult | ArrivedFlow]
    failures: Mapping[str, str]
    """By the name of the probe."""
    failed_streams: Mapping[tuple[str, str], str]
    clock_steps: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, probing: ProbePlan, answer: ProbeAnswer, flows: Sequence[ArrivedFlow] = ()) -> ProbeResults:
        """An answer, whose results are in the order of the probes that were asked for, and the transfers after them."""
        streams, failures, failed, steps = {}, {}, {}, {}
        transfers: dict[str, TcpResult | ArrivedFlow] = {f"tcp {flow.told.name}": flow for flow in flows}
        for asked, result in zip(probing.probes, answer.results, strict=True):
            if isinstance(result, FailedResult):
                failures[asked.name] = result.error
                for stream in () if isinstance(asked, TcpProbe) else asked.streams:
                    failed[asked.kind, stream.name] = result.error
            elif isinstance(result, TcpResult):
                transfers[result.name] = result
            else:
                for found in result.streams:
                    streams[result.kind, found.name] = found
                    steps[result.kind, found.name] = result.clock_step_ns
        return cls(streams, transfers, failures, failed, steps)

    def saturation(self, key: str) -> StreamResult | None:
        """The stream that filled a link and arrived; if several senders filled it, the sum of their streams."""
        found = [stream for (kind, name), stream in self.streams.items() if kind == "saturate" and of_link(name) == key]
        return _together(found) if len(found) > 1 else found[0] if found else None


def of_link(name: str) -> str:
    """The link that a stream fills, which may be one of several; `name`: the stream's."""
    return name.split(SENDER)[0]


def _together(streams: list[StreamResult]) -> StreamResult:
    """One stream in place of several that shared a link; what is steady, the first one tells of all."""
    delays = [stream.delay for stream in streams if stream.delay is not None]
    delay = None
    if delays:
        least, greatest = min(each.min_ns for each in delays), max(each.max_ns for each in delays)
        delay = replace(delays[0], min_ns=least, max_ns=greatest)
    return replace(
        streams[0],
        sent_packets=sum(stream.sent_packets for stream in streams),
        received_packets=sum(stream.received_packets for stream in streams),
        refused_packets=sum(stream.refused_packets for stream in streams),
        socket_drops_packets=sum(stream.socket_drops_packets for stream in streams),
        sending_ns=max(stream.sending_ns for stream in streams),
        longest_sender_gap_ns=max(stream.longest_sender_gap_ns for stream in streams),
        clocks_ns=max(stream.clocks_ns or 0 for stream in streams),
        delay=delay,
    )


OTHER_TRAFFIC = "is other traffic on it?"


@dataclass(frozen=True, slots=True)
class Judge:
    """The properties that all rows of one link and direction (or pair) share."""

    link: str
    direction: str
    cause: str
    """A disturbance that is known; empty if there was none."""
    machine: str = ""
    """Another disturbance that may have affected the link; empty if there was none."""
    instrument: Instrument | None = None
    """None: of the virtual clock, where nothing but the probes is in the lab, and whose instants are exact."""
    holds_s: int | None = None

    def row(
        self,
        quantity: str,
        unit: str,
        configured: float,
        measured: float,
        tolerance: float | tuple[float, float],
        note: str = "",
        *,
        components: Components | None = None,
        samples: SampleCount | None = None,
        steady: bool = False,
        hint: str = "",
        allowed: Components | None = None,
    ) -> Row:
        """Tolerance either way, or below and above. `steady`: a quantity that a CPU taken away hardly moves. `hint`:
        which fault gives this very value; it comes before what may have disturbed the link, and not if the setting was
        changed. `allowed`: sources of uncertainty that the tolerance has room for already: they are part of U, and
        the verdict does not count them twice."""
        below, above = tolerance if isinstance(tolerance, tuple) else (tolerance, tolerance)
        error = measured - configured
        known = components or {}
        verdict = decide(error, below, above, expanded(known))
        needs, why = None, ""
        if verdict == "not decidable" and samples is not None:
            needs = deciding(error, below, above, known, samples)
            why = f"it takes about {needs:,} {samples.what} to tell" if needs else _largest(known)
        parts = [note] if verdict == "ok" else [note, why] if why else [note, *self._causes(steady, hint)]
        shown = above if error >= 0 else below
        note = "; ".join(part for part in parts if part)
        return Row(
            self.link,
            self.direction,
            quantity,
            unit,
            configured,
            measured,
            error,
            shown,
            verdict,
            note,
            recorded({**known, **(allowed or {})}),
            needs,
            self.holds_s,
        )

    def _causes(self, steady: bool, hint: str) -> list[str]:
        if CHANGED in self.cause:
            return [self.cause]
        guess = OTHER_TRAFFIC if steady and self.instrument is not None else ""
        known = self.cause or self.machine
        return [hint, known or ("" if hint else guess)]

    def drawn(
        self,
        quantity: str,
        unit: str,
        configured: float,
        measured: float,
        limits: tuple[float, float],
        uncertainty: Uncertainty,
        most: float = math.inf,
        needs: int = 0,
        note: str = "",
        hint: str = "",
    ) -> Row:
        """A row of what is drawn at random, and therefore known from a sample only. `limits`: below and above what is
        configured; further off it cannot be by chance. It is decided when U is no more than `most`, for which it takes
        `needs` packets."""
        row = self.row(quantity, unit, configured, measured, limits, note, hint=hint)
        if row.verdict == "ok" and uncertainty.expanded > most:
            note = "; ".join(part for part in (note, f"it takes about {needs:,} packets to tell") if part)
            row = replace(row, verdict="not decidable", needs=needs, note=note)
        return replace(row, uncertainty=uncertainty)

    def shown(self, quantity: str, unit: str, configured: float | None, measured: float, note: str = "") -> Row:
        """A row that nothing is decided by."""
        error = None if configured is None else measured - configured
        return Row(self.link, self.direction, quantity, unit, configured, measured, error, None, "shown", note)

    def few(self, quantity: str, unit: str, configured: float, measured: float, count: int, needs: int) -> Row:
        """A row of which there are too few samples to say how uncertain it is."""
        note = f"of {count}: it takes {needs:,} to tell"
        row = self.shown(quantity, unit, configured, measured, note)
        return replace(row, verdict="not decidable", needs=needs)

    def unknown(self, quantity: str, note: str) -> Row:
        """A row of what may make the others untrue at any time, though they are true now."""
        return replace(self.missing(quantity, "count", None, note), verdict="not decidable")

    def missing(self, quantity: str, unit: str, configured: float | None, why: str) -> Row:
        """A row for what was not measured, and why."""
        return Row(self.link, self.direction, quantity, unit, configured, None, None, None, "not measured", why)

    def dead(self, quantity: str, unit: str, configured: float, *why: str) -> Row:
        """Nothing could be measured because nothing came through."""
        note = "; ".join(part for part in why if part)
        return replace(self.missing(quantity, unit, configured, note), verdict="outside")


def _largest(components: Components) -> str:
    source = max(components, key=lambda source: components[source])
    return f"no number of samples tells: its uncertainty comes from: {source}"


def why_not(results: ProbeResults, kind: str, key: str) -> str | None:
    """Why a stream's result cannot be used, if it cannot."""
    if (kind, key) in results.failed_streams:
        return results.failed_streams[kind, key]
    stream = results.streams.get((kind, key))
    if stream is None:
        return "not probed"
    if abs(results.clock_steps[kind, key]) > 20_000:
        return f"this host's clock was stepped by {results.clock_steps[kind, key]} ns meanwhile"
    if stream.sent_packets == 0:
        return f"nothing could be sent: {stream.refused_why or 'the host was too busy'}"
    return None


def exact(bounds: Tolerances) -> bool:
    """Return whether the bounds are those of the virtual clock, in which nothing is ever late."""
    return bounds.delay_ns == 0


def rounding_ns(parts: Iterable[float]) -> float:
    """Each time that is no whole number of ns is rounded up."""
    return float(sum(1 for part in parts if part % 1))


def dither_note(dither_ns: int) -> str:
    """A note's words about a dither; empty where there is none."""
    return f"and a dither below {dither_ns} ns" if dither_ns else ""


def offered_bps(stream: StreamResult, framed: float) -> float:
    """The rate at which packets left the sender's own interface, as the link counts bytes."""
    if stream.sending_ns == 0:
        return 0.0
    return (stream.sent_packets - 1) * framed * BYTE_NS / stream.sending_ns


def rate_text(bps: float) -> str:
    """A rate as people write it."""
    return written(bps, "bit/s")
