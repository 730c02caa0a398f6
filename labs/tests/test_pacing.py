"""What a description says of the rates of its hosts, as classes before their cards; and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import Filter, FqPacer, GapPacer, NoPacer, Psp, PspPacer, Sources, TbfPacer
from ewan.labs.link.egress import UNPACED, card_of
from ewan.labs.plan import Interface
from ewan.labs.spec import DescriptionError, parse


def interfaces(hosts: str, clock: Literal["live", "virtual"] = "virtual", more: str = "") -> dict[str, Interface]:
    """Of the hosts of a dumbbell with 20 pairs."""
    text = f"topology: {{dumbbell: {{pairs: 20}}}}\n{more}\nhosts:\n  {hosts}\n"
    plan = compile(parse(text, Path("x.lab.yaml")), HostFacts((0, 1), (), clock))
    return {node.name: node.interfaces[0] for node in plan.nodes if node.kind == "host"}


def sources(hosts: str, clock: Literal["live", "virtual"] = "virtual", more: str = "") -> Sources:
    """Before the card of left1."""
    egress = interfaces(hosts, clock, more)["left1"].egress
    assert isinstance(egress, Sources)
    return egress


def test_a_rate_of_a_host_is_its_default_class_before_the_card_that_it_has_without() -> None:
    found = interfaces('"left[1-2],left7": {pacing: psp 400Mbit/s}')
    paced = {name: port.egress for name, port in found.items() if isinstance(port.egress, Sources)}
    assert list(paced) == ["left1", "left2", "left7"]
    without = interfaces("left9: {}")
    assert {name: card_of(port.egress) for name, port in found.items()} == {n: p.egress for n, p in without.items()}
    own = paced["left7"]
    assert own.default == UNPACED + 1 == len(own.classes)
    assert own.classes[UNPACED - 1].pacer == NoPacer()
    assert own.classes[own.default - 1].pacer == PspPacer(rate_bps=400_000_000, overhead_bytes=24, minimum_bytes=84)
    assert isinstance(own.card, Psp) and (own.limit_packets, own.limit_bytes) == (1000, 1_538_000)


def test_packets_to_a_destination_are_found_by_all_of_its_addresses() -> None:
    found = interfaces('left1: {pacing: [{tbf: 10Mbit/s, to: "right[1-2]"}, {psp: 1Gbit/s}]}')
    own = found["left1"].egress
    assert isinstance(own, Sources) and own.default == 4
    for number in (1, 2):
        addresses = [address.split("/")[0] for address in found[f"right{number}"].addresses]
        assert own.classes[number].filters == tuple(
            Filter(address=each, port=None, protocol=None) for each in addresses
        )
        assert len(addresses) == 2
        # 1 ms of 10 Mbit/s is 1250 bytes: less than four packets.
        assert own.classes[number].pacer == TbfPacer(rate_bps=10_000_000, burst_bytes=4 * 1538)
    assert own.classes[3].filters == ()


def test_what_counts_otherwise_than_the_card_is_exact_for_full_packets() -> None:
    assert sources("left1: {pacing: {tbf: 300Mbit/s, framing: ip, burst: 50kB}}").classes[1].pacer == TbfPacer(
        rate_bps=300_000_000 * 1538 // 1500, burst_bytes=50_000
    )
    assert sources("left1: {pacing: {fq: 300Mbit/s}}", more="access: {framing: ip}").classes[1].pacer == FqPacer(
        rate_bps=300_000_000 * 1500 // 1538
    )
    exact = sources("left1: {pacing: {psp: 300Mbit/s, framing: ip}}").classes[1].pacer
    assert exact == PspPacer(rate_bps=300_000_000, overhead_bytes=-14, minimum_bytes=0)


@pytest.mark.parametrize(
    ("pacing", "sorter"),
    [
        ("{tbf: 10Mbit/s}", "prio"),
        ('[{fq: 10Mbit/s, to: "right[1-15]"}]', "prio"),
        ('[{fq: 10Mbit/s, to: "right[1-16]"}]', "psp"),
        ("{psp: 10Mbit/s}", "psp"),
    ],
)
def test_a_live_kernel_needs_psp_only_where_nothing_else_will_do(pacing: str, sorter: str) -> None:
    assert sources(f"left1: {{pacing: {pacing}}}", "live").sorter == sorter
    assert sources(f"left1: {{pacing: {pacing}}}").sorter == "psp"


CARDS = "nodes: {left1: {interface: c1}, r1: {interface: {left1: c2}}}"


def test_gap_packets_fill_the_line_of_a_host_with_a_real_card() -> None:
    found = sources("left1: {pacing: {psp: 400Mbit/s, gap: packets}}", "live", CARDS)
    assert found.sorter == "psp_gap"
    assert found.classes[1].pacer == GapPacer(rate_bps=400_000_000, overhead_bytes=24, minimum_bytes=84)
    assert found.card == interfaces("left1: {}", "live", CARDS)["left1"].egress, "its rate is the line's"
    assert sources("left1: {pacing: {psp: 400Mbit/s, gap: timer}}", "live", CARDS).sorter == "psp"


@pytest.mark.parametrize(
    ("pacing", "access", "wrong"),
    [
        ("{psp: 2Gbit/s, gap: packets}", "{rate: 1Gbit/s}", "2Gbit/s is more than the line's 1Gbit/s"),
        ("{psp: 4Mbit/s, gap: packets}", "{framing: ip}", "leave out the link's framing"),
        ("[{psp: 4Mbit/s, gap: packets}, {psp: 1Mbit/s, to: right1}]", "{rate: 1Gbit/s}", "for all by gap packets"),
    ],
)
def test_gap_packets_that_would_not_fill_a_line_are_refused(pacing: str, access: str, wrong: str) -> None:
    with pytest.raises(DescriptionError) as refusal:
        interfaces(f"left1: {{pacing: {pacing}}}", "live", f"{CARDS}\naccess: {access}")
    assert "hosts.left1.pacing[" in str(refusal.value) and wrong in str(refusal.value)


def test_gap_packets_before_an_emulated_link_have_no_line() -> None:
    cards = "topology: star\nnodes: {host1: {interface: c1}, arm1: {interface: c2}}"
    text = f"{cards}\nhosts: {{host1: {{pacing: {{psp: 4Mbit/s, gap: packets}}}}}}"
    with pytest.raises(DescriptionError, match="the link behind it is emulated"):
        compile(parse(text, Path("x.lab.yaml")), HostFacts((0, 1), (), "live"))


def test_none_is_no_class() -> None:
    assert not isinstance(interfaces("left1: {pacing: none}")["left1"].egress, Sources)


@pytest.mark.parametrize(
    ("hosts", "wrong"),
    [
        ("left1: {pacing: {psp: 400}}", 'write a rate as "400Mbit/s"'),
        ("left1: {pacing: fast}", 'write "psp 400Mbit/s", '),
        ("left1: {pacing: {psp: 4Mbit/s, gap: packets}}", "left1:eth0 is an interface of a veth pair"),
        ("left1: {pacing: {psp: 4Mbit/s, tbf: 3Mbit/s}}", "write exactly one of psp, tbf, fq"),
        ("left1: {pacing: {burst: 30kB}}", "write exactly one of psp, tbf, fq"),
        ("left1: {pacing: {psp: 4Mbit/s, burst: 10kB}}", '"burst:" is of tbf: leave it out'),
        ("left1: {pacing: {tbf: 4Mbit/s, burst: 1500B}}", "holds less than one packet of 1.538kB: write more"),
        ("left1: {pacing: {fq: 35Gbit/s}}", "fq holds a connection to 34Gbit/s at most"),
        ("left1: {pacing: [{psp: 4Mbit/s}, {tbf: 3Mbit/s}]}", "how left1 sends to all others a second time"),
        ("left1: {pacing: [{psp: 4Mbit/s, to: right1}, {tbf: 3Mbit/s, to: right1}]}", "to right1 a second time"),
        ("left1: {pacing: [{psp: 4Mbit/s, to: right99}]}", "there is no node right99"),
        ("left1: {pacing: [{psp: 4Mbit/s, to: left1}]}", "left1 sends nothing to itself"),
        ("r1: {pacing: psp 4Mbit/s}", "there is no node r1"),
        ('"left[1-2]": {pacing: psp 4Mbit/s}\n  left2: {}', 'says of left2 what "left[1-2]" says too'),
        ("left1: {pace: 4Mbit/s}", 'unknown key of a host, write "pacing"'),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(hosts: str, wrong: str) -> None:
    with pytest.raises(DescriptionError) as refusal:
        interfaces(hosts)
    line = 5 if "\n" in hosts else 4
    assert str(refusal.value).startswith(f"x.lab.yaml:{line}: hosts.") and wrong in str(refusal.value)
