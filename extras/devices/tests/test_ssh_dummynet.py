"""The commands of ipfw and the values read from its output; the protocol with a box of the test's own programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ewan.extras.devices.conformance import checks
from ewan.extras.devices.serve import DeviceRefusedError
from ewan.extras.devices.ssh_dummynet import configuration, has_rule, parsed, rule
from ewan.extras.devices.tests import freebsd_box, ssh_server
from ewan.labs.base.codec import replace
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.driver import Driver, DriverError
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link import BernoulliLoss, ConstantDelay, DropTail, NoLoss, Queue

pytestmark = pytest.mark.slow

CARDS = {"first": "em1", "second": "em2"}
PRINTED = """\
00007:  64.000 Kbit/s    0 ms burst 0
q131079  50 sl. 0 flows (1 buckets) sched 65543 weight 0 lmax 0 pri 0 droptail
 sched 65543 type FIFO flags 0x0 0 buckets 0 active
00100:   2.500 Mbit/s  300 ms burst 0
q131172  50 sl.plr 0.050000 0 flows (1 buckets) sched 65636 weight 0 lmax 0 pri 0 droptail
 sched 65636 type FIFO flags 0x0 0 buckets 1 active
BKT Prot ___Source IP/port____ ____Dest. IP/port____ Tot_pkt/bytes Pkt/Byte Drp
  0 ip           0.0.0.0/0             0.0.0.0/0      130    68642  0    0   6
"""
SETTINGS = DeviceSettings(
    rate_bps=2_500_000,
    delay=ConstantDelay(300_000_000),
    reorder=False,
    loss=BernoulliLoss(50_000_000),
    corrupt_ppb=0,
    duplicate_ppb=0,
    queue=Queue(limit_packets=50, limit_bytes=None, discipline=DropTail()),
)
IN_BYTES = Queue(limit_packets=None, limit_bytes=30 * 1024, discipline=DropTail())


def test_what_ipfw_printed_is_what_was_set() -> None:
    assert parsed(PRINTED, 100) == SETTINGS


def test_what_ipfw_is_told() -> None:
    assert " ".join(configuration(100, SETTINGS)) == (
        "ipfw pipe 100 config bw 2500000bit/s delay 300 queue 50 plr 0.050000000 droptail"
    )
    other = DeviceSettings(10**9, ConstantDelay(0), False, NoLoss(), 0, 0, IN_BYTES)
    assert " ".join(configuration(101, other)) == (
        "ipfw pipe 101 config bw 1000000000bit/s delay 0 queue 30Kbytes plr 0.000000000 droptail"
    )
    assert " ".join(rule(100, "em2")) == "pipe 100 ip from any to any layer2 out xmit em2"


@pytest.mark.parametrize(
    ("was", "now", "rate_bps", "queue"),
    [
        ("  2.500 Mbit/s", "  1.000 Gbit/s", 10**9, SETTINGS.queue),
        ("  2.500 Mbit/s", "1000.000 Mbit/s", 10**9, SETTINGS.queue),  # before FreeBSD had Gbit/s
        (" 50 sl.plr", "30 KBplr", 2_500_000, IN_BYTES),
        (" 50 sl.plr", "2048 Bplr", 2_500_000, Queue(None, 2048, DropTail())),
    ],
)
def test_units_of_ipfw_are_read(was: str, now: str, rate_bps: int, queue: Queue) -> None:
    found = parsed(PRINTED.replace(was, now), 100)
    assert (found.rate_bps, found.queue, found.delay) == (rate_bps, queue, SETTINGS.delay)


@pytest.mark.parametrize(
    "printed",
    [
        "",
        PRINTED.replace("00100:", "00099:"),
        PRINTED.replace("  2.500 Mbit/s", "unlimited     "),
        PRINTED.replace("q131172", "q131173"),
        PRINTED.replace("pri 0 droptail", "pri 0 \n\t  RED w_q 0.002000 min_th 30 max_th 80 max_p 0.100000"),
    ],
)
def test_other_pipes_are_refused(printed: str) -> None:
    with pytest.raises(DeviceRefusedError, match="reset it first"):
        parsed(printed, 100)


def test_a_rule_of_somebody_else_is_refused() -> None:
    ours = "00100 pipe 100 ip from any to any layer2 out xmit em2\n"
    assert has_rule(ours + "65535 allow ip from any to any\n", 100, "em2")
    assert has_rule(ours.replace("layer2 out xmit em2", "out xmit em2 layer2"), 100, "em2")
    assert not has_rule("65535 allow ip from any to any\n", 100, "em2")
    for listed in (ours * 2, "00100 allow ip from any to any via lo0\n", ours.replace("em2", "em3")):
        with pytest.raises(DeviceRefusedError, match="rule 100 of the box is used by others, too"):
            has_rule(listed, 100, "em2")


class Box:
    """A FreeBSD box: an SSH server here, whose shell has the box's programs first in PATH."""

    def __init__(self, folder: Path) -> None:
        self._state = folder / "state.json"
        self._programs = folder / "programs"
        self._programs.mkdir()
        place = Path(freebsd_box.__file__).parent
        for name in ("ipfw", "sysctl", "ifconfig", "uname"):
            program = self._programs / name
            program.write_text(
                f"#!{sys.executable} -IS\n"
                f"import sys\nsys.path.append({str(place)!r})\nimport freebsd_box\nfreebsd_box.main()\n"
            )
            program.chmod(0o755)
        self.environment = {"BOX_STATE": str(self._state), "PATH": f"{self._programs}:{os.environ['PATH']}"}
        self.options = CARDS | {"config": str(folder / "config")}
        self.state = freebsd_box.NEW

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._state.read_text())
        return found

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self._state.write_text(json.dumps(state))

    def driver(self) -> Driver:
        argv, folder = catalogue.argv("ssh-dummynet")
        return Driver(argv, folder=folder, environment=os.environ)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    box = Box(tmp_path)
    with ssh_server.box(tmp_path, box.environment):
        yield box


def test_the_driver_keeps_to_the_protocol(box: Box) -> None:
    found = list(checks(box.driver, "box", None, box.options))
    assert [each for each in found if not each.holds] == []
    assert len(found) > 40


def test_two_rules_fill_two_pipes(box: Box) -> None:
    with box.driver() as of:
        known = of.describe("box", None, box.options | {"number": "500"}).abilities
        assert box.state["rules"] == [] and box.state["pipes"] == {}
        assert known.queue is not None and known.queue.limit_packets is not None and known.queue.limit_bytes is not None
        assert (known.queue.limit_packets.most, known.queue.limit_bytes.most) == (100, 1024 * 1024)
        with pytest.raises(DriverError, match="rule 500 is not there"):
            of.read()
        of.reset()
        of.reset()
        of.set("backward", SETTINGS)
        assert box.state["rules"] == [
            [500, "pipe 500 ip from any to any layer2 out xmit em2"],
            [501, "pipe 501 ip from any to any layer2 out xmit em1"],
        ]
        assert box.state["pipes"]["501"] == {
            "bw": 2_500_000,
            "delay": 300,
            "size": 50,
            "bytes": False,
            "plr": 107374182,
        }
        assert box.state["pipes"]["500"] == {"bw": 10**9, "delay": 0, "size": 50, "bytes": False, "plr": 0}
        assert of.read().backward == SETTINGS
        with pytest.raises(DriverError, match="its queue has one limit"):
            of.set("backward", replace(SETTINGS, queue=Queue(50, 2048, DropTail())))
        box.state = box.state | {"rules": [[501, "allow ip from any to any via em1"]]}
        with pytest.raises(DriverError, match="rule 501 of the box is used by others, too"):
            of.set("backward", replace(SETTINGS, rate_bps=10**6))
        assert box.state["pipes"]["501"]["bw"] == 2_500_000


MISFITS: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"members": ["em1"]}, {}, "em1 and em2 are not in one bridge"),
    ({"system": "Linux 6.1"}, {}, "the box is no FreeBSD"),
    ({"sysctl": freebsd_box.NEW["sysctl"] | {"net.link.bridge.ipfw": 0}}, {}, "sysctl net.link.bridge.ipfw=1"),
    ({"sysctl": freebsd_box.NEW["sysctl"] | {"kern.hz": 100}}, {}, "kern.hz is 100"),
    ({"sysctl": {"net.link.bridge.ipfw": 1, "kern.hz": 1000}}, {}, "unknown oid"),
    ({}, {"number": "65534"}, "write 1 to 65533"),
    ({}, {"number": "1;reboot"}, "write 1 to 65533"),
    ({}, {"second": "em1"}, "options first and second"),
    ({}, {"speed": "1"}, "option speed: there are first, second, config, sudo, number"),
]


def test_what_does_not_fit_is_one_line(box: Box) -> None:
    with box.driver() as of:
        for change, options, why in MISFITS:
            box.state = freebsd_box.NEW | change
            with pytest.raises(DriverError, match=why):
                of.describe("box", None, box.options | options)
        box.state = freebsd_box.NEW
        assert of.describe("box", None, box.options).device == "FreeBSD 14.1-RELEASE"
