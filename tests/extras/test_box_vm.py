"""ssh-netem drives a box of Debian's own kernel over SSH: the protocol holds, packets are delayed and lost.

Also as a link of a lab that is up, through two of the box's cards.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.extras.devices.conformance import checks
from ewan.extras.devices.remote import ConnectedBox
from ewan.extras.devices.serve import DeviceRefusedError
from ewan.labs.base.product import ROOT
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.driver import Driver
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link import BernoulliLoss, ConstantDelay, DropTail, NoLoss, Queue
from ewan.labs.runtime.tests.lab import OF_OTHER_TESTS
from tests.conftest import Ewan
from tests.vm.box import box

pytestmark = pytest.mark.machines

LAB = f"vb{os.getpid()}"
NUMBER = os.getpid() % 100000
OUTSIDE = (f"{OF_OTHER_TESTS}{NUMBER}a", f"{OF_OTHER_TESTS}{NUMBER}b")
CARDS = {"first": "card1", "second": "card2"}
QUEUE = Queue(limit_packets=100, limit_bytes=None, discipline=DropTail())


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    assert os.geteuid() == 0, "cards of this machine are cabled to the box: run this as root"
    with box(tmp_path_factory.mktemp("box"), OUTSIDE) as config:
        yield config


def driver() -> Driver:
    argv, folder = catalogue.argv("ssh-netem")
    return Driver(argv, folder=folder, environment=os.environ)


def pinged(config: Path, count: int) -> tuple[float, int]:
    """The least RTT in ms from a to b through the box, and how many pings came back."""
    words = f"ip netns exec a ping -q -c {count} -i 0.02 10.0.0.2"
    done = subprocess.run(["ssh", "-F", str(config), "box", words], capture_output=True, text=True, timeout=120)
    back = re.search(r"(\d+) received", done.stdout)
    rtt = re.search(r"= ([0-9.]+)/", done.stdout)
    assert back is not None, done.stdout + done.stderr
    return float(rtt[1]) if rtt else 0.0, int(back[1])


def test_the_driver_keeps_to_the_protocol(config: Path) -> None:
    found = list(checks(driver, "box", None, {**CARDS, "config": str(config)}))
    assert [each for each in found if not each.holds] == []
    assert len(found) > 40


def test_pings_are_delayed_and_lost_as_set(config: Path) -> None:
    with driver() as of:
        of.describe("box", None, {**CARDS, "config": str(config)})
        of.reset()
        of.set("forward", DeviceSettings(100_000_000, ConstantDelay(80_000_000), False, NoLoss(), 0, 0, QUEUE))
        rtt_ms, back = pinged(config, 10)
        assert back == 10
        assert 80 <= rtt_ms < 120  # an emulated processor takes its own time
        assert of.read().counters["forward"].out_packets >= 10
        of.set("backward", DeviceSettings(100_000_000, ConstantDelay(0), False, BernoulliLoss(10**9), 0, 0, QUEUE))
        assert pinged(config, 5)[1] == 0
        assert of.read().counters["backward"].dropped_packets >= 5
        of.reset()


def test_it_is_a_link_of_a_lab(config: Path, ewan: Ewan, tmp_path: Path) -> None:
    """An emulated processor is late by milliseconds: what the box says and counts is judged, of delays the least."""
    options = f"{{first: eth1, second: eth2, config: {config}}}"
    hardware = f"{{driver: ssh-netem, address: box, ports: [{', '.join(OUTSIDE)}], options: {options}}}"
    core = f"{{rate: 10Mbit/s, jitter: 400us, distribution: normal, loss: 1%, buffer: 100pkt, hardware: {hardware}}}"
    file = tmp_path / "box.lab.yaml"
    file.write_text(f"name: {LAB}\ntopology: dumbbell\nrtt: 200ms\nlinks: {{core: {core}}}\n")
    try:
        up = ewan("up", str(file))
        assert up.returncode == 0, up.stderr
        rows = json.loads(ewan("lab", "verify", LAB, "--json").stdout)["rows"]
        watched = json.loads(ewan("lab", "watch", LAB, "--once", "--json").stdout)["links"]
    finally:
        down = ewan("down", LAB)
    assert down.returncode == 0 and all(Path(f"/sys/class/net/{card}").exists() for card in OUTSIDE)
    found = {(row["quantity"], row["direction"]): row for row in rows if row["link"] == "core"}
    says = [row for (quantity, _), row in found.items() if quantity.startswith("device says")]
    assert found["device answers", ""]["verdict"] == "ok"
    assert len(says) == 6 and all(row["verdict"] == "ok" for row in says)
    for heading, device in zip(("forward", "backward"), (each["device"] for each in watched), strict=True):
        counted = found["device counts packets", heading]
        assert counted["configured"] > 100 and abs(counted["error"]) <= 0.02 * counted["configured"]
        assert device["dropped_packets"] > 0 and device["out_packets"] >= counted["measured"]
        assert found["delay mean", heading]["measured"] > 99_000_000


def test_an_unknown_box_or_card_is_refused(config: Path, tmp_path: Path) -> None:
    strange = tmp_path / "config"
    strange.write_text(config.read_text().replace("known_hosts", "no_such_file"))
    with pytest.raises(DeviceRefusedError, match=r"the host key of .* is not known"):
        ConnectedBox("box", str(strange))
    for options in (
        {"first": "card1", "second": "lo"},
        {"first": "card1", "second": "none"},
        {"first": "a;b", "second": "c"},
    ):
        request = {"request": "describe", "protocol": 1, "address": "box", "model": None}
        line = json.dumps(request | {"options": {**options, "config": str(config)}})
        words = [sys.executable, "-m", "ewan.extras.devices.ssh_netem"]
        done = subprocess.run(words, input=line + "\n", capture_output=True, text=True, cwd=ROOT, timeout=60)
        assert json.loads(done.stdout)["ok"] is False, done.stdout


def test_a_box_without_tables_of_delays_says_so(config: Path) -> None:
    remove = "rm $(busybox find /usr/lib -name normal.dist)"
    subprocess.run(["ssh", "-F", str(config), "box", remove], check=True, timeout=60)
    with driver() as of:
        assert of.describe("box", None, {**CARDS, "config": str(config)}).abilities.delay.kinds == (
            "constant",
            "uniform",
        )
