"""A simulated box as a link of a live lab: driven, changed meanwhile, its faults told apart, its ports given back."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest

from ewan.calibration import devices as certified
from ewan.extras.devices.conformance import checks
from ewan.extras.devices.gtrcnet import TABLE
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.device_answers import DeviceStatus
from ewan.labs.hardware.driver import Driver
from ewan.labs.link import BernoulliLoss, Change, ConstantDelay
from ewan.labs.record import tables
from ewan.labs.record.events import link_change
from ewan.labs.runtime import devices, spinners
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.requests import (
    ChangesRequest,
    DeviceRequest,
    DeviceSeriesRequest,
    LinkSetRequest,
    ReadoutRequest,
)
from ewan.labs.runtime.tests.lab import BINARY
from tests.conftest import ROOT, Ewan

pytestmark = pytest.mark.untimed

PORTS = (f"hw{os.getpid() % 100000}a", f"hw{os.getpid() % 100000}b")
LAB = f"hw{os.getpid()}"
LONGEST_S = 30.0
ALL_ROWS = ReadoutRequest(0)


class Box:
    """The simulated box, and what is told to its front panel."""

    def __init__(self, folder: Path, ports: tuple[str, str] = PORTS) -> None:
        self.address = folder / "box"
        words = ["driver", "simulate", "gtrcnet-1", "--ports", ",".join(ports), "--address", str(self.address)]
        self.log = folder / "box.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "ewan" / "cli.py"), *words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        until(lambda: self.address.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n".encode())
        self.process.stdin.flush()

    def driver(self) -> Driver:
        argv, folder = catalogue.argv("gtrcnet")
        return Driver(argv, folder=folder, environment=os.environ)


def until(holds: Callable[[], Any]) -> Any:
    """What `holds` gives once it is true; fails after `LONGEST_S`."""
    deadline = time.monotonic() + LONGEST_S
    while not (found := holds()):
        assert time.monotonic() < deadline, "it does not become so"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    assert os.geteuid() == 0, "a simulated box is made of network namespaces: run this as root"
    box = Box(tmp_path_factory.mktemp("box"))
    yield box
    box.process.terminate()
    box.process.wait(20)
    until(lambda: not any(Path(f"/sys/class/net/{port}").exists() for port in PORTS))
    assert not box.address.is_symlink()


@pytest.fixture(scope="module")
def description(box: Box, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lab") / "box.lab.yaml"
    wire = file.with_name("wire.toml")  # the same words; silence is told sooner
    wire.write_text(TABLE.read_text().replace("answers_within_s = 5.0", "answers_within_s = 1.5"))
    where = f"address: {box.address}, ports: [{', '.join(PORTS)}]"
    hardware = f"{{driver: gtrcnet, {where}, options: {{wire: {wire}}}}}"
    text = f"name: {LAB}\ntopology: dumbbell\nrtt: 40ms\nlinks: {{core: {{rate: 500Mbit/s, hardware: {hardware}}}}}\n"
    file.write_text(text)
    return file


@pytest.fixture
def lab(ewan: Ewan, box: Box, description: Path, state: Path) -> Iterator[Path]:
    """The state directory of a lab that is up."""
    done = ewan("up", str(description))
    assert done.returncode == 0, done.stderr
    yield state / LAB
    box.tell("well")
    ewan("down", LAB)


def mac(port: str) -> str:
    return Path(f"/sys/class/net/{port}/address").read_text()


def device(lab: Path) -> DeviceStatus:
    return devices.ask(lab, "core", DeviceRequest())


def faults(lab: Path) -> set[tuple[str, bool]]:
    """Kinds of faults, and whether they last."""
    return {(each.kind, each.ended_s is None) for each in device(lab).faults}


def least_rtt_ms(ewan: Ewan) -> float:
    done = ewan("lab", "exec", "--lab", LAB, "left1", "--", "ping", "-q", "-c", "5", "-i", "0.1", "right1")
    return float(re.findall(r"= ([0-9.]+)/", done.stdout)[0])


def test_the_driver_keeps_to_the_protocol(box: Box) -> None:
    found = list(checks(box.driver, str(box.address), None, {}))
    assert [each for each in found if not each.holds] == []
    assert len(found) > 30


def test_it_is_a_link_as_any_other(ewan: Ewan, box: Box, description: Path, state: Path) -> None:
    before = [mac(port) for port in PORTS]
    assert ewan("up", str(description)).returncode == 0
    assert not any(Path(f"/sys/class/net/{port}").exists() for port in PORTS), "the ports are in the routers"
    lab = state / LAB
    assert least_rtt_ms(ewan) >= 40
    assert ewan("lab", "set", "--lab", LAB, "core", "delay=60ms", "--direction", "forward").returncode == 0
    assert least_rtt_ms(ewan) >= 80
    refused = ewan("lab", "set", "--lab", LAB, "core", "delay=200ms")
    assert refused.returncode == 2 and "it delays from 0ms to 134ms by 8ns" in refused.stderr
    down = ewan("lab", "set", "--lab", LAB, "core", "down")
    assert down.returncode == 2 and "core is a device outside" in down.stderr
    assert ewan("lab", "set", "--lab", LAB, "core", "loss=100%", "at=+0.2s").returncode == 0
    until(lambda: device(lab).says["backward"].loss == BernoulliLoss(10**9))
    assert ewan("lab", "set", "--lab", LAB, "core", "loss=0%").returncode == 0
    least_rtt_ms(ewan)
    watched = json.loads(ewan("lab", "watch", LAB, "--once", "--json").stdout)
    assert [(each["link"], each["ended"], each["lost_packets"]) for each in watched["links"]] == [
        ("core", None, None)
    ] * 2
    series = devices.ask(lab, "core", DeviceSeriesRequest("core"))
    assert sum(series.forward.out_bytes) >= 10 * (84 + 38), "pings that came out forward"
    rows = certified.rows([device(lab)])
    assert {row.verdict for row in rows} == {"ok"}
    assert next(row.measured for row in rows if row.quantity == "device says delay") == 60_000_000
    assert ewan("down", LAB).returncode == 0
    assert [mac(port) for port in PORTS] == before
    with box.driver() as driver:
        driver.describe(str(box.address), None, {})
        assert driver.read().forward.delay.delay_ns == 0, "the device is at its defaults"  # type: ignore[union-attr]


def test_its_faults_are_told_apart(box: Box, lab: Path) -> None:
    assert faults(lab) == set()
    box.tell("rounding")
    change = LinkSetRequest.of(Change(delay=ConstantDelay(20_003_000)), "core", "forward")
    devices.ask(lab, "core", change)
    assert faults(lab) == {("rounding", True)}
    assert "delay 20.003ms was set, and the device says 20ms" in device(lab).faults[0].said
    box.tell("well")
    devices.ask(lab, "core", change)
    assert faults(lab) == {("rounding", False)}
    # Numbers that fall by less than 200 ms are not told from an answer that is late; `up` had it count anew.
    until(lambda: devices.ask(lab, "core", ALL_ROWS).next > 1_000)
    box.tell("reset")
    until(lambda: ("reset", True) in faults(lab) and device(lab).answers)
    rows = certified.rows([device(lab)])
    wrong = {(row.direction, row.quantity) for row in rows if row.verdict == "outside"}
    assert wrong == {(way, f"device says {what}") for way in ("forward", "backward") for what in ("delay", "rate")}
    assert all("the device's fault, reset" in row.note for row in rows if row.verdict == "outside")
    until(lambda: any(each.restarted for each in devices.ask(lab, "core", ALL_ROWS).stretches))
    box.tell("silent")
    until(lambda: ("dead", True) in faults(lab))
    dead = next(row for row in certified.rows([device(lab)]) if row.quantity == "device answers")
    assert dead.verdict == "outside" and "the device's fault, dead" in dead.note
    box.tell("well")
    until(lambda: ("dead", False) in faults(lab))


def test_an_event_of_a_program_changes_it(lab: Path, tmp_path: Path) -> None:
    change = Change(delay=ConstantDelay(30_000_000))
    program = Program(
        commands=(Command("left1", ("ping", "-q", "-c", "1", "right1")), Command("left1", ("sleep", "0.8"))),
        longest_ns=20_000_000_000,
        events=(link_change(200_000_000, "core", "forward", change),),
        watch_ns=100_000_000,
    )
    NetnsRuntime(BINARY, lab.parent).batch(LAB, program, tmp_path)
    (event,) = json.loads((tmp_path / "events.json").read_text())["events"]
    assert event["error"] is None and event["applied_ns"] >= 200_000_000
    made = [each.change for each in devices.ask(lab, "core", ChangesRequest()).changes]
    assert made[0] == change and len(made) == 2, "the link is given back as it was"
    assert device(lab).says["forward"].delay == ConstantDelay(20_000_000)
    with (tmp_path / "links.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    counted = [int(row["sent_packets"]) for row in rows if row["direction"] == "forward"]
    assert counted == sorted(counted) and counted[-1] - counted[0] >= 1, "the ping, as the card behind it counts"


STEP = "{name: probe, from: left1, to: right1, for: 2s, udp: {size: 1000B, rate: 20Mbit/s}}"


def test_its_milliseconds_stand_beside_our_counts_in_the_report(
    ewan: Ewan, box: Box, description: Path, tmp_path: Path
) -> None:
    # The box keeps 8 s of milliseconds. On a busy machine the 1.5 s after which it counts as silent in the other tests
    # may end the driver, and until that is there again some are forgotten.
    patient = re.sub(r", options: \{[^}]*\}", "", description.read_text())
    lab = ", ".join(patient.splitlines()[1:])
    text = f"name: {LAB}\nlab: {{{lab}}}\nsteps: [{STEP}]\nmetrics: [device difference]\n"
    (tmp_path / "box.scenario.yaml").write_text(text)
    done = ewan("run", "box.scenario.yaml", "--unverified", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (found,) = (tmp_path / "results").glob(f"*-{LAB}")
    (run,) = (found / "runs").iterdir()
    device = tables.read(run, "device").filter(pl.col("direction") == "forward")
    # A busy machine makes answers late, and then the instant of a row is less certain. A series is two questions to the
    # box, each answered within 5 s or not at all: half of that, and two periods.
    uncertainty_ns = max(device["uncertainty_ns"].to_list())
    assert uncertainty_ns <= 500_000_000 and not device["restarted"].any()
    assert min(device["time_ns"].to_list()) <= 2_000_000 + uncertainty_ns, "from T0 on"
    # 5000 packets of 1000 bytes and their headers; what the cards count once more.
    assert 5_000 * 1_028 <= device["out_bytes"].sum() <= 5_300 * 1_090
    (point,) = json.loads((found / "summary.json").read_text())["points"]
    assert point["metrics"]["device difference"]["mean"] < 0.02
    drawn = (found / "figures/device-rate.csv").read_text()
    assert "core → device" in drawn and "core → ours" in drawn
    assert "device-rate" in (found / "report.html").read_text()
    assert not (run / "device.csv").exists()


def test_nothing_is_left_when_the_keeper_is_killed(ewan: Ewan, lab: Path) -> None:
    found = ((each, each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"]))
    (keeper,) = (each for each, words in found if str(lab) in words and "--link" in words)
    children = keeper.children(recursive=True)
    assert children, "the driver is its child"
    keeper.send_signal(signal.SIGKILL)
    until(lambda: not any(each.is_running() and each.status() != "zombie" for each in children))
    dead = ewan("lab", "set", "--lab", LAB, "core", "delay=10ms")
    assert dead.returncode == 2 and "the keeper of its device does not answer" in dead.stderr
    assert ewan("down", LAB).returncode == 0
    assert all(Path(f"/sys/class/net/{port}").exists() for port in PORTS)


def test_a_device_that_is_not_there_leaves_nothing(ewan: Ewan, description: Path, state: Path) -> None:
    wrong = description.with_name("wrong.lab.yaml")
    wrong.write_text(re.sub(r"address: [^,]+", "address: /nowhere/box", description.read_text()))
    done = ewan("up", str(wrong))
    assert done.returncode == 2 and "/nowhere/box: No such file or directory" in done.stderr
    assert not (state / LAB).exists()
    assert all(Path(f"/sys/class/net/{port}").exists() for port in PORTS)


@pytest.mark.parametrize("words", [(), ("--all",)])
def test_what_a_killed_box_left_is_removed_with_labs(ewan: Ewan, tmp_path: Path, words: tuple[str, ...]) -> None:
    box = Box(tmp_path, ("killed0", "killed1"))
    box.process.kill()
    box.process.wait()
    mark = f"simulated-{box.process.pid}"
    left = [Path("/run/netns", f"ewan-{mark}-box"), Path("/sys/class/net/killed0"), box.address]
    left += Path(tempfile.gettempdir()).glob(f"ewan-{mark}-*")
    assert len(left) == 4 and all(os.path.lexists(path) for path in left)
    done = ewan("down", *words)
    assert done.returncode == 0, done.stderr
    # Another test's `ewan down` may be removing the same things at this moment.
    until(lambda: not any(os.path.lexists(path) for path in left))
    until(lambda: not spinners.processes(mark))
