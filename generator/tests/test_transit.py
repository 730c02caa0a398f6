"""The longest time that a packet is on its way; tests/test_host_drops.py checks that a receiver of UDP listens so
long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewan.generator.scenario.transit import longest_drain_ns
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND


def test_a_queue_drains_at_its_rate_and_at_what_a_dip_leaves_of_it() -> None:
    assert longest_drain_ns([(0, 8_000)], 1000) == NS_PER_SECOND
    dip = [(0, 8_000_000), (NS_PER_SECOND, 8), (3 * NS_PER_SECOND, 16_000_000)]
    # 1 MB takes a second, and the last of it waits for the end of the dip, in which two bytes leave.
    assert longest_drain_ns(dip, 1_000_000) == pytest.approx(3 * NS_PER_SECOND, rel=1e-4)


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 40)), min_size=1, max_size=5),
    st.integers(1, 60),
)
def test_no_start_takes_longer(pieces: list[tuple[int, int]], kilobytes: int) -> None:
    """`pieces`: lengths in ms, rates in 8 kbyte/s, which is 8 byte a ms; the bytes leave ms by ms."""
    rates, at_ms = [], 0
    for length_ms, rate in pieces:
        rates.append((at_ms * NS_PER_MS, rate * 64_000))
        at_ms += length_ms
    each_ms = [rate for length, rate in pieces for _ in range(length)] + [pieces[-1][1]] * 8000
    longest = longest_drain_ns(rates, kilobytes * 1000)
    for start_ms in range(at_ms + 1):
        left, now_ms = kilobytes * 1000, start_ms
        while left >= 8 * each_ms[now_ms]:
            left -= 8 * each_ms[now_ms]
            now_ms += 1
        assert (now_ms - start_ms) * NS_PER_MS <= longest + NS_PER_MS
