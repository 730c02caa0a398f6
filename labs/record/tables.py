"""The tables that a run leaves, as Parquet: their columns, and in the schema the unit of each.

In: polars frames. Out: files, and frames read back. Whoever writes a table (generator) and whoever judges it (analysis)
know each other by this module alone. Times are nanoseconds from T0, the common start of all flows of a run; sizes are
payload bytes unless a column says otherwise; bytes of links are counted as the link's framing counts them.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

FORMAT = "ewan-tables/2"

Schema = dict[str, pl.DataType]

_WORD, _WHOLE, _REAL = pl.String(), pl.Int64(), pl.Float64()

FLOWS: Schema = {
    # Which flow: `flow` is its number in the run, `part` one of its connections or members (a file of many that arrive,
    # a direction of a bidirectional transfer, a rank of a message-passing group), else 0.
    "flow": _WHOLE,
    "part": _WHOLE,
    "name": _WORD,
    "step": _WORD,  # the scenario's step that it belongs to
    "role": _WORD,  # "load", "reverse" or "background": what metrics count it as
    "transfer": _WHOLE,  # parallel streams of one transfer share this number
    "kind": _WORD,  # bulk, arrivals, requests, messages, udp
    "generator": _WORD,  # ewan, iperf3, ditg
    "source": _WORD,
    "sink": _WORD,
    "congestion": _WORD,
    "scheduled_ns": _WHOLE,
    "started_ns": _WHOLE,  # its first system call; started - scheduled is its lateness
    "connected_ns": _WHOLE,
    "ended_ns": _WHOLE,
    "completion_ns": _WHOLE,  # from its scheduled start to the last of its bytes; null: it did not receive all
    "volume_bytes": _WHOLE,  # what it was to send; null: as much as fits in its time
    "received_bytes": _WHOLE,
    "goodput_bps": _REAL,
    "segment_bytes": _WHOLE,
    "min_rtt_ns": _WHOLE,
    "retransmitted_segments": _WHOLE,
    "copied_segments": _WHOLE,  # came more than once, as the receiver reported (DSACK); null: not told
    # UDP
    "sent_packets": _WHOLE,
    "received_packets": _WHOLE,
    "lost_packets": _WHOLE,
    "reordered_packets": _WHOLE,
    "duplicate_packets": _WHOLE,
    "delay_min_ns": _WHOLE,
    "delay_p50_ns": _WHOLE,
    "delay_p95_ns": _WHOLE,
    "delay_p99_ns": _WHOLE,
    "delay_max_ns": _WHOLE,
    "jitter_ns": _REAL,  # RFC 3550, section 6.4.1
    "error": _WORD,  # why it went no further
}

SERIES: Schema = {  # TCP_INFO of senders
    "flow": _WHOLE,
    "part": _WHOLE,
    "time_ns": _WHOLE,
    "acked_bytes": _WHOLE,
    "delivered_segments": _WHOLE,
    "cwnd_segments": _WHOLE,
    "ssthresh_segments": _WHOLE,
    "in_flight_segments": _WHOLE,
    "srtt_ns": _WHOLE,
    "rttvar_ns": _WHOLE,
    "retransmitted_segments": _WHOLE,
    "lost_segments": _WHOLE,
    "delivery_rate_bps": _WHOLE,
    "pacing_rate_bps": _WHOLE,  # null: not paced
}

GOODPUT: Schema = {  # what receivers got, in bins; time_ns is a bin's end
    "flow": _WHOLE,
    "part": _WHOLE,
    "time_ns": _WHOLE,
    "bin_ns": _WHOLE,
    # In order, so that a program could have it: in the bin in which a loss is made good, much that arrived long before.
    "delivered_bytes": _WHOLE,
    # As it came over the wire. TCP: data segments that came, those out of order and copies too, times the mean payload
    # of those that were sent; null: its generator does not tell. UDP: without copies, as delivered.
    "arrived_bytes": _WHOLE,
}

EXCHANGES: Schema = {  # a request with its response; an iteration of a message-passing rank
    "flow": _WHOLE,
    "part": _WHOLE,
    "number": _WHOLE,
    "start_ns": _WHOLE,
    "duration_ns": _WHOLE,
    "sent_bytes": _WHOLE,
    "received_bytes": _WHOLE,
}

LINKS: Schema = {  # counters of emulated links, from T0 on
    "link": _WORD,
    "direction": _WORD,  # forward or backward
    "time_ns": _WHOLE,
    "rate_bps": _WHOLE,  # configured
    "sent_packets": _WHOLE,
    "sent_bytes": _WHOLE,
    "dropped_packets": _WHOLE,  # the queue was full, or its discipline dropped
    "lost_packets": _WHOLE,  # on purpose
    "served_packets": _WHOLE,  # taken out of the queue to be sent
    "waited_ns": _WHOLE,  # time that packets waited in the queue, summed over packets; null: the link does not count it
    "queue_packets": _WHOLE,  # waiting now, without the packet in service
    "queue_bytes": _WHOLE,
}

TABLES = {"flows": FLOWS, "series": SERIES, "goodput": GOODPUT, "exchanges": EXCHANGES, "links": LINKS}

UNITS = {"ns": "ns", "bytes": "B", "bps": "bit/s", "segments": "segments", "packets": "packets"}


def unit(column: str) -> str:
    """The unit of a column, by the last part of its name; empty for what has none."""
    return UNITS.get(column.rsplit("_", 1)[-1], "") if "_" in column or column in UNITS else ""


def empty(table: str) -> pl.DataFrame:
    return pl.DataFrame(schema=TABLES[table])


def write(directory: Path, table: str, frame: pl.DataFrame) -> None:
    """DIRECTORY/<table>.parquet; ValueError for a column too many or one too few."""
    schema = TABLES[table]
    if differing := set(frame.columns) ^ set(schema):
        raise ValueError(f"table {table}: columns {', '.join(sorted(differing))} are not those of its schema")
    metadata = {"format": FORMAT, "table": table, "units": json.dumps({name: unit(name) for name in schema})}
    columns = [pl.col(name).cast(kind) for name, kind in schema.items()]
    # In one step: whoever reads after a crash finds a whole table or none.
    path, new = directory / f"{table}.parquet", directory / f".{table}.parquet"
    frame.select(columns).write_parquet(new, metadata=metadata)
    new.replace(path)


def read(directory: Path, table: str) -> pl.DataFrame:
    """The table of a run; without rows where the run has none. ValueError for another format and for damage."""
    path = directory / f"{table}.parquet"
    if not path.exists():
        return empty(table)
    try:
        found = pl.read_parquet_metadata(path).get("format")
        if found != FORMAT:
            raise ValueError(f"{path}: format is {found!r}, this version reads {FORMAT!r}")
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        # A panic of polars is no Exception of Python's.
        raise ValueError(f"{path}: is no whole table ({str(error).splitlines()[0]})") from None
