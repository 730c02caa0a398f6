"""Runs as data files of Flent (version 4), for its plots and comparisons.

In: an experiment. Out: one .flent.gz a run, as Flent's test `tcp_nup` would have left it: payload of each load flow as
it arrived (in order where its generator tells no arrivals; the note says which), sum and mean in Mbit/s, on the grid of
the goodput bins; cwnd, RTT and rates of the senders as raw values. No ping ran beside the traffic, so that series is
empty; flows of the role reverse are in the file as downloads, which this test's
plots do not show. Source: Flent's documentation, "The Data File Format".
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from ewan.analysis import arrivals
from ewan.analysis.load import ExperimentResults, RunResults
from ewan.labs.base import writing
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND, scale

Flow = tuple[int, int]
"""Its number and part."""

VERSION = 4
TEST = "tcp_nup"
MBIT = scale("rate")["Mbit/s"]

RAW = {  # Flent's names for what TCP_INFO says: column, divisor
    "tcp_rtt": ("srtt_ns", NS_PER_MS),
    "tcp_cwnd": ("cwnd_segments", 1),
    "tcp_delivery_rate": ("delivery_rate_bps", MBIT),
    "tcp_pacing_rate": ("pacing_rate_bps", MBIT),
}


def write(experiment: ExperimentResults, directory: Path) -> list[Path]:
    """A file for each run that has goodput series; the files' paths. All are written, or none."""
    return writing.write_all(files(experiment, directory))


def files(experiment: ExperimentResults, directory: Path) -> dict[Path, bytes | str]:
    """The files to write, by path."""
    found: dict[Path, bytes | str] = {}
    for run in experiment.runs:
        if not run.measured:
            continue
        document = of(experiment, run)
        run.forget()
        if document is None:
            continue
        words = re.sub(r"[^A-Za-z0-9.=-]+", "_", f"{experiment.directory.name}-{run.number:03}-{run.name}")
        path = directory / f"{words[:200]}.flent.gz"
        # No time and no name inside: the same data gives the same bytes.
        found[path] = gzip.compress(json.dumps(document, sort_keys=True).encode(), mtime=0)
    return found


def of(experiment: ExperimentResults, run: RunResults) -> dict[str, JsonValue] | None:
    """The document of a run; None without goodput series."""
    flows, goodput = run.table("flows"), arrivals.shown(run.table("goodput"))
    if goodput.is_empty():
        return None
    start = _started(experiment)
    bin_ns = int(goodput.select(pl.col("bin_ns").max()).item())
    ends = range(bin_ns, int(goodput.select(pl.col("time_ns").max()).item()) + bin_ns, bin_ns)
    seconds = [end / NS_PER_SECOND for end in ends]
    bins, samples = _by_flow(goodput), _by_flow(run.table("series"))
    series = {name: _series(bins.get(flow), ends, bin_ns) for name, flow in _named(flows)}
    uploads = [values for name, values in series.items() if name.startswith("TCP upload::")]
    for column in ("sum", "avg"):
        series[f"TCP upload {column}"] = _together(uploads, len(seconds), column == "avg")
    series["Ping (ms) ICMP"] = [None] * len(seconds)
    raw = {name: list(_raw(samples.get(flow), start)) for name, flow in _named(flows)}
    congestion = sorted(set(flows["congestion"].drop_nulls()))
    return {
        "version": VERSION,
        "x_values": seconds,
        "results": series,
        "raw_values": raw,
        "metadata": {
            "NAME": TEST,
            "TITLE": f"{experiment.document.scenario} {run.name}",
            "NOTE": f"{experiment.document.clock} clock; made from {experiment.directory.name}; "
            f"payload {' or '.join(sorted(goodput['series'].unique()))}",
            "TIME": _stamp(start),
            "T0": _stamp(start),
            "LENGTH": round(seconds[-1]),
            "TOTAL_LENGTH": seconds[-1],
            "STEP_SIZE": bin_ns / NS_PER_SECOND,
            "HOST": None,
            "HOSTS": sorted(set(flows["sink"].drop_nulls())),
            "LOCAL_HOST": "ewan",
            "KERNEL_NAME": "Linux",
            "KERNEL_RELEASE": experiment.document.host.kernel,
            "IP_VERSION": 4,
            "FLENT_VERSION": "ewan",
            "BATCH_NAME": experiment.directory.name,
            "BATCH_TITLE": experiment.document.title,
            "TEST_PARAMETERS": {"upload_streams": str(max(len(uploads), 1)), "tcp_cong_control": ",".join(congestion)},
            "SERIES_META": {name: {"UNITS": "Mbits/s"} for name in series if name != "Ping (ms) ICMP"},
        },
    }


def _by_flow(frame: pl.DataFrame) -> dict[Flow, pl.DataFrame]:
    parts = frame.partition_by("flow", "part", as_dict=True)
    return {(int(flow), int(part)): rows for (flow, part), rows in parts.items()}


def _named(flows: pl.DataFrame) -> Iterator[tuple[str, Flow]]:
    """Flent's name for each flow, with its flow and part: load flows are uploads, those of role reverse downloads."""
    counts: dict[str, int] = {}
    for flow, part, role, kind in flows.sort("flow", "part").select("flow", "part", "role", "kind").iter_rows():
        transport = {"udp": "UDP", "quic": "QUIC"}.get(kind, "TCP")
        name = f"{transport} {'download' if role == 'reverse' else 'upload'}"
        counts[name] = counts.get(name, 0) + 1
        yield f"{name}::{counts[name]}", (flow, part)


def _series(bins: pl.DataFrame | None, ends: range, bin_ns: int) -> list[float | None]:
    """Mbit/s in each bin; None where the flow was not active."""
    if bins is None:
        return [None] * len(ends)
    rate = BITS_PER_BYTE * NS_PER_SECOND / bin_ns / MBIT
    known = {-(-time // bin_ns): size * rate for time, size in bins.select("time_ns", "bytes").iter_rows()}
    return [known.get(end // bin_ns) for end in ends]


def _together(series: list[list[float | None]], length: int, mean: bool) -> list[float | None]:
    found: list[float | None] = []
    for values in zip(*series, strict=True) if series else [()] * length:
        known = [value for value in values if value is not None]
        found.append(sum(known) / (len(known) if mean else 1) if known else None)
    return found


def _raw(samples: pl.DataFrame | None, start: datetime) -> Iterator[dict[str, float]]:
    if samples is None:
        return
    for row in samples.sort("time_ns").iter_rows(named=True):
        values = {name: row[column] / per for name, (column, per) in RAW.items() if row[column] is not None}
        yield {"t": start.timestamp() + row["time_ns"] / NS_PER_SECOND, **values}


def _started(experiment: ExperimentResults) -> datetime:
    try:
        found = datetime.fromisoformat(experiment.document.started)
    except ValueError:
        return datetime(1970, 1, 1, tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
