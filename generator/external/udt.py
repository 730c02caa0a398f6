"""UDT as a generator of bulk transfers: `ewan-udt` (generator/udt) at both ends, over Debian's libudt 4.11.

Comes in: a transfer; later the records of its two ends. Goes out: commands; rows of flows, series and goodput. UDT is a
transport of its own over UDP, with a congestion control of its own: no TCP option is for it. The payload of a packet is
44 bytes less than the MTU (IPv4). The receiver counts packets as they come, copies too. UDT reports only a smoothed
RTT, and its pacing counts a packet without the headers of IP and UDP."""

from __future__ import annotations

from typing import Any, Literal

from ewan.generator.external.transfer import Obstacle, Output, Tool, ToolTransfer, TransferCommands, printed
from ewan.generator.rows import Row, Rows, number
from ewan.labs.base.codec import Struct
from ewan.labs.base.product import RELEASE, from_source
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND
from ewan.labs.record.schedule import UdtTool
from ewan.labs.runtime.program import Command

PROGRAM = str(RELEASE / "ewan-udt")
"""The path where generator/udt/build.sh puts the program."""
FIRST_PORT = 30_000
LEAD_NS = 300 * NS_PER_MS
"""libudt measures the processor's clock for 100 ms when it is loaded, at both ends."""
HEADER_BYTES = 16


class _SentBin(Struct):
    """The sender's counters until this time."""

    time_ns: int
    sent: int
    retransmitted: int
    lost: int
    window: int
    in_flight: int
    rtt_ns: int
    period_ns: int


class _GotBin(Struct):
    """The receiver's counters until this time: `bytes` and `packets` since the bin before, the others from the
    beginning."""

    time_ns: int
    bytes: int
    packets: int
    received: int
    missed: int


class _Record(Struct, tag_field="end", forbid_unknown_fields=False):
    """The record of one end: a line that generator/udt/ewan_udt.cpp prints. Times are of CLOCK_MONOTONIC."""

    format: Literal["ewan-udt/1"]
    begun_ns: int
    started_ns: int
    connected_ns: int
    ended_ns: int
    payload_bytes: int
    bytes: int
    last_ns: int | None


class _Sent(_Record, tag="send"):
    bins: tuple[_SentBin, ...]


class _Got(_Record, tag="receive"):
    bins: tuple[_GotBin, ...]


def obstacle(step: Any, settings: Any) -> Obstacle | None:
    """The key of a step that UDT cannot do, with its remedy; None where it can do all."""
    if step.kind != "bulk":
        return step.kind, f'sends only bulk, not {step.kind}: write "generator: ewan"'
    if step.congestion not in (None, "udt"):
        return "congestion", "has a congestion control of its own: leave it out"
    if settings.streams > 1:
        return "streams", "makes one connection: write a step for each"
    if settings.socket.window_bytes:
        return "window", 'has only buffers: write "receive_buffer:"'
    if settings.socket.mss_bytes:
        return "mss", "sends packets of the path's MTU: leave it out"
    for key in ("ecn", "nodelay"):
        if getattr(settings.socket, key):
            return key, 'is not TCP: leave it out, or write "generator: ewan"'
    return None


def commands(transfer: ToolTransfer) -> TransferCommands:
    """The commands of both ends. Both start early, and the sender waits for its time."""
    socket, work = transfer.settings.socket, transfer.step.work
    early_ns = max(0, transfer.at_ns - LEAD_NS)
    both: tuple[str, ...] = ("--address", transfer.address, "--port", str(FIRST_PORT + transfer.number))
    both += ("--bin-ns", str(transfer.series_ns), "--dscp", str(socket.dscp))
    both += () if work.volume is None else ("--bytes", str(work.volume.bytes))
    sends: tuple[str, ...] = ("--after-ns", str(transfer.at_ns - early_ns))
    sends += () if transfer.for_ns is None else ("--for-ns", str(transfer.for_ns))
    return TransferCommands(
        (
            Command(transfer.sink, (PROGRAM, "receive", *both, *_buffer(socket.receive_buffer_bytes)), early_ns, True),
            Command(transfer.source, (PROGRAM, "send", *both, *_buffer(socket.send_buffer_bytes), *sends), early_ns),
        ),
        client=1,
        tool=UdtTool(transfer.number, stream=0),
    )


def _buffer(size: int | None) -> tuple[str, ...]:
    return () if size is None else ("--buffer", str(size))


def rows(output: Output) -> Rows:
    """Rows of one transfer, from the lines of its two ends; where the receiver printed nothing, from only the
    sender's."""
    row: Row = {**output.row, "congestion": "udt"}
    try:
        sent = printed(_Sent, output.stdout)
    except ValueError as wrong:
        said = [line for line in output.stderr.splitlines() if line]
        return {"flows": [{**row, "error": said[-1].replace("ewan-udt", "udt", 1) if said else f"udt: {wrong}"}]}
    base_ns = output.started_ns - sent.begun_ns
    try:
        got = printed(_Got, output.server.read_bytes() if output.server else b"")
    except (OSError, ValueError):
        return {"flows": [{**row, "error": "udt: its receiver left no record"}]}
    return {
        "flows": [_flow(row, sent, got, base_ns)],
        "series": _series(number(row, "flow"), sent, base_ns),
        "goodput": _goodput(number(row, "flow"), sent, got, base_ns),
    }


def _flow(row: Row, sent: _Sent, got: _Got, base_ns: int) -> Row:
    """`base_ns`: from CLOCK_MONOTONIC, which both ends share, to T0."""
    received, volume, last_ns = got.bytes, row["volume_bytes"], got.last_ns
    complete = volume is not None and received == volume
    # What was on its way when the sender ended came after that.
    ended_ns = base_ns + (last_ns if complete and last_ns is not None else max(sent.ended_ns, last_ns or 0))
    lasted_ns = ended_ns - number(row, "scheduled_ns")
    packets = {"sent_packets": sent.bins[-1].sent, "received_packets": got.bins[-1].received}
    return {
        **row,
        **packets,
        "started_ns": base_ns + sent.started_ns,
        "connected_ns": base_ns + sent.connected_ns,
        "ended_ns": ended_ns,
        "completion_ns": lasted_ns if complete else None,
        "received_bytes": received,
        "goodput_bps": received * BITS_PER_BYTE * NS_PER_SECOND / lasted_ns if lasted_ns > 0 else None,
        "segment_bytes": sent.payload_bytes,
        "retransmitted_segments": sent.bins[-1].retransmitted,
        # Before the end, some are on their way.
        "lost_packets": packets["sent_packets"] - packets["received_packets"] if complete else None,
    }


def _series(flow: int, sent: _Sent, base_ns: int) -> list[Row]:
    packet_bits = (sent.payload_bytes + HEADER_BYTES) * BITS_PER_BYTE
    return [
        {
            "flow": flow,
            "part": 0,
            "time_ns": base_ns + each.time_ns,
            "cwnd_segments": each.window,
            "in_flight_segments": each.in_flight,
            "srtt_ns": each.rtt_ns,
            "retransmitted_segments": each.retransmitted,
            "pacing_rate_bps": packet_bits * NS_PER_SECOND // each.period_ns if each.period_ns else None,
        }
        for each in sent.bins
        if each.time_ns >= sent.connected_ns
    ]


def _goodput(flow: int, sent: _Sent, got: _Got, base_ns: int) -> list[Row]:
    """Rows of goodput. Arrivals are counted in packets, all of which but the last are full. After the sender's end
    nothing arrives."""
    result: list[Row] = []
    before_ns = got.connected_ns
    for each in got.bins:
        if each.time_ns > before_ns and before_ns < sent.ended_ns:
            result.append(
                {
                    "flow": flow,
                    "part": 0,
                    "time_ns": base_ns + each.time_ns,
                    "bin_ns": each.time_ns - before_ns,
                    "delivered_bytes": each.bytes,
                    "arrived_bytes": each.packets * sent.payload_bytes,
                }
            )
        before_ns = max(before_ns, each.time_ns)
    return result


TOOL = Tool(
    name="udt",
    programs={PROGRAM: "libudt-dev"},
    remedy=f'write "{from_source("make udt")}", which builds it with Debian\'s libudt-dev',
    about="`bulk` by UDT 4.11 (Debian's libudt; `make udt` builds the program), a transport of its own over UDP, one "
    "connection a transfer. `congestion` is left out, or says `udt`; a buffer that is not written has 32 MB at either "
    "end, which is the most that is in flight. It reports only a smoothed RTT; what it calls lost is not known before "
    "a volume is complete. In the tables its packets count as segments.",
    obstacle=obstacle,
    commands=commands,
    rows=rows,
    lead_ns=LEAD_NS,
    between_machines=False,
)
