"""A lab with dashboards, deployed by containerlab: every emulator is asked by Prometheus, under its container's name.

Grafana's node is taken out of the file: its image is public, and none is downloaded here. Its files are looked at from
where it would find them; what it draws is not seen.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from ewan.labs.render import dashboards
from tests.conftest import Ewan
from tests.container_engine.fixtures import EngineOfTests, build

pytestmark = pytest.mark.untimed

FETCH = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=5).read().decode())"
HOPS = ("hop1", "hop2")
PINGS = 20


class Watched:
    """A lab that is up, and the port of this machine where its Prometheus is."""

    def __init__(self, engine: EngineOfTests, name: str, port: int) -> None:
        self.engine, self.name, self.port = engine, name, port

    def ask(self, query: str) -> list[dict[str, Any]]:
        """From where the engine publishes ports: its own network namespace, if it has one; [] if nobody answers."""
        there = ["nsenter", f"--net=/proc/{self.engine.process}/ns/net", "--"] if self.engine.process else []
        url = f"http://127.0.0.1:{self.port}/api/v1/query?query={quote(query)}"
        done = subprocess.run([*there, sys.executable, "-c", FETCH, url], capture_output=True, text=True, timeout=30)
        found: list[dict[str, Any]] = json.loads(done.stdout)["data"]["result"] if done.returncode == 0 else []
        return found

    def wait(self, query: str, number: int) -> list[dict[str, Any]]:
        """Until the answer has so many samples."""
        until = time.monotonic() + 60
        while len(found := self.ask(query)) != number:
            assert time.monotonic() < until, (query, found)
            time.sleep(1)
        return found

    def do(self, node: str, *command: str) -> str:
        done = self.engine.docker("exec", f"ewan-{self.name}-{node}", *command)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def watched(engine: EngineOfTests, ewan: Ewan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A parking lot of two hops, whose emulators share one spinner."""
    if failed := build("images/build-images.sh", "prometheus"):
        pytest.fail(failed)
    directory = tmp_path_factory.mktemp("dashboards")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    name = f"dash{port}"
    topology = {"parking-lot": {"hops": 2}}
    description = {"name": name, "topology": topology, "rtt": "20ms", "containers": {"dashboards": True}}
    (directory / "dash.lab.yaml").write_text(yaml.safe_dump(description | {"wan": {"rate": "20Mbit/s"}}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(dashboards.PORT_VARIABLES["prometheus"], str(port))
        compiled = ewan("lab", "compile", str(directory / "dash.lab.yaml"), "-o", str(directory))
    assert compiled.returncode == 0, compiled.stderr
    file = directory / f"{name}.clab.yml"
    described = yaml.safe_load(file.read_text())
    del described["topology"]["nodes"]["grafana"]
    file.write_text(yaml.safe_dump(described, sort_keys=False))
    try:
        deployed = engine.clab("deploy", "-t", file.name, cwd=directory, timeout=240)
        assert deployed.returncode == 0, deployed.stderr
        yield Watched(engine, name, port)
    finally:
        destroyed = engine.clab("destroy", "-t", file.name, "--cleanup", cwd=directory, timeout=240)
    assert destroyed.returncode == 0, destroyed.stderr
    assert engine.docker("network", "ls", "--filter", f"name=ewan-{name}", "-q").stdout == ""


@pytest.mark.timeout(600)
def test_every_emulator_is_asked(watched: Watched) -> None:
    up = watched.wait("ewan_up == 1", len(HOPS))
    asked = {each["metric"]["link"]: each["metric"]["instance"] for each in up}
    assert asked == {hop: f"ewan-{watched.name}-{hop}:{dashboards.METRICS_PORT}" for hop in HOPS}
    # One process serves both links; it is told of once, where it runs.
    (spinner,) = watched.wait("ewan_spinner_info", 1)
    assert spinner["metric"]["instance"] == asked["hop1"]


@pytest.mark.timeout(300)
def test_packets_are_counted(watched: Watched) -> None:
    watched.do("left1", "ping", "-q", "-c", str(PINGS), "-i", "0.05", "right1")
    watched.wait(f"ewan_link_out_packets_total >= {PINGS}", 2 * len(HOPS))


def test_the_page_is_served_to_the_management_network_alone(watched: Watched) -> None:
    """Data ports have no addresses: nothing but the engine's network leads to it."""
    addresses = json.loads(watched.do("hop1", "ip", "-json", "-4", "address", "show", "scope", "global"))
    assert [each["ifname"] for each in addresses] == ["eth0"]


def test_grafana_would_find_its_files(watched: Watched) -> None:
    grafana = dashboards.THERE + "/" + dashboards.PROVISIONING
    (provider,) = yaml.safe_load(watched.do("prometheus", "cat", f"{grafana}/dashboards/ewan.yml"))["providers"]
    board = watched.do("prometheus", "cat", f"{provider['options']['path']}/{Path(dashboards.DASHBOARD_FILE).name}")
    assert json.loads(board)["panels"]
    (source,) = yaml.safe_load(watched.do("prometheus", "cat", f"{grafana}/datasources/ewan.yml"))["datasources"]
    # By that very name, from a container of the same network.
    host = source["url"].removeprefix("http://").partition(":")[0]
    assert host in watched.do("hop1", "getent", "hosts", host)
