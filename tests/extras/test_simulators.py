"""What `ewan results export` writes runs in ns-2 and ns-3 and gives what the link's rate allows.

A file over a clean path ends when the last of its frames has crossed the bottleneck: volume/segment × 1538 bytes at
the link's rate, after slow start, which leaves the link idle for some RTTs. `make bench PART=simulators` compares with
the virtual clock.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.experiments import scenarios
from ewan.extra import installed
from ewan.labs.base import writing
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from tests.bench import run_simulators as simulators

SCENARIO = """
lab: {topology: {dumbbell: {pairs: 2}}, rtt: 20ms, wan: {rate: 20Mbit/s, buffer: 2BDP}, access: {rate: 1Gbit/s}}
steps:
  - {name: file, from: left1, to: right1, bulk: 5MB, congestion: reno}
  - {name: calls, role: background, at: 3s, from: left2, to: right2, for: 1s, udp: {rate: 8Mbit/s, size: 1000B}}
"""
VOLUME, SEGMENT, FRAME, RATE_BPS, RTT_NS = 5_000_000, 1448, 1538, 20_000_000, 20 * NS_PER_MS


@pytest.mark.virtual
@pytest.mark.parametrize("kind", ["ns2", "ns3"])
def test_a_file_takes_its_time_at_the_bottleneck(kind: str, tmp_path: Path) -> None:
    assert not simulators.missing(), f"the simulators are not there: apt install {simulators.missing()}"
    file = tmp_path / "x.scenario.yaml"
    file.write_text(SCENARIO)
    (path,) = writing.write_all(scenarios.files(kind, file, tmp_path / f"x{installed().exports[kind].ending}"))
    found = simulators.ns2(path) if kind == "ns2" else simulators.ns3(simulators.compiled(path))
    transfer, stream = found
    busy_ns = -(-VOLUME // SEGMENT) * FRAME * 8 * NS_PER_SECOND / RATE_BPS
    assert transfer.received_bytes == VOLUME and transfer.completion_ns is not None
    assert busy_ns < transfer.completion_ns < busy_ns + 10 * RTT_NS
    # 8 Mbit/s for a second over an idle link: a thousand packets, of which one RTT's half is under way at the end.
    assert stream.lost_packets == 0 and 985_000 <= stream.received_bytes <= 991_000
