"""Ranks of Open MPI in nodes, in the virtual clock, from a scenario to rows.

Bounds are the path's delay and rate, and above them the ticks by which ranks that poll may be late there.
"""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from ewan.generator import external, scenario
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

TEXT = """
lab: {topology: {dumbbell: {pairs: 2}}, rtt: 10ms, wan: {rate: 100Mbit/s, buffer: 1BDP}}
defaults: {generator: openmpi, congestion: reno}
steps:
  - {name: pairs, ranks: [left1, right1], messages: {pattern: ping-pong, size: 1kB, iterations: 5}}
  - name: all
    at: 3s
    ranks: [left1, right1, left2, right2]
    messages: {pattern: all-to-all, size: 100kB, iterations: 2, compute: 5ms}
"""


def test_ranks_exchange_over_the_links(tmp_path: Path) -> None:
    (run,) = scenario.parse(TEXT, Path("x.scenario.yaml")).runs()
    plan = compile_spec(run.spec, HostFacts((0, 1), (), "virtual"))
    schedule = run.schedule(plan, "virtual")
    VirtualRuntime(BINARY).run(plan, schedule.program, tmp_path / "run")
    tables = external.rows(schedule.document, tmp_path / "run")
    flows, exchanges = tables["flows"], tables["exchanges"]
    assert flows["error"].to_list() == 6 * [None]
    assert (flows["started_ns"] - flows["scheduled_ns"]).to_list() == pytest.approx(6 * [0], abs=NS_PER_MS)
    pairs = exchanges.filter(flow=0)
    assert pairs.filter(part=0).height == pairs.filter(part=1).height == 5
    of_first = pairs.filter(part=0)["duration_ns"]
    assert of_first.min() >= 10 * NS_PER_MS and of_first.median() < 30 * NS_PER_MS  # type: ignore[operator]
    # Each of the two on the left sends 100 kB to each of the two on the right, and all of that crosses the core.
    links = orjson.loads((tmp_path / "run/links.json").read_bytes())["links"]
    (forward,) = [link for link in links if link["direction"] == "forward"]
    assert 2 * 4 * 100_000 < forward["out_bytes"] < 1.3 * 2 * 4 * 100_000
    every = exchanges.filter(flow=1)
    lasted_ns = max((every["start_ns"] + every["duration_ns"]).to_list()) - min(every["start_ns"].to_list())
    assert lasted_ns >= 2 * 400_000 * 8 * 1538 / 1448 * 10 + 5 * NS_PER_MS  # 10 ns a bit
