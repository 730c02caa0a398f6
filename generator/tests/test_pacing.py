"""The pacing of a scenario's steps: a class for each member at its source, and the rate in the estimate."""

from __future__ import annotations

from typing import Any

import pytest

from ewan.generator.scenario import DescriptionError, ScheduledRun
from ewan.generator.tests.scenarios import flows, only, parse, planned
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.link import FqPacer, GapPacer, PspPacer, Sources, TbfPacer
from ewan.labs.link.egress import UNPACED
from ewan.labs.plan import Interface, from_json, to_json

LAB = """lab:
  {topology: {dumbbell: {pairs: 3}}, rtt: 20ms, wan: {rate: 100Mbit/s}, hosts: {left3: {pacing: psp 4Mbit/s}}}
"""


def scheduled(steps: str) -> ScheduledRun:
    (run,) = parse(LAB + steps).runs()
    return planned(run)


def egress(schedule: ScheduledRun, host: str) -> Any:
    ports: dict[str, tuple[Interface, ...]] = {node.name: node.interfaces for node in schedule.plan.nodes}
    return ports[host][0].egress


def named(schedule: ScheduledRun) -> list[int | None]:
    """The class that each flow's sockets name."""
    return [flow["socket"].get("class") for flow in flows(schedule)]


def test_each_member_has_a_class_and_its_connections_share_it() -> None:
    made = scheduled(
        'steps: [{name: a, from: left1, to: "right[1-2]", streams: 2, pacing: psp 10Mbit/s, for: 2s, bulk: }]'
    )
    assert named(made) == [2, 2, 3, 3]
    assert [flow.paced_bps for flow in made.document.flows] == [10_000_000] * 4
    paced = PspPacer(rate_bps=10_000_000, overhead_bytes=24, minimum_bytes=84)
    assert [each.pacer for each in egress(made, "left1").classes[1:]] == [paced, paced]
    assert egress(made, "left1").default == UNPACED
    assert not isinstance(egress(made, "left2"), Sources)


def test_of_fq_each_connection_has_its_share() -> None:
    made = scheduled("steps: [{name: a, from: left1, to: right1, streams: 4, pacing: fq 10Mbit/s, for: 2s, bulk: }]")
    assert egress(made, "left1").classes[1].pacer == FqPacer(rate_bps=2_500_000)


def test_a_step_s_words_come_before_the_defaults_and_these_before_the_host_s() -> None:
    made = scheduled(
        """
defaults: {pacing: {tbf: 8Mbit/s, burst: 20kB}}
steps:
  - {name: a, from: left3, to: right1, for: 2s, bulk: }
  - {name: b, from: left3, to: right1, for: 2s, pacing: none, udp: {rate: 9Mbit/s, size: 1000B}}
"""
    )
    assert named(made) == [3, UNPACED]
    assert egress(made, "left3").classes[2].pacer == TbfPacer(rate_bps=8_000_000, burst_bytes=20_000)
    assert egress(made, "left3").default == 2
    alone = scheduled("steps: [{name: a, from: left3, to: right1, for: 2s, bulk: }]")
    assert named(alone) == [None]
    assert alone.document.flows[0].paced_bps == 4_000_000


def test_a_step_s_gap_packets_need_a_host_with_a_real_card() -> None:
    cards = "nodes: {left1: {interface: c1}, r1: {interface: {left1: c2}}}"
    lab = f"lab: {{topology: {{dumbbell: {{pairs: 2}}}}, rtt: 20ms, {cards}}}\n"

    def made(source: str) -> ScheduledRun:
        step = f"name: a, from: {source}, to: right1, pacing: {{psp: 10Mbit/s, gap: packets}}, for: 2s, bulk:"
        (run,) = parse(f"{lab}steps: [{{{step} }}]").runs()
        return run.schedule(compile_spec(run.spec, HostFacts((0, 1), (), "live")), "live")

    found = egress(made("left1"), "left1")
    assert found.sorter == "psp_gap"
    assert found.classes[1].pacer == GapPacer(rate_bps=10_000_000, overhead_bytes=24, minimum_bytes=84)
    with pytest.raises(DescriptionError, match="left2:eth0 is an interface of a veth pair"):
        made("left2")


def test_without_pacing_the_plan_is_the_lab_s() -> None:
    made = only("steps: [{name: a, from: left1, to: right1, for: 2s, bulk: }]")
    assert not any(isinstance(port.egress, Sources) for node in made.plan.nodes for port in node.interfaces)
    assert made.document.flows[0].paced_bps is None


@pytest.mark.parametrize(
    ("step", "protocol"),
    [
        ("generator: iperf3, bulk: ", "tcp"),
        ("generator: iperf3, udp: {rate: 9Mbit/s, size: 1000B}", "udp"),
        ("generator: ditg, udp: {rate: 9Mbit/s, size: 1000B}", "udp"),
    ],
)
def test_packets_of_other_programs_are_found_by_the_port_that_they_go_to(step: str, protocol: str) -> None:
    made = scheduled(f"steps: [{{name: a, from: left1, to: right1, for: 2s, pacing: psp 5Mbit/s, {step}}}]")
    ((found,),) = (each.filters for each in egress(made, "left1").classes[1:])
    client = " ".join(made.program.commands[-1].argv)
    assert (found.protocol, found.address.count(".")) == (protocol, 3)
    assert found.address in client and f"p {found.port} " in client
    assert from_json(to_json(made.plan)) == made.plan


def test_a_volume_takes_as_long_as_its_source_is_held_to() -> None:
    made = scheduled("steps: [{name: a, from: left1, to: right1, pacing: psp 8Mbit/s, bulk: 5MB}]")
    assert made.program.expected_ns == pytest.approx(5 * NS_PER_SECOND, rel=0.02)
    free = scheduled("steps: [{name: a, from: left1, to: right1, for: 5s, bulk: }]").demand()
    held = scheduled("steps: [{name: a, from: left1, to: right1, for: 5s, pacing: tbf 10Mbit/s, bulk: }]").demand()
    assert held.packets == pytest.approx(free.packets / 10, rel=0.1)


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        ('ranks: "left[1-2]", messages: {pattern: barrier, iterations: 2}', "a step of kind messages has none"),
        ("on: left1, run: hostname", "a step of kind run has none"),
    ],
)
def test_what_is_not_of_two_ends_is_refused(step: str, wrong: str) -> None:
    text = f"steps: [{{name: a, pacing: psp 5Mbit/s, {step}}}]"
    with pytest.raises(DescriptionError) as refusal:
        scheduled(text)
    assert "steps[0].pacing" in str(refusal.value) and wrong in str(refusal.value)


def test_a_burst_below_a_packet_is_refused_at_its_step() -> None:
    with pytest.raises(DescriptionError) as refusal:
        scheduled("steps: [{name: a, from: left1, to: right1, for: 2s, pacing: {tbf: 5Mbit/s, burst: 1kB}, bulk: }]")
    assert "steps[0].pacing" in str(refusal.value) and "less than one packet" in str(refusal.value)
