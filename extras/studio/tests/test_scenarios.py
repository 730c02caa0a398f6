"""The outline of a scenario, as the page asks for it: steps and events in time, points, and refusals at their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ewan.labs.base.units import NS_PER_SECOND

pytestmark = pytest.mark.slow

TEXT = """name: two
lab: {topology: {dumbbell: {pairs: 2}}, rtt: 20ms, wan: {rate: 10Mbit/s}}
parameters: {late: 4s}
sweep: {congestion: [reno, cubic, bic]}
seeds: 2
steps:
  - {name: files, from: "left[1-2]", to: "right[1-2]", offset: 1s, for: 6s, congestion: "${congestion}", bulk: }
  - {name: after, after: files, from: left1, to: right1, bulk: 1MB}
  - {name: probe, on: left1, run: ping -c 3 right1}
events:
  - {at: "${late}", link: core, delay: 40ms, direction: forward}
  - {at: 2s, link: core, down: true}
  - {at: 3s, link: core, up: true}
"""


def described(client: TestClient, text: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/api/scenario/describe", json={"text": text, **more}).json()
    return found


def test_a_scenario_is_told_in_time(client: TestClient) -> None:
    found = described(client, TEXT)["outline"]
    files, after, probe = found["steps"]
    bars = [(bar["start_ns"] / NS_PER_SECOND, bar["end_ns"] / NS_PER_SECOND, bar["exact"]) for bar in files["bars"]]
    assert bars == [(0, 6, True), (1, 7, True)]
    assert (files["who"], files["words"], files["flows"]) == ("left[1-2] → right[1-2]", "congestion reno", 2)
    assert after["bars"][0]["start_ns"] == 7 * NS_PER_SECOND and not after["bars"][0]["exact"]
    assert 7.7 < after["bars"][0]["end_ns"] / NS_PER_SECOND < 8.1
    assert (probe["kind"], probe["who"], probe["bars"][0]["end_ns"]) == ("run", "left1", None)
    events = [(each["at_ns"] // NS_PER_SECOND, each["words"], each["direction"]) for each in found["events"]]
    assert events == [(4, "delay 40ms", "forward"), (2, "down", "both"), (3, "up", "both")]


def test_the_sweep_is_told_as_points(client: TestClient) -> None:
    found = described(client, TEXT, point=3)["outline"]
    assert (found["varying"], found["seeds"], found["runs"], found["checked"]) == (["congestion"], 2, 6, 3)
    assert [point["congestion"] for point in found["points"]] == ["reno", "cubic", "bic"]
    assert found["point"] == 3 and found["steps"][0]["words"] == "congestion bic"
    assert described(client, TEXT, point=99)["outline"]["point"] == 3


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("20ms", "20", 2, 'rtt "20": write'),
        ("from: left1", "from: left9", 8, "left9"),
        ("down: true", "dwn: true", 12, "dwn"),
        ("link: core, up", "link: cor, up", 13, 'write "core"'),
        ("bic]", "bic, Bic]", 7, "congestion control"),
        ("{late: 4s}", "{late: 400s}", 11, "is when all is over"),
        ("steps:", "steps: [", 7, "write YAML"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(client: TestClient, old: str, new: str, line: int, words: str) -> None:
    refusal = described(client, TEXT.replace(old, new))["refusal"]
    assert refusal["line"] == line and words in refusal["message"], refusal


def test_names_lead_nowhere_else(client: TestClient, tmp_path: Path) -> None:
    for name in ("../x.scenario.yaml", "/etc/passwd", ""):
        assert client.post("/api/scenario/describe", json={"name": name, "text": TEXT}).status_code == 400
    assert described(client, "lab: nosuch\nsteps: []\n")["refusal"]["line"] == 1


def test_what_may_be_written_includes_the_lab(client: TestClient) -> None:
    schema = client.get("/api/scenario/schema").json()
    assert {"steps", "events", "sweep"} <= schema["properties"].keys()
    assert "rtt" in schema["$defs"]["Lab"]["properties"]


def judged(client: TestClient, name: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/api/verdict", json={"name": name, "text": text}).json()
    return found


def test_a_verdict_is_told_before_anything_is_made(client: TestClient, tmp_path: Path) -> None:
    """The verdict is that of `ewan measure envelope FILE`; a text that one clock refuses may run in the other."""
    lab = judged(client, "x.lab.yaml", "topology: dumbbell\nwan: {rate: 10Mbit/s}\n")
    assert lab["live"]["verdict"] in ("inside", "unknown") and lab["points"] == 1
    scenario = judged(client, "x.scenario.yaml", TEXT.replace("bic]", "nothere]"))
    assert scenario["live"]["verdict"] == scenario["virtual"]["verdict"] == "refused"
    assert "nothere" in scenario["live"]["why"] and scenario["looked"] == scenario["points"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_what_is_wrong_gets_no_verdict(client: TestClient) -> None:
    assert "write" in judged(client, "x.lab.yaml", "topology: dumbel\n")["error"]
    assert judged(client, "../x.lab.yaml", "")["error"].startswith('"../x.lab.yaml"')
