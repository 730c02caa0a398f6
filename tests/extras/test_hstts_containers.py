"""HSTTS on labs of containers: bulk data over each of them, and nothing is left of any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Ewan
from tests.container_engine.fixtures import EngineOfTests
from tests.containers.test_runtime import LABS, surroundings

pytestmark = pytest.mark.untimed


@pytest.mark.timeout(900)
@pytest.mark.parametrize("topology", LABS)
def test_hstts_runs(engine: EngineOfTests, ewan: Ewan, state: Path, tmp_path: Path, topology: str) -> None:
    """Bulk data over each of them, one congestion control, one seed; sizes that this machine's links carry."""
    before = surroundings(engine, state, "hstts-bu")
    description = "ring-ospf" if topology == "ring" else topology
    result = ewan(
        *("suite", "hstts", "--app", "BU", "--topo", description, "--size", "quick", "--rate", "50M", "--rtt", "20ms"),
        *("--set", "volume=20Mbit", "--cc", "reno", "--seeds", "1"),
        *("--runtime", "containerlab", "--unverified", "--json"),
        cwd=tmp_path,
        timeout=800,
    )
    assert result.returncode == 0, result.stderr
    (place,) = (tmp_path / "results").glob("*-hstts-bu")
    document = json.loads((place / "experiment.json").read_text())
    assert (document["status"], document["runtime"]) == ("complete", "containerlab")
    assert document["host"]["versions"]["containerlab"] == "0.60.0"
    flows = [flow for run in place.glob("runs/*/traffic/traffic.json") for flow in json.loads(run.read_text())["flows"]]
    assert flows and all(flow["received_bytes"] for flow in flows)
    assert surroundings(engine, state, "hstts-bu") == before
