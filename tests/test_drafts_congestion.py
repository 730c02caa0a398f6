"""BBRv3 and TCP Prague follow the equations of their drafts, seen from outside: windows, rates, queues, marks, shares.

Virtual clock, hosts without dither. Names of equations are those of draft-ietf-ccwg-bbr and
draft-briscoe-iccrg-prague-congestion-control.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from statistics import fmean

import polars as pl
import pytest

from ewan.labs.record import tables
from tests.test_own_congestion import FRAME, between, losses, mean, queue, run, windows
from tests.test_workloads import virtual

pytestmark = pytest.mark.virtual

PAYLOAD = 1448
RATE = 20e6
RTT_S = 0.040
PPS = RATE / 8 / FRAME
BDP = PPS * 0.04008
"""Packets. The shortest RTT is that of the SYN, a small packet."""
BANDWIDTH = PPS * PAYLOAD * 8
MARGIN = 0.99
CLEAN = "rate: 20Mbit/s, buffer: 4BDP"


def rates(place: Path, flow: int = 0) -> pl.DataFrame:
    """A flow's samples: time in s, window in packets, pacing and delivery rate in bit/s, packets delivered so far."""
    series = tables.read(place, "series").filter(pl.col("flow") == flow).sort("time_ns")
    return series.select(
        s=pl.col("time_ns") / 1e9,
        w="cwnd_segments",
        pacing="pacing_rate_bps",
        delivery="delivery_rate_bps",
        delivered="delivered_segments",
        again="retransmitted_segments",
    )


def utilisation(samples: pl.DataFrame, begin_s: float, end_s: float, pps: float = PPS) -> float:
    """Of the bottleneck, by what was delivered."""
    found = between(samples, begin_s, end_s)
    (first_s, first), (last_s, last) = (found.select("s", "delivered").row(at) for at in (0, -1))
    return float((last - first) / (last_s - first_s) / pps)


def spells(samples: pl.DataFrame, chosen: pl.Expr) -> list[tuple[float, float]]:
    """From when to when it holds, in s."""
    parts = samples.with_columns(chosen=chosen).with_columns(part=pl.col("chosen").rle_id()).filter("chosen")
    found = parts.group_by("part", maintain_order=True).agg(begin=pl.col("s").first(), end=pl.col("s").last())
    return [(begin, end) for _, begin, end in found.iter_rows()]


def paced_at(gain: float) -> pl.Expr:
    """Samples paced at this gain times the bandwidth."""
    return (pl.col("pacing") / (gain * MARGIN * BANDWIDTH)).is_between(0.98, 1.02)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BBRv3 alone, and room in the queue for all that it sends."""
    return run(tmp_path_factory.mktemp("clean"), "40ms", CLEAN, "bbr3", "12s")


def test_bbr3_startup_ends_three_rounds_after_the_bandwidth_stops_growing_and_drains(clean: Path) -> None:
    samples = rates(clean)
    full_s = samples.filter(pl.col("delivery") > 0.98 * BANDWIDTH)["s"][0]
    (begin_s, end_s), *later = spells(samples, paced_at(2.77))
    assert not later
    assert begin_s <= full_s
    # Round trips of Startup end in 2 BDP: three of 80 ms, of which the first may have begun.
    assert 2 * 2 * RTT_S < end_s - full_s < 3.5 * 2 * RTT_S
    assert max(between(samples, 0, end_s)["w"]) == pytest.approx(2 * BDP, abs=8)
    (drain_s, drained_s), *later = spells(samples, paced_at(0.5))
    assert not later
    assert drain_s - end_s < 0.03
    assert drained_s - drain_s == pytest.approx(2 * RTT_S, abs=0.04), "a BDP leaves the queue at half the rate"
    assert queue(clean, drain_s - 0.05, drain_s) == pytest.approx(BDP, rel=0.1)
    assert queue(clean, drained_s + 0.1, drained_s + 0.2) < 2


def test_bbr3_knows_the_bandwidth_and_cruises_without_a_queue(clean: Path) -> None:
    samples = rates(clean)
    cruising = between(samples, 1, 2.5)
    assert fmean(cruising["pacing"]) == pytest.approx(MARGIN * BANDWIDTH, rel=0.005)
    assert mean(cruising) == pytest.approx(2 * BDP, abs=6)
    assert queue(clean, 1, 2.5) < 1
    assert utilisation(samples, 1, 12) > 0.96
    assert samples["again"].max() == 0


def test_bbr3_probes_for_bandwidth_in_its_time(clean: Path) -> None:
    samples = rates(clean)
    (_, drained_s), *_ = spells(samples, paced_at(0.5))
    ups, downs = spells(samples, paced_at(1.25)), spells(samples, paced_at(0.9))
    probes = spells(samples, pl.col("w") < 0.6 * BDP)
    ups = [up for up in ups if up[0] > 1]
    assert len(ups) == len([down for down in downs if down[0] > 1]) >= 2
    for begin_s, end_s in ups:
        # The cycle began when Drain, DOWN's beginning or ProbeRTT ended: 2 to 3 s, or 62 to 63 rounds, and a REFILL.
        since_s = max(s for s in (drained_s, *(b for b, _ in downs), *(e for _, e in probes)) if s < begin_s)
        assert min(2, 61 * RTT_S) < begin_s - since_s < 3 + 3 * RTT_S
        assert 2 * RTT_S < end_s - begin_s < 6 * 1.7 * RTT_S, "the pipe is full after three rounds without growth"
        assert max(between(samples, begin_s, end_s)["w"]) > 2.2 * BDP, "cwnd_gain 2.25"
        down_s = next(e for b, e in downs if b > begin_s) - end_s
        assert 0.1 < down_s < 0.6, "what UP put into the queue leaves at a tenth of the rate"


def test_bbr3_probes_the_rtt_each_five_seconds_with_half_the_bdp(clean: Path) -> None:
    samples = rates(clean)
    probes = spells(samples, pl.col("w") < 0.6 * BDP)
    probes = [(begin, end) for begin, end in probes if begin > 1]
    assert len(probes) == 2
    for begin_s, end_s in probes:
        # Half of the BDP drains first; then 200 ms.
        assert 0.2 < end_s - begin_s < 0.2 + 2 * RTT_S
        assert mean(between(samples, begin_s, end_s)) == pytest.approx(BDP / 2, abs=1.5)
    (_, first_end_s), (second_s, _) = probes
    assert second_s - first_end_s == pytest.approx(5, abs=0.06)


SHALLOW = 14
"""Packets."""


def test_bbr3_remembers_how_much_in_flight_caused_loss(tmp_path: Path) -> None:
    samples = rates(run(tmp_path, "40ms", f"rate: 20Mbit/s, buffer: {SHALLOW}pkt", "bbr3", "5s"))
    holds = BDP + SHALLOW
    # Startup's exit by loss and each probe leave inflight_longterm at what the path holds; CRUISE leaves 15 % of it.
    assert max(between(samples, 0.3, 0.5)["w"]) > 1.2 * holds
    cruising = between(samples, 1, 2.5)
    assert mean(cruising) == pytest.approx(0.85 * holds, rel=0.03)
    assert utilisation(samples, 1, 5) > 0.97
    again = between(samples, 1, 5)["again"]
    assert 0 < again[-1] - again[0] < 0.1 * BDP, "the probe goes down when 2 % are lost"
    ups = [up for up in spells(samples, paced_at(1.25)) if up[0] > 1]
    assert len(ups) == 1
    assert ups[0][1] - ups[0][0] < 4 * RTT_S


def test_bbr3_answers_a_loss_while_it_cruises_by_beta_until_the_next_probe(tmp_path: Path) -> None:
    place = run(tmp_path, "40ms", f"{CLEAN}, loss: {{every: 2200}}", "bbr3", "4s")
    found = losses(windows(place), 1)
    samples = rates(place)
    (lost_s, before, *_), *_ = found
    after = between(samples, lost_s + 2 * RTT_S, lost_s + 0.3)
    assert before == pytest.approx(2 * BDP, abs=6)
    # inflight_shortterm = max(inflight_latest, 0.7 cwnd); bw_shortterm = max(bw_latest, 0.7 bw), of which the first.
    assert mean(after) == pytest.approx(0.7 * before, abs=1.5)
    assert 0.95 * MARGIN**2 < fmean(after["pacing"]) / BANDWIDTH < MARGIN
    (up_s, _), *_ = [up for up in spells(samples, paced_at(1.25)) if up[0] > lost_s]
    assert max(between(samples, up_s - RTT_S, up_s + RTT_S)["w"]) > before - 4


def test_bbr3_bears_a_percent_of_loss_that_reno_does_not(tmp_path: Path) -> None:
    got = {
        name: utilisation(rates(run(tmp_path / name, "40ms", f"{CLEAN}, loss: 1%", name, "8s")), 1, 8)
        for name in ("bbr3", "reno")
    }
    assert got["bbr3"] > 0.8
    # 1.22 / sqrt(p) packets (Mathis et al. 1997).
    assert got["reno"] < 1.3 * 1.22 / math.sqrt(0.01) / BDP


def test_bbr3_and_bbr_share_a_bottleneck(tmp_path: Path) -> None:
    place = virtual(
        f"""
lab: {{topology: {{dumbbell: {{pairs: 2}}}}, ip: 4, rtt: 40ms, wan: {{{CLEAN}}}}}
series: 0
watch: 0
sample: 10ms
steps:
  - {{name: old, at: 100ms, from: left1, to: right1, for: 15s, congestion: bbr, bulk: }}
  - {{name: new, at: 120ms, from: left2, to: right2, for: 15s, congestion: bbr3, bulk: }}
""",
        tmp_path,
    )
    old, new = (utilisation(rates(place, flow), 3, 15) for flow in (0, 1))
    assert old + new > 0.95
    assert min(old, new) > 0.25


def test_bbr3_goes_on_after_an_outage(tmp_path: Path) -> None:
    """All that was in flight is lost, which does not say how much may be. Timeouts: 240 ms, then twice as much each."""
    text = f"""
lab: {{topology: {{dumbbell: {{pairs: 1}}}}, ip: 4, rtt: 40ms, dither: 0, wan: {{{CLEAN}}}}}
series: 0
watch: 0
sample: 10ms
steps: [{{name: flow, at: 100ms, from: left1, to: right1, for: 6s, congestion: bbr3, bulk: }}]
events: [{{at: 2s, link: core, loss: 100%}}, {{at: 2500ms, link: core, loss: 0%}}]
"""
    samples = rates(virtual(text, tmp_path))
    assert between(samples, 2.2, 2.8)["w"].min() == 1
    (began_s, *_), *_ = between(samples, 2.6, 4).filter(pl.col("w") > 1).iter_rows()
    assert began_s < 2 + 0.25 * (1 + 2 + 4)
    assert utilisation(samples, began_s + 5 * RTT_S, 6) > 0.9


def test_bbr3_takes_marks_for_losses(tmp_path: Path) -> None:
    text = f"""
lab:
  topology: {{dumbbell: {{pairs: 1}}}}
  ip: 4
  rtt: 40ms
  dither: 0
  wan: {{rate: 20Mbit/s, buffer: 1000pkt, queue: {{step: {{at: {SHALLOW}pkt}}}}}}
series: 0
watch: 10ms
sample: 10ms
steps: [{{name: flow, at: 100ms, from: left1, to: right1, for: 5s, congestion: bbr3, ecn: true, bulk: }}]
"""
    place = virtual(text, tmp_path)
    samples = rates(place)
    assert samples["again"].max() == 0
    # Startup's queue was marked: that leaves what is in flight without one. A probe finds what the path holds.
    assert mean(between(samples, 1, 2.5)) == pytest.approx(BDP, rel=0.1)
    assert mean(between(samples, 3.5, 5)) == pytest.approx(0.85 * (BDP + SHALLOW), rel=0.08)
    assert utilisation(samples, 1, 5) > 0.9
    assert queue(place, 1, 5) < 3


P = 0.05
"""The share of Prague's packets that is marked."""
REF_S = 0.025
LOOK = "for i in $(seq 40); do ss -tin; sleep 0.3; done"


def law(p: float) -> float:
    """Marks in a round trip, c. It adds 1 - p packets. A reduction by p/2 comes with the first mark after a rest of a
    round trip, so each 1 + 1/c of them: (1 - p) (1 + 1/c) = c/2."""
    return (1 - p) + math.sqrt((1 - p) ** 2 + 2 * (1 - p))


def marked(place: Path, rtt: str, zero: str = "", look: str = "true") -> Path:
    """A flow that is marked at random, with a parameter of Prague at 0; its commands' output is in `commands`."""
    before = f"echo 0 >/sys/module/tcp_prague/parameters/{zero};" if zero else ""
    netem = f"{before} tc qdisc replace dev eth0 root netem loss {P:%} ecn limit 100000"
    steps = f'- {{name: marks, on: left1, run: "{netem}"}}\n  - {{name: look, at: 7s, on: left1, run: "{look}"}}'
    return run(place, rtt, "rate: 1Gbit/s, buffer: 1000pkt", "prague", "19s", before=steps)


def averages(place: Path) -> tuple[float, float]:
    """The window in packets, the rate in packets a second."""
    samples = rates(place)
    return mean(between(samples, 7, 19)), utilisation(samples, 7, 19, 1)


def test_pragues_alpha_is_the_share_of_marks_and_its_window_is_their_inverse(tmp_path: Path) -> None:
    place = marked(tmp_path, "26ms", look=LOOK)
    said = "".join(path.read_text() for path in (place / "commands").glob("*.out"))
    alpha = [int(word) / 1024 for word in re.findall(r"alpha:(\d+)", said)]
    assert len(alpha) == 40
    assert fmean(alpha) == pytest.approx(P, rel=0.1)  # of some 1,000 random marks: 3 % is one standard error
    window, rate = averages(place)
    assert window == pytest.approx(law(P) / P, rel=0.06)
    assert rate == pytest.approx(law(P) / P / 0.0262, rel=0.06)


def test_pragues_rate_does_not_depend_on_rtts_below_25_ms(tmp_path: Path) -> None:
    for rtt_ms in (5, 20):
        window, rate = averages(marked(tmp_path / str(rtt_ms), f"{rtt_ms}ms", "rounds"))
        assert rate == pytest.approx(law(P) / P / REF_S, rel=0.1)
        assert window == pytest.approx(law(P) / P * rtt_ms / 1000 / REF_S, rel=0.1)
    # Without a reference the window is the same, so the rate is not.
    window, rate = averages(marked(tmp_path / "none", "5ms", "rtt_ref"))
    assert window == pytest.approx(law(P) / P, rel=0.06)
    assert rate > 4.5 * law(P) / P / REF_S


STEP = 10


def test_pragues_packets_say_ect_1_and_acks_tell_of_each_mark(tmp_path: Path) -> None:
    text = f"""
lab: {{topology: {{dumbbell: {{pairs: 1}}}}, ip: 4, rtt: 10ms, dither: 0,
      wan: {{rate: 20Mbit/s, buffer: 1000pkt, queue: {{step: {{at: {STEP}pkt}}}}}}}}
series: 0
watch: 10ms
capture: [{{node: right1}}]
steps: [{{name: flow, at: 100ms, from: left1, to: right1, for: 3s, congestion: prague, bulk: }}]
"""
    place = virtual(text, tmp_path)
    packets = tables.read(place, "packets").filter(pl.col("protocol") == "tcp").sort("time_ns")
    data = packets.filter((pl.col("direction") == "in") & (pl.col("payload_bytes") > 1000))
    assert set(packets.filter(pl.col("direction") == "out")["ecn"]) == {1}, "SYN and ACKs carry ECT(1), too"
    assert set(data["ecn"]) == {1, 3}
    # What ACKs with ECE acknowledge is what came marked.
    acks = packets.filter((pl.col("direction") == "out") & (pl.col("tcp_flags") & 2 == 0))
    acks = acks.with_columns(new=pl.col("tcp_ack").diff().fill_null(0))
    told = acks.filter(pl.col("tcp_flags") & 64 > 0)["new"].sum()
    assert told == data.filter(pl.col("ecn") == 3)["payload_bytes"].sum() > 0
    assert queue(place, 1, 3) < STEP


def test_prague_halves_its_window_at_a_loss(tmp_path: Path) -> None:
    samples = windows(run(tmp_path, "40ms", "rate: 1Gbit/s, buffer: 2000pkt, loss: {every: 4000}", "prague", "12s"))
    found = losses(samples, 1)
    assert len(found) >= 4
    for lost_s, before, left in found:
        assert left == pytest.approx(0.5, abs=1.5 / before)
        (_, least, *_) = between(samples, lost_s, lost_s + 0.2).sort("w").row(0)
        assert least == pytest.approx(before / 2, abs=2), "and no further in this round trip"


@pytest.mark.parametrize(("peer", "ecn"), [("cubic", 0), ("dctcp", 1), ("prague", 1)])
def test_prague_sends_ect_1_where_the_peer_tells_of_each_mark_else_no_ect(tmp_path: Path, peer: str, ecn: int) -> None:
    """A peer of another congestion control refuses ECN to a SYN that carries ECT."""
    serve = (
        f"import socket as s; l = s.create_server(('', 7)); l.setsockopt(6, 13, b'{peer}'); c = l.accept()[0]"
        "\\nwhile c.recv(1 << 16): pass"
    )
    send = (
        "import socket as s, sys; c = s.socket(); c.setsockopt(6, 13, b'prague'); c.connect((sys.argv[1], 7));"
        " c.sendall(bytes(1 << 19))"
    )
    text = f"""
lab: {{topology: {{dumbbell: {{pairs: 1}}}}, ip: 4, rtt: 10ms, dither: 0, wan: {{rate: 20Mbit/s, buffer: 1000pkt}}}}
capture: [{{node: left1}}]
steps:
  - {{name: serve, on: right1, service: true, run: "python3 -c \\"exec('''{serve}''')\\""}}
  - {{name: send, at: 500ms, on: left1, run: "python3 -c \\"{send}\\" right1"}}
"""
    place = virtual(text, tmp_path)
    sent = tables.read(place, "packets").filter((pl.col("protocol") == "tcp") & (pl.col("direction") == "out"))
    assert set(sent.filter(pl.col("tcp_flags") & 2 > 0)["ecn"]) == {1}
    assert set(sent.filter(pl.col("tcp_flags") & 2 == 0)["ecn"]) == {ecn}
    assert sent["payload_bytes"].sum() > 1 << 18


def test_prague_beside_cubic_in_the_queues_of_l4s(tmp_path: Path) -> None:
    """RFC 9332: rates alike, Prague's delay a millisecond or so, and no loss of its packets."""
    text = """
lab: {topology: {dumbbell: {pairs: 2}}, ip: 4, rtt: 20ms, wan: {rate: 40Mbit/s, buffer: 250ms, queue: {dualpi2: {}}}}
series: 0
watch: 10ms
sample: 10ms
steps:
  - {name: l4s, at: 100ms, from: left1, to: right1, for: 15s, congestion: prague, bulk: }
  - {name: classic, at: 100ms, from: left2, to: right2, for: 15s, congestion: cubic, bulk: }
"""
    place = virtual(text, tmp_path)
    pps = 40e6 / 8 / FRAME
    l4s, classic = (utilisation(rates(place, flow), 3, 15, pps) for flow in (0, 1))
    series = tables.read(place, "series").filter(pl.col("time_ns") > 3e9)
    delay = {flow: fmean(series.filter(pl.col("flow") == flow)["srtt_ns"]) / 1e6 - 20 for flow in (0, 1)}
    assert l4s + classic > 0.9
    assert 0.4 < l4s / classic < 2.5
    assert delay[0] < 3 < delay[1]
    assert rates(place, 0)["again"].max() == 0
