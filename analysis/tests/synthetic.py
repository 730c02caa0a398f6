"""Experiments made up for tests: the files that a run would leave, with traffic of a simple model instead of packets.

Flows share a bottleneck equally and saw; congestion controls differ by how deep. Everything follows from the seed.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ewan.generator.tests import schedules
from ewan.labs.base import codec
from ewan.labs.record import Certificate, MachineFacts, Row, Uncertainty, tables, to_json
from ewan.labs.record.experiment import FORMAT, STAGES, checksum
from ewan.labs.record.schedule import CrossedLink, CrossedPath, NamedSchedule
from ewan.labs.record.schedule import to_json as schedule_to_json
from ewan.labs.record.summary import FILE
from tests import summaries

SECOND = 1_000_000_000
BIN = SECOND // 10
RTT_NS = 20_000_000
DEPTH = {"reno": 0.5, "cubic": 0.3, "bic": 0.2, "highspeed": 0.35, "scalable": 0.125, "htcp": 0.4}
HOST = MachineFacts("6.12.0-synthetic", "x86_64", "a synthetic CPU", 2, 8 << 30, "tsc", True, {"ewan-node": "0.1.0"})


def vouch(directory: Path) -> None:
    """The experiment's document records the present bytes of all files of its runs and of its certificates."""
    path = directory / "experiment.json"
    document = json.loads(path.read_text())
    found = [*directory.glob("runs/*/*.*"), *directory.glob("certificates/*.json")]
    document["files"] = {each.relative_to(directory).as_posix(): checksum(each) for each in found}
    path.write_text(json.dumps(document))


def frame(table: str, rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """A frame of rows that leave out null values."""
    schema = tables.TABLES[table]
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def flow(number: int, **values: Any) -> dict[str, Any]:
    """A row of FLOWS: by default a bulk flow of the load."""
    base = {"flow": number, "part": 0, "name": f"flow {number}", "step": "forward", "role": "load", "transfer": number}
    ends = {"source": f"left{number % 11 + 1}", "sink": f"right{number % 11 + 1}"}
    return {**base, **ends, "kind": "bulk", "generator": "ewan", "scheduled_ns": 0, "started_ns": 0, **values}


def experiment(
    directory: Path,
    points: Sequence[dict[str, Any]],
    *,
    seeds: Sequence[int] = (1, 2, 3),
    pairs: int = 4,
    seconds: int = 20,
    rate_bps: int = 1_000_000_000,
    reverse: int = 0,
    kind: str = "bulk",
    told: dict[str, Any] | None = None,
) -> Path:
    """An experiment with a run for each point and seed; `kind`: bulk, arrivals, requests, messages or udp."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "certificates").mkdir(exist_ok=True)
    (directory / "certificates/0123456789ab.json").write_bytes(to_json(certificate()))
    runs: list[dict[str, Any]] = []
    for point in points:
        for seed in seeds:
            number = len(runs) + 1
            place = directory / f"runs/{number:03}"
            place.mkdir(parents=True, exist_ok=True)
            write_run(place, point, seed, pairs, seconds, rate_bps, reverse, kind)
            runs.append(
                {
                    "number": number,
                    "name": " ".join(f"{name}={value}" for name, value in point.items()) + f" seed={seed}",
                    "parameters": point,
                    "seed": seed,
                    "status": "complete",
                    "error": None,
                    "directory": f"runs/{number:03}",
                    "plan_sha256": "0123456789ab" + "0" * 52,
                    "family": "0123456789ab" + "0" * 52,
                    "expected_ns": seconds * SECOND,
                    "certificate": "certificates/0123456789ab.json",
                    "verified": None,
                }
            )
    document = {
        "format": FORMAT,
        "scenario": "synthetic",
        "title": "Synthetic bulk transfers on a dumbbell",
        "about": "Traffic that a simple model made, to test the analysis.",
        "source": "no paper",
        "metrics": [],
        "normalise": None,
        "beside": [],
        "scale": None,
        "settings": {},
        "clock": "virtual",
        "runtime": "virtual",
        "unverified": False,
        "files": {},
        "started": "2026-01-02T03:04:05Z",
        "ended": "2026-01-02T03:05:06Z",
        "status": "complete",
        "stages": {name: {"status": "waiting"} for name in STAGES}
        | {"execution": {"status": "complete", "seconds": 12.5}},
        "runs": runs,
        "host": {key: getattr(HOST, key) for key in HOST.__struct_fields__},
        "commit": "0" * 40,
        "command": "ewan run synthetic",
        **(told or {}),
    }
    (directory / "experiment.json").write_text(json.dumps(document))
    vouch(directory)
    return directory


KNOWN = Uncertainty({"finite sample": 1e6}, 2e6)


def certificate() -> Certificate:
    rows = (
        Row("core", "forward", "rate", "bit/s", 1e9 + 0.0, 0.99999e9, -1e4, 1e7, "ok"),
        Row("core", "forward", "delay p50", "ns", 1e7, 1.0004e7, 4e3, 1e5, "ok"),
        Row("core", "forward", "delay max", "ns", 1e7, 1.2e7, 2e6, None, "shown"),
        Row("core", "backward", "loss", "ppb", 0, None, None, None, "not measured", "nothing was lost"),
        Row("core", "forward", "duplicates", "ppb", 1e6, 0.0, -1e6, 1e6, "not decidable", "", KNOWN, needs=40_000),
    )
    return Certificate("0123456789ab" + "0" * 52, "dumbbell", "", HOST, {}, rows, {}, {}, 3 * SECOND, "virtual")


def write_run(
    place: Path, point: dict[str, Any], seed: int, pairs: int, seconds: int, rate_bps: int, reverse: int, kind: str
) -> None:
    draw = random.Random(f"{seed} {sorted(point.items())}")
    congestion = str(point.get("congestion", "cubic"))
    depth = DEPTH.get(congestion, 0.3) * draw.uniform(0.9, 1.1)
    streams = int(point.get("streams", 1))
    flows: list[dict[str, Any]] = []
    goodput: list[dict[str, Any]] = []
    series: list[dict[str, Any]] = []
    exchanges: list[dict[str, Any]] = []
    members = [(role, pair) for role, count in (("load", pairs), ("reverse", reverse)) for pair in range(count)]
    for role, pair in members:
        for _ in range(streams):
            number = len(flows)
            start, length = pair * SECOND, int(seconds * SECOND * (1 + draw.uniform(0, depth)))
            share, period = rate_bps * 0.94 / pairs / streams, draw.uniform(2, 4)
            total = last = 0
            for step in range(1, length // BIN):
                now = step * BIN / SECOND
                saw = 1 - depth + depth * (now / period % 1)
                speed = share * min(saw, 1) * min(1.0, now) * draw.uniform(0.97, 1.03)
                size = int(speed / 8 / 10)
                sizes = {"delivered_bytes": size, "arrived_bytes": size}
                total += size
                time = start + step * BIN
                goodput.append({"flow": number, "part": 0, "time_ns": time, "bin_ns": BIN, **sizes})
                window = int(speed * RTT_NS / SECOND / 8 / 1448) + 10
                series.append(
                    {
                        "flow": number, "part": 0, "time_ns": time, "acked_bytes": total, "cwnd_segments": window,
                        "ssthresh_segments": int(window * 0.7), "in_flight_segments": window, "lost_segments": 0,
                        "srtt_ns": RTT_NS + int(5e6 * saw), "rttvar_ns": 100_000, "retransmitted_segments": step // 10,
                        "delivered_segments": total // 1448, "delivery_rate_bps": int(speed),
                    }
                )  # fmt: skip
                last = step
            ends = {"source": f"left{pair + 1}", "sink": f"right{pair + 1}"}
            if role == "reverse":
                ends = {"source": ends["sink"], "sink": ends["source"]}
            started = start + int(draw.expovariate(1 / 40_000))
            row = flow(
                number, name=f"{role} {ends['source']} to {ends['sink']}", step=role, role=role, transfer=pair,
                kind=kind, congestion=congestion if kind != "udp" else None, scheduled_ns=start, started_ns=started,
                connected_ns=started + RTT_NS, ended_ns=start + length, completion_ns=length, volume_bytes=total,
                received_bytes=total, goodput_bps=total * 8 * SECOND / length, segment_bytes=1448, min_rtt_ns=RTT_NS,
                retransmitted_segments=last // 10, **ends,
            )  # fmt: skip
            if kind == "udp":
                sent = total // 1470
                row |= {
                    "completion_ns": None, "segment_bytes": None, "retransmitted_segments": None, "sent_packets": sent,
                    "received_packets": sent - sent // 1000, "lost_packets": sent // 1000, "reordered_packets": 0,
                    "duplicate_packets": 0, "delay_min_ns": RTT_NS // 2, "delay_p50_ns": RTT_NS // 2 + 10_000,
                    "delay_p95_ns": RTT_NS // 2 + 400_000, "delay_p99_ns": RTT_NS // 2 + 900_000,
                    "delay_max_ns": RTT_NS // 2 + 1_500_000, "jitter_ns": draw.uniform(1e4, 3e4),
                }  # fmt: skip
            flows += [row] if kind != "arrivals" else arrivals(row, draw)
            if kind in ("requests", "messages"):
                exchanges += [
                    {
                        "flow": number, "part": 0, "number": count, "start_ns": start + count * BIN,
                        "duration_ns": RTT_NS + int(draw.paretovariate(1.3 + depth) * 4e6), "sent_bytes": 300,
                        "received_bytes": 10_000,
                    }
                    for count in range(length // BIN)
                ]  # fmt: skip
    written = {"flows": flows, "series": series, "goodput": goodput, "exchanges": exchanges}
    for name, rows in written.items():
        tables.write(place, name, frame(name, rows))
    (place / "schedule.json").write_bytes(schedule_to_json(schedule(flows)))
    tables.write(place, "links", frame("links", links(goodput, flows, rate_bps, draw)))
    events = [
        {
            "at_ns": 5 * SECOND,
            "link": "core",
            "direction": "forward",
            "applied_ns": 5 * SECOND,
            "error": None,
            "change": {},
        }
    ]
    (place / "events.json").write_text(json.dumps({"format": "ewan-events/1", "events": events if reverse else []}))


def watched(directory: Path, number: int, *late: int, seconds: int = 6) -> None:
    """A run was live and watched: links were out of their tolerance in the seconds `late`."""
    moments = [{"time_ns": (second + 1) * SECOND, "interval_ns": SECOND} for second in range(seconds)]
    way = {"link": "core", "direction": "forward", "spinner": 0, "bound_ns": 500_000, "released_packets": 10_000}
    quiet = {"overrun_packets": 0, "down": False, "ended": False, "lateness_max_ns": 4_000_000}
    spinner = {"spinner": 0, "cpu": 1, "taken_ns": 0, "gap_max_ns": 0, "shared": False}
    machine = {"cpu_ns": 2 * SECOND, "stolen_ns": 0, "stepped_ns": 0, "clocksource": "tsc", "changed": False}
    counts = [300 * (second in late) for second in range(seconds)]
    rows: dict[str, list[dict[str, Any]]] = {
        "releases": [{**at, **way, **quiet, "late_packets": many} for at, many in zip(moments, counts, strict=True)],
        "spinners": [{**at, **spinner} for at in moments],
        "machine": [{**at, **machine} for at in moments],
    }
    for name, own in rows.items():
        tables.write(directory / f"runs/{number:03}", name, frame(name, own))
    path = directory / "experiment.json"
    document = json.loads(path.read_text())
    document["runs"][number - 1]["disturbed"] = list(late)
    path.write_text(json.dumps({**document, "clock": "live", "runtime": "netns"}))
    vouch(directory)


def schedule(flows: Sequence[dict[str, Any]]) -> NamedSchedule:
    """The part of a run's schedule that the analysis reads: the links that the flows cross."""
    hops: dict[str, tuple[CrossedLink, ...]] = {
        "load": (CrossedLink("core", "forward", None),),
        "reverse": (CrossedLink("core", "backward", None),),
    }
    ends = {(each["source"], each["sink"], each["role"]) for each in flows}
    crossed = [CrossedPath(source, sink, role, hops[role]) for source, sink, role in sorted(ends)]
    return schedules.schedule(paths=crossed)


def arrivals(row: dict[str, Any], draw: random.Random) -> list[dict[str, Any]]:
    """A hundred files of Pareto sizes instead of one."""
    files = []
    for part in range(100):
        size = int(draw.paretovariate(1.3) * 30_000)
        start = row["scheduled_ns"] + int(part * BIN * draw.uniform(0.9, 1.1))
        took = RTT_NS * max(2, int(math.log2(size / 14_480 + 1)) + 2) + int(size * 8 * SECOND / 20_000_000)
        files.append(
            row
            | {"part": part, "scheduled_ns": start, "started_ns": start + 20_000, "ended_ns": start + took}
            | {"completion_ns": took, "volume_bytes": size, "received_bytes": size}
            | {"goodput_bps": size * 8 * SECOND / took, "retransmitted_segments": int(draw.random() < 0.1)}
        )
    return files


def links(
    goodput: list[dict[str, Any]], flows: list[dict[str, Any]], rate_bps: int, draw: random.Random
) -> list[dict[str, Any]]:
    """The bottleneck's counters that go with the goodput: framing adds 6 %, and a queue saws."""
    role = {row["flow"]: row["role"] for row in flows}
    rows = []
    for direction, wanted in (("forward", "load"), ("backward", "reverse")):
        by_time: dict[int, int] = {}
        for each in goodput:
            if role[each["flow"]] == wanted:
                by_time[each["time_ns"]] = by_time.get(each["time_ns"], 0) + each["arrived_bytes"]
        sent = dropped = waited = 0
        for time in sorted({each["time_ns"] for each in goodput}):
            now = by_time.get(time, 0)
            sent += int(now * 1.06)
            busy = now * 80 / rate_bps
            queue = int(rate_bps * RTT_NS / SECOND / 8 * busy * (time / SECOND / 3 % 1) * draw.uniform(0.8, 1))
            dropped += int(queue > 1_900_000)
            waited += queue // 1538 * BIN
            rows.append(
                {
                    "link": "core", "direction": direction, "time_ns": time, "rate_bps": rate_bps,
                    "sent_packets": sent // 1538, "sent_bytes": sent, "dropped_packets": dropped, "lost_packets": 0,
                    "served_packets": sent // 1538, "waited_ns": waited,
                    "queue_packets": queue // 1538, "queue_bytes": queue,
                }
            )  # fmt: skip
    return rows


def summary(directory: Path, points: Sequence[Mapping[str, Any]]) -> None:
    """Writes a summary.json of these points, without runs."""
    (directory / FILE).write_bytes(codec.ordered(summaries.summary(points)))
