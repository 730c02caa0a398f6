"""Effects of links on the load, against cases worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ewan.analysis import network
from ewan.analysis.network import LossShares
from ewan.analysis.tests.synthetic import SECOND, flow, frame
from ewan.labs.base import codec
from ewan.labs.record.summary import LinkUse

MS = 1_000_000
FORWARD = ("core", "forward")


def link(time_s: float, sent: int, **values: Any) -> dict[str, Any]:
    """A sample of the counters of an 8 Mbit/s link: 1 MB a second, packets of 1000 bytes."""
    base = {"link": "core", "direction": "forward", "time_ns": int(time_s * SECOND), "rate_bps": 8_000_000}
    counts = {"sent_bytes": sent, "sent_packets": sent // 1000, "served_packets": sent // 1000}
    return {**base, **counts, "dropped_packets": 0, "lost_packets": 0, "waited_ns": 0, **values}


def used(*samples: dict[str, Any], start: float = 0, end: float = 2) -> LinkUse:
    (use,) = network.link_use(
        network.watched(frame("links", list(samples))), [(int(start * SECOND), int(end * SECOND))]
    )
    return use


def test_utilisation_is_of_what_the_rate_carries_while_load_is_active() -> None:
    # Half of the rate from 1 to 3 s; what is sent before and after is none of the load's.
    samples = [link(1, 500_000), link(2, 1_000_000), link(3, 1_500_000), link(4, 2_500_000)]
    assert used(*samples, start=1, end=3).utilisation == pytest.approx(0.5)


def test_a_link_that_carries_nothing_while_load_is_active_is_not_used() -> None:
    assert used(link(1, 0, rate_bps=0), link(2, 0, rate_bps=0)).utilisation == 0


def test_a_rate_that_changes_is_taken_as_it_was() -> None:
    assert used(link(1, 1_000_000), link(2, 1_250_000, rate_bps=2_000_000)).utilisation == pytest.approx(1)


def test_the_rate_of_a_link_is_its_mean_while_load_is_active() -> None:
    assert used(link(1, 0), link(4, 0, rate_bps=2_000_000), end=4).rate_bps == 3_500_000


def test_queueing_delay_is_the_mean_wait_of_packets() -> None:
    # In the first second 500 packets waited 20 ms each, in the next one 100 packets 80 ms each.
    samples = [link(1, 500_000, waited_ns=500 * 20 * MS), link(2, 600_000, waited_ns=(500 * 20 + 100 * 80) * MS)]
    assert used(*samples).queueing_ns == pytest.approx(30 * MS)
    assert used(*samples, start=1).queueing_ns == pytest.approx(80 * MS)


def test_a_link_that_does_not_count_waiting_is_known_by_its_queue() -> None:
    # 0 to 1 s: from nothing to 100 packets, 50 on average; then 1 s at 100: 150 packet seconds for 2000 packets.
    samples = [link(1, 1_000_000, queue_packets=100), link(2, 2_000_000, queue_packets=100)]
    assert used(*(each | {"waited_ns": None} for each in samples)).queueing_ns == pytest.approx(75 * MS)


def test_a_link_that_nobody_used_has_no_delay_and_no_loss() -> None:
    use = used(link(1, 0), link(2, 0))
    assert (use.utilisation, use.queueing_ns, use.queue_loss, use.total_loss) == (0, None, None, None)


def test_queue_loss_link_loss_and_both() -> None:
    # 1000 packets came: 10 were lost on purpose, of the other 990 the queue dropped 99.
    use = used(link(1, 400_000, lost_packets=3), link(2, 891_000, dropped_packets=99, lost_packets=10))
    assert network.loss_shares(use) == pytest.approx(LossShares(99 / 990, 10 / 1000, 109 / 1000))


def test_copies_and_what_is_cut_do_not_dilute_losses() -> None:
    # 1000 packets came: 100 were lost on purpose, 450 copied; of the 1350 in the queue 27 were dropped, 135 cut later.
    counts = {"lost_packets": 100, "dropped_packets": 27 + 135, "in_packets": 1000, "duplicated_packets": 450}
    use = used(link(1, 0, in_packets=0, duplicated_packets=0), link(2, 0, served_packets=1323, **counts))
    assert network.loss_shares(use) == pytest.approx(LossShares(162 / 1350, 0.1, 1 - 0.9 * (1 - 162 / 1350)))
    # Without copies, all that was lost of all that came, those that still wait among them.
    counts = {"lost_packets": 100, "dropped_packets": 90, "in_packets": 1000, "duplicated_packets": 0}
    use = used(link(2, 0, served_packets=750, queue_packets=60, **counts))
    assert network.loss_shares(use) == pytest.approx(LossShares(0.1, 0.1, 0.19))
    # All that is dropped had come before.
    use = used(link(1, 0, in_packets=5, duplicated_packets=0), link(2, 0, **counts | {"in_packets": 5}), start=1)
    assert use.queue_loss == 1


def test_the_bottleneck_is_the_busiest_direction_that_the_load_crosses() -> None:
    samples = [
        link(1, 400_000, link="access"),
        link(1, 800_000, link="core"),
        link(1, 999_000, link="core", direction="backward"),
    ]
    uses = network.link_use(network.watched(frame("links", samples)), [(0, SECOND)])
    found = network.bottleneck(uses, {("access", "forward"), FORWARD})
    assert found is not None and (found.link, found.direction) == FORWARD
    anywhere = network.bottleneck(uses)
    assert anywhere is not None and anywhere.direction == "backward"


def test_a_plain_link_that_counts_nothing_is_the_bottleneck_where_it_carries_more_of_its_rate() -> None:
    # Three hosts send 3 Mbit/s each for a second through a switch's port of 10 Mbit/s and a core of 100 Mbit/s.
    port, hosts = ("sw-r1", "forward"), ("a", "b", "c")
    core = LinkUse("core", "forward", 100_000_000, 0.1, 0.0, 0.0, 0.0, 0.0, 1000, 0, 0)
    load = frame("flows", [flow(n, source=host, sink="z", received_bytes=375_000) for n, host in enumerate(hosts)])
    far = ("sw-r2", "backward")
    ways: network.Ways = {(host, "z"): ((f"access-{host}", "forward"), port, FORWARD, far) for host in hosts}
    rates = {
        port: 10_000_000,
        far: 10_000_000,
        FORWARD: 100_000_000,
        **{(f"access-{host}", "forward"): 10_000_000 for host in hosts},
    }
    assert network.uncounted_bottleneck(load, SECOND, [core], ways, rates) == port
    busy = codec.replace(core, utilisation=0.95)
    assert network.uncounted_bottleneck(load, SECOND, [busy], ways, rates) is None
    assert network.uncounted_bottleneck(load, SECOND, [], ways, rates) is None, "nothing was watched"
    assert network.uncounted_bottleneck(load, SECOND, [core], ways, {}) is None, "no rate, no bottleneck"


def lossy(name: str, queue: float, lost: float, direction: str = "forward") -> LinkUse:
    """A link that loses these shares; 0.5 of its rate is used."""
    total = lost + (1 - lost) * queue
    return LinkUse(name, direction, 8_000_000, 0.5, 0.0, queue, lost, total, 1000, 0, 0)


def test_losses_are_those_of_all_links_on_the_way() -> None:
    # The bottleneck's queue drops 10 %; a link that is not the bottleneck loses 20 % on purpose.
    uses = [lossy("core", 0.1, 0.0), lossy("access", 0.0, 0.2), lossy("elsewhere", 0.5, 0.5)]
    load = frame("flows", [flow(0, source="a", sink="b", received_bytes=1)])
    ways: network.Ways = {("a", "b"): {FORWARD, ("access", "forward")}}
    assert network.losses(load, uses, ways) == pytest.approx(LossShares(0.1, 0.2, 1 - 0.9 * 0.8))


def test_flows_count_by_what_they_received_and_answers_go_back() -> None:
    uses = [lossy("core", 0.0, 0.1), lossy("core", 0.0, 0.3, "backward")]
    flows = [
        flow(0, source="a", sink="b", received_bytes=3),
        flow(1, source="a", sink="b", kind="requests", received_bytes=1),
    ]
    ways: network.Ways = {("a", "b"): {FORWARD}, ("b", "a"): {("core", "backward")}}
    assert network.losses(frame("flows", flows), uses, ways) == pytest.approx(LossShares(0, 0.15, 0.15))


def test_losses_of_flows_whose_way_is_not_known_are_the_bottlenecks() -> None:
    load = frame("flows", [flow(0, source=None, sink=None, received_bytes=1)])
    uses = [lossy("core", 0.1, 0.0), codec.replace(lossy("other", 0.0, 0.2), utilisation=0.9)]
    assert network.losses(load, uses, {}) == LossShares(0.0, 0.2, 0.2)
    assert network.losses(load, [], {}) is None
