"""A link that damages packets is verified in either family of addresses, and its flows lose what it damages."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from ewan.labs.record import tables
from tests.conftest import Ewan

pytestmark = pytest.mark.virtual

LAB = "topology: dumbbell\nrtt: 20ms\nwan: {rate: 10Mbit/s, corrupt: 2%}\n"
CALL = """name: damaged
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s, corrupt: 2%}}
steps:
  - {name: call, from: left1, to: right1, for: 4s, udp: {rate: 4Mbit/s, size: 1000B}}
"""


@pytest.mark.parametrize("family", ["4", "6"])
def test_a_lab_that_damages_packets_is_verified(ewan: Ewan, tmp_path: Path, family: str) -> None:
    (tmp_path / "damaged.lab.yaml").write_text(LAB)
    words = ("damaged.lab.yaml", "--pairs", "1", "--ip", family, "--runtime", "virtual")
    result = ewan("lab", *words, cwd=tmp_path)
    assert result.returncode == 0 and "CPU" not in result.stdout, result.stdout + result.stderr
    (certificate,) = (orjson.loads(path.read_bytes()) for path in tmp_path.glob("results/*/certificate.json"))
    rows = {(row["direction"], row["quantity"]): row for row in certificate["rows"] if row["link"] == "core"}
    for way in ("forward", "backward"):
        assert rows[way, "rate"]["verdict"] == rows[way, "loss"]["verdict"] == "ok"
        assert rows[way, "rate"]["tolerance"] < 100, "to the nanosecond, though some packets are missing"


def test_a_flow_loses_what_is_damaged_and_has_no_error(ewan: Ewan, tmp_path: Path) -> None:
    (tmp_path / "damaged.scenario.yaml").write_text(CALL)
    result = ewan("run", "damaged.scenario.yaml", "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    (run,) = tmp_path.glob("results/*/runs/001")
    (flow,) = tables.read(run, "flows").iter_rows(named=True)
    # 2,000 packets: 40 are damaged, with a deviation of 6.3.
    assert flow["error"] is None and 15 <= flow["lost_packets"] <= 65, flow
