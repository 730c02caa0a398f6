"""Links that are external emulators: refusals of a compilation, distinct faults, drivers that misbehave."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ewan.labs import plan as plans
from ewan.labs.base import codec
from ewan.labs.base.product import ROOT
from ewan.labs.change import compile_change, wanted
from ewan.labs.compile import HostFacts, compile
from ewan.labs.hardware import catalogue, driver
from ewan.labs.hardware.abilities import Range, rounded
from ewan.labs.hardware.account import Account
from ewan.labs.hardware.driver import DeviceReading, Driver, DriverError, caller
from ewan.labs.hardware.requests import ReadRequest
from ewan.labs.hardware.settings import settings_of
from ewan.labs.link import ConstantDelay
from ewan.labs.plan import Plan
from ewan.labs.render import files
from ewan.labs.spec import DescriptionError, parse

pytestmark = pytest.mark.slow

HOST = HostFacts(cpus=(0, 1), networks=())
BOX = "hardware: {driver: gtrcnet, address: /dev/ttyUSB0, ports: [eth2, eth3]}"


def compiled(core: str = BOX, more: str = "", folder: Path = Path()) -> Plan:
    rtt = "" if "delay:" in core else "rtt: 100ms"
    text = f"topology: dumbbell\n{rtt}\n{more}\nlinks:\n  core: {{{core}}}\n"
    return compile(parse(text, folder / "box.lab.yaml"), HOST)


def refused(core: str = BOX, more: str = "", folder: Path = Path()) -> str:
    with pytest.raises(DescriptionError) as error:
        compiled(core, more, folder)
    return str(error.value)


def test_a_device_is_a_cable_between_two_cards() -> None:
    plan = compiled()
    (link,) = plan.links
    assert (link.backend, link.node, link.port_a, link.port_b) == ("hardware", "", "eth2", "eth3")
    assert [(card.name, card.end) for card in plan.cards] == [("eth2", link.a), ("eth3", link.b)]
    assert [wire for wire in plan.wires if wire.link == "core"] == [plans.Wire("core", link.a, link.b)]
    assert not any(node.name == "core" for node in plan.nodes)
    (device,) = plan.hardware
    assert (device.driver, device.model, device.own_queue) == ("gtrcnet", "gtrcnet-1", True)
    assert plans.from_json(plans.to_json(plan)) == plan


def test_a_plan_without_devices_says_nothing_of_them() -> None:
    plan = compiled("loss: 0%")
    assert b"hardware" not in plans.to_json(plan)
    assert plans.from_json(plans.to_json(plan)) == plan


@pytest.mark.parametrize(
    ("core", "more", "said"),
    [
        (f"{BOX}, delay: 135ms", "", "delays from 0ms to 134ms by 8ns"),
        (f"{BOX}, rate: 2Gbit/s", "", "rates from 1Mbit/s to 1Gbit/s by 1Mbit/s"),
        (f"{BOX}, jitter: 1ms", "", "its delays are constant"),
        (f"{BOX}, loss: {{gilbert-elliott: {{to_bad: 1%, to_good: 10%}}}}", "", "its losses are none or bernoulli"),
        (f"{BOX}, corrupt: 1%", "", "on core, a gtrcnet-1: it has no such setting"),
        (f"{BOX}, buffer: 100pkt", "", "it reports nothing about its own queue: leave buffer out"),
        (f"{BOX}, queue: codel", "", "it reports nothing about its own queue: leave queue out"),
        (f"{BOX}, framing: ip", "", "its rate counts wire"),
        (f"{BOX}, duplex: half", "", "no external emulator is asked for it"),
        (f"{BOX}, police: {{rate: 1Mbit/s, burst: 10kB}}", "", "no external emulator is asked for it"),
        ("hardware: {driver: gtrcnet, address: x, ports: [eth2, eth2]}", "", "both are eth2: write two cards"),
        ("hardware: {driver: gtrcnet, address: x, ports: [eth2]}", "", "ports"),
        ("hardware: {driver: gtrcnet, address: x, ports: [../eth2, eth3]}", "", "write the name of an interface"),
        ("hardware: {driver: gtrcent, address: x, ports: [a, b]}", "", 'no such driver, write "gtrcnet"'),
        ("hardware: {driver: gtrcnet, model: gtrcnet-2, address: x, ports: [a, b]}", "", "there is no such model"),
        ("hardware: {driver: gtrcnet, adress: x, ports: [a, b]}", "", 'external emulator, write "address"'),
        ('hardware: {driver: gtrcnet, address: "a\\nb", ports: [a, b]}', "", "write a text of one line"),
        ("hardware: {driver: ./mine, address: x, ports: [a, b]}", "", "ewan driver describe ./mine prints it"),
        ("loss: 0%", f"wan: {{{BOX}}}", "wan.hardware: unknown key"),
        (BOX.replace("eth3", "eth2x"), "topology2: x", "unknown key"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(core: str, more: str, said: str, tmp_path: Path) -> None:
    text = refused(core, more, tmp_path)
    assert said in text, text
    assert "\n" not in text


def test_no_containers_are_written_for_a_device(tmp_path: Path) -> None:
    made = files.written(compiled(), tmp_path, sheet="", version="1")
    assert sorted(made) == ["picture", "plan", "table"]


def test_a_card_is_cabled_once() -> None:
    text = f"topology: {{chain: {{hops: 2}}}}\nrtt: 10ms\nlinks:\n  hop1: {{{BOX}}}\n  hop2: {{{BOX}}}\n"
    with pytest.raises(DescriptionError, match="eth2 is cabled to another link already"):
        compile(parse(text, Path("box.lab.yaml")), HOST)


def test_the_virtual_clock_has_no_devices() -> None:
    text = f"topology: dumbbell\nrtt: 10ms\nlinks:\n  core: {{{BOX}}}\n"
    with pytest.raises(DescriptionError, match="a device has a clock of its own"):
        compile(parse(text, Path("box.lab.yaml")), replace(HOST, clock="virtual"))


def test_a_driver_of_ones_own_has_its_file_beside_it(tmp_path: Path) -> None:
    known = json.loads((ROOT / "extras/devices/gtrcnet.driver.json").read_text())
    known["models"] = {"mine": known["models"]["gtrcnet-10"]}
    (tmp_path / "mine.driver.json").write_text(json.dumps(known))
    core = "hardware: {driver: ./mine, address: x, ports: [a, b], options: {speed: 9600}}, rate: 10Gbit/s"
    (device,) = compiled(core, folder=tmp_path).hardware
    assert (device.driver, device.model, device.options) == (str(tmp_path / "mine"), "mine", {"speed": "9600"})
    (tmp_path / "mine.driver.json").write_text('{"format": "ewan-driver/1", "models": {"mine": {"abilities": {}}}}')
    assert "mine.driver.json: models.mine.abilities has no key" in refused(core, folder=tmp_path)


def test_a_change_beyond_the_device_is_refused() -> None:
    plan = compiled()
    link = plan.links[0]
    assert compile_change(plan, link, "forward", wanted({"delay": "134ms"})).delay == ConstantDelay(134_000_000)
    with pytest.raises(DescriptionError, match="delay=135ms: core is a gtrcnet-1: it delays from 0ms to 134ms"):
        compile_change(plan, link, "forward", wanted({"delay": "135ms"}))
    with pytest.raises(DescriptionError, match="buffer=10pkt: core is a gtrcnet-1"):
        compile_change(plan, link, "forward", wanted({"buffer": "10pkt"}))


@pytest.mark.parametrize(("value", "found"), [(0, 0), (3, 0), (4, 8), (5, 8), (12, 16), (99, 96), (100, 96)])
def test_the_nearest_step(value: int, found: int) -> None:
    assert Range(0, 100, 8).nearest(value) == found


class Told:
    """An account of a device that was set to 20 ms; each `says` is a second later."""

    def __init__(self) -> None:
        self.link = compiled().links[0]
        self.account = Account(catalogue.models("gtrcnet")["gtrcnet-1"].abilities)
        self.now = 0.0

    def settings(self, delay_ns: int) -> object:
        return settings_of(codec.replace(self.link.forward, delay=ConstantDelay(delay_ns)), queue=False)

    def reading(self, delay_ns: int) -> DeviceReading:
        both = self.settings(delay_ns)
        return DeviceReading(both, both, {})  # type: ignore[arg-type]

    def set(self, delay_ns: int, has_ns: int) -> None:
        for heading in ("forward", "backward"):
            self.account.was_set(heading, self.settings(delay_ns), self.reading(has_ns), self.now)  # type: ignore[arg-type]

    def says(self, delay_ns: int) -> None:
        self.now += 1
        self.account.was_read(self.reading(delay_ns), self.now)

    def silent(self) -> None:
        self.now += 1
        self.account.failed(DriverError("silent", "no answer"), self.now)

    @property
    def faults(self) -> list[tuple[str, float, float | None]]:
        return [(each.kind, each.time_s, each.ended_s) for each in self.account.faults]


def test_a_value_between_steps_is_no_fault() -> None:
    told = Told()
    told.set(20_000_003, 20_000_000)
    told.says(20_000_000)
    assert told.faults == []


def test_rounding_that_the_steps_do_not_explain_is_one() -> None:
    told = Told()
    told.set(20_400_000, 20_000_000)
    told.says(20_000_000)
    assert told.faults == [("rounding", 0.0, None)] * 2
    assert told.account.faults[0].said == "forward: delay 20.4ms was set, and the device says 20ms"
    told.now = 5.0
    told.set(20_000_000, 20_000_000)
    assert told.faults == [("rounding", 0.0, 5.0)] * 2


def test_a_reset_is_told_once_and_until_it_is_set_again() -> None:
    told = Told()
    told.set(20_000_000, 20_000_000)
    for _ in range(3):
        told.says(0)
    assert told.faults == [("reset", 1.0, None)] * 2
    assert "delay 20ms became 0ms, and it had not been set" in told.account.faults[0].said
    told.set(20_000_000, 20_000_000)
    assert told.faults == [("reset", 1.0, 3.0)] * 2


def test_silence_is_told_apart_and_may_end() -> None:
    told = Told()
    told.set(20_000_000, 20_000_000)
    told.silent()
    told.silent()
    assert told.account.dead
    told.says(20_000_000)
    assert told.faults == [("dead", 1.0, 3.0)] and not told.account.dead


def test_what_is_read_back_of_a_setting_is_its_nearest() -> None:
    known = catalogue.models("gtrcnet")["gtrcnet-1"].abilities
    wanted_ = settings_of(codec.replace(compiled().links[0].forward, delay=ConstantDelay(13)), queue=False)
    assert rounded(wanted_, known).delay == ConstantDelay(16)


def program(folder: Path, text: str) -> Driver:
    file = folder / "driver"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return Driver([str(file)], environment=os.environ)


@pytest.mark.parametrize(
    ("text", "fault", "said"),
    [
        ("exit 3", "ended", "ended at read, with status 3"),
        ("read line; echo nonsense; read line", "nonsense", "no JSON"),
        ("read line; echo '[1]'; read line", "nonsense", "no JSON object"),
        ("read line; echo '{}'; read line", "nonsense", 'neither "ok": true nor'),
        ("read line; echo '{\"ok\": true}'; read line", "nonsense", "lacks 'backward'"),
        ('read line; echo \'{"ok": false, "error": "too hot"}\'; read line', "refused", "refuses read: too hot"),
        ("read line; head -c 9000000 /dev/zero | tr '\\0' x; read line", "nonsense", "more than 4194304 bytes"),
    ],
)
def test_what_a_driver_may_not_answer(text: str, fault: str, said: str, tmp_path: Path) -> None:
    with program(tmp_path, text) as wrong, pytest.raises(DriverError) as error:
        wrong.read()
    assert (error.value.fault, said in str(error.value)) == (fault, True), error.value


def test_a_driver_that_says_nothing_is_waited_for_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ENDS_S", 0.1)
    began = time.monotonic()
    with program(tmp_path, "trap '' TERM; sleep 60") as silent, pytest.raises(DriverError) as error:
        silent.ask(ReadRequest(), 0.2)
    assert error.value.fault == "silent"
    assert time.monotonic() - began < 10


def test_a_driver_gets_no_shell_and_little_of_the_environment(tmp_path: Path) -> None:
    answer = """echo "{\\"ok\\": true, \\"env\\": \\"$(env | cut -d= -f1 | sort | tr '\\n' ' ')\\"}" """
    file = tmp_path / "driver; touch pwned"
    file.write_text(f"#!/bin/sh\nread line; {answer}\nread line\n")
    file.chmod(0o755)
    told = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "SECRET": "1", "EWAN_STATE": "/x"}
    with Driver([str(file)], environment=told) as running:
        found = str(running.ask(ReadRequest())["env"]).split()
    assert set(found) - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "HOME"}
    assert not (tmp_path / "pwned").exists()


def test_under_sudo_a_driver_is_its_callers(tmp_path: Path) -> None:
    assert caller({}) is None
    if os.geteuid() != 0:
        assert caller({"SUDO_UID": "65534", "SUDO_GID": "65534"}) is None
        return
    assert caller({"SUDO_UID": "0", "SUDO_GID": "0"}) is None
    who = caller({"SUDO_UID": "65534", "SUDO_GID": "65534"})
    with Driver(
        ["/bin/sh", "-c", 'read line; echo "{\\"ok\\": true, \\"uid\\": $(id -u)}"; read line'],
        user=who,
        environment=os.environ,
    ) as running:
        assert running.ask(ReadRequest())["uid"] == 65534


def test_the_plan_is_the_one_that_the_node_binary_reads() -> None:
    """tests/golden/hardware.plan.json, which emulator/plan/src/lib.rs reads too."""
    golden = ROOT / "tests/golden/hardware.plan.json"
    assert plans.to_json(compiled()) == golden.read_bytes()
