"""Measures how netem turns a smooth stream into bursts while psp below it does not: eWAN, section IV.B, figures 5 and
6.

In: the runtime of the virtual clock. Out: three series of packets, each with its arrival and its latency. The stream
is UDP at a constant 100 Mbit/s (wire framing, full packets) into a link of 1 ms. The paper's kernels (2.6, HZ=1000)
had netem release packets on the timer tick; today's netem has timers of 1 ns, and its `slot` models the tick: what is
due waits for the next release, 1 ms after the last. With psp, latency includes the time that smoothing takes.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.analysis.bursts import largest_bunch, largest_burst_bytes
from ewan.calibration.expect import expectations
from ewan.calibration.expectation import framed_bytes, serialisation_ns
from ewan.calibration.probing import packet_stream
from ewan.labs import host
from ewan.labs.base import documents
from ewan.labs.base.codec import JsonValue, replace
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.compile import compile
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.probe_documents import DelayProbe, DelayResult, FailedResult, ProbeAnswer, ProbeRequest
from ewan.labs.runtime.program import Preparation, Program
from ewan.labs.runtime.sweep import sweep
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

DURATION_NS = 20 * NS_PER_MS
DRAIN_NS = 20 * NS_PER_MS
# Where programs of a run are looked for (emulator/batch/src/command.rs).
PROGRAM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TICK = ("delay", "1ms", "slot", "1ms", "1ms")


@dataclass(frozen=True, slots=True)
class Setting:
    """The tc commands of one case: `1:` is the plan's netem, with psp below it; another handle has nothing below."""

    key: str
    title: str
    tc: tuple[str, ...]
    """The words after `tc qdisc`, with DEV for the interface."""


SETTINGS = (
    Setting(
        "netem-tick",
        "netem, 1 ms tick (figure 5)",
        ("replace", "dev", "DEV", "root", "handle", "10:", "netem", *TICK),
    ),
    Setting(
        "netem-tick-psp",
        "netem, 1 ms tick, and psp (figure 6)",
        ("change", "dev", "DEV", "root", "handle", "1:", "netem", *TICK),
    ),
    Setting(
        "netem-today",
        "netem of today, 1 ns timers",
        ("replace", "dev", "DEV", "root", "handle", "10:", "netem", "delay", "1ms"),
    ),
)


@dataclass(frozen=True, slots=True)
class BurstSeries:
    """The packets of one setting in order of arrival; times since the first one was sent."""

    key: str
    title: str
    times_ns: tuple[int, ...]
    latencies_ns: tuple[int, ...]
    packet_bytes: int
    """As the link counts them."""
    rate_bps: int

    @property
    def largest_bunch(self) -> int:
        """The most packets that arrived at one instant."""
        return largest_bunch(self.times_ns)

    @property
    def largest_burst_bytes(self) -> float:
        """The depth of a token bucket of `rate_bps` that would let the stream pass unchanged."""
        return largest_burst_bytes(self.times_ns, [self.packet_bytes] * len(self.times_ns), self.rate_bps)


def plan_of(name: str = "bursts") -> Plan:
    """The lab of the figures: one link of 1 ms and 100 Mbit/s each way, of netem and psp."""
    words = {"rtt": "2ms", "rate": "100Mbit/s", "buffer": "100pkt", "emulator": "kernel", "dither": "0", "ip": "4"}
    return compile(from_template("dumbbell", {"name": name, **words}), host.virtual_facts())


def program_of(plan: Plan, setting: Setting) -> Program:
    """tc on the emulator's exit, then packets between the link's own ends, as many as the rate carries."""
    link, expected = plan.links[0], expectations(plan).links[0]
    tc = ("tc", "qdisc", *(link.port_b if word == "DEV" else word for word in setting.tc))
    interval_ns = int(serialisation_ns(expected.direction, expected.mtu_bytes))
    packets = -(-DURATION_NS // interval_ns)
    stream = packet_stream(setting.key, expected.ends, plan.lab, expected.mtu_bytes, interval_ns, packets)
    probe = DelayProbe("stream", (replace(stream, raw=True),), DRAIN_NS)
    return Program(ProbeRequest(tuple(plan.host_cpus), (probe,), "virtual"), prepare=(Preparation(link.node, tc),))


def series_of(plan: Plan, setting: Setting, program: Program, answer: ProbeAnswer) -> BurstSeries:
    """Return the series that the probe measured. RuntimeError if packets are missing: arrival times follow from delays
    only without loss."""
    assert program.probe is not None
    (probe,), (result,) = program.probe.probes, answer.results
    if isinstance(result, FailedResult):
        raise RuntimeError(f"{setting.key}: {result.error}")
    assert isinstance(probe, DelayProbe) and isinstance(result, DelayResult)
    (asked,), (found,) = probe.streams, result.streams
    if found.received_packets != asked.packets:
        raise RuntimeError(f"{setting.key}: {found.received_packets} of {asked.packets} packets arrived")
    direction = expectations(plan).links[0].direction
    delays = found.delays_ns or ()
    return BurstSeries(
        key=setting.key,
        title=setting.title,
        # No packet overtakes another here: the k-th to arrive was the k-th sent.
        times_ns=tuple(number * asked.interval_ns + delay for number, delay in enumerate(delays)),
        latencies_ns=delays,
        packet_bytes=framed_bytes(direction.framing, asked.packet_bytes),
        rate_bps=direction.rate_bps,
    )


def measure(runtime: VirtualRuntime, place: Path) -> list[BurstSeries]:
    """All settings, each in a lab of its own; their run directories are made in `place`."""
    if shutil.which("tc", path=PROGRAM_PATH) is None:
        raise LabError("tc, which sets netem's slots, is not there: install iproute2 (Debian: apt install iproute2)")
    runtime.kernel()
    plan = plan_of()

    def job(setting: Setting) -> Callable[[threading.Event], BurstSeries]:
        def run(stop: threading.Event) -> BurstSeries:
            program = program_of(plan, setting)
            result = runtime.run(plan, program, place / setting.key, stop)
            if result.interrupted:
                raise LabError("interrupted")
            return series_of(plan, setting, program, documents.read(ProbeAnswer, result.directory / "probe.json"))

        return run

    return sweep([job(setting) for setting in SETTINGS])


def csv(series: Sequence[BurstSeries]) -> str:
    """One line a packet."""
    text = io.StringIO()
    text.write("time_ns,latency_ns,series\n")
    for each in series:
        for time, latency in zip(each.times_ns, each.latencies_ns, strict=True):
            text.write(f"{time},{latency},{each.key}\n")
    return text.getvalue()


def points(context: Context) -> dict[str, JsonValue]:
    """The series as points of a summary (`ewan.analysis.summary`): `series` is the parameter; sizes in bytes, times in
    ns.

    LabError where it cannot be measured.
    """
    runtime = context.virtual(tell=context.reporter.tell)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = measure(runtime, Path(scratch))
        except RuntimeError as error:
            raise LabError(str(error)) from None

    def metrics(series: BurstSeries) -> dict[str, JsonValue]:
        values = {
            "largest bunch": (series.largest_bunch, "count"),
            "largest burst": (series.largest_burst_bytes, "B"),
            "least latency": (min(series.latencies_ns), "ns"),
            "largest latency": (max(series.latencies_ns), "ns"),
        }
        return {
            name: {"mean": value, "low": None, "high": None, "unit": unit} for name, (value, unit) in values.items()
        }

    own: list[JsonValue] = [
        {"parameters": {"series": each.key}, "seeds": 1, "metrics": metrics(each)} for each in found
    ]
    return {"points": own, "beside": []}
