"""D-ITG as a generator of UDP and of bulk TCP: ITGRecv at the sink, ITGSend at the source, then ITGDec for the log.

Comes in: a transfer; later the log of its packets. Goes out: commands; rows of flows and goodput. The log has the times
of sending and of arrival of each packet that came, in microseconds; losses after the last of them are unknown. Over TCP
these are records of one size, which the receiver times when it has read them whole; it ends at the sender's message,
which overtakes the bytes that are on their way (10 % of 1 MB at 10 Mbit/s and 20 ms): no volumes. D-ITG has no option
for a congestion control: it becomes the default of TCP in the sender's node. As measured, version 2.8.1 sends every
10.01 ms for 10 ms; it stamps the first packet of a burst before the silence that goes before it, so that the largest
delay and the jitter of on/off streams include the silence; and its Weibull laws have another mean than they are given
(1.8 ms instead of 5), so they are refused."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, assert_never

from ewan.generator.external.transfer import LEAD_NS, Obstacle, Output, Tool, ToolTransfer, TransferCommands
from ewan.generator.rows import Row, Rows, number
from ewan.generator.scenario.laws import Either, amount, mean
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND, scale
from ewan.labs.record.schedule import DitgTool
from ewan.labs.runtime.program import Command

FIRST_SIGNALLING_PORT, FIRST_PORT = 9000, 20_000
US_NS = scale("time")["us"]
DAY_S = 86_400
QUARTER_NS = 900 * NS_PER_SECOND
RECORD_BYTES = 8_000
RECORDS_PER_SECOND = 500_000  # more than any path here takes: TCP decides
CONGESTION_FILE = "/proc/sys/net/ipv4/tcp_congestion_control"
JITTER_GAIN = 16  # RFC 3550, section 6.4.1
# Reciprocals of the golden and of the plastic ratio: multiples of either are far apart in their fractional parts.
GOLDEN_SHARE, PLASTIC_SHARE = 0.6180339887498949, 0.7548776662466927

_LAWS = ("constant", "uniform", "exponential", "normal", "pareto", "gamma")
_LINE = re.compile(r"Seq>\s*(\d+).*txTime>(\d+):(\d+):(\d+)\.(\d{6}) rxTime>(\d+):(\d+):(\d+)\.(\d{6}) Size>\s*(\d+)")


def obstacle(step: Any, settings: Any) -> Obstacle | None:
    """The key of a step that D-ITG cannot do, with its remedy; None where it can do all."""
    kind, work = step.kind, step.work
    if kind not in ("udp", "bulk"):
        return kind, f'sends only udp and bulk here, not {kind}: write "generator: ewan" or iperf3'
    if settings.socket.ecn:
        return "ecn", 'does not set ECN: write "generator: ewan"'
    for key in ("send_buffer", "receive_buffer"):
        if getattr(settings.socket, f"{key}_bytes") is not None:
            return key, 'sets no socket buffers: leave it out, or write "generator: ewan"'
    if kind == "bulk":
        return _bulk_obstacle(work, settings)
    for name in ("size", "interval", "on", "off"):
        law = getattr(work, name)
        if law is None:
            continue
        if law.kind not in _LAWS:
            return "udp", f'has no {law.kind} law that holds: write another {name}, or "generator: ewan"'
        if law.kind != "constant" and law.choice.most is not None:
            return "udp", f'cuts no law: leave "most" of {name} out, or write "generator: ewan"'
        if name == "interval" and law.kind == "uniform" and not amount(law.choice.low):
            return "udp", 'counts packets per second: write a "low" above 0'
        if name in ("on", "off") and law.kind not in ("constant", "exponential"):
            return "udp", f'is asked for constant and exponential periods only: write one of these for "{name}"'
    return None


def _bulk_obstacle(work: Any, settings: Any) -> Obstacle | None:
    """The obstacle to a bulk transfer."""
    if settings.streams > 1:
        return "streams", 'makes one connection: write a step for each, or "generator: iperf3"'
    for key in ("window", "mss"):
        if getattr(settings.socket, f"{key}_bytes") is not None:
            return key, 'sets none: leave it out, or write "generator: iperf3"'
    if work.volume is not None:
        return "bulk", 'does not read what is on its way when all is sent: write "for: 10s", or "generator: iperf3"'
    return None


def commands(transfer: ToolTransfer) -> TransferCommands:
    """A receiver for each transfer; the log is its packets', in the directory of the sender's files."""
    number = transfer.number
    signalling, log = str(FIRST_SIGNALLING_PORT + number), f"ditg-{number + 1}.log"
    words = ["ITGSend", "-a", transfer.address, "-Sdp", signalling, "-rp", str(FIRST_PORT + number)]
    bulk = transfer.step.kind == "bulk"
    words += _tcp(transfer) if bulk else _udp(transfer)
    count = None if bulk else transfer.step.work.count
    if count is not None:
        words += ["-z", str(count)]
    if transfer.for_ns is not None:
        words += ["-t", str(round(transfer.for_ns / NS_PER_MS))]
    elif count is not None:
        words += ["-t", str(DAY_S * NS_PER_SECOND // NS_PER_MS)]
    if transfer.settings.socket.dscp:
        words += ["-b", str(transfer.settings.socket.dscp << 2)]
    words += ["-s", _seed(transfer)]
    # The first line of its output is the time of day at its start, which the log's times are related to.
    script = f'date +%s.%N; exec {" ".join(words)} -x "$EWAN_OUT/{log}"'
    congestion = transfer.settings.congestion if bulk else None
    if congestion is not None:
        refused = f"echo 'this node may not make {congestion} its own congestion control' >&2; exit 1"
        script = f"{{ echo {congestion} >{CONGESTION_FILE}; }} 2>/dev/null || {{ {refused}; }}; {script}"
    return TransferCommands(
        (
            Command(transfer.sink, ("ITGRecv", "-Sp", signalling), max(0, transfer.at_ns - LEAD_NS), service=True),
            Command(transfer.source, ("sh", "-c", script), transfer.at_ns),
        ),
        client=1,
        tool=DitgTool(log, number, stream=0),
        port=FIRST_PORT + number,
        node_congestion={} if congestion is None else {transfer.source: congestion},
    )


def _udp(transfer: ToolTransfer) -> list[str]:
    """Words of a stream of packets."""
    work = transfer.step.work
    words = ["-T", "UDP", *_interval(transfer.step), *_size(work.size)]
    return words if work.on is None else [*words, "-B", *_period(work.on), *_period(work.off)]


def _tcp(transfer: ToolTransfer) -> list[str]:
    """Words of a connection that sends as fast as it may."""
    words = ["-T", "TCP", "-C", str(RECORDS_PER_SECOND), "-c", str(RECORD_BYTES)]
    return [*words, "-D"] if transfer.settings.socket.nodelay else words


def _seed(transfer: ToolTransfer) -> str:
    """ITGSend's seed, from 0 to 1: a point of a low-discrepancy sequence for each transfer and seed of the run."""
    share = (transfer.seed * GOLDEN_SHARE + (transfer.number + 1) * PLASTIC_SHARE) % 1
    return f"{share:.9f}"


def _per_second(interval_ns: float) -> str:
    return f"{NS_PER_SECOND / interval_ns:.9g}"


def _ms(time_ns: float) -> str:
    return f"{time_ns / NS_PER_MS:.9g}"


def _interval(step: Any) -> list[str]:
    """Rates in packets/s, but for the normal, Pareto and gamma laws, whose words are in ms."""
    work = step.work
    if work.rate is not None:
        return ["-C", _per_second(mean(work.size) * BITS_PER_BYTE * NS_PER_SECOND / work.rate.bps)]
    law: Either = work.interval
    given = law.choice
    match law.kind:
        case "constant":
            return ["-C", _per_second(amount(given))]
        case "uniform":
            return ["-U", _per_second(amount(given.high)), _per_second(amount(given.low))]
        case "exponential":
            return ["-E", _per_second(amount(given.mean))]
        case "normal":
            return ["-N", _ms(amount(given.mean)), _ms(amount(given.deviation))]
        case "pareto":
            return ["-V", f"{given.shape:.9g}", _ms(amount(given.mean) * (given.shape - 1) / given.shape)]
        case "gamma":
            return ["-G", f"{given.shape:.9g}", _ms(amount(given.mean) / given.shape)]
        case "weibull":
            raise ValueError("D-ITG's Weibull laws are refused")
        case never:
            assert_never(never)


def _size(law: Either) -> list[str]:
    given = law.choice
    match law.kind:
        case "constant":
            return ["-c", str(amount(given))]
        case "uniform":
            return ["-u", str(amount(given.low)), str(amount(given.high))]
        case "exponential":
            return ["-e", str(amount(given.mean))]
        case "normal":
            return ["-n", str(amount(given.mean)), str(amount(given.deviation))]
        case "pareto":
            return ["-v", f"{given.shape:.9g}", f"{amount(given.mean) * (given.shape - 1) / given.shape:.9g}"]
        case "gamma":
            return ["-g", f"{given.shape:.9g}", f"{amount(given.mean) / given.shape:.9g}"]
        case "weibull":
            raise ValueError("D-ITG's Weibull laws are refused")
        case never:
            assert_never(never)


def _period(law: Any) -> list[str]:
    if law.kind == "constant":
        return ["C", _ms(amount(law.choice))]
    return ["E", _ms(amount(law.choice.mean))]


def decode(log: Path) -> str:
    """The log as text; empty where there is none, or no ITGDec."""
    if not log.exists():
        return ""
    with tempfile.TemporaryDirectory() as directory:
        text = Path(directory) / "log.txt"
        try:
            subprocess.run(["ITGDec", str(log), "-l", str(text)], capture_output=True, check=False)
        except OSError:
            return ""
        return text.read_text(errors="replace") if text.exists() else ""


def rows(output: Output) -> Rows:
    """Rows of one stream, from ITGSend's output and the receiver's log."""
    assert isinstance(output.flow.tool, DitgTool)
    decoded = decode(output.directory / output.flow.tool.log)
    words = output.stdout.decode(errors="replace") + output.stderr
    return _rows(output.row, words, decoded, output.started_ns, output.series_ns, output.ahead_ns)


def _rows(row: Row, printed: str, decoded: str, started_ns: int, series_ns: int, ahead_ns: int = 0) -> Rows:
    """Rows of a flow. `printed` is the output of ITGSend, `decoded` the text of its log.

    `ahead_ns`: how far the receiver's clock is ahead of the sender's."""
    packets = [tuple(map(int, match.groups())) for match in _LINE.finditer(decoded)]
    first = printed.split("\n", 1)[0].strip()
    if not packets or not re.fullmatch(r"\d+\.\d{9}", first):
        last = next((line for line in reversed(printed.splitlines()) if line), "no packet arrived")
        return {"flows": [{**row, "error": f"ditg: {last}"}]}
    whole, _, rest = first.partition(".")
    begun_ns = int(whole) % DAY_S * NS_PER_SECOND + int(rest)

    # The log tells the time of this machine's zone, some quarters of an hour from UTC; its first packet comes at once.
    first_ns = _of_day(*packets[0][1:5])
    zone_ns = round((first_ns - begun_ns) / QUARTER_NS) * QUARTER_NS

    def since(*clock: int) -> int:
        """The time of a log's entry from T0; a log may go past midnight."""
        after = (_of_day(*clock) - zone_ns - begun_ns + NS_PER_SECOND) % (DAY_S * NS_PER_SECOND)
        return started_ns + after - NS_PER_SECOND

    came = [(each[0], since(*each[1:5]), since(*each[5:9]) - ahead_ns, each[9]) for each in packets]
    # Of copies the first counts.
    datagrams = row["kind"] == "udp"
    firsts: dict[int, tuple[int, int, int, int]] = {}
    for each in came:
        firsts.setdefault(each[0], each)
    sent = list(firsts.values()) if datagrams else came
    delays = sorted(got_ns - sent_ns for _, sent_ns, got_ns, _ in sent)
    numbers = {number for number, *_ in sent}
    received = sum(size for *_, size in sent)
    first_ns, last_ns = sent[0][1], max(got_ns for _, _, got_ns, _ in sent)
    flow: Row = {
        **row,
        "started_ns": min(sent_ns for _, sent_ns, _, _ in sent),
        "ended_ns": last_ns,
        "received_bytes": received,
        "goodput_bps": received * BITS_PER_BYTE * NS_PER_SECOND / (last_ns - first_ns) if last_ns > first_ns else None,
    }
    if not datagrams:
        return {"flows": [flow], "goodput": _goodput(number(row, "flow"), datagrams, sent, series_ns)}
    flow |= {
        "sent_packets": max(numbers),
        "received_packets": len(numbers),
        "lost_packets": max(numbers) - len(numbers),
        "reordered_packets": _reordered([number for number, *_ in sent]),
        "duplicate_packets": len(came) - len(sent),
        "delay_min_ns": delays[0],
        "delay_p50_ns": _percentile(delays, 0.50),
        "delay_p95_ns": _percentile(delays, 0.95),
        "delay_p99_ns": _percentile(delays, 0.99),
        "delay_max_ns": delays[-1],
        "jitter_ns": _jitter([got_ns - sent_ns for _, sent_ns, got_ns, _ in sent]),
    }
    return {"flows": [flow], "goodput": _goodput(number(row, "flow"), datagrams, sent, series_ns)}


def _of_day(hours: int, minutes: int, seconds: int, micro: int) -> int:
    return ((hours * 60 + minutes) * 60 + seconds) * NS_PER_SECOND + micro * US_NS


def _percentile(ordered: list[int], share: float) -> int:
    """The smallest value that so many are not above."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _reordered(numbers: list[int]) -> int:
    """Packets whose number is below the largest before them (RFC 4737)."""
    largest, count = 0, 0
    for each in numbers:
        count += each < largest
        largest = max(largest, each)
    return count


def _jitter(delays: list[int]) -> float:
    value = 0.0
    for before, now in itertools.pairwise(delays):
        value += (abs(now - before) - value) / JITTER_GAIN
    return value


def _goodput(flow: int, datagrams: bool, sent: list[tuple[int, int, int, int]], series_ns: int) -> list[Row]:
    """Rows of goodput from the reads that D-ITG logs. Datagrams are read as they arrive; the arrival of TCP's bytes is
    unknown."""
    bins: dict[int, int] = {}
    for _, _, got_ns, size in sent if series_ns else []:
        end_ns = (got_ns // series_ns + 1) * series_ns
        bins[end_ns] = bins.get(end_ns, 0) + size
    return [
        {
            "flow": flow,
            "part": 0,
            "time_ns": end_ns,
            "bin_ns": series_ns,
            "delivered_bytes": size,
            "arrived_bytes": size if datagrams else None,
        }
        for end_ns, size in sorted(bins.items())
    ]


TOOL = Tool(
    name="ditg",
    programs={"ITGSend": "d-itg", "ITGRecv": "d-itg", "ITGDec": "d-itg"},
    about="`udp` with constant, uniform, exponential, normal, Pareto and gamma laws, and `bulk` over one connection "
    "(ITGSend, ITGRecv and ITGDec must be installed). Of UDP it knows nothing of packets that were lost after the last "
    "that arrived, and it stamps the first packet of a burst before the silence that goes before it, which its delays "
    "and jitter show. Of TCP it tells what was read and when, in records of 8 kB, and nothing of segments or "
    "windows, nor of what is on its way when the sender ends, so that it takes no volume; `congestion` becomes the "
    "setting of the sending node, so it is one for all that D-ITG sends from there.",
    obstacle=obstacle,
    commands=commands,
    rows=rows,
    reads_by=("ITGDec",),
)
