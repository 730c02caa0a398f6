"""The generator's performance, each beside iperf3's in the same place: a pair of namespaces, one core for both ends.

In: the node binary, iperf3, root. Out: goodput and CPU time of bulk TCP, how late flows start, a thousand flows at once
in both clocks, how exact the pace of UDP is; and tables of them for `bench.py`. Generator and reference take turns.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ewan.generator import traffic_request
from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND, PPM, bytes_in
from ewan.labs.base.units.shown import about
from ewan.labs.compile import compile
from ewan.labs.context import Context
from ewan.labs.record.traffic import (
    BulkWork,
    ConstantLaw,
    Endpoint,
    FlowRequest,
    SocketOptions,
    TrafficRequest,
    UdpWork,
    Work,
)
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.program import Program
from ewan.labs.spec import from_template

GIGABIT = NS_PER_SECOND
"""Bits per second."""
SENDER, SINK = "192.0.2.1", "192.0.2.2"
PORT = "5201"
PAYLOAD_BYTES = 1470
MANY = 1000
MANY_BYTES = 100_000
LATE = 100


@dataclass(frozen=True, slots=True)
class Used:
    """What a program and its children took."""

    answer: dict[str, Any]
    wall_s: float
    cpu_s: float


class TrafficBench:
    """Runs both generators between two namespaces, pinned to one core."""

    def __init__(self, context: Context, quick: bool, say: Callable[[str], None], scratch: Path, tag: str) -> None:
        self._quick, self._say, self._scratch, self._tag = quick, say, scratch, tag
        self._cpu = max(os.sched_getaffinity(0))
        self._context, self._binary = context, node_binary(context.binary)
        self._runs = 0

    def seconds(self, full: float, quick: float) -> int:
        """How long something lasts (ns); both are in seconds, `quick` for a quick bench."""
        return round((quick if self._quick else full) * NS_PER_SECOND)

    def bulk(self) -> list[dict[str, Any]]:
        """One CUBIC flow, as fast as the core can and through a token bucket of 1 Gbit/s; the best of some turns."""
        rows = []
        turns, duration_ns = (2 if self._quick else 5), self.seconds(5, 1)
        for rate in (None, "1gbit"):
            self.shape(rate)
            found: dict[str, list[dict[str, float]]] = {"ewan": [], "iperf3": [], "iperf3 -Z": []}
            for turn in range(turns):
                self._say(f"bulk, {rate or 'unlimited'}, turn {turn + 1} of {turns}")
                found["ewan"].append(self.ewan_bulk(duration_ns))
                found["iperf3"].append(self.iperf3_bulk(duration_ns))
                found["iperf3 -Z"].append(self.iperf3_bulk(duration_ns, "-Z"))
            for by, each in found.items():
                best = max(each, key=lambda one: one["goodput_bps"])
                rows.append({"rate": rate or "unlimited", "by": by, "turns": each, **best})
        self.shape(None)
        return rows

    def ewan_bulk(self, duration_ns: int) -> dict[str, float]:
        """Goodput of one bulk flow of our generator (bit/s), and CPU seconds per second of both ends."""
        used = self.traffic([self.flow(BulkWork(), stop_ns=duration_ns)])
        (record,) = used.answer["flows"]
        return {"goodput_bps": record["goodput_bps"], "cpu_s_per_s": used.cpu_s / (duration_ns / NS_PER_SECOND)}

    def iperf3_bulk(self, duration_ns: int, *more: str) -> dict[str, float]:
        """The same of iperf3; `more`: further options of its client."""
        used = self.iperf3(duration_ns, "-C", "cubic", *more)
        goodput = used.answer["end"]["sum_received"]["bits_per_second"]
        return {"goodput_bps": goodput, "cpu_s_per_s": used.cpu_s / (duration_ns / NS_PER_SECOND)}

    def lateness(self) -> dict[str, Any]:
        """Of `LATE` flows that start one after the other."""
        self._say(f"start lateness, {LATE} flows")
        work = BulkWork(MANY_BYTES)
        flows = [self.flow(work, start_ns=number * 7 * NS_PER_MS) for number in range(LATE)]
        return {"flows": LATE, **late(self.traffic(flows).answer["flows"])}

    def many(self) -> list[dict[str, Any]]:
        """A thousand flows that start at the same instant, in both clocks."""
        self._say(f"{MANY} flows, live")
        used = self.traffic([self.flow(BulkWork(MANY_BYTES)) for _ in range(MANY)])
        rows = [{"clock": "live", "wall_s": used.wall_s, **together(used.answer["flows"])}]
        self._say(f"{MANY} flows, virtual")
        words = {"rate": "1Gbit/s", "rtt": "10ms", "pairs": "11", "name": "bench"}
        plan = compile(from_template("dumbbell", words), host.virtual_facts())
        flows = [
            traffic_request.BulkTransfer(f"left{n % 11 + 1}", f"right{n % 11 + 1}", bytes=MANY_BYTES)
            for n in range(MANY)
        ]
        request = traffic_request.transfers(plan, flows, "virtual")
        begun = time.perf_counter()
        run = self._context.virtual(tell=self._say).run(
            plan, Program(longest_ns=request.longest_ns, traffic=request), self._scratch / "virtual"
        )
        wall_s = time.perf_counter() - begun
        return [
            *rows,
            {"clock": "virtual", "wall_s": wall_s, **together(codec.data_of(traffic_request.completed(run.directory)))},
        ]

    def pace(self) -> list[dict[str, Any]]:
        """UDP of packets of one size at one interval: what was sent in its time, against what was due."""
        rows = []
        duration_ns = self.seconds(5, 1)
        for rate_bps in (GIGABIT // 100, GIGABIT // 10, GIGABIT):
            self._say(f"UDP, {about(rate_bps, 'rate')}")
            interval_ns = PAYLOAD_BYTES * BITS_PER_BYTE * NS_PER_SECOND / rate_bps
            count = round(duration_ns / interval_ns)
            work = UdpWork(count, ConstantLaw(PAYLOAD_BYTES), ConstantLaw(interval_ns))
            used = self.traffic([self.flow(work)])
            (record,) = used.answer["flows"]
            # The last packet is due an interval before all their time is over, and takes its way to the sink.
            took_ns = record["ended_ns"] - record["delay_p50_ns"] + interval_ns
            rows.append(pace_row("ewan", rate_bps, record["sent_packets"], took_ns, count * interval_ns))
            rows[-1] |= {"lost_packets": record["lost_packets"], "jitter_ns": record["jitter_ns"]}
            rows[-1]["cpu_s_per_s"] = used.cpu_s / (duration_ns / NS_PER_SECOND)
            used = self.iperf3(duration_ns, "-u", "-b", str(rate_bps), "-l", str(PAYLOAD_BYTES))
            total = used.answer["end"]["sum"]
            sent_ns = round(used.answer["end"]["sum_sent"]["seconds"] * NS_PER_SECOND)
            packets = total["packets"]
            rows.append(pace_row("iperf3", rate_bps, packets, sent_ns, packets * interval_ns))
            rows[-1] |= {"lost_packets": total["lost_packets"], "jitter_ns": total["jitter_ms"] * NS_PER_MS}
            rows[-1]["cpu_s_per_s"] = used.cpu_s / (duration_ns / NS_PER_SECOND)
        return rows

    def shape(self, rate: str | None) -> None:
        """Where the sender sends."""
        where = ["tc", "-n", f"{self._tag}a", "qdisc"]
        if rate is None:
            subprocess.run([*where, "del", "dev", "eth0", "root"], check=False, capture_output=True)
        else:
            bucket = ["tbf", "rate", rate, "burst", "128kb", "limit", str(bytes_in(GIGABIT, 10 * NS_PER_MS))]
            subprocess.run([*where, "replace", "dev", "eth0", "root", *bucket], check=True, capture_output=True)

    def flow(self, work: Work, start_ns: int = 0, stop_ns: int | None = None) -> FlowRequest:
        """A flow of a traffic request between the two namespaces."""
        source, sink = (
            Endpoint(f"/run/netns/{self._tag}{side}", address) for side, address in (("a", SENDER), ("b", SINK))
        )
        return FlowRequest(
            name=work.kind,
            from_=source,
            to=sink,
            socket=SocketOptions("cubic"),
            work=work,
            start_ns=start_ns,
            stop_ns=stop_ns,
        )

    def traffic(self, flows: Sequence[FlowRequest]) -> Used:
        """Runs these flows; LabError for the first of them that ended with an error."""
        self._runs += 1
        out = self._scratch / str(self._runs)
        out.mkdir()
        longest_ns = traffic_request.LONGEST_NS
        request = TrafficRequest(clock="live", cpus=(self._cpu,), seed=0, longest_ns=longest_ns, flows=tuple(flows))
        (out / "request.json").write_bytes(codec.compact(request))
        command = [str(self._binary), "traffic", "--request", str(out / "request.json"), "--out", str(out)]
        wall_s, cpu_s = cost(lambda: run(command))
        answer: dict[str, Any] = orjson.loads((out / "traffic.json").read_bytes())
        if wrong := [record["error"] for record in answer["flows"] if record["error"]]:
            raise LabError(f"traffic: {wrong[0]}")
        return Used(answer, wall_s, cpu_s)

    def iperf3(self, duration_ns: int, *more: str) -> Used:
        """Client and server on the core."""
        pinned = ["taskset", "-c", str(self._cpu), "ip", "netns", "exec"]
        server = [*pinned, f"{self._tag}b", "iperf3", "-s", "-1", "-p", PORT]
        time_s = str(max(duration_ns // NS_PER_SECOND, 1))
        client = [*pinned, f"{self._tag}a", "iperf3", "-c", SINK, "-p", PORT, "-J", "-t", time_s, *more]
        said = b""

        def both() -> None:
            nonlocal said
            with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as listening:
                try:
                    self.listening()
                    said = run(client)
                    listening.wait(10)
                finally:
                    listening.kill()

        wall_s, cpu_s = cost(both)
        return Used(json.loads(said), wall_s, cpu_s)

    def listening(self) -> None:
        """Returns when the server is there."""
        ask = ["ip", "netns", "exec", f"{self._tag}b", "ss", "-Hltn", f"sport = :{PORT}"]
        for _ in range(100):
            if run(ask):
                return
            time.sleep(0.02)
        raise LabError("iperf3 -s does not listen")


def run(command: Sequence[str]) -> bytes:
    """Its output; LabError with its last words."""
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise LabError(f"{command[0]} is not there") from None
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise LabError(f"{' '.join(command[:6])} …: {words.splitlines()[-1] if words else 'failed'}")
    return done.stdout


def cost(action: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall time, and of CPU time of the children that ended meanwhile."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    action()
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - begun
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def late(flows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Of the first system call after its scheduled time."""
    sorted_ns = sorted(flow["started_ns"] - flow["scheduled_ns"] for flow in flows)
    return {"p50": sorted_ns[len(sorted_ns) // 2], "p99": sorted_ns[len(sorted_ns) * 99 // 100], "max": sorted_ns[-1]}


def together(flows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of flows that start at once."""
    last_ns = max(flow["ended_ns"] for flow in flows)
    goodput = sum(flow["received_bytes"] for flow in flows) * BITS_PER_BYTE * NS_PER_SECOND / last_ns
    complete = sum(flow["completion_ns"] is not None for flow in flows)
    return {"flows": len(flows), "complete": complete, "last_ns": last_ns, "goodput_bps": goodput, **late(flows)}


def pace_row(by: str, rate_bps: int, packets: int, took_ns: float, due_ns: float) -> dict[str, Any]:
    """`due_ns`: how long so many packets take at the wanted rate."""
    return {"by": by, "rate_bps": rate_bps, "packets": packets, "error_ppm": (due_ns / took_ns - 1) * PPM}


@contextlib.contextmanager
def pair(tag: str) -> Iterator[None]:
    """Namespaces TAGa and TAGb with a veth pair, gone afterwards."""
    lines = [f"netns add {tag}a", f"netns add {tag}b"]
    lines.append(f"link add eth0 netns {tag}a type veth peer name eth0 netns {tag}b")
    try:
        ip("\n".join(lines))
        for side, address in (("a", SENDER), ("b", SINK)):
            ip(f"address add {address}/24 dev eth0\nlink set eth0 up\nlink set lo up", "-n", f"{tag}{side}")
        yield
    finally:
        ip(f"netns del {tag}a\nnetns del {tag}b", "-force")


def ip(commands: str, *options: str) -> None:
    """Runs commands of `ip`, a line each; with "-force" none of them need succeed."""
    subprocess.run(
        ["ip", *options, "-batch", "-"], input=commands.encode(), check="-force" not in options, capture_output=True
    )


def measure(context: Context, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """All measurements, by part; `say` is told what is measured."""
    tag = f"ewbt{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="ewan-bench-") as scratch, pair(tag):
        bench = TrafficBench(context, quick, say, Path(scratch), tag)
        return {"bulk": bench.bulk(), "lateness": bench.lateness(), "many": bench.many(), "pace": bench.pace()}


Sheet = tuple[str, list[str], list[list[str]]]


def tables(found: dict[str, Any]) -> list[Sheet]:
    """Title, columns, rows."""
    reference = {row["rate"]: row["goodput_bps"] for row in found["bulk"] if row["by"] == "iperf3"}
    rows = [
        [
            row["rate"],
            row["by"],
            about(row["goodput_bps"], "rate"),
            f"{row['goodput_bps'] / reference[row['rate']]:.3f}",
            f"{row['cpu_s_per_s']:.2f}",
        ]
        for row in found["bulk"]
    ]
    columns = ["link", "by", "goodput", "× iperf3", "CPU seconds a second"]
    sheets = [("Generator: one CUBIC flow, both ends on one core, veth", columns, rows)]
    one = found["lateness"]
    rows = [["live", f"{one['flows']}, one after the other", *times(one), "", ""]]
    for row in found["many"]:
        done = f"{row['complete']} by {about(row['last_ns'], 'time')}"
        rows.append(
            [row["clock"], f"{row['flows']} at once", *times(row), done, about(row["wall_s"] * NS_PER_SECOND, "time")]
        )
    sheets.append(
        ("Generator: lateness of starts", ["clock", "flows", "p50", "p99", "max", "complete", "wall time"], rows)
    )
    rows = [
        [
            about(row["rate_bps"], "rate"),
            row["by"],
            f"{row['packets']:,}",
            f"{row['error_ppm']:+.1f} ppm",
            f"{row['lost_packets']:,}",
            about(row["jitter_ns"], "time"),
            f"{row['cpu_s_per_s']:.2f}",
        ]
        for row in found["pace"]
    ]
    columns = ["UDP payload", "by", "packets", "rate error", "lost", "jitter", "CPU seconds a second"]
    return [*sheets, (f"Generator: pace of UDP, {PAYLOAD_BYTES} bytes each", columns, rows)]


def times(row: Mapping[str, int]) -> list[str]:
    """Cells of three quantiles of a time in ns."""
    return [about(row[key], "time") for key in ("p50", "p99", "max")]
