"""No series of a run and no metric shows more than the link carries, however TCP recovers.

Eight flows over 50 Mbit/s in the virtual clock, and a whole RTT of half a second: when a loss is made good, what waited
behind it is delivered in order at once, several times what the link carried in that time.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ewan.analysis import payload
from ewan.analysis.flows import loaded
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import tables
from tests.test_workloads import PAYLOAD, WIRE, virtual

pytestmark = pytest.mark.virtual

RATE_BPS = 50_000_000
MOST_BPS = RATE_BPS * PAYLOAD / WIRE
FLOWS = 8


def rates(goodput: pl.DataFrame, column: str) -> list[float]:
    """bit/s of all flows together, in each bin."""
    bins = goodput.group_by("time_ns", maintain_order=True).agg(pl.col(column).sum(), pl.col("bin_ns").max())
    return [size * 8 * NS_PER_SECOND / bin_ns for size, bin_ns in bins.select(column, "bin_ns").iter_rows()]


def steady_goodput(flows: pl.DataFrame, goodput: pl.DataFrame) -> float | None:
    """Of these flows alone."""
    found = payload.together(flows, payload.bins(goodput), payload.came(flows, goodput))
    return None if found is None else payload.steady_goodput(found)


@pytest.mark.parametrize(("congestion", "buffer", "length_s"), [("cubic", "4BDP", 100), ("bbr", "0.25BDP", 20)])
def test_recoveries_are_not_more_than_the_link_carries(
    tmp_path: Path, congestion: str, buffer: str, length_s: int
) -> None:
    run = virtual(
        f"""
lab: {{topology: {{dumbbell: {{pairs: {FLOWS}}}}}, ip: 4, rtt: 560ms, wan: {{rate: 50Mbit/s, buffer: {buffer}}}}}
sample: 0
watch: 1s
steps: [{{name: flows, from: "left[1-8]", to: "right[1-8]", congestion: {congestion}, for: {length_s}s, bulk: }}]
""",
        tmp_path,
    )
    flows, goodput = tables.read(run, "flows"), tables.read(run, "goodput")
    assert flows.height == FLOWS and flows["retransmitted_segments"].sum() > 0
    packet_bps = PAYLOAD * 8 * NS_PER_SECOND / int(goodput.select(pl.col("bin_ns").max()).item())
    assert max(rates(goodput, "delivered_bytes")) > 2 * MOST_BPS, "in order it is more"
    assert max(rates(goodput, "arrived_bytes")) <= MOST_BPS + packet_bps
    sent = tables.read(run, "links").filter(pl.col("direction") == "forward")["sent_packets"].max()
    assert isinstance(sent, int) and 0.95 * sent * PAYLOAD < goodput["arrived_bytes"].sum() <= sent * PAYLOAD
    steady = steady_goodput(loaded(flows), goodput)
    in_order = steady_goodput(loaded(flows), goodput.with_columns(arrived_bytes="delivered_bytes"))
    assert steady is not None and in_order is not None
    assert 0.9 * MOST_BPS < steady < 1.0001 * MOST_BPS
    if congestion == "cubic":
        assert steady > 0.999 * MOST_BPS, "the queue is never empty"
        assert in_order > 1.02 * MOST_BPS, "in order it is more"
