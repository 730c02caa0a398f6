"""iperf3 as a generator: a server for each transfer, and its client, whose JSON becomes rows of the run's tables.

Comes in: a transfer; later the directory of its run. Goes out: commands; rows of flows, series and goodput.
iperf3 tells times from the start of its test, which comes some round trips after the client's start; here they count
from the client's start. What it does not tell stays empty: ssthresh, segments in flight, when a connection was made;
and completion times, since its test of a volume ends when all is written, not when all has arrived.
A transfer in both directions is two connections of iperf3's, not one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ewan.generator.external.transfer import LEAD_NS, Obstacle, Output, Tool, ToolTransfer, TransferCommands, printed
from ewan.generator.iperf3_report import Datagrams, EndedStream, Report, Sum
from ewan.generator.rows import Row, Rows
from ewan.generator.scenario.laws import amount, mean
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND, scale
from ewan.labs.forwarding import node_of
from ewan.labs.record.schedule import Iperf3Tool
from ewan.labs.runtime.program import Command

FIRST_PORT = 5201
LEAST_INTERVAL_NS = NS_PER_SECOND // 10
US_NS = scale("time")["us"]


def obstacle(step: Any, settings: Any) -> Obstacle | None:
    """The key of a step that iperf3 cannot do, with its remedy; None where it can do all."""
    kind, work = step.kind, step.work
    if kind not in ("bulk", "bidirectional", "udp"):
        return kind, f'knows no {kind}: write "generator: ewan"'
    socket = settings.socket
    if socket.ecn:
        return "ecn", 'does not set ECN: write "generator: ewan"'
    for key in ("send_buffer", "receive_buffer"):
        if getattr(socket, f"{key}_bytes") is not None:
            return key, 'has one word for both buffers: write "window:"'
    if step.for_ is not None and step.for_.ns % NS_PER_SECOND:
        return "for", 'counts whole seconds: write a duration like "10s"'
    if kind == "udp":
        if work.size.kind != "constant":
            return "udp", 'sends packets of one size: write a size like "1470B", or "generator: ewan"'
        if work.on is not None or (work.interval is not None and work.interval.kind != "constant"):
            return "udp", 'sends at one rate: write a rate like "8Mbit/s", or "generator: ewan"'
    return None


def commands(transfer: ToolTransfer) -> TransferCommands:
    """The commands of server and client. The server ends with its client's test, or with all others, so that a server
    without a client delays nothing."""
    step, settings, port = transfer.step, transfer.settings, FIRST_PORT + transfer.number
    bins = ["-i", _seconds(max(transfer.series_ns, LEAST_INTERVAL_NS)) if transfer.series_ns else "0"]
    server = ("iperf3", "-s", "-1", "-J", "-p", str(port), *bins)
    words = ["iperf3", "-c", transfer.address, "-p", str(port), "-J", "--get-server-output", *bins]
    words += ["-B", transfer.source_address] if transfer.source != node_of(transfer.source) else []
    work = step.work
    if step.kind == "udp":
        words += ["-u", "-l", str(amount(work.size.choice)), "-b", str(_rate_bps(step))]
    else:
        assert settings.congestion is not None
        words += ["-C", settings.congestion, "-P", str(settings.streams)]
        words += ["-w", str(settings.socket.window_bytes)] if settings.socket.window_bytes else []
        words += ["-M", str(settings.socket.mss_bytes)] if settings.socket.mss_bytes else []
        words += ["-N"] if settings.socket.nodelay else []
        words += ["--bidir"] if step.kind == "bidirectional" else []
    if settings.socket.dscp:
        words += ["-S", str(settings.socket.dscp << 2)]
    if step.kind == "udp" and work.count is not None:
        words += ["-k", str(work.count)]
    elif step.kind != "udp" and work.volume is not None:
        words += ["-n", str(work.volume.bytes)]
    elif transfer.for_ns is not None:
        words += ["-t", str(transfer.for_ns // NS_PER_SECOND)]
    return TransferCommands(
        (
            Command(node_of(transfer.sink), server, max(0, transfer.at_ns - LEAD_NS), service=True),
            Command(node_of(transfer.source), tuple(words), transfer.at_ns),
        ),
        client=1,
        tool=Iperf3Tool(transfer.number, stream=0),
        port=port,
    )


def _seconds(time_ns: int) -> str:
    return f"{time_ns / NS_PER_SECOND:.9g}"


def _rate_bps(step: Any) -> int:
    if step.work.rate is not None:
        return int(step.work.rate.bps)
    return round(mean(step.work.size) * BITS_PER_BYTE * NS_PER_SECOND / mean(step.work.interval))


def rows(output: Output) -> Rows:
    """Rows of one stream, in both directions where it sends in both."""
    row, started_ns = output.row, output.started_ns
    try:
        report = printed(Report, output.stdout)
    except ValueError as error:
        report = Report(error=str(error))
    streams = report.end.streams
    if report.error or not streams:
        return {"flows": [{**row, "error": f"iperf3: {report.error or 'no result'}"}]}
    servers = report.server_output_json or Report()
    if streams[0].udp is not None:
        return _udp(output, report, servers, streams[0].udp)
    result: Rows = {"flows": [], "series": [], "goodput": []}
    for part, forward in enumerate((True, False) if output.flow.bidirectional else (True,)):
        of_direction = [
            index for index, stream in enumerate(streams) if stream.sender and stream.sender.sender is forward
        ]
        index = of_direction[output.stream]
        ends = {} if forward else {"source": row["sink"], "sink": row["source"]}
        base: Row = {**row, **ends, "part": part}
        result["flows"].append(_tcp(base, report, streams[index], started_ns))
        key: Row = {"flow": row["flow"], "part": part}
        # The receiver's bins are the server's for what the client sent, and the client's for the rest.
        sends, receives = (report, servers) if forward else (servers, report)
        result["series"] += _series(key, sends, index, report.segment_bytes, started_ns)
        result["goodput"] += _goodput(key, receives, index, started_ns)
    return result


def source_port(output: Output) -> int | None:
    """The client's port of a stream that it sends."""
    report = printed(Report, output.stdout)
    sent = [stream for stream in report.end.streams if stream.sender and stream.sender.sender]
    return report.local_port(sent[output.stream]) if output.stream < len(sent) else None


def ns(seconds: float) -> int:
    """Times of iperf3 are seconds."""
    return round(seconds * NS_PER_SECOND)


def _tcp(row: Row, report: Report, stream: EndedStream, started_ns: int) -> Row:
    """The row of one direction of a stream."""
    sent, got = stream.sender, stream.receiver
    if sent is None or got is None:
        raise ValueError("a connection without one of its ends")
    lasted_ns = ns(got.end - got.start)
    return {
        **row,
        "started_ns": started_ns,
        "ended_ns": started_ns + lasted_ns,
        "received_bytes": got.bytes,
        "goodput_bps": got.bytes * BITS_PER_BYTE * NS_PER_SECOND / lasted_ns if lasted_ns else None,
        "segment_bytes": report.segment_bytes,
        "min_rtt_ns": sent.min_rtt * US_NS if sent.min_rtt else None,
        "retransmitted_segments": sent.retransmits,
    }


def _series(key: Row, report: Report, index: int, segment_bytes: int | None, started_ns: int) -> list[Row]:
    result: list[Row] = []
    again = 0
    for entry in report.of_stream(index, True):
        again += entry.retransmits or 0
        if entry.snd_cwnd is None or entry.rtt is None or entry.rttvar is None:
            raise ValueError("a sender that tells neither window nor RTT")
        result.append(
            {
                **key,
                "time_ns": started_ns + ns(entry.end),
                "cwnd_segments": entry.snd_cwnd // segment_bytes if segment_bytes else None,
                "srtt_ns": entry.rtt * US_NS,
                "rttvar_ns": entry.rttvar * US_NS,
                "retransmitted_segments": again,
            }
        )
    return result


def _goodput(key: Row, report: Report, index: int, started_ns: int) -> list[Row]:
    """Rows of goodput from the reads that iperf3 counts; the arrival of TCP's bytes is unknown."""
    return [
        {
            **key,
            "time_ns": started_ns + ns(entry.end),
            "bin_ns": ns(entry.seconds),
            "delivered_bytes": entry.bytes,
            "arrived_bytes": None,
        }
        for entry in report.of_stream(index, False)
    ]


class _DatagramCounts(NamedTuple):
    """Datagrams that came at all, copies that came, and those that came after a later one. None: not known."""

    packets: int | None
    copies: int | None
    late: int | None


def _arrived(came: int, highest: int, unordered: int | None, copied: bool, overtaken: bool) -> _DatagramCounts:
    """Counts of a server that reports received datagrams, the highest number, and as out of order each datagram whose
    number is no higher than before.

    A copy is out of order in this sense, and iperf3 takes it for a lost datagram that came late: where links copy, its
    losses are too small. Where no datagram overtakes another, those out of order are the copies; else the two cannot be
    distinguished."""
    if not copied or unordered == 0:
        return _DatagramCounts(came, None, unordered) if came <= highest else _DatagramCounts(None, None, None)
    if unordered is None or overtaken:
        return _DatagramCounts(None, None, None)
    return _DatagramCounts(came - unordered, unordered, 0)


def _udp(output: Output, report: Report, servers: Report, udp: Datagrams) -> Rows:
    """Loss and order from the counters of the server; iperf3 measures no one-way delay."""
    row, started_ns = output.row, output.started_ns
    sums = report.end.sum_received or Sum()
    order = [stream.udp.out_of_order for stream in servers.end.streams if stream.udp is not None]
    size = report.start.test_start.blksize
    if size is None:
        raise ValueError("datagrams of no size")
    # The server's test ends with a word over TCP, which may be late: after the bin of the last datagram nothing came.
    ends = [entry.end for entry in servers.of_stream(0, False) if entry.bytes]
    lasted_ns = ns(min([udp.end if sums.end is None else sums.end, *ends[-1:]]))
    # An older version gives the number sent only in its sums.
    came = sums.bytes // size if sums.sender is False else udp.packets - udp.lost_packets
    highest = udp.packets if sums.packets is None else sums.packets
    arrived = _arrived(came, highest, order[0] if order else None, output.copied, output.overtaken)
    received = None if arrived.packets is None else arrived.packets * size
    flow: Row = {
        **row,
        "started_ns": started_ns,
        "ended_ns": started_ns + lasted_ns,
        "received_bytes": received,
        "goodput_bps": received * BITS_PER_BYTE * NS_PER_SECOND / lasted_ns
        if received is not None and lasted_ns
        else None,
        "sent_packets": udp.packets,
        "received_packets": arrived.packets,
        "lost_packets": None if arrived.packets is None else highest - arrived.packets,
        "reordered_packets": arrived.late,
        "duplicate_packets": arrived.copies,
        "jitter_ns": udp.jitter_ms * NS_PER_MS,
    }
    if arrived.packets is None:
        return {"flows": [flow]}
    bins = _goodput({"flow": row["flow"], "part": 0}, servers, 0, started_ns)
    for each, entry in zip(bins, servers.of_stream(0, False), strict=True):
        # Datagrams are read as they arrive. When copies came iperf3 does not tell: as if they were spread evenly.
        own = round(entry.bytes * arrived.packets / came) if arrived.copies else entry.bytes
        each["delivered_bytes"] = each["arrived_bytes"] = own
    return {"flows": [flow], "goodput": bins}


TOOL = Tool(
    name="iperf3",
    programs={"iperf3": "iperf3"},
    about="`bulk`, `bidirectional` (over two connections) and `udp` of one size and rate; whole seconds only. It has "
    "no completion times (its test of a volume ends when all is written, not when all has arrived) and no one-way "
    "delays. It takes copies of datagrams for such as were lost and came late: where links copy (`duplicate`), losses "
    "and goodput are corrected by what it counts out of order; they are empty where packets may overtake others too.",
    obstacle=obstacle,
    commands=commands,
    rows=rows,
    source_port=source_port,
    chooses_link=True,
)
