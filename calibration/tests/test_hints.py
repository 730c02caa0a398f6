"""Faults that show in the numbers: each has its own words, and a value without a known fault has none."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ewan.calibration import hints, lab_cards, machine, spinner
from ewan.calibration.compare import compare
from ewan.calibration.machine import MachineLoad, Process, Snapshot
from ewan.calibration.same_plan import differences
from ewan.calibration.spinner import LinkFacts
from ewan.calibration.tests.plans import answer, asked, delays, direction, plan, prepared, told
from ewan.labs.base import codec
from ewan.labs.link import BernoulliLoss, ConstantDelay, Framing
from ewan.labs.record import Row
from ewan.labs.runtime.inspections import EnabledFeatures

ON_TIME = LinkFacts(release_p50_ns=300, release_p99_ns=5_000, release_max_ns=40_000)
DISTURBED = dataclasses.replace(ON_TIME, gaps=9, gaps_ns=90_000_000, longest_gap_ns=20_000_000)
GBIT = 1_000_000_000


def forward(facts: LinkFacts = ON_TIME, changes: dict[str, Any] | None = None, **measured: Any) -> dict[str, Row]:
    expected, probing = prepared(plan(**(changes or {})))
    rows = compare(expected, probing, told(answer(probing, **measured)), {"core forward": facts})
    return {row.quantity: row for row in rows if row.direction == "forward"}


@pytest.mark.parametrize(
    ("rate_bps", "words"),
    [
        (GBIT * 1538 / 1500, "as if framing were not counted (1500 bytes a packet, not 1538)"),
        (GBIT * 1538 / 1514, "only Ethernet's header were counted"),
        (GBIT * 1538 / 1518, "only Ethernet's header and FCS were counted"),
        (GBIT * 1538 / 1524, "only FCS, preamble and gap were counted"),
    ],
)
def test_a_rate_shows_which_bytes_were_forgotten(rate_bps: float, words: str) -> None:
    row = forward(rate_bps=rate_bps)["rate"]
    assert row.verdict == "outside" and words in row.note and "other traffic" not in row.note


@pytest.mark.parametrize("rate_bps", [0.99e9, 1.01e9])
def test_a_rate_one_percent_off_is_outside_and_no_fault_is_made_up(rate_bps: float) -> None:
    row = forward(rate_bps=rate_bps)["rate"]
    assert row.verdict == "outside" and "as if" not in row.note and "other traffic" in row.note


@pytest.mark.parametrize(
    ("delay_ns", "words"),
    [
        (50_000_000, "as if a packet's own time at the rate were not counted"),
        (52_208_000, "as if a packet's own time at the rate were counted twice"),
        (26_104_000, "as if the delay were meant for both ways together"),
        (101_104_000, "as if both ways had the delay that one is to have twice"),
        (1_104_000, "as if there were no delay line"),
        (52_104_000, hints.PUNCTUAL),
    ],
)
def test_a_delay_shows_what_was_left_out(delay_ns: int, words: str) -> None:
    slow = {"rate_bps": 1_000_000}
    row = forward(DISTURBED, slow, delay=delays(delay_ns, 0))["delay p50"]
    assert row.verdict == "outside" and words in row.note, row
    assert "CPU" not in row.note, "what took the CPU for a while made no packet of a link that was on time late"


def test_a_link_that_was_late_itself_names_what_took_its_cpu() -> None:
    late = dataclasses.replace(DISTURBED, release_p50_ns=400_000)
    row = forward(late, delay=delays(50_401_104, 0))["delay p50"]
    assert (
        row.verdict == "outside"
        and row.note == "the link's thread was interrupted 9 times (90 ms in total, 20 ms longest)"
    )


def test_a_limit_that_counts_the_delay_line_is_told_by_what_is_missing() -> None:
    row = forward(queue_bytes=12_500_000 - 6_250_000)["queue limit"]
    assert row.verdict == "outside" and f"{hints.LINE_COUNTED}: 6.25 MB (rate × delay) are missing" in row.note
    # 100 packets: the line holds more than the limit has room for, and the link is never full.
    short = {"queue": codec.replace(direction().queue, limit_bytes=None, limit_packets=100)}
    row = forward(changes=short, rate_bps=100 * 1538 * 8e9 / 50e6)["rate"]
    assert row.verdict == "outside" and f"{hints.LINE_COUNTED}, which then never fills the link" in row.note


def test_directions_that_were_swapped_are_told_by_each_others_values() -> None:
    (link,) = plan().links
    other = codec.replace(link.backward, delay=ConstantDelay(30_000_000), rate_bps=GBIT // 2)
    lab = codec.replace(plan(), links=(codec.replace(link, backward=other),))
    expected, probing = prepared(lab)
    rows = compare(expected, probing, told(answer(probing, rate_bps=GBIT / 2, delay=delays(30_002_208))), {})
    found = {row.quantity: row for row in rows if row.direction == "forward"}
    for quantity in ("delay p50", "rate"):
        assert found[quantity].verdict == "outside" and hints.SWAPPED in found[quantity].note


def test_a_loss_that_is_not_there_is_outside() -> None:
    lossy = {"loss": BernoulliLoss(1_000_000)}
    row = forward(changes=lossy)["loss"]
    assert (row.verdict, row.measured) == ("outside", 0) and hints.NO_LOSS in row.note
    assert hints.NO_LOSS not in forward(changes=lossy, lost_packets=1)["loss"].note


@pytest.mark.parametrize(("rate_bps", "share"), [(GBIT, 0.001), (1_000_000, 0.02), (10_000_000, 0.003)])
def test_a_loss_is_probed_for_long_enough_to_tell_it_from_none(rate_bps: int, share: float) -> None:
    """2.5 s, and more on slow links: up to 6 s."""
    changes = {"loss": BernoulliLoss(round(share * 1e9)), "rate_bps": rate_bps}
    _, probing = prepared(plan(**changes))
    streams = next(probe["streams"] for probe in asked(probing) if probe["kind"] == "loss")
    assert all(2e9 < each["packets"] * each["interval_ns"] < 6e9 for each in streams)
    assert forward(changes=changes)["loss"].verdict == "outside"


def test_a_changed_link_needs_no_hint() -> None:
    changed = dataclasses.replace(ON_TIME, changed=True)
    row = forward(changed, rate_bps=GBIT * 1538 / 1500)["rate"]
    assert spinner.CHANGED in row.note and "as if" not in row.note


def test_frames_longer_than_the_mtu_are_a_row_and_name_the_offload() -> None:
    assert "frames above the MTU" not in forward()
    row = forward(dataclasses.replace(ON_TIME, too_long_packets=7))["frames above the MTU"]
    assert (row.verdict, row.measured) == ("outside", 7) and spinner.OFFLOADED in row.note


def test_what_is_on_at_an_interface_is_named_with_the_command_that_switches_it_off() -> None:
    features = ["rx-gro", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation", "tx-gso-list"]
    (row,) = lab_cards.offload_rows([EnabledFeatures("left1", "eth0", tuple(features))])
    assert (row.link, row.verdict, row.measured) == ("left1:eth0", "outside", 5)
    assert "and 1 more on" in row.note and "ethtool -K eth0 gro off tso off gso off;" in row.note
    (named,) = lab_cards.offload_rows([EnabledFeatures("r1", "eth1", ("tx-gso-list",))])
    assert "ethtool -K eth1 tx-gso-list off" in named.note


def test_plans_that_differ_are_told_by_what_differs_first() -> None:
    lab = plan()
    (link,) = lab.links

    def said(**changes: Any) -> str:
        return differences(lab, codec.replace(lab, links=(codec.replace(link, **changes),)))

    assert differences(lab, plan()) == ""
    assert said(backend="kernel") == "core: back end kernel in place of user"
    assert said(forward=direction(delay=ConstantDelay(51_000_000), rate_bps=GBIT // 2)) == (
        "core: forward rate 500Mbit/s in place of 1Gbit/s, core: forward delay 51ms in place of 50ms"
    )
    assert said(backward=direction(framing=Framing(0, 0))) == "core: backward framing"
    assert said(name="other") == "no link core, a link other more"
    assert differences(lab, codec.replace(lab, host_cpus=(3,))) == "its host_cpus"


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (("tsc", "tsc"), ""),
        (("kvm-clock", "kvm-clock"), ""),
        (("hpet", "hpet"), "the clock source is hpet: each look at the time takes a system call"),
        (("tsc", "acpi_pm"), "the clock source changed, tsc → acpi_pm"),
    ],
)
def test_another_clock_source_is_the_cause_that_rows_name(sources: tuple[str, str], said: str) -> None:
    before, after = (
        Snapshot(number * 10**9, 200 * number, 0, 0.5, {(7, 7): Process("make", 1, 90 * number)}, source)
        for number, source in enumerate(sources, 1)
    )
    load = machine.between(before, after, [])
    assert isinstance(load, MachineLoad)
    assert load.cause().startswith(said or machine.BUSY)
    expected, probing = prepared(plan())
    rows = compare(expected, probing, told(answer(probing, rate_bps=0.98e9)), {}, machine=load.cause())
    rate = next(row for row in rows if row.quantity == "rate")
    assert rate.verdict == "outside" and load.cause() in rate.note
