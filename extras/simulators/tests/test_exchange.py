"""Runs as input of ns-2 and ns-3: rates, queues, times and flows in each one's own terms, and refusals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ewan.experiments import scenarios
from ewan.extras.simulators import ns2, ns3
from ewan.extras.simulators.flows import traffic
from ewan.extras.simulators.network import network
from ewan.generator.scenario import DescriptionError
from ewan.generator.tests.scenarios import FACTS, parse, planned
from ewan.labs.base import writing
from ewan.labs.compile import compile as compile_spec

LAB = "lab: {topology: {dumbbell: {pairs: 2}}, rtt: 20ms, wan: {rate: 50Mbit/s, buffer: 100kB, loss: 0.1%}, "
CARDS = "access: {rate: 1Gbit/s, buffer: 300pkt}}\n"
STEPS = """
steps:
  - {name: file, at: 1s, from: left1, to: right1, bulk: 40MB, streams: 2, congestion: bic}
  - {name: calls, role: background, from: left2, to: right2, for: 5s, udp: {rate: 8Mbit/s, size: 1000B}}
"""


def write(kind: str, of: Path, target: Path, **given: Any) -> list[Path]:
    """The files that `ewan results export` would write."""
    return writing.write_all(scenarios.files(kind, of, target, **given))


def made(text: str) -> dict[str, str]:
    """The run's text for each simulator."""
    run = next(iter(parse(text).runs()))
    lab = network(compile_spec(run.spec, FACTS))
    return {
        "ns2": ns2.script("t", lab, traffic(run, planned(run), lab.mtu, ns2.CONGESTION, "ns-2")),
        "ns3": ns3.program("t", lab, traffic(run, planned(run), lab.mtu, tuple(ns3.CONGESTION), "ns-3")),
    }


def test_ns3_sends_frames_of_the_wire_at_the_labs_rates() -> None:
    text = made(LAB + CARDS + STEPS)["ns3"]
    # 36 of the 38 bytes beyond IP are time at 50 Mbit/s: 5760 ns. 100 kB of 1538-byte frames are 97659 B of 1502.
    way = '{ 50000000, 5760, "97659B", 0.001 }'
    nodes = re.findall(r'^    "(\w+)",$', text, re.MULTILINE)
    assert nodes == ["left1", "right1", "left2", "right2", "r1", "r2"]
    assert f'{{ "core", 4, 5, 10000000,\n     {way}, {way} }}' in text
    card, port = '{ 1000000000, 288, "4294967295p", 0.0 }', '{ 1000000000, 288, "300p", 0.0 }'
    assert f'{{ "access-left1", 0, 4, 0,\n     {card}, {port} }}' in text


def test_ns3_has_every_flow_with_its_times() -> None:
    text = made(LAB + CARDS + STEPS)["ns3"]
    flows = [line.strip(" {},") for line in text.splitlines() if line.startswith("    { ") and '"load"' in line]
    assert [line.split(", ")[:9] for line in flows] == [
        [str(number), f'"file left1 to right1 stream {number + 1}"', '"load"', "0", "1", "1000000000", "0", "20000000",
         '"ns3::TcpBic"']
        for number in range(2)
    ]  # fmt: skip
    assert {line.split(", ")[9] for line in flows} == {"1448"}
    # 1000 B at 8 Mbit/s: one each millisecond.
    assert '{ 2, "calls left2 to right2", "background", 2, 3, 0, 5000000000, 0, 1000, 1000000' in text


def test_ns2_sends_packets_as_long_as_on_the_wire() -> None:
    text = made(LAB + CARDS + STEPS)["ns2"]
    assert "way 4 5 50000000 0.010000000 bytes 100000 0.001" in text
    assert "way 4 0 1000000000 0.000000000 packets 300 0.0" in text
    assert "Agent/TCP set tcpip_base_hdr_size_ 78" in text  # 40 of TCP and IP, 38 beyond IP; 12 more are timestamps
    assert 'tcp 1 "file left1 to right1 stream 2" load 0 1 1.000000000 -1 20000000 bic 1448' in text
    udp = '"calls left2 to right2" background 2 3 0.000000000 5.000000000 -1 1000 1066 0.001000000000000'
    assert f"udp 2 {udp}" in text


def test_what_is_left_out_or_differs_is_said_in_the_head() -> None:
    more = "  - {name: probe, on: left1, run: ping -c 1 right1}\n"
    lab = "lab: {topology: dumbbell, wan: {forward: {delay: 5ms}, backward: {delay: 15ms}}}\n"
    steps = "steps:\n  - {name: a, from: left1, to: right1, bulk: 1MB}\n"
    text = made(lab + steps + more)["ns3"]
    assert "Step probe is left out: ns-3 runs no commands." in text
    assert "core: 5ms there and 15ms back are half of the sum each" in text
    assert "probe" not in made(lab + steps)["ns3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topology: dumbbell, wan: {queue: red}|bulk: 1MB", r"core \(r1 to r2\): queue red cannot be expressed"),
        ("topology: ring|bulk: 1MB", "more than one path between hosts, and ns-. may choose another"),
        ("topology: dumbbell|requests: {count: 1, request: 1kB, response: 1kB}", "write one of them"),
        ("topology: dumbbell|bidirectional: 1MB", r"x\.scenario\.yaml:2: .*sends one way on a connection"),
        (
            "topology: dumbbell, hosts: {right1: {stack: linux}}|bulk: 1MB",
            'a stack cannot be expressed: leave "stack:" out',
        ),
        ("topology: dumbbell|bulk: 1MB, ecn: true", r"x\.scenario\.yaml:2: .*gets only queues that drop"),
        ("topology: dumbbell|bulk: 1MB, congestion: dctcp", "dctcp.*has no dctcp: write one of reno, cubic"),
        ("topology: dumbbell|bulk: 1MB, for: 5s, generator: iperf3", 'leave "generator: iperf3" out'),
        ("topology: dumbbell|for: 1s, udp: {size: 1kB, interval: {exponential: {mean: 1ms}}}", "only constant rates"),
        ("topology: dumbbell|for: 1s, udp: {size: 2kB, rate: 1Mbit/s}", "more than a packet of 1500 bytes holds"),
    ],
)
def test_what_simulators_lack_is_refused(text: str, said: str) -> None:
    lab, step = text.split("|")
    ends = ("host1", "host2") if "ring" in lab else ("left1", "right1")
    with pytest.raises(DescriptionError, match=said):
        made(f"lab: {{{lab}}}\nsteps: [{{name: a, from: {ends[0]}, to: {ends[1]}, {step}}}]\n")


def test_changes_of_links_are_refused() -> None:
    text = "lab: dumbbell\nsteps: [{name: a, from: left1, to: right1, bulk: 1MB}]\n"
    with pytest.raises(DescriptionError, match='gets no changes of links: leave "events:" out'):
        made(text + "events: [{at: 1s, link: core, delay: 1ms}]\n")


def test_a_sweep_is_a_file_for_each_point_and_nothing_is_left_by_a_refusal(tmp_path: Path) -> None:
    file = tmp_path / "x.scenario.yaml"
    text = "lab: dumbbell\nsweep: {cc: [reno, %s], volume: [1MB]}\nseeds: 3\n"
    steps = 'steps: [{name: a, from: left1, to: right1, bulk: "${volume}", congestion: "${cc}"}]\n'
    file.write_text(text % "bic" + steps)
    paths = write("ns3", file, tmp_path / "out/x.cc")
    assert [path.name for path in paths] == ["x-cc-reno-volume-1MB.cc", "x-cc-bic-volume-1MB.cc"]
    assert write("ns2", file, tmp_path / "one.tcl", settings={"cc": "bic"}) == [tmp_path / "one.tcl"]
    assert "<repetitions>3</repetitions>" in write("nxe", file, tmp_path / "x.xml")[0].read_text()
    file.write_text(text % "dctcp" + steps)
    with pytest.raises(DescriptionError, match="has no dctcp"):
        write("ns3", file, tmp_path / "other/x.cc")
    assert not (tmp_path / "other").exists()
    with pytest.raises(DescriptionError, match=r"--ns3 .*: write the path of a file that ends in \.cc"):
        write("ns3", file, tmp_path / "x.cpp")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("after: first, bulk: 1MB", "gets only times"),
        ("pacing: {psp: 10Mbit/s}, bulk: 1MB", "gets no pacing"),
    ],
)
def test_what_simulators_are_not_told_of_is_refused_at_its_step(words: str, says: str) -> None:
    first = "steps:\n  - {name: first, from: left1, to: right1, bulk: 1MB}\n"
    with pytest.raises(DescriptionError, match=says):
        made(LAB + CARDS + first + f"  - {{name: second, from: left2, to: right2, {words}}}\n")
