"""Measures of captured packets: retransmissions and reordering by flow, gaps and bursts, one-way delays. Pure.

In: rows of the table `packets`, of one run or, with the columns `run`, `seed` and parameters before them, of several.
Out: frames with a row a flow, or a packet. A flow is the packets of one direction with equal addresses, ports and
protocol; a point is an interface of a node, and whether packets leave there (out) or come (in)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from ewan.analysis.bursts import largest_burst_bytes

FLOW = ("source", "source_port", "destination", "destination_port", "protocol")
POINT = ("node", "interface", "direction")
_TELL_APART = ("ip_id", "tcp_seq", "payload_digest")
_RUN = "run"
_HALF = 1 << 31
_AROUND = 1 << 32


@dataclass(frozen=True)
class Packets:
    """Measures of captured packets, each run apart. `frame`: rows of the table `packets`."""

    frame: pl.DataFrame

    def sequences(self) -> pl.DataFrame:
        """See `sequences`."""
        return sequences(self.frame)

    def gaps(self) -> pl.DataFrame:
        """See `gaps`."""
        return gaps(self.frame)

    def bursts(self, rate_bps: int) -> pl.DataFrame:
        """See `bursts`."""
        return bursts(self.frame, rate_bps)

    def one_way_delays(self, sender: str, receiver: str) -> pl.DataFrame:
        """See `one_way_delays`."""
        return one_way_delays(self.frame, sender, receiver)


def sequences(packets: pl.DataFrame) -> pl.DataFrame:
    """TCP's data segments at each point, a row for each flow: `segments`, `repeated_segments`, `late_segments`.

    Repeated: all of its bytes were seen there before; at the sender's own interface (out) these are retransmissions.
    Late: it fills a hole that later segments had left; at a receiver, a retransmission of what was lost before, or a
    reordered segment (RFC 4737, section 3.3).
    """
    data = packets.filter(
        (pl.col("protocol") == "tcp") & (pl.col("payload_bytes") > 0) & pl.col("tcp_seq").is_not_null()
    )
    rows = []
    for key, those in _grouped(data):
        counts = _counted(those.select("tcp_seq", "payload_bytes").iter_rows())
        rows.append(key | dict(zip(("segments", "repeated_segments", "late_segments"), counts, strict=True)))
    schema = {name: packets.schema[name] for name in _keys(packets)}
    counts_schema: dict[str, pl.DataType] = dict.fromkeys(
        ("segments", "repeated_segments", "late_segments"), pl.Int64()
    )
    return pl.DataFrame(rows, schema=schema | counts_schema)


def _counted(segments: Iterable[tuple[int, int]]) -> tuple[int, int, int]:
    """All, those repeated, and those late."""
    everything = repeated = late = 0
    end: int | None = None
    holes: list[tuple[int, int]] = []
    for number, size in segments:
        everything += 1
        if end is None:
            end = number + size
            continue
        # The nearest of those that 32 bits stand for.
        first = end + (number - end + _HALF) % _AROUND - _HALF
        last = first + size
        if first > end:
            holes.append((end, first))
        elif last <= end:
            left = list(_without(holes, first, last))
            late, repeated = (late + 1, repeated) if left != holes else (late, repeated + 1)
            holes = left
        end = max(end, last)
    return everything, repeated, late


def _without(holes: Iterable[tuple[int, int]], first: int, last: int) -> Iterator[tuple[int, int]]:
    for begin, end in holes:
        if begin < min(end, first):
            yield begin, min(end, first)
        if max(begin, last) < end:
            yield max(begin, last), end


def gaps(packets: pl.DataFrame) -> pl.DataFrame:
    """Time from a packet to the next at each point, a row for each flow: `packets`, `gap_{min,p50,p95,p99,max}_ns`."""
    keys = _keys(packets)
    apart = packets.sort("time_ns", maintain_order=True).with_columns(gap=pl.col("time_ns").diff().over(keys))
    quantiles = {f"gap_p{share}_ns": pl.col("gap").quantile(share / 100, "nearest") for share in (50, 95, 99)}
    return (
        apart.group_by(keys, maintain_order=True)
        .agg(packets=pl.len(), gap_min_ns=pl.col("gap").min(), **quantiles, gap_max_ns=pl.col("gap").max())
        .with_columns(pl.col("^gap_.*$").cast(pl.Int64))
    )


def bursts(packets: pl.DataFrame, rate_bps: int) -> pl.DataFrame:
    """The largest burst of each flow at each point, `burst_bytes`: the depth of a token bucket of `rate_bps` to which
    its frames, Ethernet headers included, conform (analysis/bursts.py)."""
    rows = [
        key | {"burst_bytes": largest_burst_bytes(those["time_ns"].to_list(), those["size_bytes"].to_list(), rate_bps)}
        for key, those in _grouped(packets)
    ]
    return pl.DataFrame(
        rows, schema={name: packets.schema[name] for name in _keys(packets)} | {"burst_bytes": pl.Float64()}
    )


@dataclass(frozen=True)
class Matches:
    """`delays`: see `one_way_delays`. `came`: how many packets came to the receiver, without further copies of one."""

    delays: pl.DataFrame
    came: int


def one_way_delays(packets: pl.DataFrame, sender: str, receiver: str) -> pl.DataFrame:
    """The one-way delay of each packet that left one node and came to another: flow, `sent_ns`, `delay_ns`; one clock
    stamped both.

    A packet is matched by its flow, IPv4's identification, TCP's numbers and flags, its payload's digest and its sizes.
    Linux gives a retransmission another identification, so that a packet is not taken for its original. Of
    copies that a link made the first counts (RFC 7679, section 3.8). Packets that these do not distinguish are left
    out: over IPv6, segments that were sent more than once."""
    return matches(packets, sender, receiver).delays


def matches(packets: pl.DataFrame, sender: str, receiver: str) -> Matches:
    """The same, with how many packets came."""
    run = [_RUN] if _RUN in packets.columns else []
    known_by = [*run, *FLOW, *_TELL_APART, "tcp_ack", "tcp_flags", "payload_bytes", "size_bytes"]
    # Tables of an earlier version have no digests. Linux gives identification 0 to packets that may not be fragmented.
    digest = pl.col("payload_digest") if "payload_digest" in packets.columns else pl.lit(None, pl.Int64)
    there = packets.filter(pl.col("source").is_not_null()).with_columns(
        digest.alias("payload_digest"), pl.when(pl.col("ip_id") != 0).then("ip_id").alias("ip_id")
    )
    sent, came = (
        there.filter((pl.col("node") == node) & (pl.col("direction") == direction)).select(*known_by, "time_ns")
        for node, direction in ((sender, "out"), (receiver, "in"))
    )
    # An identification comes again after 65536 packets; with one of the others, what has both once more is a copy.
    copied = pl.col("ip_id").is_not_null() & pl.any_horizontal(pl.col("tcp_seq", "payload_digest").is_not_null())
    first = pl.col("time_ns").rank("ordinal").over(known_by) == 1
    came = came.filter(~copied | first)
    told = pl.any_horizontal(pl.col(_TELL_APART).is_not_null())
    one, other = (each.filter(told & (pl.len().over(known_by) == 1)) for each in (sent, came))
    both = one.join(other, on=known_by, how="inner", suffix="_came", nulls_equal=True).sort(*run, "time_ns")
    delay = pl.col("time_ns_came") - pl.col("time_ns")
    # What came before it left is another one of which the other end was not captured.
    delays = both.select(*run, *FLOW, "size_bytes", sent_ns="time_ns", delay_ns=delay).filter(pl.col("delay_ns") >= 0)
    return Matches(delays, came.height)


def _keys(packets: pl.DataFrame) -> list[str]:
    return [*([_RUN] if _RUN in packets.columns else []), *POINT, *FLOW]


def _grouped(packets: pl.DataFrame) -> Iterator[tuple[dict[str, int | str | None], pl.DataFrame]]:
    """Packets of each flow at each point, in the order of time."""
    keys = _keys(packets)
    for key, those in packets.sort("time_ns", maintain_order=True).group_by(keys, maintain_order=True):
        yield dict(zip(keys, key, strict=True)), those
