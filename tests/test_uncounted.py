"""What a program sends beside counted flows is said beside shares; where there are only flows, nothing is said."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import polars as pl
import pytest

from tests.conftest import Ewan

pytestmark = pytest.mark.virtual

SCENARIO = """name: beside
lab: {{topology: {{dumbbell: {{pairs: 2}}}}, rtt: {rtt}, wan: {{rate: 20Mbit/s, loss: {loss}, duplicate: {duplicate}}}}}
steps:
{steps}
metrics: [share of first, fairness per flow of first]
"""
FLOW = "  - {name: first, role: cross, from: left1, to: right1, for: 5s, bulk: }"
PROGRAM = (
    "  - {name: server, on: right2, service: true, run: iperf3 -s}\n"
    "  - {name: other, on: left2, at: 500ms, run: iperf3 -c right2 -t 4 -J}"
)
SMALL = "  - {name: calls, from: left2, to: right2, for: 5s, udp: {rate: 1Mbit/s, size: 40B}}"
ACKNOWLEDGED = "  - {name: back, role: reverse, from: right2, to: left2, for: 5s, bulk: }"


def found(ewan: Ewan, place: Path, *steps: str, rtt: str = "20ms", loss: str = "0%", duplicate: str = "0%") -> str:
    (place / "beside.scenario.yaml").write_text(
        SCENARIO.format(steps="\n".join(steps), rtt=rtt, loss=loss, duplicate=duplicate)
    )
    result = ewan("run", "beside", "--runtime", "virtual", cwd=place)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_a_program_beside_a_flow_is_told(ewan: Ewan, tmp_path: Path) -> None:
    printed = found(ewan, tmp_path, FLOW, PROGRAM)
    told = re.search(r"⚠ other traffic took (\d+) % of what core → carried: shares and fairness", printed)
    assert told, printed
    assert re.search(r"share of first \(%\)\s+100\S* ⚠", printed), printed
    (experiment,) = (tmp_path / "results").glob("*-beside")
    summary = orjson.loads((experiment / "summary.json").read_bytes())
    share = summary["runs"][0]["uncounted"]["share"]
    tables = {name: pl.read_parquet(experiment / "runs" / "001" / f"{name}.parquet") for name in ("readings", "links")}
    read = int(tables["readings"]["received_bytes"].sum())
    carried = int(tables["links"].filter(link="core", direction="forward")["sent_bytes"].to_numpy().max())
    assert 0.9 * read / carried - 0.02 < share < 1.1 * read / carried
    assert f"other traffic took {told[1]} %" in (experiment / "report.html").read_text()


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        ((FLOW,), {}),
        ((FLOW,), {"rtt": "2s"}),
        ((FLOW,), {"loss": "2%", "duplicate": "20%"}),
        ((FLOW, ACKNOWLEDGED), {}),
        ((FLOW, SMALL), {"duplicate": "20%"}),
        ((SMALL,), {}),
    ],
    ids=["one flow", "much on its way", "copies", "acknowledgments", "beside small packets", "small packets"],
)
def test_of_flows_nothing_is_told(ewan: Ewan, tmp_path: Path, steps: tuple[str, ...], options: dict[str, str]) -> None:
    if FLOW not in steps:
        steps = (*steps, FLOW.replace("5s", "100ms"))
    assert "other traffic" not in found(ewan, tmp_path, *steps, **options)
