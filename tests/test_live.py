"""A live lab as a user has it: up, measured, used, changed, watched, down; and two side by side.

Real namespaces and real packets; needs root and fails without it. Tolerances are those of a busy shared machine:
they bound what a wrong link would show, not what a quiet machine can do (that is `make bench`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ewan.generator.scenario import parse as parse_scenario
from ewan.labs.compile import HostFacts, compile
from ewan.labs.spec import load
from tests.conftest import ROOT, Ewan
from tests.preloaded import Preloaded

pytestmark = pytest.mark.live

LAB = "tlive"


def namespaces(lab: str) -> list[str]:
    return [path.name for path in Path("/run/netns").glob(f"ewan-{lab}-*")]


def rtts_ms(ping: str) -> list[float]:
    return [float(value) for value in re.findall(r"time=([\d.]+) ms", ping)]


@pytest.fixture(scope="module")
def lab(ewan: Ewan) -> Iterator[dict[str, Any]]:
    """A dumbbell of two pairs, 40 ms, 100 Mbit/s, brought up and verified; its certificate."""
    ewan("down", LAB)
    result = ewan(
        *("lab", "dumbbell", "--name", LAB, "--pairs", "2", "--rtt", "40ms", "--rate", "100Mbit/s"),
        *("--buffer", "1BDP", "--json"),
    )
    assert result.returncode in (0, 1), result.stderr
    yield json.loads(result.stdout)
    down = ewan("down", LAB)
    assert down.returncode == 0, down.stderr
    assert namespaces(LAB) == []


def row(certificate: dict[str, Any], quantity: str, direction: str = "forward") -> dict[str, Any]:
    return next(r for r in certificate["rows"] if r["quantity"] == quantity and r["direction"] == direction)


def test_the_certificate_bounds_delay_and_rate(lab: dict[str, Any]) -> None:
    for direction in ("forward", "backward"):
        delay = row(lab, "delay p50", direction)
        assert 20e6 <= delay["measured"] <= 21e6, delay
        rate = row(lab, "rate", direction)
        assert rate["measured"] == pytest.approx(100e6, rel=0.005), rate


def test_ping_sees_the_configured_round_trip(ewan: Ewan, lab: dict[str, Any]) -> None:
    result = ewan("lab", "exec", "--lab", LAB, "left1", "--", "ping", "-c", "10", "-i", "0.1", "right1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert 40.0 <= min(rtts_ms(result.stdout)) <= 41.0


def test_names_resolve_in_both_families(ewan: Ewan, lab: dict[str, Any]) -> None:
    for family in ("-4", "-6"):
        result = ewan("lab", "exec", "--lab", LAB, "left2", "--", "ping", family, "-c", "2", "-i", "0.1", "right2")
        assert result.returncode == 0, result.stdout + result.stderr


def test_exec_gives_the_status_of_the_command(ewan: Ewan, lab: dict[str, Any]) -> None:
    assert ewan("lab", "exec", "--lab", LAB, "left1", "--", "sh", "-c", "exit 7").returncode == 7
    unknown = ewan("lab", "exec", "--lab", LAB, "lef1", "--", "true")
    assert unknown.returncode == 2 and "left1" in unknown.stderr


def test_ps_tells_nodes_addresses_and_links(ewan: Ewan, lab: dict[str, Any]) -> None:
    shown = ewan("ps").stdout
    for word in (LAB, "left1", "10.64.", "core", "100Mbit/s", "20ms"):
        assert word in shown
    (status,) = json.loads(ewan("ps", "--json").stdout)
    assert status["state"] == "complete"


def test_a_lab_of_that_name_is_refused_with_the_remedy(ewan: Ewan, lab: dict[str, Any]) -> None:
    again = ewan("up", "dumbbell", "--name", LAB)
    assert again.returncode == 2
    assert f"ewan down {LAB}" in again.stderr


def test_set_changes_the_delay_while_the_lab_runs(ewan: Ewan, lab: dict[str, Any]) -> None:
    assert ewan("lab", "set", "--lab", LAB, "core", "delay=5ms").returncode == 0
    ping = ewan("lab", "exec", "--lab", LAB, "left1", "--", "ping", "-c", "5", "-i", "0.1", "right1")
    assert 10.0 <= min(rtts_ms(ping.stdout)) <= 11.0
    assert ewan("lab", "set", "--lab", LAB, "core", "delay=20ms", "loss=100%", "--direction", "forward").returncode == 0
    assert (
        ewan("lab", "exec", "--lab", LAB, "left1", "--", "ping", "-c", "3", "-i", "0.1", "-W", "1", "right1").returncode
        == 1
    )
    assert ewan("lab", "set", "--lab", LAB, "core", "delay=20ms", "loss=0%").returncode == 0
    made = ewan("ps", LAB).stdout
    assert "delay=5ms" in made and "loss=100%" in made
    refused = ewan("lab", "set", "--lab", LAB, "core", "rate=1 Gbps/s")
    assert refused.returncode == 2 and "1Gbit/s" in refused.stderr


def test_a_link_that_is_not_what_the_plan_says_fails_the_verification(ewan: Ewan, lab: dict[str, Any]) -> None:
    assert (
        ewan("lab", "set", "--lab", LAB, "core", "rate=98Mbit/s", "delay=21ms", "--direction", "forward").returncode
        == 0
    )
    result = ewan("lab", "verify", LAB, "--json")
    assert ewan("lab", "set", "--lab", LAB, "core", "rate=100Mbit/s", "delay=20ms").returncode == 0
    assert result.returncode == 1, result.stderr
    assert "compared with the plan" in result.stderr
    certificate = json.loads(result.stdout)
    assert not certificate["passed"]
    for quantity in ("delay p50", "rate"):
        assert row(certificate, quantity, "forward")["verdict"] == "outside"
        assert row(certificate, quantity, "backward")["verdict"] != "outside"


def test_duplicates_arrive_and_are_counted(ewan: Ewan, lab: dict[str, Any]) -> None:
    assert ewan("lab", "set", "--lab", LAB, "core", "duplicate=100%", "--direction", "forward").returncode == 0
    ping = ewan("lab", "exec", "--lab", LAB, "left1", "--", "ping", "-c", "5", "-i", "0.1", "right1")
    assert ewan("lab", "set", "--lab", LAB, "core", "duplicate=0%", "--direction", "forward").returncode == 0
    assert "DUP!" in ping.stdout, ping.stdout


def test_watch_counts_what_goes_through(ewan: Ewan, lab: dict[str, Any], state: Path) -> None:
    ping = ["ip", "netns", "exec", f"ewan-{LAB}-left1", "ping", "-q", "-i", "0.01", "-c", "300", "right1"]
    with subprocess.Popen(ping, stdout=subprocess.DEVNULL) as process:
        shown = json.loads(ewan("lab", "watch", LAB, "--once", "--json").stdout)
        process.terminate()
    forward = next(each for each in shown["links"] if each["direction"] == "forward")
    assert 0 < forward["out_packets"] <= 60


def test_two_labs_do_not_meet(ewan: Ewan, lab: dict[str, Any]) -> None:
    other = "tother"
    up = ewan("up", "star", "--name", other, "--arms", "3", "--rtt", "10ms", "--rate", "10Mbit/s")
    assert up.returncode == 0, up.stderr
    try:
        assert (
            ewan("lab", "exec", "--lab", other, "host1", "--", "ping", "-c", "3", "-i", "0.1", "host3").returncode == 0
        )
        assert (
            ewan("lab", "exec", "--lab", LAB, "left1", "--", "ping", "-c", "3", "-i", "0.1", "right1").returncode == 0
        )
        ambiguous = ewan("lab", "exec", "left1", "--", "true")
        assert ambiguous.returncode == 2 and other in ambiguous.stderr
    finally:
        assert ewan("down", other).returncode == 0
    assert namespaces(other) == []
    assert ewan("lab", "exec", "--lab", LAB, "left1", "--", "ping", "-c", "1", "right1").returncode == 0


def test_a_change_comes_when_it_was_scheduled(ewan: Ewan, lab: dict[str, Any], state: Path) -> None:
    assert ewan("lab", "set", "--lab", LAB, "core", "rate=50Mbit/s", "at=+200ms").returncode == 0
    time.sleep(0.5)
    request = b'{"command":"changes"}\n'
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(state / LAB / "spinner-0.sock"))
        control.sendall(request)
        changes = json.loads(control.makefile().readline())["changes"]
    assert [change["change"] for change in changes[-2:]] == [{"rate_bps": 50_000_000}] * 2
    assert all(0 <= change["late_ns"] < 50e6 for change in changes[-2:]), changes
    assert ewan("lab", "set", "--lab", LAB, "core", "rate=100Mbit/s").returncode == 0


def test_what_was_done_is_a_scenario(ewan: Ewan, lab: dict[str, Any], tmp_path: Path) -> None:
    """Also what failed and was mended, at times that count from the first change."""
    (tmp_path / "x.lab.yaml").write_text("topology: dumbbell\nrtt: 40ms\nwan: {rate: 100Mbit/s}\n")
    assert ewan("lab", "set", "--lab", LAB, "core", "delay=25ms", "--direction", "backward").returncode == 0
    assert ewan("lab", "set", "--lab", LAB, "core", "down", "at=+300ms").returncode == 0
    assert ewan("lab", "set", "--lab", LAB, "core", "up").returncode == 0
    assert ewan("lab", "set", "--lab", LAB, "core", "delay=20ms").returncode == 0
    shown = ewan("lab", "record", "--lab", LAB, "--file", str(tmp_path / "x.lab.yaml"))
    assert shown.returncode == 0, shown.stderr
    (run,) = parse_scenario(shown.stdout, tmp_path / "again.scenario.yaml").runs()
    longer, down, up, shorter = run.document.events[-4:]
    assert (str(longer.delay), longer.direction, str(shorter.delay)) == ("25ms", "backward", "20ms")
    assert down.down and up.up and down.at.ns - longer.at.ns >= 300e6 and down.at < up.at < shorter.at
    refused = ewan("lab", "record", "--lab", LAB, "--file", str(tmp_path / "none.lab.yaml"))
    assert refused.returncode == 2 and "none.lab.yaml" in refused.stderr


@pytest.mark.untimed
@pytest.mark.parametrize("file", sorted((ROOT / "labs/library").glob("*.lab.yaml")), ids=lambda file: file.name)
def test_every_ready_lab_comes_up_and_its_first_pair_talks(ewan: Ewan, file: Path) -> None:
    plan = compile(load(file), HostFacts(cpus=(0, 1), networks=()))
    name = "tready"
    up = ewan("up", str(file), "--name", name)
    try:
        assert up.returncode == 0, up.stderr
        assert ("converged in" in up.stdout) == (plan.routing != "static"), up.stdout
        pair = plan.pairs[0]
        ping = ewan(
            "lab", "exec", "--lab", name, pair.source, "--", "ping", "-c", "5", "-i", "0.1", "-W", "2", pair.sink
        )
        assert ping.returncode == 0, ping.stdout + ping.stderr
    finally:
        ewan("down", name)
    assert namespaces(name) == []


def test_what_is_no_lab_keeps_no_other_up(preloaded: Preloaded, tmp_path: Path) -> None:
    state = Path(f"/run/ewan-test-foreign-{os.getpid()}")
    environment = {"EWAN_RUNTIME": "netns", **os.environ, "EWAN_STATE": str(state)}
    (state / "foreign").mkdir(parents=True)
    (state / "foreign/keep").touch()
    try:
        for name in ("tbefore", "tzafter"):
            words = ["up", "dumbbell", "--rtt", "10ms", "--rate", "10Mbit/s", "--name", name]
            up = preloaded.run(words, environment, tmp_path, 120)
            assert up.returncode == 0, up.stderr
        down = preloaded.run(["down", "--all"], environment, tmp_path, 120)
        assert down.returncode == 2 and f"{state}/foreign holds files but no manifest" in down.stderr
        assert [path.name for path in state.iterdir() if path.name != ".lock"] == ["foreign"]
        assert namespaces("tbefore") == namespaces("tzafter") == []
    finally:
        shutil.rmtree(state)
