"""Labs of containers as a user has them: up, verified, entered, changed, down.

Real containers and real packets; the engine is the fixture's. After each lab the machine is as it was: containers,
networks, interfaces, processes, files, names of namespaces. Tolerances are those of a busy shared machine: they bound
what a wrong link would show (see tests/test_live.py).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Ewan
from tests.container_engine.fixtures import EngineOfTests

pytestmark = pytest.mark.containers

RATE_BPS, RTT_NS = 50e6, 40e6
FAMILIES = ("-4", "-6")
SIZES = ("--rate", "50Mbit/s", "--rtt", "40ms")
LABS: dict[str, tuple[str, ...]] = {
    "dumbbell": ("dumbbell",),
    "parking-lot": ("parking-lot", "--hops", "3"),
    "star": ("star", "--arms", "8"),
    "ring": ("ring", "--routing", "ospf"),
}


def surroundings(engine: EngineOfTests, state: Path, name: str) -> dict[str, object]:
    """All that a lab could leave on this machine."""
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            except OSError:
                continue
            if f"{state / name}" in command or f"ewan-{name}-" in command:
                processes.append(command)
    found: dict[str, object] = {
        "containers": engine.docker("ps", "--all", "--quiet", "--filter", f"name=ewan-{name}-").stdout,
        "engine's networks": engine.docker("network", "ls", "--quiet", "--filter", f"name={name}").stdout,
        "namespaces": sorted(path.name for path in Path("/run/netns").glob(f"ewan-{name}-*")),
        "state": sorted(str(path) for path in state.glob(f"{name}*")),
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "processes": processes,
        "hosts": name in Path("/etc/hosts").read_text(),
        "ssh": sorted(path.name for path in Path("/etc/ssh/ssh_config.d").glob(f"*{name}*")),
    }
    if engine.process:
        lines = Path(f"/proc/{engine.process}/net/dev").read_text().splitlines()[2:]
        found["engine's interfaces"] = sorted(line.partition(":")[0].strip() for line in lines)
    return found


@pytest.fixture(scope="module", params=LABS)
def lab(request: pytest.FixtureRequest, engine: EngineOfTests, ewan: Ewan, state: Path) -> Iterator[dict[str, Any]]:
    """A lab that is up; its certificate, with `name`."""
    name = f"{request.param}-{os.getpid() % 100000}"
    before = surroundings(engine, state, name)
    words = ("lab", *LABS[request.param], *SIZES, "--name", name, "--runtime", "containerlab", "--json")
    try:
        result = ewan(*words, timeout=300)
        assert result.returncode in (0, 1), result.stderr
        yield {"name": name, **json.loads(result.stdout)}
    finally:
        down = ewan("down", name, timeout=200)
    assert down.returncode == 0, down.stderr
    assert surroundings(engine, state, name) == before


def rows(lab: dict[str, Any], quantity: str) -> list[dict[str, Any]]:
    return [row for row in lab["rows"] if row["quantity"] == quantity]


def shortest_ms(ping: str) -> float:
    return float(ping.rpartition(" = ")[2].partition("/")[0])


def test_links_are_what_the_plan_says(lab: dict[str, Any]) -> None:
    delays, rates = rows(lab, "delay p50"), rows(lab, "rate")
    assert delays and rates
    for row in delays:
        assert 0 <= row["measured"] - row["configured"] <= 1e6, row
    # What a machine without time for it could not measure is told, with what disturbed the links.
    measured = [row for row in rates if row["verdict"] != "not measured"]
    assert len(measured) == len(rates) or lab["machine"]["disturbed"], rates
    assert 2 * len(measured) >= len(rates), rates
    for row in measured:
        assert row["measured"] == pytest.approx(row["configured"], rel=0.01), row


def test_pairs_have_the_base_rtt(lab: dict[str, Any]) -> None:
    found = rows(lab, "base RTT")
    assert max(row["configured"] for row in found) == pytest.approx(RTT_NS, rel=0.01)
    for row in found:
        assert 0 <= row["measured"] - row["configured"] <= 2e6, row


def test_a_terminal_of_studio_is_the_container_s_own_shell(lab: dict[str, Any], state: Path) -> None:
    terminals = pytest.importorskip("ewan.extras.studio.server.terminal")

    async def told(node: str) -> str:
        terminal = terminals.Terminal(lab["name"], node, {**os.environ, "EWAN_STATE": str(state)})
        try:
            await terminal.write(b"cat /etc/hostname; exit\n")
            said = b""
            while piece := await asyncio.wait_for(terminal.read(), 30):
                said += piece
            return said.decode(errors="replace")
        finally:
            await terminal.close()

    node = rows(lab, "base RTT")[0]["link"].split(" to ")[0]
    assert f"\r{node}\r\n" in asyncio.run(told(node))


def test_the_certificate_names_what_made_the_lab(lab: dict[str, Any]) -> None:
    versions = lab["host"]["versions"]
    assert versions["runtime"] == "containerlab"
    assert versions["containerlab"] == "0.60.0"
    assert versions.get("docker") or versions.get("podman")


def test_every_pair_answers_in_both_families(ewan: Ewan, lab: dict[str, Any]) -> None:
    def ping(pair: str, family: str) -> subprocess.CompletedProcess[str]:
        source, sink = pair.split(" to ")
        return ewan("lab", "exec", "--lab", lab["name"], source, "--", "ping", family, "-c", "2", "-i", "0.2", sink)

    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda each: ping(*each), product({row["link"] for row in rows(lab, "base RTT")}, FAMILIES))
    for result in answers:
        assert result.returncode == 0, result.stdout + result.stderr


def test_ps_says_which_runtime(ewan: Ewan, lab: dict[str, Any]) -> None:
    (status,) = json.loads(ewan("ps", lab["name"], "--json").stdout)
    assert (status["state"], status["runtime"]) == ("complete", "containerlab")
    assert all(node["up"] and node["pids"] for node in status["nodes"])
    assert all(spinner["pid"] for spinner in status["spinners"])
    assert "containerlab" in ewan("ps", lab["name"]).stdout.splitlines()[0]


def test_the_second_of_that_name_is_refused(ewan: Ewan, lab: dict[str, Any]) -> None:
    for runtime in ("containerlab", "netns"):
        again = ewan("up", "dumbbell", "--name", lab["name"], "--runtime", runtime)
        assert again.returncode == 2
        assert f"remove it with `ewan down {lab['name']}`" in again.stderr


def test_a_link_changes_and_shows_it(ewan: Ewan, lab: dict[str, Any]) -> None:
    link = rows(lab, "rate")[0]["link"]
    changed = ewan("lab", "set", "--lab", lab["name"], link, "rate=20Mbit/s")
    assert changed.returncode == 0, changed.stderr
    assert "rate=20Mbit/s" in ewan("ps", lab["name"]).stdout
    seen = json.loads(ewan("lab", "watch", lab["name"], "--once", "--json").stdout)
    assert {each["link"] for each in seen["links"]} >= {link}
    assert ewan("lab", "set", "--lab", lab["name"], link, "rate=50Mbit/s").returncode == 0


def test_exec_gives_status_and_heeds_signals(ewan: Ewan, lab: dict[str, Any], state: Path) -> None:
    node = rows(lab, "base RTT")[0]["link"].split(" to ")[0]
    assert ewan("lab", "exec", "--lab", lab["name"], node, "--", "sh", "-c", "exit 7").returncode == 7
    unknown = ewan("lab", "exec", "--lab", lab["name"], "nobody", "--", "true")
    assert unknown.returncode == 2 and "has no node nobody" in unknown.stderr
    with started("lab", "exec", "--lab", lab["name"], node, "--", "sleep", "4321", state=state) as process:
        wait_for(lambda: running("sleep 4321"), process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM  # of which a shell makes 143
    assert not running("sleep 4321")


def test_with_a_management_network(engine: EngineOfTests, ewan: Ewan, state: Path, tmp_path: Path) -> None:
    """It is at eth0 of every node, apart from the lab's own; it goes with the lab."""
    name = f"managed-{os.getpid() % 100000}"
    before = surroundings(engine, state, name)
    file = tmp_path / f"{name}.lab.yaml"
    file.write_text("topology: dumbbell\nrtt: 40ms\nwan: {rate: 50Mbit/s}\ncontainers: {management: true}\n")
    up = ewan("up", str(file), "--runtime", "containerlab", timeout=200)
    try:
        assert up.returncode == 0, up.stderr
        addresses = {
            interface["ifname"]: interface["addr_info"][0]["local"]
            for interface in json.loads(
                ewan("lab", "exec", "--lab", name, "left1", "--", "ip", "-4", "-j", "addr").stdout
            )
        }
        assert addresses.keys() == {"lo", "eth0", "eth1"}
        assert addresses["eth1"].startswith("10.64.") and not addresses["eth0"].startswith("10.64.")
        ping = ewan("lab", "exec", "--lab", name, "left1", "--", "ping", "-n", "-q", "-c", "30", "-i", "0.05", "right1")
        assert 40 <= shortest_ms(ping.stdout) < 60, "not over the link"
    finally:
        down = ewan("down", name, timeout=200)
    assert down.returncode == 0, down.stderr
    assert surroundings(engine, state, name) == before


class started:  # noqa: N801 - reads as a function
    """`ewan …` going on, as a context; killed at its end if it still runs."""

    def __init__(self, *words: str, state: Path) -> None:
        environment = os.environ | {"EWAN_STATE": str(state), "NO_COLOR": "1"}
        command = [sys.executable, str(ROOT / "ewan" / "cli.py"), *words]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], longest_s: float = 60) -> None:
    deadline = time.monotonic() + longest_s
    while not condition():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)


def running(command: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip() == command:
                    return True
            except OSError:
                continue
    return False
