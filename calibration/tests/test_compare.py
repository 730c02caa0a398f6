"""Verdicts: honest links pass, wrong ones do not, and what was not measured is not judged."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import pytest

from ewan.calibration import spinner
from ewan.calibration.compare import compare
from ewan.calibration.spinner import LinkFacts
from ewan.calibration.tests.answers import stats_of
from ewan.calibration.tests.plans import DROP_TAIL, answer, asked, delays, plan, prepared, told
from ewan.labs.link import BernoulliLoss, Codel, EveryNthLoss, GaussMarkovDelay, GilbertElliottLoss, Queue, UniformDelay
from ewan.labs.record import Row

GOOD = LinkFacts(release_p50_ns=300, release_p99_ns=5_000, release_max_ns=40_000)


def judged(changes: dict[str, Any], facts: LinkFacts = GOOD, **measured: Any) -> dict[str, Row]:
    """The rows of the forward direction and of the pair, by quantity."""
    expected, probing = prepared(plan(**changes))
    answers = answer(probing, **measured)
    rows = compare(expected, probing, told(answers), {"core forward": facts, "core backward": facts})
    return {row.quantity: row for row in rows if row.direction != "backward"}


def test_an_honest_link_passes() -> None:
    rows = judged({})
    assert {name: row.verdict for name, row in rows.items()} == {
        "delay p50": "ok",
        "delay p99": "ok",
        "delay max": "shown",
        "release error p50": "ok",
        "release error p99": "ok",
        "release error max": "shown",
        "rate": "ok",
        "loss": "ok",
        "queue limit": "ok",
        "base RTT": "ok",
        "path MTU": "ok",
        "TCP goodput": "ok",
    }
    assert rows["delay p50"].error == 5_000


def test_how_late_a_link_that_sleeps_may_wake_is_in_the_uncertainty_of_its_delays() -> None:
    awake, asleep = judged({}), judged({}, dataclasses.replace(GOOD, wake_up_ns=60_000))
    assert {name: row.verdict for name, row in asleep.items()} == {name: row.verdict for name, row in awake.items()}
    one = 60_000 / math.sqrt(3)
    for quantity, waking in (("delay p50", one), ("delay p99", one), ("base RTT", math.hypot(one, one))):
        before, now = awake[quantity].uncertainty, asleep[quantity].uncertainty
        assert before is not None and now is not None and "waking" not in before.components
        assert now.components["waking"] == pytest.approx(waking)
        assert now.expanded == pytest.approx(math.hypot(before.expanded, 2 * waking))


def test_a_spinner_tells_how_late_it_wakes_where_it_has_slept() -> None:
    told: dict[str, Any] = {
        "ok": True,
        "cpu": 1,
        "gaps": {"classes": (), "lost_ns": 0},
        "shared": False,
        "wake_up_ns": 60_000,
    }
    way = {"lateness_ns": {"classes": ()}, "drops": {"store_full": 0}}
    port = {"kind": "veth", "ring_overruns": 0, "refused": 0}
    drops = {"receive": 0, "ring_full": 0, "transmit": 0}
    link = {"forward": way, "backward": way, "ports": [{**port, "veth_drops": drops}] * 2}
    for naps, wake_up_ns in ((0, 0), (1, 60_000)):
        now = {**told, "links": {"core": link}, "naps": {"count": naps}}
        assert spinner.facts([stats_of(now)], [stats_of(now)])["core forward"].wake_up_ns == wake_up_ns


@pytest.mark.parametrize("rate, verdict", [(0.98e9, "outside"), (1.02e9, "outside"), (0.9995e9, "ok")])
def test_a_rate_two_percent_off_is_outside(rate: float, verdict: str) -> None:
    row = judged({}, rate_bps=rate)["rate"]
    assert row.verdict == verdict and ("is other traffic on it" in row.note) == (verdict == "outside")


@pytest.mark.parametrize("off_ns, verdict", [(1_000_000, "outside"), (-1_000_000, "outside"), (60_000, "ok")])
def test_a_delay_one_millisecond_off_is_outside(off_ns: int, verdict: str) -> None:
    assert judged({}, delay=delays(50_001_104 + off_ns, 0))["delay p50"].verdict == verdict


@pytest.mark.parametrize(
    "clocks_ns, verdict, u_ns", [(0, "ok", 23_240), (20_000, "ok", 32_820), (200_000, "not decidable", 232_100)]
)
def test_a_delay_read_off_two_clocks_is_as_uncertain_as_they_are(clocks_ns: int, verdict: str, u_ns: float) -> None:
    expected, probing = prepared(plan())
    answers = answer(probing)
    for result in answers["results"]:
        for stream in result.get("streams", ()) if result["kind"] == "delay" else ():
            stream |= {"clocks_ns": clocks_ns} if clocks_ns else {}
    rows = compare(expected, probing, told(answers), {"core forward": GOOD, "core backward": GOOD})
    (row,) = (row for row in rows if row.direction == "forward" and row.quantity == "delay p50")
    assert row.verdict == verdict and row.uncertainty is not None
    assert row.uncertainty.expanded == pytest.approx(u_ns, rel=0.01)
    assert ("clocks of two machines" in row.uncertainty.components) == bool(clocks_ns)
    assert ("its uncertainty comes from: clocks of two machines" in row.note) == (verdict != "ok")
    (queue,) = (row for row in rows if row.direction == "forward" and row.quantity == "queue limit")
    assert queue.uncertainty is not None
    assert queue.uncertainty.components.get("clocks of two machines", 0) == pytest.approx(clocks_ns / 8 / 3**0.5)


@pytest.mark.parametrize("share, verdict", [(0.9, "outside"), (1.1, "outside"), (0.99, "ok")])
def test_a_queue_ten_percent_off_is_outside(share: float, verdict: str) -> None:
    assert judged({}, queue_bytes=round(12_500_000 * share))["queue limit"].verdict == verdict


def test_a_late_first_packet_makes_no_queue_look_short() -> None:
    expected, probing = prepared(plan())
    found = answer(probing)
    for result in found["results"]:
        for each in result.get("streams", ()) if result["kind"] == "saturate" else ():
            # A spinner without its CPU for 3 ms at the beginning: 375 kB at this rate.
            each["delay"]["min_ns"] += 3_000_000
    rows = compare(expected, probing, told(found), {})
    assert {row.verdict for row in rows if row.quantity == "queue limit"} == {"ok"}


@pytest.mark.parametrize(("middle", "most", "verdict"), [(0.93, 0.995, "ok"), (0.93, 0.93, "outside")])
def test_a_sender_that_pauses_makes_no_queue_look_short(middle: float, most: float, verdict: str) -> None:
    expected, probing = prepared(plan())
    found = answer(probing)
    full_ns = 100_000_000
    for result in found["results"]:
        for each in result.get("streams", ()) if result["kind"] == "saturate" else ():
            base = each["delay"]["min_ns"]
            waits = {"p50_ns": base + middle * full_ns, "p90_ns": base + most * full_ns}
            each["steady"]["delay"] = each["steady"]["delay"] | waits
    rows = compare(expected, probing, told(found), {})
    assert {row.verdict for row in rows if row.quantity == "queue limit"} == {verdict}


def test_a_sender_without_cpu_time_says_nothing_of_the_link() -> None:
    """It was to offer 1.25 times the rate and came to 1.05 times: what is missing then is what it did not send."""
    expected, probing = prepared(plan())

    def verdicts(slower: float) -> set[str]:
        found = answer(probing, rate_bps=0.995e9, queue_bytes=11_000_000)
        for result in found["results"]:
            for each in result.get("streams", ()) if result["kind"] == "saturate" else ():
                each["sending_ns"] = round(each["sending_ns"] * slower)
        rows = compare(expected, probing, told(found), {})
        return {row.verdict for row in rows if row.quantity in ("rate", "queue limit")}

    assert verdicts(1.25 / 1.05) == {"not measured"}
    assert verdicts(1.0) == {"outside"}


def test_one_loss_on_a_lossless_link_is_outside_and_says_why() -> None:
    late = LinkFacts(300, 5_000, 40_000, overrun_packets=1, gaps=3, gaps_ns=9_000_000, longest_gap_ns=7_000_000)
    row = judged({}, late, lost_packets=1)["loss"]
    assert row.verdict == "outside"
    assert "1 packets found no room" in row.note and "the link's thread was interrupted 3 times" in row.note


@pytest.mark.parametrize("lost, verdict", [(500, "ok"), (540, "ok"), (300, "outside"), (700, "outside")])
def test_losses_of_two_percent(lost: int, verdict: str) -> None:
    # 25 000 packets at 2 %: 500 ± 22 (one deviation); 99 % for two comparisons reach ± 64.
    rows = judged({"loss": BernoulliLoss(20_000_000)}, lost_packets=lost)
    assert (rows["loss"].verdict, rows["loss"].configured) == (verdict, 20_000_000)
    assert rows["rate"].verdict == "ok"


def test_bursts_widen_the_interval() -> None:
    model = {"to_bad_ppb": 2_000_000, "to_good_ppb": 98_000_000, "loss_good_ppb": 0, "loss_bad_ppb": 1_000_000_000}
    row = judged({"loss": GilbertElliottLoss(**model)}, lost_packets=700)["loss"]
    # Bursts make the 25,000 packets worth few: 700 may be chance, and it takes more of them to tell.
    assert row.verdict == "not decidable" and row.needs is not None and row.needs > 25_000


def test_every_50th_is_exact() -> None:
    every = {"loss": EveryNthLoss(50)}
    assert judged(every, lost_packets=501)["loss"].verdict == "ok"
    assert judged(every, lost_packets=503)["loss"].verdict == "outside"


def test_a_loss_too_rare_for_the_time_there_is_is_not_judged() -> None:
    row = judged({"loss": BernoulliLoss(1_000)}, lost_packets=0)["loss"]
    assert (
        row.verdict == "not decidable" and row.needs == pytest.approx(24e6, rel=0.01) and "packets to tell" in row.note
    )


def test_losses_of_the_probe_itself_are_not_the_links() -> None:
    assert judged({}, lost_packets=7, socket_drops_packets=7)["loss"].verdict == "ok"


def test_duplicates() -> None:
    one_percent = {"duplicate_ppb": 10_000_000}
    assert judged(one_percent, duplicated_packets=250)["duplicates"].verdict == "ok"
    assert judged(one_percent, duplicated_packets=0)["duplicates"].verdict == "outside"
    assert judged({}, duplicated_packets=1)["duplicates"].verdict == "outside"


def test_a_rate_that_could_not_be_offered_is_not_judged() -> None:
    expected, probing = prepared(plan())
    answers = answer(probing, rate_bps=0.9e9)
    for result in answers["results"]:
        if result["kind"] == "saturate":
            stream = result["streams"][0]
            stream["sending_ns"] = round(stream["sent_packets"] * 1538 * 8 / 0.9)
    rows = {row.quantity: row for row in compare(expected, probing, told(answers), {}) if row.direction == "forward"}
    assert rows["rate"].verdict == "not measured" and "could offer 900 Mbit/s" in rows["rate"].note
    assert rows["release error p50"].verdict == "not measured"


@pytest.mark.parametrize("rate, verdict", [(1e9, "ok"), (0.98e9, "outside")])
def test_a_sender_that_pauses_leaves_the_time_in_which_the_link_was_busy(rate: float, verdict: str) -> None:
    expected, probing = prepared(plan(queue=Queue(100, None, DROP_TAIL)))
    answers = answer(probing, rate_bps=rate)
    for result in answers["results"]:
        if result["kind"] == "saturate":
            # 1.2 ms of queue and pauses of 5 ms: three quarters of the rate arrive, but 0.5 s on end are full.
            result["streams"][0]["longest_sender_gap_ns"] = 5_000_000
            result["streams"][0]["steady"]["fitted_window_ns"] /= 0.75
    rows = {row.quantity: row for row in compare(expected, probing, told(answers), {}) if row.direction == "forward"}
    assert rows["rate"].verdict == verdict


def test_a_link_that_lets_nothing_through_is_outside() -> None:
    rows = judged({}, received_packets=0, lost_packets=2000, delay=None)
    assert rows["delay p50"].verdict == "outside" and "nothing came through" in rows["delay p50"].note


def test_a_probe_that_failed_says_why() -> None:
    expected, probing = prepared(plan())
    failed = [{"kind": "failed", "name": p["name"], "elapsed_ns": 1, "error": "setns: no"} for p in asked(probing)]
    rows = compare(expected, probing, told({"results": failed}), {})
    assert {(row.verdict, row.note) for row in rows if "release" not in row.quantity} == {("not measured", "setns: no")}


def test_an_active_queue_has_no_limit_to_measure() -> None:
    codel = Codel(target_ns=5_000_000, interval_ns=100_000_000, ecn=False)
    row = judged({"queue": Queue(None, 12_500_000, codel)})["queue limit"]
    assert (row.verdict, row.note) == ("not measured", "codel drops before the limit")


def test_a_queue_that_takes_too_long_to_fill_is_not_judged() -> None:
    row = judged({"queue": Queue(None, 10**10, DROP_TAIL)})["queue limit"]
    assert row.verdict == "not measured" and "filling this queue takes" in row.note


@pytest.mark.parametrize("scale, verdict", [(1.0, "ok"), (1.5, "outside")])
def test_a_uniform_delay_is_judged_by_its_shape(scale: float, verdict: str) -> None:
    uniform = UniformDelay(50_000_000, 5_000_000)
    source = random.Random(7)
    values = [50_001_104 + scale * source.uniform(-5e6, 5e6) for _ in range(200)]
    found = {**delays(50_001_104), "mean_ns": sum(values) / len(values)}
    rows = judged({"delay": uniform}, delays_ns=values, delay=found, received_packets=200)
    assert rows["delay mean"].verdict == "ok"
    assert rows["delay distribution"].verdict == verdict
    assert rows["queue limit"].verdict == "not measured"


@pytest.mark.parametrize("scale, verdict", [(1.0, "ok"), (0.23, "outside")])
def test_a_correlated_delay_is_judged_by_what_its_packets_are_worth(scale: float, verdict: str) -> None:
    """0.23: what averaging with the number before, by 90 %, leaves of a deviation."""
    correlated = GaussMarkovDelay(900_000_000, 50_000_000, 5_000_000)
    source, deviation, values = random.Random(7), 0.0, []
    for _ in range(6_000):
        deviation = 0.9 * deviation + 0.19**0.5 * source.gauss(0, 5e6)
        values.append(50_001_104 + scale * deviation)
    found = {**delays(50_001_104), "mean_ns": sum(values) / len(values)}
    rows = judged({"delay": correlated}, delays_ns=values, delay=found, received_packets=6_000)
    assert rows["delay mean"].verdict == "ok" and "worth 316 independent" in rows["delay mean"].note
    assert rows["delay distribution"].verdict == verdict
    few = judged({"delay": correlated}, delays_ns=values[:100], delay=found, received_packets=100)
    assert (few["delay mean"].verdict, few["delay mean"].needs) == ("not decidable", 190)


def test_tcp_is_judged_only_when_its_window_filled_the_pipe() -> None:
    expected, probing = prepared(plan())
    verdicts = []
    cases = [(10_000, 700e6, 0.5), (3_000, 300e6, 0.5), (10_000, 960e6, 0.5), (10_000, 700e6, 0.01)]
    for window, goodput, idle in cases:
        answers = answer(probing)
        series = [{"time_ns": 0, "cwnd_segments": window}]
        answers["results"][-1] |= {"goodput_bps": goodput, "series": series, "idle_ratio": idle}
        verdicts.append(compare(expected, probing, told(answers), {})[-1].verdict)
    # The last one's hosts had no CPU to spare: they are the limit, not the link.
    assert verdicts == ["outside", "shown", "outside", "not measured"]


def test_a_link_that_a_fault_ended_is_named_as_the_cause() -> None:
    late = {"classes": [[135, 5]]}
    port = {
        "kind": "packet",
        "ring_overruns": 0,
        "refused": 0,
        "veth_drops": {"receive": 0, "ring_full": 0, "transmit": 0},
    }
    way = {"lateness_ns": late, "drops": {"store_full": 0}}
    gaps = {"classes": [], "lost_ns": 0}
    link = {"ended": "index out of bounds", "running": False, "ports": [port, port], "forward": way, "backward": way}
    now = {"ok": True, "cpu": 1, "gaps": gaps, "shared": False, "links": {"core": link}}
    found = spinner.facts([stats_of(now)], [stats_of(now)])["core forward"]
    assert found.release_p50_ns is None
    assert found.cause() == "the link has ended: a fault in the program: index out of bounds"
    expected, probing = prepared(plan())
    answers = answer(probing)
    rows = {row.quantity: row for row in compare(expected, probing, told(answers), {expected.links[0].key: found})}
    assert rows["release error p50"].verdict == "not measured"


@pytest.mark.parametrize(
    "largest, verdict, says",
    [(1500, "ok", ""), (1450, "outside", "smaller MTU"), (0, "outside", "no packet of any size")],
)
def test_the_path_mtu_is_the_largest_packet_that_was_answered(largest: int, verdict: str, says: str) -> None:
    expected, probing = prepared(plan())
    answers = answer(probing)
    asked = {each["name"]: each for each in answers["results"]}["path MTU"]
    for stream in asked["streams"]:
        stream["received_packets"] = 3 if stream["packet_bytes"] <= largest else 0
    row = {row.quantity: row for row in compare(expected, probing, told(answers), {})}["path MTU"]
    assert row.verdict == verdict and says in row.note and row.measured in (largest, None)
