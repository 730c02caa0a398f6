"""HSTTS's background traffic behind a switch, in the virtual clock: what shares a port with the load arrives."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ewan.extras.suites import hstts
from ewan.extras.suites.hstts import SuiteRequest
from ewan.generator import records, scenario
from ewan.labs import host
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record import tables
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

GIVEN = {"RATE": "100M", "K": "5", "CG": "0.8", "R": "0", "RTT": "10ms"}
"""Four sources of 20 Mbit/s: 80 of the port's 100 Mbit/s, so that a tenth of background is room enough."""


@pytest.mark.parametrize("word", ["CBR", "VBR-Poisson", "VBR-Weibull"])
def test_packets_of_the_background_arrive_beside_the_load(word: str, tmp_path: Path) -> None:
    (built,) = hstts.build(SuiteRequest(("BU",), "switched", {**GIVEN, "B": word}, congestion=("reno",)))
    run = scenario.parse(built.text, built.file).runs({"volume": "10Mbit"})[0]
    plan = compile_spec(run.spec, host.virtual_facts())
    schedule = run.schedule(plan, "virtual")
    VirtualRuntime(BINARY).run(plan, schedule.program, tmp_path / "run")
    assert records.collect(tmp_path / "run", schedule.document) is None
    flows = tables.read(tmp_path / "run", "flows")
    background = flows.filter(pl.col("role") == "background")
    assert background["error"].to_list() == [None, None]
    assert background["source"].to_list() == ["left5", "right5"], "one pair: half of a card of 20 Mbit/s"
    lasted_s = ((background["ended_ns"] - background["started_ns"]) / 1e9).to_list()
    carried = [sent * 1470 * 8 / s for sent, s in zip(background["sent_packets"], lasted_s, strict=True)]
    # Constant packets to one of them; Weibull's times with shape 0.5 have a deviation of 2.2 means.
    assert carried == pytest.approx(2 * [10_000_000], rel=0.01 if word == "CBR" else 0.2)
    if word == "CBR":
        assert background["lost_packets"].to_list() == [0, 0]
    load = flows.filter(pl.col("role") == "load")
    assert load["received_bytes"].to_list() == 4 * [1_250_000]
