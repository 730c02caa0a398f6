"""Our own congestion controls follow the equations of their papers, seen from outside: windows, queues, shares.

Virtual clock, hosts without dither: what is seen is the algorithm alone. The table in gHSTCP's source is checked
against RFC 3649's formula.
"""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from statistics import fmean

import polars as pl
import pytest

from ewan.labs.record import tables
from tests.conftest import ROOT
from tests.test_workloads import virtual

pytestmark = pytest.mark.virtual


def b(w: float) -> float:
    """RFC 3649, section 5: the share of a window that a loss takes."""
    return 0.5 - 0.4 * math.log(w / 38) / math.log(83_000 / 38) if w > 38 else 0.5


def a(w: float) -> float:
    """RFC 3649, section 5, with the constant of appendix B: packets that a round trip adds."""
    return max(float(w**0.8) * 2 * b(w) / (2 - b(w)) / 12.8, 1)


def test_the_table_is_rfc_3649s() -> None:
    source = (ROOT / "emulator/kernel/tcp/tcp_ghstcp.c").read_text()
    rows = [(int(w), int(share) / 4096) for w, share in re.findall(r"\{(\d+), (\d+)\}", source)]
    assert (len(rows), rows[0][0], rows[-1][0]) == (73, 38, 94717)
    for number, (w, share) in enumerate(rows, 1):
        assert a(w) == pytest.approx(number, abs=0.08)
        assert share == pytest.approx(b(w), abs=1 / 8192)


FRAME = 1538
"""Bytes on the wire of a full segment, whose payload is 1448."""
RECOVERED_S = 0.15
"""After a loss."""


def run(place: Path, rtt: str, wan: str, congestion: str, length: str, pairs: int = 1, before: str = "") -> Path:
    """Flows of one congestion control over a dumbbell; the run's directory."""
    return virtual(
        f"""
lab: {{topology: {{dumbbell: {{pairs: {pairs}}}}}, ip: 4, rtt: {rtt}, dither: 0, wan: {{{wan}}}}}
series: 0
watch: 10ms
sample: 10ms
steps:
  {before}
  - name: flow
    at: 100ms
    offset: 20ms
    from: "left[1-{pairs}]"
    to: "right[1-{pairs}]"
    for: {length}
    congestion: {congestion}
    bulk:
""",
        place,
    )


def windows(place: Path, flow: int = 0) -> pl.DataFrame:
    """A flow's samples: time in s, window and slow-start threshold in packets."""
    series = tables.read(place, "series").filter(pl.col("flow") == flow).sort("time_ns")
    return series.select(
        s=pl.col("time_ns") / 1e9, w="cwnd_segments", threshold="ssthresh_segments", again="retransmitted_segments"
    )


def between(samples: pl.DataFrame, begin_s: float, end_s: float) -> pl.DataFrame:
    return samples.filter(pl.col("s").is_between(begin_s, end_s))


def mean(samples: pl.DataFrame) -> float:
    """Of the windows."""
    return fmean(samples["w"].to_list())


def change(samples: pl.DataFrame) -> tuple[float, float, float]:
    """The first window, the last one, and the seconds between them."""
    (begin_s, first, *_), (end_s, last, *_) = samples.row(0), samples.row(-1)
    return first, last, end_s - begin_s


def queue(place: Path, begin_s: float, end_s: float) -> float:
    """Packets that wait at the bottleneck: the mean of its samples."""
    links = tables.read(place, "links").filter(pl.col("direction") == "forward")
    found = between(links.with_columns(s=pl.col("time_ns") / 1e9), begin_s, end_s)["queue_packets"]
    return fmean(found.to_list())


def losses(samples: pl.DataFrame, from_s: float) -> list[tuple[float, float, float]]:
    """When the flow lost after `from_s`, its window before, and what is left of it, as a share."""
    found: list[tuple[float, float, float]] = []
    for (_, w, old, sent), (now, _, threshold, again) in itertools.pairwise(samples.iter_rows()):
        first = threshold != old or not found or now > found[-1][0] + RECOVERED_S
        if again > sent and first and now > from_s:
            found.append((now, w, threshold / w))
    return found


ALPHA = 20
"""Of FAST: instead of 100, so that the way to the equilibrium has several steps."""
SET_ALPHA = f'- {{name: alpha, on: left1, run: "echo {ALPHA} >/sys/module/tcp_fast/parameters/alpha"}}'


def fast(place: Path, pairs: int, more: str = "") -> Path:
    return run(place, "40ms", f"rate: 100Mbit/s, buffer: 1000pkt{more}", "fast", "5500ms", pairs, SET_ALPHA)


def test_fast_keeps_alpha_packets_in_the_queue_and_comes_back_from_a_loss_by_its_equation(tmp_path: Path) -> None:
    place = fast(tmp_path, 1, ", loss: {every: 22000}")
    samples = windows(place)
    pps = 100e6 / 8 / FRAME
    rtt_s = 0.040 + 1 / pps
    ends_at = pps * rtt_s + ALPHA

    ((lost_s, before, left),) = losses(samples, 1.5)
    assert before == pytest.approx(ends_at, abs=1.5), "w (1 - baseRTT / RTT) = alpha"
    assert queue(place, lost_s - 1, lost_s - 0.1) == pytest.approx(ALPHA, abs=1)
    assert left == pytest.approx(0.5, abs=1 / before)

    # Without a queue, an update adds gamma alpha = 10 packets, and there is one in two round trips.
    rising = samples.filter((pl.col("s") > lost_s + 0.1) & (pl.col("w") < 0.8 * ends_at))
    low, high, passed_s = change(rising)
    assert high - low > 80
    assert (high - low) / passed_s == pytest.approx(0.5 * ALPHA / (2 * rtt_s), rel=0.06)

    assert mean(between(samples, 5, 5.6)) == pytest.approx(ends_at, abs=1.5)
    assert queue(place, 5, 5.6) == pytest.approx(ALPHA, abs=1)


def test_two_fast_flows_keep_twice_alpha_and_share_equally(tmp_path: Path) -> None:
    place = fast(tmp_path, 2)
    assert queue(place, 3, 5.5) == pytest.approx(2 * ALPHA, abs=1)
    first, second = (mean(between(windows(place, flow), 3, 5.5)) for flow in (0, 1))
    assert first == pytest.approx(second, rel=0.02)


LOST_EVERY = 3_000
OPEN_RTT_S = 0.020
"""HSTCP and gHSTCP where nothing queues, and the chosen packets are lost."""


@pytest.fixture(scope="module")
def open_path(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    wan = f"rate: 1Gbit/s, buffer: 2000pkt, loss: {{every: {LOST_EVERY}}}"
    names = ("hstcp", "ghstcp", "ghstcp0")
    return {name: windows(run(tmp_path_factory.mktemp(name), "20ms", wan, name, "6s")) for name in names}


@pytest.mark.parametrize("name", ["hstcp", "ghstcp"])
def test_without_a_queue_the_window_follows_rfc_3649(open_path: dict[str, pl.DataFrame], name: str) -> None:
    samples = open_path[name]
    found = losses(samples, 0.5)
    assert len(found) >= 7
    assert found[0][1] > 2 * found[-1][1], "a(w) and b(w) are seen at large and small windows"
    for _, before, left in found:
        # It may have grown for half a round trip since it was looked at.
        assert left == pytest.approx(1 - b(before), abs=0.005 + a(before) / before)
    for (begin_s, *_), (end_s, before, _) in itertools.pairwise(found):
        # After a round trip of recovery, and some.
        cycle = between(samples, begin_s + 2 * OPEN_RTT_S, end_s - 0.005)
        w, _, passed_s = change(cycle)
        for _ in range(round(passed_s / 0.001)):
            w += a(w) * 0.001 / OPEN_RTT_S
        assert w == pytest.approx(before, rel=0.03)
    last = between(samples, found[-4][0], found[-1][0])
    assert mean(last) == pytest.approx(0.12 * LOST_EVERY**0.835, rel=0.1), "RFC 3649, section 5"


def test_the_original_switches_modes_without_need(open_path: dict[str, pl.DataFrame]) -> None:
    """The problem for which the slides refine it: oscillations of the RTT keep it in Reno mode on an empty path."""
    means = {name: mean(between(samples, 1, 6)) for name, samples in open_path.items()}
    assert means["ghstcp0"] < 0.85 * means["ghstcp"]


def test_refined_ghstcp_is_hstcp_below_the_bdp_and_reno_above_it(tmp_path: Path) -> None:
    samples = windows(run(tmp_path, "23ms", "rate: 50Mbit/s, buffer: 47pkt", "ghstcp", "6s"))
    pps, rtt_s = 50e6 / 8 / FRAME, 0.023
    bdp = pps * rtt_s + 1
    found = losses(samples, 2)
    assert len(found) >= 2
    for (begin_s, _, left), (end_s, before, _) in itertools.pairwise(found):
        assert before == pytest.approx(bdp + 47, rel=0.02)
        assert left == pytest.approx(0.5, abs=0.01), "HSTCP mode would leave 0.57"
        cycle = between(samples, begin_s + 0.1, end_s - 0.005)
        low, high, passed_s = change(cycle.filter(pl.col("w") < bdp - 2))
        assert high - low == pytest.approx(a((low + high) / 2) * passed_s / rtt_s, rel=0.15)
        # One packet a round trip, which takes w / pps: w² grows by 2 pps a second.
        low, high, passed_s = change(cycle.filter(pl.col("w") > bdp + 10))
        assert (high**2 - low**2) / passed_s == pytest.approx(2 * pps, rel=0.08)


@pytest.mark.parametrize(("counted", "each_round"), [(0, 1), (1, 0.5)])
def test_a_window_grows_by_packets_or_as_until_2013_by_acks(tmp_path: Path, counted: int, each_round: float) -> None:
    """Reno, to a receiver that acknowledges every second packet."""
    order = f'- {{name: acks, on: left1, run: "echo {counted} >/proc/sys/net/ipv4/tcp_count_acks"}}'
    wan = f"rate: 1Gbit/s, buffer: 2000pkt, loss: {{every: {LOST_EVERY}}}"
    samples = windows(run(tmp_path, "20ms", wan, "reno", "4s", before=order))
    found = losses(samples, 0.5)
    assert len(found) >= 3
    for (begin_s, *_), (end_s, *_) in itertools.pairwise(found):
        low, high, passed_s = change(between(samples, begin_s + 2 * OPEN_RTT_S, end_s - 0.005))
        assert (high - low) / passed_s == pytest.approx(each_round / OPEN_RTT_S, rel=0.1)
