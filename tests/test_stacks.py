"""Hosts that differ, in the virtual clock: sysctls and routes as their kernel shows them, and what a sender has of a
receiver's window, options and ACKs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import orjson
import polars as pl
import pytest

from ewan.generator import records, scenario
from ewan.labs import host
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record import tables
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

RECEIVERS = {
    "right1": "{window_scaling: off}",
    "right2": "windows-xp",
    "right3": "{sack: off, timestamps: off, rmem: 1MB}",
    "right4": "freebsd-5.3",
    "right5": "{window: 256KiB, delayed_ack: off}",
    "right6": "{window: 256KiB}",
}
SYSCTLS = ("window_scaling", "sack", "timestamps", "moderate_rcvbuf", "rmem", "wmem")
TEXT = """
lab:
  name: st{process}
  topology: {{dumbbell: {{pairs: 7}}}}
  rtt: 100ms
  ip: 4
  wan: {{rate: 10Gbit/s}}
  access: {{switch: ovs}}
  hosts: {{{hosts}}}
steps:
  - {{name: load, from: "left[1-6]", to: "right[1-6]", congestion: reno, for: 6s, bulk: }}
  - {{name: options, at: 2s, on: "left[1-6]", run: "ss -tinoH"}}
  - {{name: settings, on: "right[1-7]", run: "sysctl {names}"}}
  - {{name: routes, on: "right[1-7]", run: "ip route show"}}
capture: [{{node: right5}}, {{node: right6}}]
"""
RTT_NS = 100 * NS_PER_MS
STEADY_NS = range(2 * NS_PER_SECOND, 6 * NS_PER_SECOND)
SEGMENT = 1448


Run = tuple[Path, dict[str, dict[str, str]]]
"""A run's directory, and what its commands printed: by step, by node."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A flow to each receiver, side by side on a link that holds all of them."""
    place = tmp_path_factory.mktemp("stacks") / "run"
    hosts = ", ".join(f"{name}: {{stack: {stack}}}" for name, stack in RECEIVERS.items())
    names = " ".join(f"net.ipv4.tcp_{name}" for name in SYSCTLS)
    text = TEXT.format(process=os.getpid(), hosts=hosts, names=names)
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    schedule = run.schedule(compile_spec(run.spec, host.virtual_facts()), "virtual")
    assert not VirtualRuntime(BINARY).run(schedule.plan, schedule.program, place).interrupted
    assert records.collect(place, schedule.document) is None
    printed: dict[str, dict[str, str]] = {}
    done = orjson.loads((place / "commands.json").read_bytes())["commands"]
    for meant, command in zip(schedule.document.commands, done, strict=True):
        assert command["status"] == 0, command
        printed.setdefault(meant.step, {})[command["node"]] = (place / command["out"]).read_text()
    return place, printed


def in_flight(place: Path) -> dict[str, float]:
    """Bytes that were on their way to each receiver: its goodput times the RTT of an empty path."""
    flows = tables.read(place, "flows").select("flow", "sink")
    bins = (
        tables.read(place, "goodput")
        .filter(pl.col("time_ns").is_between(STEADY_NS.start, STEADY_NS.stop))
        .join(flows, on="flow")
    )
    sums = bins.group_by("sink").agg(pl.col("delivered_bytes").sum(), pl.col("bin_ns").sum())
    return {sink: delivered * RTT_NS / time for sink, delivered, time in sums.iter_rows()}


def test_the_kernel_has_the_settings_of_each_host(ran: Run) -> None:
    found = {node: dict(re.findall(r"tcp_(\w+) = (.*)", text)) for node, text in ran[1]["settings"].items()}
    expected = {
        "right1": ("0", "1", "1", "1"),
        "right2": ("0", "1", "0", "0"),
        "right3": ("1", "0", "0", "1"),
        "right4": ("1", "1", "1", "0"),
        "right7": ("1", "1", "1", "1"),
    }
    for node, values in expected.items():
        assert tuple(found[node][name] for name in SYSCTLS[:4]) == values, node
    least, first, most = map(int, found["right2"]["rmem"].split())
    assert least < 17_520 < first == most < 2 * 17_520
    assert found["right4"]["wmem"].split() == ["4096", "65536", str(72 << 10)]
    assert found["right1"]["rmem"] == found["right7"]["rmem"]


def test_routes_tell_what_no_sysctl_says_also_of_the_hosts_own_network(ran: Run) -> None:
    routes = ran[1]["routes"]
    told = {
        node: [re.findall(r"(?:window|quickack) \d+", line) for line in text.splitlines()]
        for node, text in routes.items()
    }
    assert told["right7"] == told["right1"] == [[], []]
    assert told["right2"] == [["window 17520"], ["window 17520"]]
    assert told["right5"] == [["window 262144", "quickack 1"]] * 2


def test_options_are_those_that_both_ends_have(ran: Run) -> None:
    """As the sender's kernel says them of its connection (ss): `ts`, `sack` and `wscale:THEIRS,OURS`."""
    found = {node: set(re.findall(r"\b(ts|sack|wscale)\b", text)) for node, text in ran[1]["options"].items()}
    assert found["left1"] == {"ts", "sack"}
    assert found["left2"] == {"sack"}
    assert found["left3"] == {"wscale"}
    assert found["left4"] == found["left6"] == {"ts", "sack", "wscale"}
    assert "wscale:1," in ran[1]["options"]["left4"], "64 KiB take 17 bits"


def test_a_receiver_has_its_window_each_round_trip(ran: Run) -> None:
    """Below the window by what is sent in segments, two of which share an ACK, and above it by a segment at most."""
    carried = in_flight(ran[0])
    for sink, window in {
        "right1": 65_535,
        "right2": 17_520,
        "right4": 65_536,
        "right5": 2**18,
        "right6": 2**18,
    }.items():
        assert window - 2 * SEGMENT < carried[sink] < 1.02 * window + SEGMENT, sink
    # It grows: of a buffer of 1 MB full segments fill 62 %.
    assert carried["right3"] == pytest.approx(620_000, rel=0.05)


def test_each_segment_has_an_ack_without_delay_and_every_second_one_with_it(ran: Run) -> None:
    caught = tables.read(ran[0], "packets").filter(pl.col("tcp_flags").is_not_null())
    counts = dict(
        caught.group_by("node")
        .agg(
            segments=((pl.col("direction") == "in") & (pl.col("size_bytes") > SEGMENT)).sum(),
            acks=(pl.col("direction") == "out").sum(),
        )
        .select("node", pl.struct("segments", "acks"))
        .iter_rows()
    )
    for node, share in {"right5": 1.0, "right6": 0.5}.items():
        assert counts[node]["segments"] > 5_000
        assert counts[node]["acks"] / counts[node]["segments"] == pytest.approx(share, abs=0.02), node
