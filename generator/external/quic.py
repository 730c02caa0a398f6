"""QUIC as a generator of bulk transfers: the commands and the readers that its libraries share (quinn.py, aioquic.py).

Comes in: a transfer; later the records of its two ends, one line of JSON each, and their qlog files. Goes out:
commands; rows of flows, series and goodput. The program of a library, in generator/quic, is a sender and a receiver,
and both tell times from T0. A packet is a UDP datagram here. Arrivals are bytes of the stream without copies."""

from __future__ import annotations

import random
from typing import Any, Literal

from ewan.generator.external import qlog
from ewan.generator.external.transfer import Obstacle, Output, Tool, ToolTransfer, TransferCommands, printed
from ewan.generator.rows import Row, Rows, number
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.product import RELEASE, from_source
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND
from ewan.labs.record.schedule import QuicTool
from ewan.labs.record.traffic import BulkWork, RequestsWork
from ewan.labs.runtime.program import Command

FIRST_PORT = 34_000
LEAD_NS = 100 * NS_PER_MS
"""The time by which both ends start before a transfer."""
REMEDY = f'write "{from_source("make quic")}", which builds it'


class _Datagrams(Struct):
    datagrams: int = 0
    bytes: int = 0


class _Bin(Struct):
    """The bytes of a bin in which something came; `number` counts bins from T0."""

    number: int
    arrived: int | None
    delivered: int


class _Object(Struct):
    """An object that came whole over HTTP/3, in the order in which they were asked for; from its request on."""

    number: int
    start_ns: int
    duration_ns: int
    bytes: int


class _QuicSample(Struct):
    time_ns: int
    cwnd_bytes: int
    ssthresh_bytes: int | None
    in_flight_bytes: int | None
    pacing_bps: int | None
    srtt_ns: int | None
    rttvar_ns: int | None
    mtu_bytes: int
    sent_packets: int
    lost_packets: int
    congestion_events: int | None


class _QuicStream(Struct):
    """One connection, as one end saw it. `last_ns`: the last byte's arrival, or the last acknowledgement.
    `volume`: of all objects that a client asked for, where their number was given."""

    stream: int
    started_ns: int | None
    connected_ns: int | None
    ended_ns: int | None
    last_ns: int | None
    bytes: int
    error: str | None
    udp_sent: _Datagrams
    udp_received: _Datagrams
    sent_packets: int | None
    lost_packets: int | None
    congestion_events: int | None
    min_rtt_ns: int | None
    payload_bytes: int | None
    volume: int | None = None
    bins: tuple[_Bin, ...] = ()
    objects: tuple[_Object, ...] = ()
    samples: tuple[_QuicSample, ...] = ()


class _QuicRecord(Struct, forbid_unknown_fields=False):
    """The line that each end prints."""

    format: Literal["ewan-quic/1"]
    end: Literal["send", "receive"]
    library: str
    begun_ns: int
    streams: tuple[_QuicStream, ...]

    def of(self, stream: int) -> _QuicStream | None:
        """The connection of a stream of the transfer, None where the end has none."""
        return next((each for each in self.streams if each.stream == stream), None)


def tool(name: str, program: str, about: str, lead_ns: int = LEAD_NS) -> Tool:
    """The tool of one library. `program`: the name of the file that `make quic` puts beside the node binary."""
    path = str(RELEASE / program)

    def commands(transfer: ToolTransfer) -> TransferCommands:
        return _commands(path, lead_ns, transfer)

    def rows(output: Output) -> Rows:
        return _rows(name, output)

    return Tool(
        name=name,
        programs={path: name},
        remedy=REMEDY,
        about=about,
        obstacle=_obstacle,
        commands=commands,
        rows=rows,
        lead_ns=lead_ns,
    )


def _obstacle(step: Any, settings: Any) -> Obstacle | None:
    """Another kind; the keys of its own are those that the scenario checks."""
    return None if step.kind == "quic" else (step.kind, 'sends only quic: write "quic:"')


def _commands(program: str, lead_ns: int, transfer: ToolTransfer) -> TransferCommands:
    """The commands of both ends. Both start early, and the client waits for its time."""
    step, http3 = transfer.step.work, isinstance(transfer.work, RequestsWork)
    early_ns = max(0, transfer.at_ns - lead_ns)
    port = FIRST_PORT + transfer.number
    both: tuple[str, ...] = ("--port", str(port))
    both += ("--qlog", "on") if step.qlog else ()
    window = transfer.settings.socket.window_bytes
    receives: tuple[str, ...] = ("--bin-ns", str(transfer.series_ns))
    receives += () if window is None else ("--window", str(window))
    sends: tuple[str, ...] = ("--congestion", step.control, "--sample-ns", str(transfer.sample_ns))
    begins: tuple[str, ...] = ("--at-ns", str(transfer.at_ns))
    if transfer.waits:
        begins = ("--after-ns", str(transfer.at_ns - early_ns))
    begins += () if transfer.for_ns is None else ("--for-ns", str(transfer.for_ns))
    if http3:
        ends = (
            Command(
                transfer.source, (program, "serve", "--address", transfer.source_address, *both, *sends), early_ns, True
            ),
            Command(
                transfer.sink,
                (program, "get", "--address", transfer.source_address, *both, *begins, *receives, *_objects(transfer)),
                early_ns,
            ),
        )
    else:
        both += ("--address", transfer.address, "--streams", str(transfer.settings.streams))
        ends = (
            Command(transfer.sink, (program, "receive", *both, *receives), early_ns, True),
            Command(transfer.source, (program, "send", *both, *sends, *begins, *_volume(transfer)), early_ns),
        )
    return TransferCommands(
        ends,
        client=1,
        tool=QuicTool(transfer.number, stream=0, congestion=step.control, qlog=step.qlog, http3=http3),
        port=port,
    )


def _volume(transfer: ToolTransfer) -> tuple[str, ...]:
    """The words for what a sender sends, and when its application writes it."""
    words: tuple[str, ...] = ()
    volume, streams = transfer.step.work.volume, transfer.settings.streams
    if isinstance(transfer.work, BulkWork) and transfer.work.writes is not None:
        words += ("--writes", codec.compact(transfer.work.writes).decode(), "--seed", _seed(transfer))
    if volume is not None:
        share, rest = divmod(volume.bytes, streams)
        for stream in range(streams):
            words += ("--bytes", str(share + (stream < rest)))
    return words


def _objects(transfer: ToolTransfer) -> tuple[str, ...]:
    """The words for what a client of HTTP/3 asks for."""
    assert isinstance(transfer.work, RequestsWork)
    size = codec.compact(transfer.work.response_bytes).decode()
    words: tuple[str, ...] = ("--size", size, "--parallel", str(transfer.step.work.http3.parallel))
    words += ("--seed", _seed(transfer))
    return words if transfer.work.count is None else (*words, "--count", str(transfer.work.count))


def _seed(transfer: ToolTransfer) -> str:
    """The seed of one transfer's draws."""
    return str(random.Random(f"{transfer.seed} {transfer.number}").getrandbits(62))


def _rows(library: str, output: Output) -> Rows:
    """Rows of one connection, from the lines of its two ends."""
    own = output.flow.tool
    assert isinstance(own, QuicTool)
    row: Row = {**output.row, "congestion": own.congestion}

    def failed(why: str) -> Rows:
        return {"flows": [{**row, "error": why}]}

    try:
        record = printed(_QuicRecord, output.stdout)
    except ValueError as wrong:
        said = [line for line in output.stderr.splitlines() if line]
        error = said[-1].replace(f"ewan-{library}", library, 1) if said else f"{library}: {wrong}"
        return failed(error)
    client = record.of(own.stream)
    if client is None:
        return failed(f"{library}: its {'client' if own.http3 else 'sender'} left no record of the connection")
    peer_name = "server" if own.http3 else "receiver"
    try:
        peer = printed(_QuicRecord, output.server.read_bytes() if output.server else b"")
    except (OSError, ValueError):
        return failed(f"{library}: {client.error or f'its {peer_name} left no record'}")
    server = peer.of(own.stream)
    if server is None:
        return failed(f"{library}: {client.error or f'nothing came to its {peer_name}'}")
    sent, got = (server, client) if own.http3 else (client, server)
    sender, receiver = (
        (output.server_directory, output.directory) if own.http3 else (output.directory, output.server_directory)
    )
    files = None
    if own.qlog and sender is not None and receiver is not None:
        files = qlog.read(sender, f"send-{own.stream}"), qlog.read(receiver, f"receive-{own.stream}")
    if own.http3:
        row["volume_bytes"] = got.volume
    begun_ns = peer.begun_ns if own.http3 else record.begun_ns
    states = [] if files is None else files[0].states(begun_ns)
    found: Rows = {
        "flows": [_flow(row, library, client, sent, got, output.copied, files)],
        "series": _series(number(row, "flow"), sent, states),
        "goodput": _goodput(number(row, "flow"), got, output.series_ns),
    }
    if own.http3:
        found["exchanges"] = _exchanges(number(row, "flow"), got)
    return found


def _flow(
    row: Row,
    library: str,
    client: _QuicStream,
    sent: _QuicStream,
    got: _QuicStream,
    copied: bool,
    files: tuple[qlog.Qlog, qlog.Qlog] | None,
) -> Row:
    """Its row; `client`: the end that connected."""
    volume, last_ns = row["volume_bytes"], got.last_ns
    complete = volume is not None and got.bytes == volume
    ended_ns = last_ns if complete and last_ns is not None else max(client.ended_ns or 0, last_ns or 0)
    lasted_ns = ended_ns - number(row, "scheduled_ns")
    error = sent.error or got.error
    came = got.udp_received.datagrams
    return {
        **row,
        "started_ns": client.started_ns,
        "connected_ns": client.connected_ns,
        "ended_ns": ended_ns,
        "completion_ns": lasted_ns if complete else None,
        "received_bytes": got.bytes,
        "goodput_bps": got.bytes * BITS_PER_BYTE * NS_PER_SECOND / lasted_ns if lasted_ns > 0 else None,
        "segment_bytes": sent.payload_bytes,
        "min_rtt_ns": sent.min_rtt_ns,
        "retransmitted_segments": sent.lost_packets,
        "copied_segments": None if files is None else len(qlog.spurious(*files)),
        "sent_packets": sent.udp_sent.datagrams,
        "received_packets": came,
        # Copies that links make cannot be distinguished; after an error some may still have been on their way.
        "lost_packets": None if copied or error else sent.udp_sent.datagrams - came,
        "error": None if error is None else f"{library}: {error}",
    }


def _series(flow: int, sent: _QuicStream, states: list[qlog.SenderState]) -> list[Row]:
    """Rows of the sender's samples. Bytes in flight that no sample has are those of its qlog by then."""
    result: list[Row] = []
    place = 0
    for each in sent.samples:
        while place < len(states) and states[place].time_ns <= each.time_ns:
            place += 1
        state = states[place - 1] if place else None
        in_flight, rttvar_ns = each.in_flight_bytes, each.rttvar_ns
        if state is not None:
            in_flight = state.in_flight_bytes if in_flight is None else in_flight
            rttvar_ns = state.rttvar_ns if rttvar_ns is None else rttvar_ns
        size = each.mtu_bytes or 1
        result.append(
            {
                "flow": flow,
                "part": 0,
                "time_ns": each.time_ns,
                "cwnd_segments": each.cwnd_bytes // size,
                "ssthresh_segments": None if each.ssthresh_bytes is None else each.ssthresh_bytes // size,
                "in_flight_segments": None if in_flight is None else in_flight // size,
                "srtt_ns": each.srtt_ns,
                "rttvar_ns": rttvar_ns,
                "retransmitted_segments": each.lost_packets,
                "pacing_rate_bps": each.pacing_bps,
            }
        )
    return result


def _goodput(flow: int, got: _QuicStream, width_ns: int) -> list[Row]:
    """Rows of goodput, one for each bin from the connection to its end, also where nothing came."""
    if not width_ns or got.connected_ns is None:
        return []
    known = {each.number: each for each in got.bins}
    end_ns = max(got.last_ns or 0, got.ended_ns or 0)
    result: list[Row] = []
    for place in range(got.connected_ns // width_ns, -(-end_ns // width_ns)):
        begin_ns, until_ns = max(place * width_ns, got.connected_ns), min((place + 1) * width_ns, end_ns)
        each = known.get(place)
        result.append(
            {
                "flow": flow,
                "part": 0,
                "time_ns": until_ns,
                "bin_ns": until_ns - begin_ns,
                "delivered_bytes": 0 if each is None else each.delivered,
                "arrived_bytes": (None if got.objects else 0) if each is None else each.arrived,
            }
        )
    return result


def _exchanges(flow: int, got: _QuicStream) -> list[Row]:
    """A row for each object that came whole; requests have no payload."""
    return [
        {
            "flow": flow,
            "part": 0,
            "number": each.number,
            "start_ns": each.start_ns,
            "duration_ns": each.duration_ns,
            "sent_bytes": 0,
            "received_bytes": each.bytes,
        }
        for each in got.objects
    ]
