"""Runs over several machines: crossing flows, tools, events, and a machine that dies (tests/extras/machines_rig.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from ewan.extras.machines.reading import load
from ewan.extras.machines.runtime import ClusterRuntime
from ewan.generator import records
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import ScenarioRun, ScheduledRun
from ewan.labs import host
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import HostFacts
from ewan.labs.runtime.base import LiveClockRuntime
from ewan.labs.runtime.netns import NetnsRuntime
from tests.extras.machines_rig import ROOT, Rig, machines

pytestmark = pytest.mark.live

UNDERLAY_MTU = 1600
WIDE = """
name: wide
lab: {topology: {star: {arms: 30}}, rtt: 40ms, wan: {rate: 10Mbit/s, buffer: 100kB}}
series: 100ms
watch: 100ms
steps:
  - {name: tcp, from: "host[1-4]", to: "host[21-24]", congestion: reno, bulk: {volume: 400kB}}
  - {name: both, from: host30, to: host9, congestion: reno, bidirectional: {volume: 200kB}}
  - {name: near, from: host5, to: host6, congestion: reno, bulk: {volume: 200kB}}
  - name: short
    from: host4
    to: host24
    congestion: reno
    arrivals: {count: 12, interval: {exponential: {mean: 40ms}}, size: {uniform: {low: 1kB, high: 20kB}}}
  - name: pages
    from: host3
    to: host23
    congestion: reno
    requests: {count: 6, request: 300B, response: {uniform: {low: 1kB, high: 20kB}}, think: 10ms}
  - {name: udp, from: "host[11-14]", to: "host[7,8,25,26]", for: 1500ms, udp: {size: 500B, rate: 400kbit/s}}
  - {name: perf, from: host29, to: host10, generator: iperf3, congestion: reno, for: 1s, bulk: {}}
  - {name: later, from: host1, to: host21, after: [near], congestion: reno, bulk: {volume: 50kB}}
  - {name: ping, on: host15, after: [later], run: "ping -i 0.05 -c 5 host27"}
events: [{at: 1s, link: arm27, delay: 50ms}]
"""
MORTAL = """
name: mortal
lab: {topology: {dumbbell: {pairs: 2}}, rtt: 20ms, wan: {rate: 10Mbit/s}}
series: 100ms
seeds: 2
steps:
  - {name: tcp, from: "left[1-2]", to: "right[1-2]", congestion: reno, for: 30s, bulk: {}}
  - {name: udp, from: right1, to: left1, for: 30s, udp: {size: 500B, rate: 400kbit/s}}
"""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with machines(3, mtu=UNDERLAY_MTU) as made:
        yield made


def scheduled(text: str, facts: HostFacts) -> tuple[ScenarioRun, ScheduledRun]:
    runs = scenarios.parse(text, Path("wide.scenario.yaml")).runs({}, None, None)
    run, _, schedule = next(iter(runs.scheduled(facts, "live")))
    return run, schedule


def measured(labs: LiveClockRuntime, facts: HostFacts, directory: Path) -> dict[str, Any]:
    """The scenario in a lab that is there for it: its tables, and what else it left."""
    directory.mkdir()
    _, schedule = scheduled(WIDE, facts)
    labs.up(schedule.plan)
    try:
        labs.batch(schedule.plan.lab, schedule.program, directory)
    finally:
        labs.down(schedule.plan.lab)
    wrong = records.collect(directory, schedule.document)
    assert wrong is None, wrong
    names = ("flows", "goodput", "series", "links", "releases", "spinners", "pings", "exchanges")
    tables = {name: pl.read_parquet(directory / f"{name}.parquet") for name in names}
    documents = {name: orjson.loads((directory / f"{name}.json").read_bytes()) for name in ("commands", "events")}
    return tables | documents


@pytest.fixture(scope="module")
def over(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Over three machines."""
    place = tmp_path_factory.mktemp("over")
    with rig.inside():
        runtime = ClusterRuntime(state=place / "state", cluster=load(rig.file), scheduling="shared")
        facts = runtime.host_facts()
        found = measured(runtime, facts, place / "run")
        _, schedule = scheduled(WIDE, facts)
        where = runtime.where(schedule.plan)
        found["stretched"], found["machine_of"] = {each.link for each in where.stretched}, where.machine_of
    assert not (place / "run/.machines").exists()
    return found | {"clocks": orjson.loads((place / "run/clocks.json").read_bytes())}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same on this machine."""
    place = tmp_path_factory.mktemp("here")
    return measured(NetnsRuntime(state=place / "state"), host.facts(), place / "run")


def test_the_tables_of_a_run_over_machines_are_those_of_one_machine(over: dict[str, Any], here: dict[str, Any]) -> None:
    same = ["flow", "part", "name", "step", "source", "sink", "kind", "scheduled_ns", "volume_bytes"]
    machine_of = over["machine_of"]
    crossing = {row["step"] for row in over["flows"].to_dicts() if machine_of[row["source"]] != machine_of[row["sink"]]}
    assert crossing >= {"tcp", "both", "short", "pages", "udp", "perf", "later"}
    flows, beside = (each["flows"].filter(pl.col("step") != "later") for each in (over, here))
    assert flows.select(same).equals(beside.select(same))
    for name in ("goodput", "series"):
        assert over[name]["flow"].unique().sort().equals(here[name]["flow"].unique().sort()), name
    for row, other in zip(flows.iter_rows(named=True), beside.iter_rows(named=True), strict=True):
        assert row["error"] is None and other["error"] is None
        if row["kind"] == "udp":
            # What is sent, and when, is drawn from the same stream.
            assert row["sent_packets"] == other["sent_packets"] == 150, row["name"]
            assert row["received_packets"] + row["lost_packets"] == row["sent_packets"]
            # Three machines' links share one CPU here, which makes packets late, never early.
            assert 19.5e6 < row["delay_min_ns"] < 45e6, row["name"]
            assert row["delay_min_ns"] <= row["delay_p50_ns"] <= row["delay_max_ns"]
        elif row["step"] != "perf":
            assert row["received_bytes"] == other["received_bytes"] == row["volume_bytes"]
            assert row["segment_bytes"] == other["segment_bytes"] and row["min_rtt_ns"] > 39.5e6
            # One and a half round trips, and the link's time for so much; a busy machine makes it longer.
            least_ns = 1.5 * 39.5e6 + row["volume_bytes"] * 800 * (row["kind"] != "requests")
            assert least_ns < row["completion_ns"] < 5 * NS_PER_SECOND, row["name"]
            got = over["goodput"].filter(pl.col("flow") == row["flow"], pl.col("part") == row["part"])
            # The kernel counts the end of a connection as one byte, which is seen where the program wakes late.
            assert sum(got["delivered_bytes"].to_list()) - row["volume_bytes"] in (0, 1)
            if row["kind"] != "requests":
                arrived = sum(got["arrived_bytes"].to_list())
                assert row["volume_bytes"] <= arrived <= 1.2 * row["volume_bytes"] + 2 * row["segment_bytes"]
    # In a mean of few flows, with the packets that each loses: within a factor of three.
    took = [each.filter(pl.col("step") == "tcp")["completion_ns"].to_list() for each in (flows, beside)]
    assert 1 / 3 < sum(took[0]) / sum(took[1]) < 3
    exchanges = [each["exchanges"].select("number", "sent_bytes", "received_bytes") for each in (over, here)]
    assert exchanges[0].height == 6 and exchanges[0].equals(exchanges[1])
    assert over["links"]["link"].unique().sort().equals(here["links"]["link"].unique().sort())
    assert over["releases"]["link"].unique().sort().equals(over["links"]["link"].unique().sort())
    assert over["spinners"]["spinner"].unique().sort().to_list() == [0, 1, 2], "numbers are those of the whole"


def test_steps_wait_for_steps_on_other_machines(over: dict[str, Any]) -> None:
    flows = over["flows"]
    near, later = (flows.filter(pl.col("step") == step).row(0, named=True) for step in ("near", "later"))
    assert near["ended_ns"] < later["scheduled_ns"] <= later["started_ns"]
    assert later["received_bytes"] == 50_000, "both of its ends were told one beginning"
    (ping,) = (each for each in over["commands"]["commands"] if each["argv"][0] == "ping")
    assert ping["at_ns"] > later["ended_ns"] and ping["status"] == 0
    assert over["pings"].height == 5


def test_an_event_changes_a_stretched_link_in_its_time(over: dict[str, Any], here: dict[str, Any]) -> None:
    made, beside = (each["events"]["events"] for each in (over, here))
    assert [each["link"] for each in made] == [each["link"] for each in beside] == ["arm27", "arm27"]
    assert "arm27" in over["stretched"]
    for each in made:
        assert each["error"] is None and 0 <= each["applied_ns"] - NS_PER_SECOND < NS_PER_SECOND // 2, each


def test_clocks_were_compared_and_their_uncertainty_is_said(over: dict[str, Any]) -> None:
    clocks = over["clocks"]
    assert clocks["reference"] == "one" and clocks["machines"].keys() == {"two", "three"}
    for each in clocks["machines"].values():
        # It is one clock here: what they seem to differ by is within what is not known.
        assert 0 < each["uncertainty_ns"] < 5_000_000
        assert abs(each["before_ns"]) <= each["uncertainty_ns"] + 1_000_000


def test_a_machine_that_dies_ends_the_run_and_says_which_seconds_count(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "mortal.scenario.yaml").write_text(MORTAL)
    command = [sys.executable, str(ROOT / "ewan" / "cli.py"), "run", "mortal.scenario.yaml", "--unverified"]
    environment = os.environ | {"EWAN_STATE": str(tmp_path / "state"), "EWAN_SCHED": "shared"}
    with rig.inside():
        running = subprocess.Popen(
            [*command, "--machines", str(rig.file)], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
        )
        assert running.stderr is not None
        said = []
        for line in running.stderr:
            said.append(line)
            if line.startswith("execution"):
                break
        assert said[-1].startswith("execution"), "".join(said)
        time.sleep(3)
        killed = time.monotonic()
        rig.kill("two")
        _, rest = running.communicate(timeout=60)
    assert running.returncode == 1, rest
    assert time.monotonic() - killed < 25, "with its report"
    (directory,) = (tmp_path / "results").iterdir()
    first, second = orjson.loads((directory / "experiment.json").read_bytes())["runs"]
    assert first["error"].startswith("machine two was lost "), first
    assert "after T0: second" in first["error"] and "`ewan down mortal` again" in first["error"]
    lost = orjson.loads((directory / "runs/001/lost.json").read_bytes())
    assert set(range(lost["at_ns"] // NS_PER_SECOND, 30)) <= set(first["disturbed"])
    assert second["status"] == "failed" and "machine two" in second["error"], "it was not begun"
    flows = pl.read_parquet(directory / "runs/001/flows.parquet")
    assert flows.height == 3 and "machine two was lost" in flows["error"].to_list()
    # What the others measured until then is there.
    assert max(flows["received_bytes"].to_list()) > 0
    with rig.inside():
        for name in ("one", "three"):
            enter = ["nsenter", "-t", str(rig.first(name)), "--net", "--mount", "--pid", "--", "sh", "-c"]
            look = "ls /run/ewan-shares 2>/dev/null; ps -e -o args | grep '[e]wan-node'; true"
            left = subprocess.run([*enter, look], capture_output=True, text=True, check=True).stdout
            assert left == "", left
        rig.revive("two")
        down = [sys.executable, str(ROOT / "ewan" / "cli.py"), "down", "mortal"]
        assert subprocess.run(down, env=environment, capture_output=True).returncode == 0
