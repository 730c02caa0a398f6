"""What links count of flows agrees with captured packets, to the packet, in the virtual clock; and a command's packets
are a flow as any other."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from ewan.analysis import metrics
from ewan.analysis.network import BYTE_NS
from ewan.analysis.rundata import RunData
from ewan.experiments.engine import unit
from ewan.generator import scenario
from ewan.labs import host
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record import schedule, tables
from ewan.labs.record.quantities import parse
from ewan.labs.runtime import kernel
from ewan.labs.runtime.tests.lab import BINARY

pytestmark = pytest.mark.virtual

TEXT = """
lab: {{name: fl{process}, topology: {{dumbbell: {{pairs: 2}}}}, rtt: 20ms,
      wan: {{rate: 10Mbit/s, buffer: 30pkt, loss: 0.2%, duplicate: 0.1%, queue: {queue}}}}}
steps:
  - {{name: server, on: right1, service: true, ready: 4433, run: sh -c 'sleep 0.3; exec iperf3 -s -1 -p 4433'}}
  - name: client
    on: left1
    after: server
    run: iperf3 -c right1 -p 4433 -P 2 -t 3
    flows: {{port: 4433, to: right1}}
  - {{name: tcp, from: left2, to: right2, after: server, for: 3s, bulk: }}
  - {{name: other, from: left2, to: right1, after: server, for: 3s, udp: {{rate: 500kbit/s, size: 500B}}}}
capture: [{{point: 'core:forward'}}, {{point: 'core:backward'}}]
"""
KEYS = ["source", "source_port", "destination", "destination_port"]
HEADER = {"tcp": 66, "udp": 42}
"""Bytes of a captured frame besides the payload, of IPv4 and with TCP's timestamps."""


@pytest.fixture(scope="module", params=["drop-tail", "fq-codel"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("counted") / request.param
    text = TEXT.format(process=os.getpid(), queue=request.param)
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    plan = compile_spec(run.spec, host.virtual_facts())
    made = run.schedule(plan, "virtual")
    ended = unit.run(plan, made.program, made.document, directory, unit.Tools(kernel.kernel(print), BINARY))
    assert (ended.status, ended.error) == ("complete", None)
    (directory / "schedule.json").write_bytes(schedule.to_json(made.document))
    return directory


def last(place: Path, direction: str) -> pl.DataFrame:
    counted = tables.read(place, "link_flows").filter(pl.col("direction") == direction)
    return counted.group_by("entry", maintain_order=True).last()


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_each_packet_is_counted_where_it_enters_and_where_it_leaves(place: Path, direction: str) -> None:
    caught = tables.read(place, "packets").filter(pl.col("protocol").is_in(["tcp", "udp"]))
    enters = {"forward": "r1", "backward": "r2"}[direction]
    counted = last(place, direction).filter(pl.col("protocol").is_in(["tcp", "udp"]))
    # The command's port is stated: all that has it is one flow.
    server = pl.col("destination_port" if direction == "forward" else "source_port") == 4433
    client = pl.col("source_port" if direction == "forward" else "destination_port")
    caught = caught.with_columns(pl.when(server).then(None).otherwise(client).alias(client.meta.output_name()))
    for side, packets in (("in", "in_packets"), ("out", "sent_packets")):
        at = (pl.col("interface") == enters) == (side == "in")
        here = caught.filter(at & (pl.col("direction") == side))
        seen = here.group_by(KEYS).agg(pl.len().alias("seen"), pl.col("payload_bytes").sum().alias("payload"))
        both = counted.join(seen, on=KEYS, how="full", nulls_equal=True, coalesce=True)
        assert both.filter(pl.col(packets).fill_null(0) != pl.col("seen").fill_null(0)).is_empty(), side
        if side == "out":
            assert both.filter(pl.col("payload_bytes") != pl.col("payload")).is_empty()


def test_what_flows_count_adds_up_to_what_the_link_counts(place: Path) -> None:
    link = tables.read(place, "links").filter(pl.col("direction") == "forward").sort("time_ns")[-1]
    flows = last(place, "forward")
    waits = tables.read(place, "link_waits").filter(pl.col("entry").is_in(flows["entry"].implode()))
    waits = waits.group_by("entry", "most_ns", maintain_order=True).last()
    dropped = flows.select(pl.col("queue_full_packets", "aqm_packets", "cut_packets").sum()).sum_horizontal().item()
    before = 6  # Neighbours and routers find each other before T0.
    assert 0 <= link["in_packets"].item() - flows["in_packets"].sum() <= before
    assert dropped == link["dropped_packets"].item() > 0
    assert flows["lost_packets"].sum() == link["lost_packets"].item() > 0
    assert flows["duplicated_packets"].sum() == link["duplicated_packets"].item() > 0
    assert waits["packets"].sum() == flows["served_packets"].sum()
    assert (waits["packets"] * waits["most_ns"]).sum() >= flows["waited_ns"].sum()


def test_a_command_is_a_flow(place: Path) -> None:
    flows = tables.read(place, "flows")
    (row,) = flows.filter(pl.col("name") == "client on left1").to_dicts()
    assert (row["kind"], row["generator"], row["source"], row["sink"]) == ("program", "run", "left1", "right1")
    assert 0 <= row["started_ns"] - row["scheduled_ns"] < 10_000_000
    # The schedule begins when captures are there; the server listens 300 ms later, and is looked at each millisecond.
    assert row["scheduled_ns"] == pytest.approx(400_000_000, abs=2_000_000)
    own = last(place, "forward").filter(pl.col("flow") == row["flow"])
    assert own["payload_bytes"].sum() == row["received_bytes"] > 500_000
    goodput = tables.read(place, "goodput").filter(pl.col("flow") == row["flow"])
    assert goodput["arrived_bytes"].sum() == row["received_bytes"]
    assert set(goodput["bin_ns"][:-1]) == {100_000_000}
    # Our own generator's flows are known at the link by their ports.
    numbers = dict(flows.select("name", "flow").iter_rows())
    counted = last(place, "forward").filter(pl.col("flow").is_not_null())
    assert set(counted["flow"]) == set(numbers.values())


def test_a_command_has_the_metrics_of_a_flow(place: Path) -> None:
    paths = schedule.from_json((place / "schedule.json").read_bytes()).paths
    run = RunData(lambda table: tables.read(place, table), paths)
    of_client = ("packet loss", "packet queueing delay p95", "packet queueing delay", "steady goodput")
    asked = [f"share of {step}" for step in ("client", "tcp", "other")]
    asked += ["packet throughput", *(f"{name} of client" for name in of_client)]
    values = dict(metrics.computed([parse(words) for words in asked], run))
    assert list(values) == asked
    assert sum(values[f"share of {name}"] for name in ("client", "tcp", "other")) == pytest.approx(1, abs=0.03)
    sent = last(place, "forward")["sent_bytes"].sum()
    active = sum(end - start for start, end in run.active)
    assert values["packet throughput"] == pytest.approx(sent * BYTE_NS / active, rel=0.01)
    assert 0.002 < values["packet loss of client"] < 0.2
    assert values["packet queueing delay of client"] < values["packet queueing delay p95 of client"] < 40_000_000
