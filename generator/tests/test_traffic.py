"""Traffic of the generator in the virtual clock, where physics is exact; and its end, on request or because it must."""

from __future__ import annotations

import csv
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.generator import traffic_request
from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.record.traffic import ArrivalsWork, BulkWork, ConstantLaw, FlowRequest, SocketOptions, UniformLaw, Work
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

SECOND, MS = 10**9, 10**6
SEGMENT_BYTES = 1448
RTT_NS = 40 * MS


def lab(**words: str) -> Plan:
    described = {"name": f"tr{os.getpid()}", "rate": "1Gbit/s", "rtt": "40ms", **words}
    return compile(from_template("dumbbell", described), host.virtual_facts())


def flow(plan: Plan, work: Work, **more: Any) -> FlowRequest:
    """A flow from left1 to right1."""
    (transfer,) = traffic_request.transfers(plan, [traffic_request.BulkTransfer("left1", "right1")], "virtual").flows
    return replace(transfer, work=work, **{"stop_ns": None, **more})


def run(
    plan: Plan, flows: list[FlowRequest], directory: Path, sample_ns: int = 0, series_ns: int = 0
) -> list[dict[str, Any]]:
    traffic = traffic_request.request(plan, flows, "virtual", 600 * SECOND, sample_ns=sample_ns, series_ns=series_ns)
    program = Program(longest_ns=600 * SECOND, traffic=traffic)
    records: list[dict[str, Any]] = codec.data_of(
        traffic_request.read(VirtualRuntime(BINARY).run(plan, program, directory).directory)
    )
    return records


def test_a_transfer_limited_by_the_window_takes_volume_over_window_times_rtt(tmp_path: Path) -> None:
    plan, windows = lab(), 1_000
    window = 200 * SEGMENT_BYTES
    socket = SocketOptions("reno", window_bytes=window)
    (record,) = run(plan, [flow(plan, BulkWork(windows * window), socket=socket)], tmp_path / "run")
    expected = windows * RTT_NS
    assert record["error"] is None
    # Connecting, slow start and its last bytes' way are some round trips more; now and then a last segment without a
    # second one waits for its acknowledgement.
    assert expected < record["completion_ns"] < 1.01 * expected


def test_sizes_and_instants_of_arrivals_are_those_of_their_laws(tmp_path: Path) -> None:
    plan = lab()
    work = ArrivalsWork(300, ConstantLaw(10 * MS), UniformLaw(1_000, 9_000))
    records = run(plan, [flow(plan, work, start_ns=SECOND)], tmp_path / "run")
    assert [record["scheduled_ns"] for record in records] == [SECOND + k * 10 * MS for k in range(300)]
    assert all(record["started_ns"] == record["scheduled_ns"] and record["error"] is None for record in records)
    sizes = [record["received_bytes"] for record in records]
    assert sizes == [record["volume_bytes"] for record in records]
    # A deviation of 2309 bytes, over 300 of them: 133.
    assert min(sizes) >= 1_000 and max(sizes) <= 9_000 and abs(sum(sizes) / 300 - 5_000) < 4 * 133
    # The handshake takes one round trip, and what fits in the first window half of one more.
    assert all(1.5 * RTT_NS < record["completion_ns"] < 1.6 * RTT_NS for record in records)


def test_a_thousand_flows_at_once_and_the_run_repeated_is_the_same(tmp_path: Path) -> None:
    plan = lab(rate="100Mbit/s")
    flows = [flow(plan, BulkWork(), name=f"{k}", stop_ns=2 * SECOND) for k in range(1_000)]
    digests = []
    for again in ("first", "second"):
        records = run(plan, flows, tmp_path / again, sample_ns=500 * MS, series_ns=500 * MS)
        assert len(records) == 1_000
        assert {(record["started_ns"], record["error"]) for record in records} == {(0, None)}
        rate = sum(record["received_bytes"] for record in records) * 8 / 2
        assert 0.75 * 94.1e6 < rate < 94.2e6
        files = sorted((tmp_path / again / "traffic").iterdir())
        digests.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
    assert digests[0] == digests[1]


def test_bins_hold_every_byte_and_end_when_nothing_is_active(tmp_path: Path) -> None:
    plan = lab()
    work = BulkWork(3_000_000, bidirectional=True)
    flows = [flow(plan, work), flow(plan, work, name="later", start_ns=30 * SECOND)]
    records = run(plan, flows, tmp_path / "run", series_ns=100 * MS)
    with (tmp_path / "run" / "traffic" / "goodput.csv").open() as file:
        rows = [{name: int(text) for name, text in row.items()} for row in csv.DictReader(file)]
    segment = 1448
    for number, part in ((0, 0), (0, 1), (1, 0), (1, 1)):
        own = [row for row in rows if (row["flow"], row["part"]) == (number, part)]
        assert sum(row["delivered_bytes"] for row in own) == 3_000_000
        assert 3_000_000 <= sum(row["arrived_bytes"] for row in own) < 3_000_000 + segment, "nothing came twice"
        assert all(row["bin_ns"] == 100 * MS and row["time_ns"] % (100 * MS) == 0 for row in own)
        (record,) = [each for each in records if (each["flow"], each["part"]) == (number, part)]
        assert own[-1]["time_ns"] - 100 * MS < record["ended_ns"] <= own[-1]["time_ns"]
    assert not [row for row in rows if 10 * SECOND < row["time_ns"] <= 30 * SECOND], "nothing was active"


@pytest.fixture
def pair() -> Iterator[str]:
    """The common part of the names of two namespaces, 192.0.2.1 and 192.0.2.2."""
    tag = f"traffic-end-{os.getpid()}"
    lines = [
        f"ip netns add {tag}-a",
        f"ip netns add {tag}-b",
        f"ip -n {tag}-a link add eth0 type veth peer name eth0 netns {tag}-b",
        *(f"ip -n {tag}-{side} address add 192.0.2.{number}/24 dev eth0" for number, side in ((1, "a"), (2, "b"))),
        *(f"ip -n {tag}-{side} link set eth0 up" for side in "ab"),
    ]
    try:
        for line in lines:
            subprocess.run(line.split(), check=True)
        yield tag
    finally:
        for side in "ab":
            subprocess.run(["ip", "netns", "del", f"{tag}-{side}"], check=False)


def live(tag: str, out: Path, longest_ns: int, sample_ns: int = 0) -> list[str]:
    """The command for one flow that lasts until `longest_ns`."""
    ends = [{"netns": f"/run/netns/{tag}-{s}", "address": f"192.0.2.{n}"} for n, s in ((1, "a"), (2, "b"))]
    one = {"from": ends[0], "to": ends[1], "stop_ns": longest_ns, "work": {"kind": "bulk"}}
    flows = [{**one, "name": f"{k}", "socket": {"congestion": "cubic"}} for k in range(4)]
    request = {"format": "ewan-traffic/1", "longest_ns": longest_ns, "sample_ns": sample_ns, "flows": flows}
    file = out.with_suffix(".request.json")
    file.write_bytes(orjson.dumps(request))
    return [str(BINARY), "traffic", "--request", str(file), "--out", str(out)]


@pytest.mark.live
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_flows_and_all_is_written(pair: str, tmp_path: Path, how: signal.Signals) -> None:
    out = tmp_path / "out"
    with subprocess.Popen(live(pair, out, 60 * SECOND, 10 * MS), stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 20
        while not (out / "series.csv").exists() or (out / "series.csv").stat().st_size == 0:
            assert time.monotonic() < until, "no series within 20 s"
            time.sleep(0.05)
        process.send_signal(how)
        assert process.wait(20) == 0, process.stderr and process.stderr.read()
    answer = orjson.loads((out / "traffic.json").read_bytes())
    assert answer["interrupted"] is True
    for record in answer["flows"]:
        assert record["error"] == "interrupted" and record["received_bytes"] > 0 and record["ended_ns"] < 60 * SECOND


@pytest.mark.live
def test_a_full_disk_ends_the_run_in_one_line_and_leaves_whole_rows(pair: str, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], check=True)
    try:
        command = live(pair, small / "out", 60 * SECOND, MS // 10)
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        rows = (small / "out" / "series.csv").read_text()
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert ended.returncode == 2
    assert "No space left on device" in ended.stderr and len(ended.stderr.splitlines()) == 1
    lines = rows.splitlines()
    assert rows.endswith("\n") and len(lines) > 500
    assert {line.count(",") for line in lines} == {lines[0].count(",")}
