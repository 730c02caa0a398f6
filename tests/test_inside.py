"""Nodes of live labs as an engineer uses them: captures, and the tools of services without options. One lab of
namespaces; nothing here is a matter of timing but the delay of the link, of which half is asked for."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pcapng import FileScanner, blocks

from tests.conftest import ROOT, Ewan

pytestmark = pytest.mark.untimed

DELAY_NS = 10_000_000


@pytest.fixture(scope="module")
def lab(ewan: Ewan) -> Iterator[str]:
    name = f"in{os.getpid() % 100000}"
    words = ("--rtt", "20ms", "--rate", "100M", "--routing", "ospf", "--switch", "ovs", "--ip", "4")
    up = ewan("up", "dumbbell", *words, "--name", name)
    try:
        assert up.returncode == 0, up.stderr
        yield name
    finally:
        assert ewan("down", name).returncode == 0


@pytest.fixture
def pings(ewan: Ewan, lab: str) -> Iterator[None]:
    """Left1 pings right1 ten times a second for as long as the test runs."""
    begin = "ping -i 0.1 right1 >/dev/null 2>&1 & echo $!"
    pid = int(ewan("lab", "exec", "--lab", lab, "left1", "--", "sh", "-c", begin).stdout)
    yield
    os.kill(pid, signal.SIGTERM)


def packets(file: Path) -> list[tuple[str, str, int, bytes]]:
    """Interface, way, time and bytes of each packet; the end must be there, with counts that fit."""
    names: list[str] = []
    found: list[tuple[str, str, int, bytes]] = []
    kept = None
    with file.open("rb") as stream:
        for block in FileScanner(stream):
            if isinstance(block, blocks.InterfaceDescription):
                names.append(block.options["if_name"])
            elif isinstance(block, blocks.EnhancedPacket):
                time_ns = (block.timestamp_high << 32) + block.timestamp_low
                way = block.options["epb_flags"].inout
                found.append((names[block.interface_id], way, time_ns, block.packet_data))
            elif isinstance(block, blocks.InterfaceStatistics):
                kept = (kept or 0) + block.options["isb_usrdeliv"]
    assert kept == len(found)
    return found


def capture(ewan: Ewan, lab: str, *words: str) -> subprocess.CompletedProcess[str]:
    return ewan("lab", "capture", "--lab", lab, *words, timeout=40)


@pytest.mark.usefixtures("pings")
def test_both_sides_of_a_link_by_one_clock(ewan: Ewan, lab: str, tmp_path: Path) -> None:
    """Each packet once where it enters the link and once where it leaves it, its delay apart."""
    file = tmp_path / "core.pcapng"
    done = capture(ewan, lab, "core:forward", "icmp", "-c", "8", "-w", str(file))
    assert done.returncode == 0, done.stderr
    assert "8 kept, 0 dropped: as many as --count says" in done.stderr
    found = packets(file)
    assert {(name, way) for name, way, _, _ in found} == {("core:r1", "inbound"), ("core:r2", "outbound")}
    assert [each[2] for each in found] == sorted(each[2] for each in found)
    entered = {data[34:]: time_ns for name, _, time_ns, data in found if name == "core:r1"}
    # Above the IP header, which a router does not change here, for the link stands between the two.
    delays = [
        time_ns - entered[data[34:]] for name, _, time_ns, data in found if name == "core:r2" and data[34:] in entered
    ]
    assert len(delays) >= 2
    assert all(DELAY_NS <= delay < DELAY_NS + 50_000_000 for delay in delays), delays


@pytest.mark.usefixtures("pings")
def test_a_list_on_the_terminal_until_ctrl_c(lab: str, state: Path) -> None:
    environment = os.environ | {"EWAN_STATE": str(state), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, str(ROOT / "ewan" / "cli.py"), "lab", "capture", "--lab", lab, "left1", "icmp"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as listed:
        assert listed.stdout and listed.stderr
        lines = [listed.stdout.readline() for _ in range(4)]
        listed.send_signal(signal.SIGINT)
        # Lines that came with the first ones lie in the file's buffer, which `communicate` does not read.
        rest, said = listed.stdout.read(), listed.stderr.read()
        listed.wait(20)
    assert listed.returncode == 0
    assert all(" left1:eth0 " in line and " icmp echo re" in line for line in lines), lines
    seen = len(lines) + len(rest.splitlines())
    assert f"{seen} packets seen, {seen} kept, 0 dropped" in said


@pytest.mark.usefixtures("pings")
def test_into_a_pipe_and_into_wireshark(lab: str, state: Path, tmp_path: Path) -> None:
    """What stands for Wireshark here is a program that keeps the pcapng that it is given, and goes away."""
    stand_in = tmp_path / "wireshark"
    stand_in.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\nhead -c 600 >{tmp_path}/shown\n')
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    environment = os.environ | {"EWAN_STATE": str(state), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [sys.executable, str(ROOT / "ewan" / "cli.py"), "lab", "capture", "--lab", lab, "core:r2"]
    shown = subprocess.run([*command, "--wireshark"], env=environment, capture_output=True, text=True, timeout=40)
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "words").read_text() == "-k -i -\n"
    assert (tmp_path / "shown").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    with (tmp_path / "piped").open("wb") as pipe:
        piped = subprocess.run(
            [*command, "icmp", "-w", "-", "-c", "3"], env=environment, stdout=pipe, stderr=subprocess.PIPE, timeout=40
        )
    assert piped.returncode == 0, piped.stderr
    assert len(packets(tmp_path / "piped")) == 3
    told = subprocess.run(
        ["tcpdump", "-nr", str(tmp_path / "piped")], capture_output=True, text=True, check=True, timeout=20
    )
    assert told.stdout.count("ICMP echo re") == 3


@pytest.mark.usefixtures("pings")
def test_a_file_ends_at_its_size_and_a_capture_at_its_time(ewan: Ewan, lab: str, tmp_path: Path) -> None:
    file = tmp_path / "small.pcapng"
    done = capture(ewan, lab, "left1", "-w", str(file), "--limit", "1kB")
    assert done.returncode == 0 and "the file has the size that --limit allows" in done.stderr
    assert 700 < file.stat().st_size <= 1000 and packets(file)
    begun = time.monotonic()
    done = capture(ewan, lab, "left1", "udp port 9", "--for", "300ms")
    assert done.returncode == 0 and "0 packets seen, 0 kept" in done.stderr and not done.stdout
    assert 0.3 < time.monotonic() - begun < 20


def test_a_vlan_tag_is_where_it_stands_on_the_wire(ewan: Ewan, lab: str, state: Path, tmp_path: Path) -> None:
    """The kernel keeps the outermost tag beside a packet that comes in: it is put back, and the filter finds it."""
    file = tmp_path / "tagged.pcapng"
    frame = bytes.fromhex("ffffffffffff0200000000098100000588b5") + b"tagged".ljust(46, b"\0")
    send = (
        "import socket,time;s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW);s.bind(('eth0',0));"
        f"[(s.send(bytes.fromhex('{frame.hex()}')),time.sleep(.05)) for _ in range(100)]"
    )
    environment = os.environ | {"EWAN_STATE": str(state)}
    words = [sys.executable, str(ROOT / "ewan" / "cli.py")]
    sender = subprocess.Popen(
        [*words, "exec", "--lab", lab, "left1", "--", sys.executable, "-c", send], env=environment
    )
    try:
        done = capture(ewan, lab, "sw-r1", "vlan 5", "-c", "2", "-w", str(file))
    finally:
        sender.terminate()
        sender.wait(20)
    assert done.returncode == 0, done.stderr
    assert {data for _, _, _, data in packets(file)} == {frame}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody",), "has no node and no link nobody"),
        (("left1", "tcp prt 80"), "can't parse filter expression: syntax error"),
        (("left1", "--for", "3"), "write a duration as"),
        (("left1", "--snap", "5B"), "write a size of 14B to"),
        (("left1", "--limit", "10B"), "write at least 1kB"),
        (("left1", "-w", "/nonexistent/x"), "/nonexistent/x: No such file"),
        (("left1", "-w", "x", "--wireshark"), "write one of them"),
        (("left1", "--wireshark"), "wireshark is not installed: apt install wireshark"),
        (("left1", "--runtime", "virtual"), "write ewan lab batch TOPOLOGY --capture NODE --do"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(ewan: Ewan, lab: str, words: tuple[str, ...], said: str) -> None:
    done = capture(ewan, lab, *words)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_services_tools_need_no_options(ewan: Ewan, lab: str) -> None:
    """As people type them, also in a shell, and as a command of a program."""
    inside = ("lab", "exec", "--lab", lab)
    told = ewan(*inside, "r1", "--", "vtysh", "-c", "show ip ospf neighbor").stdout
    assert "Full/" in told, told
    assert "OSPF Routing Process" in ewan(*inside, "r2", "--", "sh", "-c", "vtysh -c 'show ip ospf'").stdout
    told = ewan(*inside, "sw-r1", "--", "ovs-vsctl", "show").stdout
    assert "Bridge switch" in told, told
    assert "n_tables" in ewan(*inside, "sw-r1", "--", "ovs-ofctl", "show", "switch").stdout
    # A host that runs neither is not shown them.
    assert ewan(*inside, "left1", "--", "vtysh", "-c", "show ip ospf").returncode != 0


@pytest.mark.virtual
def test_a_capture_is_a_part_of_a_program_of_the_virtual_clock(ewan: Ewan, tmp_path: Path) -> None:
    words = (
        "lab",
        "batch",
        "dumbbell",
        "--rtt",
        "20ms",
        "--rate",
        "10M",
        "--dither",
        "0",
        "--ip",
        "4",
        "--runtime",
        "virtual",
    )
    captures = ("--capture", "core:forward icmp", "--capture", "left1")
    done = ewan(*words, *captures, "--do", "left1: ping -q -c 3 -i 0.2 right1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    place = Path(tmp_path, document["directory"], "commands")
    found = packets(place / "2-core/packets.pcapng")
    entered, left = ([each for each in found if each[0] == name] for name in ("core:r1", "core:r2"))
    assert len(entered) == len(left) == 3
    # 98 bytes of the frame and 24 beside it on the wire, at 10 Mbit/s.
    expected = DELAY_NS + (98 + 24) * 800
    assert [b[2] - a[2] for a, b in zip(entered, left, strict=True)] == pytest.approx([expected] * 3, abs=1000)
    assert any(way == "outbound" for _, way, _, _ in packets(place / "3-left1/packets.pcapng"))
