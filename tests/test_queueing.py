"""The mean queueing delay that a report shows is the mean wait of queueing theory.

Poisson arrivals over a link of 10 Mbit/s in the virtual clock, waits against the formula of Pollaczek and Khinchine,
W = λ·E[S²]/(2·(1 − ρ)), where λ and ρ are what came: their own deviation from what was asked would count several times
near full load. Of equal packets it is M/D/1. `dither: 0`, because hosts that hold each packet for a random time and
keep its order make clumps of what was a Poisson process.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import numpy as np
import polars as pl
import pytest

from ewan.analysis import metrics, network
from ewan.analysis.flows import active
from ewan.analysis.rundata import RunData
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import tables
from ewan.labs.record.summary import LinkUse
from tests.test_workloads import virtual

pytestmark = pytest.mark.virtual

RATE_BPS = 10_000_000
HEADERS = 28  # IPv4 and UDP
WAN = "wan: {rate: 10Mbit/s, buffer: 10000pkt}"
FRAMING = 38  # Ethernet on the wire
WITHIN = 0.03


def service_ns(payload: float) -> float:
    """How long a packet with so much payload is in service."""
    return (payload + HEADERS + FRAMING) * 8 * NS_PER_SECOND / RATE_BPS


def poisson(place: Path, seed: int, size: str, mean_ns: float, load: float, packets: int, wan: str = WAN) -> Path:
    """Sends so many packets at so much of the link's rate; the run's directory."""
    interval_ns = round(mean_ns / load)
    return virtual(
        f"""
lab: {{topology: {{dumbbell: {{pairs: 1}}}}, ip: 4, rtt: 10ms, dither: 0, {wan}}}
seeds: [{seed}]
sample: 0
series: 0
watch: 1s
steps:
  - name: flow
    from: left1
    to: right1
    for: {packets * interval_ns}ns
    udp: {{size: {size}, interval: {{exponential: {{mean: {interval_ns}ns}}}}}}
""",
        place,
    )


def shown(place: Path) -> tuple[float, LinkUse, pl.DataFrame]:
    """What the report calls mean queueing delay, the link's counters, the flows."""
    flows, links = tables.read(place, "flows"), tables.read(place, "links")
    found = metrics.of_run(RunData(lambda name: {"flows": flows, "links": links}.get(name, tables.empty(name))))
    core = network.bottleneck(network.link_use(network.watched(links), active(flows)))
    assert core is not None and (core.link, core.direction) == ("core", "forward")
    return found["mean queueing delay"], core, flows


def law(rate: float, second: float, mean: float) -> float:
    """W of M/G/1 by Pollaczek and Khinchine: utilisation, E[S²] in ns² and E[S] in ns; in ns."""
    return rate / mean * second / (2 * (1 - rate))


@pytest.mark.parametrize(("load", "packets", "seeds"), [(0.5, 40_000, 2), (0.8, 60_000, 2), (0.9, 100_000, 2)])
def test_equal_packets_wait_as_in_m_d_1(tmp_path: Path, load: float, packets: int, seeds: int) -> None:
    service = service_ns(1222)
    assert service == 1_030_400
    ratios = []
    for seed in range(1, seeds + 1):
        wait, core, _ = shown(poisson(tmp_path / str(seed), seed, "1222B", service, load, packets))
        assert core.utilisation == pytest.approx(load, rel=WITHIN)
        ratios.append(wait / law(core.utilisation, service**2, service))
    assert fmean(ratios) == pytest.approx(1, abs=WITHIN), ratios


def test_packets_of_random_size_wait_as_in_m_g_1(tmp_path: Path) -> None:
    """Exponential sizes as in M/M/1, but between the least payload of a flow and what the MTU takes, with headers: so
    by the moments of what is drawn. E[S²]/(2·E[S]²), 1 in M/M/1 and 0.5 in M/D/1, is 0.81 here."""
    mean, least, most, load, packets = 300, 24, 1400, 0.8, 70_000
    quantiles = (np.arange(1_000_000) + 0.5) / 1_000_000
    payloads = np.clip(-mean * np.log1p(-quantiles), least, most)
    services = (payloads + HEADERS + FRAMING) * 8 * NS_PER_SECOND / RATE_BPS
    first, second = float(services.mean()), float((services**2).mean())
    ratios = []
    for seed in range(1, 4):
        size = f"{{exponential: {{mean: {mean}B, most: {most}B}}}}"
        wait, core, flows = shown(poisson(tmp_path / str(seed), seed, size, first, load, packets))
        (flow,) = flows.to_dicts()
        assert flow["received_bytes"] / flow["received_packets"] == pytest.approx(payloads.mean(), rel=0.02)
        ratios.append(wait / law(core.utilisation, second, first))
    assert fmean(ratios) == pytest.approx(1, abs=WITHIN), ratios


def test_a_user_link_means_the_same(tmp_path: Path) -> None:
    """The same packets at the same instants: the sum of their waits is the same to the ns for each packet."""
    waits = {}
    for emulator in ("kernel", "user"):
        wan = f"emulator: {emulator}, {WAN}"
        run = poisson(tmp_path / emulator, 1, "1222B", service_ns(1222), 0.8, 2_000, wan)
        waits[emulator] = shown(run)[0]
        last = tables.read(run, "links").filter(pl.col("direction") == "forward").sort("time_ns").tail(1)
        assert last["served_packets"].item() == last["sent_packets"].item()
    assert waits["kernel"] > service_ns(1222)
    assert waits["user"] == pytest.approx(waits["kernel"], abs=2)


def test_loss_on_purpose_shows_under_its_name(tmp_path: Path) -> None:
    run = poisson(tmp_path, 1, "1222B", service_ns(1222), 0.5, 40_000, "wan: {rate: 10Mbit/s, loss: 1%}")
    flows, links = tables.read(run, "flows"), tables.read(run, "links")
    found = metrics.of_run(RunData(lambda name: {"flows": flows, "links": links}.get(name, tables.empty(name))))
    assert found["queue loss"] == 0
    assert found["link loss"] == found["total loss"] == pytest.approx(0.01, rel=0.2)
    assert found["link loss"] == pytest.approx(found["udp loss"], abs=1e-3)
