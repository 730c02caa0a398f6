"""Messages between the node binaries of a lab's machines and the process that drives them: documents of one line.

In and out: bytes, by `ewan.labs.base.codec`. Of the possible messages each line has one, under its name."""

from __future__ import annotations

from typing import Any

from ewan.labs.base.codec import Document, Struct, field
from ewan.labs.runtime.probe_documents import Probe


class DelaySpread(Struct):
    """A spread of delays, in ns."""

    min: int
    p50: int
    p99: int
    max: int


class TunnelBurst(Struct):
    """Packets of a burst: handed to the tunnel; different ones that came; those of them that came in order."""

    packet_bytes: int
    sent: int
    arrived: int
    in_order: int


class TunnelMeasurementRequest(Document, tag="ewan-stretch/1"):
    """The request to both ends of a tunnel that is to be measured (emulator/node/src/stretch/request.rs)."""

    vni: int
    local: str
    remote: str
    port: int
    mtu: int
    packets: int
    interval_ns: int
    rate_bytes: int


class TunnelMeasurement(Document, tag="ewan-stretch/1"):
    """The result of the measuring end (emulator/node/src/stretch/result.rs). There: from it to the other one."""

    round_trip_ns: DelaySpread
    there_ns: DelaySpread
    back_ns: DelaySpread
    offset_ns: int
    offset_at_ns: int
    offset_uncertainty_ns: int
    offset_scatter_ns: int | None
    drift_ppb: int | None
    drift_uncertainty_ppb: int
    sent: int
    answered: int
    lost_there: int
    lost_back: int
    reordered_there: int
    reordered_back: int
    duplicated_there: int
    duplicated_back: int
    rate_there_bps: int | None
    rate_back_bps: int | None
    burst_there: TunnelBurst
    burst_back: TunnelBurst
    mtu: int
    mtu_there: int
    mtu_back: int


class RunReadiness(Struct):
    """A machine's readiness: all is made that does not need T0. `lead_ns`: the time before T0 at which it must know it;
    `real_ns`: CLOCK_REALTIME."""

    lead_ns: int
    real_ns: int


class RunMoment(Struct):
    """So long after T0."""

    at_ns: int


class StepEnded(Struct):
    """A step ended, or the machine's part of it."""

    step: int
    at_ns: int


class Carriers(Struct):
    """So many changes of carriers were made there by then."""

    made: int
    at_ns: int


class JointRunAnswer(Struct):
    """A line of a run (emulator/batch/src/joint.rs). `over`: nothing is left to do there; `ending`: it ends."""

    ready: RunReadiness | None = None
    alive: RunMoment | None = None
    step: StepEnded | None = None
    carriers: Carriers | None = None
    over: RunMoment | None = None
    ending: RunMoment | None = None

    @property
    def at_ns(self) -> int:
        """The time (ns) after T0 at which the message was sent; 0 before T0."""
        each = self.alive or self.step or self.carriers or self.over or self.ending
        return 0 if each is None else max(each.at_ns, 0)


class RunStart(Struct):
    """T0, by the machine's own CLOCK_REALTIME."""

    real_ns: int


class Nothing(Struct):
    """An order that needs no more words."""


class JointRunOrder(Struct):
    """A line to a machine in a run. `end`: all have done their part; `interrupt`: all are to end early."""

    begin: RunStart | None = None
    step: StepEnded | None = None
    end: Nothing | None = None
    interrupt: Nothing | None = None


class Ports(Struct):
    """The ports of each stream, by the place of the stream; None: the end is elsewhere, or has none."""

    source: tuple[int | None, ...] = field(name="from")
    sink: tuple[int | None, ...] = field(name="to")


class ProbesHere(Struct):
    """The network namespaces of a machine, and the CPUs for the probes' threads."""

    format: str
    netns: tuple[str, ...]
    cpus: tuple[int, ...]


class ProbeQuestion(Struct):
    """A probe, of which the machine has ends; `run` marks its packets."""

    probe: Probe
    run: int


class ProbeBegins(Struct):
    """The beginning of a probe by the machine's own CLOCK_REALTIME."""

    at_ns: int
    ports: Ports


class ProbeOrder(Struct):
    """A line to a machine that probes (emulator/traffic/src/probe/joint.rs). `drop`: another one cannot do its part."""

    here: ProbesHere | None = None
    probe: ProbeQuestion | None = None
    begin: ProbeBegins | None = None
    end: Nothing | None = None
    drop: Nothing | None = None


class ProbesThere(Struct):
    """The format of the machine's probes, and its CLOCK_REALTIME."""

    format: str
    real_ns: int


class ProbeReady(Struct):
    """All sockets are open. `longest_ns`: how long the probe takes at most."""

    ports: Ports
    longest_ns: int
    real_ns: int


class ProbeHalf(Struct):
    """The machine's observations of a probe, which the node binary merges."""

    half: dict[str, Any]
    real_ns: int


class ProbeFailed(Struct):
    """The reason why the machine cannot do its part."""

    error: str


class MachineAnswer(Struct):
    """A line of such a machine."""

    here: ProbesThere | None = None
    ready: ProbeReady | None = None
    sent: Nothing | None = None
    half: ProbeHalf | None = None
    failed: ProbeFailed | None = None
    dropped: Nothing | None = None

    @property
    def said(self) -> str:
        """The name of the message that it holds."""
        return next((name for name in self.__struct_fields__ if getattr(self, name) is not None), "nothing")

    @property
    def real_ns(self) -> int | None:
        """The machine's CLOCK_REALTIME, where the message has it."""
        each = self.here or self.ready or self.half
        return None if each is None else each.real_ns
