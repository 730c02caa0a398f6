"""Congestion windows, a round trip at a time: known laws of TCP, and the shares of flows at one bottleneck."""

from __future__ import annotations

import math

import pytest

from ewan.generator.scenario.windows import FIRST_WINDOW, Bottleneck, Cross, Stream, deliver

PPS = 8_000.0  # 100 Mbit/s of full packets
RTT_S = 0.02


def carried(stream: Stream, at: Bottleneck, *cross: Cross) -> float:
    """The packets that a stream delivers without other streams."""
    deliver([stream], at, cross)
    return stream.delivered


@pytest.mark.parametrize("loss", [1e-3, 1e-4])
def test_reno_under_random_loss_has_the_rate_of_mathis(loss: float) -> None:
    """Mathis, Semke, Mahdavi and Ott 1997: √(3/2) / (RTT √p) packets a second."""
    lasts_s = 60.0
    wanted = math.sqrt(1.5 / loss) / RTT_S * lasts_s
    found = carried(Stream(0, lasts_s, RTT_S, "reno"), Bottleneck(1e6, 1e5, loss))
    assert found == pytest.approx(wanted, rel=0.25)


def test_a_window_bounds_the_rate() -> None:
    found = carried(Stream(0, 10, RTT_S, "cubic", most_window=40), Bottleneck(PPS, 160))
    assert found == pytest.approx(40 / RTT_S * 10, rel=0.02)


def test_slow_start_doubles_each_round_trip() -> None:
    """Five round trips of a long path: 10 + 20 + 40 + 80 + 160 packets."""
    assert carried(Stream(0, 1.0, 0.2, "reno"), Bottleneck(1e6, 1e5)) == pytest.approx(31 * FIRST_WINDOW, rel=0.01)


@pytest.mark.parametrize("congestion", ["reno", "cubic", "bic", "highspeed", "scalable", "htcp", "bbr", "vegas"])
def test_a_buffer_of_one_bdp_keeps_a_link_busy(congestion: str) -> None:
    found = carried(Stream(0, 30, RTT_S, congestion), Bottleneck(PPS, PPS * RTT_S))
    assert 0.95 * 30 * PPS < found <= 30 * PPS


def test_flows_share_what_udp_leaves() -> None:
    streams = [Stream(0, 20, RTT_S, "reno") for _ in range(4)]
    deliver(streams, Bottleneck(PPS, PPS * RTT_S), [Cross(0, 20, PPS / 2)])
    assert sum(each.delivered for each in streams) == pytest.approx(20 * PPS / 2, rel=0.05)


def test_a_volume_ends_when_all_of_it_has_arrived() -> None:
    short, long = Stream(0, math.inf, RTT_S, "reno", packets=8000), Stream(0, 10, RTT_S, "reno")
    deliver([short, long], Bottleneck(PPS, PPS * RTT_S))
    assert short.delivered == 8000 and short.done_s == pytest.approx(2, rel=0.3)
    assert long.delivered == pytest.approx(10 * PPS - 8000, rel=0.05)


def test_bursts_of_others_keep_a_small_buffer_from_being_used() -> None:
    """Both at 1 Gbit/s over 180 ms, 63 packets of buffer: a burst that the flow meets costs it half of its window."""
    at = Bottleneck(81_274, 63)
    alone = carried(Stream(0, 30, 0.18, "reno", line_pps=at.pps), at)
    beside = carried(Stream(0, 30, 0.18, "reno", line_pps=at.pps), at, Cross(0, 30, 2_500, bursts_per_s=7))
    assert beside < 0.3 * alone


def test_what_is_not_followed_to_its_end_goes_on_as_before() -> None:
    """A hundred flows for an hour are not followed round by round; the link is full all the same."""
    streams = [Stream(number / 100, 3600, RTT_S, "cubic") for number in range(100)]
    deliver(streams, Bottleneck(PPS, PPS * RTT_S))
    assert sum(each.delivered for each in streams) == pytest.approx(3600 * PPS, rel=0.1)
