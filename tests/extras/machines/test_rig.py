"""What the machines of the rig have of their own, and what their network does when it is told to."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.extras.machines_rig import INTERFACE, Rig

pytestmark = pytest.mark.live


def within(rig: Rig, name: str, *words: str) -> str:
    command = ["nsenter", f"--net=/proc/{rig.namespace(name)}/ns/net", "--", *words]
    return subprocess.run(command, capture_output=True, text=True).stdout


def ping(rig: Rig, count: int, *options: str) -> tuple[int, list[float]]:
    """From one to two: answers, and the smallest and the mean round-trip time in ms."""
    said = within(rig, "one", "ping", "-n", "-q", "-c", str(count), *options, rig.address_4["two"])
    answers, times = re.search(r"(\d+) received", said), re.search(r"= ([\d.]+)/([\d.]+)/", said)
    assert answers is not None, said
    return int(answers[1]), [float(each) for each in times.groups()] if times else []


def test_packets_are_late_in_one_direction(rig: Rig) -> None:
    assert ping(rig, 20, "-i", "0.002")[1][0] < 2
    rig.delay("one", 5)
    try:
        answers, (least, mean) = ping(rig, 20, "-i", "0.01")
    finally:
        rig.delay("one", 0)
    assert answers == 20
    assert 5 <= least < 6
    assert mean >= least
    assert ping(rig, 20, "-i", "0.002")[1][0] < 2


def test_a_share_of_packets_is_lost(rig: Rig) -> None:
    rig.lose(0.3, ["one"])
    try:
        # Of 400: within five standard deviations.
        assert 280 - 46 < ping(rig, 400, "-i", "0.001", "-W", "0.1")[0] < 280 + 46
        rig.lose(1.0, ["one"], udp_port=4789)
        assert ping(rig, 20, "-i", "0.001")[0] == 20
    finally:
        rig.lose_none()
    assert ping(rig, 20, "-i", "0.001")[0] == 20


def test_large_packets_are_swallowed_where_the_network_is_narrow(rig: Rig) -> None:
    sizes = {size: ("-i", "0.001", "-W", "0.1", "-M", "do", "-s", str(size - 28)) for size in (1400, 1401)}
    rig.narrow(1400, ["two"])
    try:
        assert {size: ping(rig, 3, *options)[0] for size, options in sizes.items()} == {1400: 3, 1401: 0}
    finally:
        rig.narrow(1500, ["two"])
    assert ping(rig, 3, *sizes[1401])[0] == 3


def test_a_cable_is_pulled_and_put_back(rig: Rig) -> None:
    rig.pull("two")
    try:
        assert ping(rig, 3, "-i", "0.001", "-W", "0.1")[0] == 0
    finally:
        rig.plug("two")
    assert ping(rig, 6, "-i", "0.05", "-W", "0.2")[0] > 0


def test_a_machine_has_interfaces_processes_and_a_name_of_its_own(rig: Rig) -> None:
    command = ["nsenter", "--all", f"--target={rig.first(name := 'two')}", "--", "sh", "-c"]
    script = "hostname; ls /sys/class/net /run/netns; cat /proc/1/cmdline | tr '\\0' ' '; ls -d /proc/[0-9]* | wc -l"
    said = subprocess.run([*command, script], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"{name}\n/run/netns:\n\n/sys/class/net:\n{INTERFACE}\nlo\n{sys.executable} -I -S ")
    assert int(said.split()[-1]) < 20
