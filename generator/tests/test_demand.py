"""The counted demand of runs beside the real one: the library's scenarios, as the virtual clock ran them once.

`fixtures/counted.json` has of each run the packets received by nodes and the entries into programs (wall.json). Packets
are the same in every run of a kernel, and entries nearly so: this is the counting's own error."""

from __future__ import annotations

import statistics
from pathlib import Path

import orjson
import pytest

from ewan.experiments.engine.forecast import NOTHING, Forecast
from ewan.generator import scenario as scenarios
from ewan.generator.tests.scenarios import only, parse, planned
from ewan.labs import host
from ewan.labs.record.demand import Demand
from ewan.labs.record.experiment import Entry

COUNTED = orjson.loads((Path(__file__).resolve().parent / "fixtures/counted.json").read_bytes())
DRAWN = {"short-lived-tcp": 0.4}
"""The relative error that is allowed for a scenario whose sizes have a heavy tail: of eight seeds the packets were from
0.7 to 2.1 million beside Reno, and the mean of the law is what is counted."""
FEW_PACKETS = 50_000
"""A run of fewer is over in the time of its start."""


def demands(name: str) -> dict[str, Demand]:
    """The demands of the runs of a scenario of the library, by run."""
    scenario = scenarios.load(name)
    made = scenario.runs({}, "quick" if "quick" in scenario.scales else None).scheduled(host.virtual_facts(), "virtual")
    return {run.name.removesuffix("seed=1").strip(): schedule.demand() for run, _, schedule in made}


@pytest.mark.parametrize("name", COUNTED)
def test_packets_and_entries_of_the_library_are_those_that_were_seen(name: str) -> None:
    found = demands(name)
    assert found.keys() == COUNTED[name].keys()
    for run, (packets, entries) in COUNTED[name].items():
        if packets > FEW_PACKETS:
            assert found[run].packets == pytest.approx(packets, rel=DRAWN.get(name, 0.3)), run
        assert found[run].entries == pytest.approx(entries, rel=0.25), run


def test_most_runs_are_counted_to_a_tenth() -> None:
    off = [
        abs(demand.packets / COUNTED[name][run][0] - 1)
        for name in COUNTED
        for run, demand in demands(name).items()
        if COUNTED[name][run][0] > FEW_PACKETS
    ]
    assert statistics.quantiles(off, n=3)[1] < 0.1


SWITCHES = 2.4
"""`POLLED` has switches of a kernel that traced its programs: 2 for a call, 3 for a page fault."""

POLLED = [
    ("udt", "10Mbit/s", "bulk: 2MB", 114_463),
    ("udt", "100Mbit/s", "bulk: 10MB", 330_332),
    ("udt", "100Mbit/s", "for: 3s, bulk: ", 700_289),
    ("udt", "1Gbit/s", "bulk: 20MB", 896_174),
    ("openmpi", "1Gbit/s", "messages: {pattern: all-to-all, size: 16kB, iterations: 20, compute: 2ms}", 754_602),
    (
        "openmpi",
        "1Gbit/s",
        "messages: {pattern: neighbour-exchange, size: 64kB, iterations: 20, compute: 2ms}",
        1_370_105,
    ),
    ("openmpi", "1Gbit/s", "messages: {pattern: barrier, iterations: 20, compute: 2ms}", 928_408),
]
"""Programs that poll, over 20 ms, with the entries into programs that were counted (wall.json). They are most of what
such a run takes: 7 µs each, where a packet takes 1 µs."""


@pytest.mark.parametrize(("generator", "rate", "does", "counted"), POLLED)
def test_programs_that_poll_are_forecast_within_a_factor_of_three(
    generator: str, rate: str, does: str, counted: int
) -> None:
    pairs = 1 if generator == "udt" else 2
    ends = "from: left1, to: right1" if generator == "udt" else "ranks: [left1, right1, left2, right2]"
    (run,) = parse(
        f"lab: {{topology: {{dumbbell: {{pairs: {pairs}}}}}, rtt: 20ms, wan: {{rate: {rate}, buffer: 1BDP}}}}\n"
        f"defaults: {{generator: {generator}}}\nsteps:\n  - {{name: load, {ends}, {does}}}\n"
    ).runs()
    assert counted / SWITCHES / 3 < planned(run).demand().entries < 3 * counted / SWITCHES


def test_a_transfer_is_its_segments_and_half_as_many_acks_at_every_node() -> None:
    demand = only("steps:\n  - {name: a, from: left1, to: right1, bulk: 14.48MB}\n").demand()
    assert demand.packets == pytest.approx(4 * 10_000 * 1.5, rel=0.01)
    assert demand.mixed_packets == 0


def test_what_the_clock_ends_is_counted_until_then() -> None:
    short, long = (
        only(f"steps:\n  - {{name: a, from: left1, to: right1, for: {lasts}, udp: {{size: 500B, interval: 1ms}}}}\n")
        for lasts in ("1s", "5s")
    )
    assert short.demand().packets == 4 * 1000
    assert long.demand().packets == 4 * 5000


def entry(number: int, demand: Demand | None) -> Entry:
    """A run of which only the demand matters."""
    return Entry(number, "", {}, 1, "", "", "runs/001", 0, "waiting", None, None, None, demand=demand)


def takes(demand: Demand) -> tuple[int, int]:
    """A microsecond a packet, to a fifth."""
    return demand.packets * 1000, demand.packets * 200


def test_the_forecast_is_of_all_runs_on_all_cpus() -> None:
    runs = [entry(number, Demand(2_000_000, 0, 0, 0, 0, 0)) for number in range(10)]
    forecast = Forecast(runs, takes)
    assert forecast.words(runs, 2) == "its runs take about 10s ± 20 % of wall time on 2 CPUs (20 M packets)"
    assert forecast.words(runs[:1], 2) == "its runs take about 2s ± 20 % of wall time on 1 CPU (2 M packets)"
    runs.append(entry(10, Demand(30_000_000, 0, 0, 0, 0, 0)))
    assert "about 30s " in forecast.words(runs, 2), "no run is shared between CPUs"


def test_runs_that_nobody_counted_are_like_the_others() -> None:
    counted, not_counted = entry(0, Demand(1_500, 0, 0, 0, 0, 0)), entry(1, None)
    forecast = Forecast([counted, not_counted], takes)
    assert forecast.run_ns(not_counted) == forecast.run_ns(counted) == 1_500_000
    assert "(3 k packets)" in forecast.words([counted, not_counted], 1)
    assert NOTHING.run_ns(counted) == 0
