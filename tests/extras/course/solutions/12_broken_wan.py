"""A good student of lab 12: finds the port whose lines differ where the others agree, mends it, and measures again."""

from __future__ import annotations

import re
from collections import Counter

from ewan.analysis.api import Results
from tests.extras.course.desk import Desk, written

FILE = "night.scenario.yaml"
NAMES = {
    "hello-interval": "another hello interval than its neighbour",
    "dead-interval": "another dead interval than its neighbour",
    "area": "another area than its neighbour",
    "passive": "the port is passive",
    "cost": "a wrong cost",
}
LAN = ("r1 eth0", "r3 eth0", "r4 eth0")


def solve(desk: Desk) -> dict[str, str]:
    """The answers."""
    north, south, dead = (desk.number(name) for name in ("north", "south", "dead"))
    day, night, _ = (desk.run(command) for command in desk.commands)
    assert desk.read(day, "udp loss of probe") * 4 < 0.2
    rtt = pings(night)[15]
    asymmetric = 4 * north * 1.1 < rtt < 4 * south * 0.9
    file = desk.folder.path / FILE
    port, key, wrong, right = odd(file.read_text())
    file.write_text(mended(file.read_text(), port, wrong, right))
    again = desk.run(desk.commands[-1])
    full = sum(text.count("Full/") for text in outputs(again))
    return {
        "near": written(4 * north, "time"),
        "far": written(4 * south, "time"),
        "cut": "less than 0.2 s",
        "seen": "their interfaces lost the carrier",
        "predicted": written(dead, "time"),
        "symptom": written(rtt, "time"),
        "redundancy": "the archive is reached by north1 and north2" if asymmetric else "the archive is out of reach",
        "router": port.split()[0],
        "fault": NAMES[key],
        "found": "show ip ospf neighbor: an adjacency is missing; show ip ospf interface at both ends: they differ.",
        "adjacency": str(full),
        "outage": written(desk.read(again, "udp loss of probe") * 30, "time"),
        "phase": "By the time since the last hello that arrived: between dead less hello and dead.",
        "faster": "Faster detection, more work, and false alarms when hellos wait in a full queue; BFD.",
    }


def pings(results: Results) -> list[float]:
    """The RTTs of the office's ping, in seconds."""
    (text,) = (path.read_text() for path in results.directory.glob("runs/001/commands/*-office.out"))
    return [float(each) / 1000 for each in re.findall(r"time=([\d.]+) ms", text)]


def outputs(results: Results) -> list[str]:
    """What routers said of their neighbours."""
    return [path.read_text() for path in results.directory.glob("runs/001/commands/*-r[1-4].out")]


def typed(text: str) -> dict[str, dict[str, str]]:
    """Of each port of a link, `r1 eth1`: the last value of each setting of OSPF."""
    found: dict[str, dict[str, str]] = {}
    for router, step in re.findall(r"- name: change-(r\d)\n(.*?)(?=\n  - |\n  #)", text, re.DOTALL):
        for eth, lines in re.findall(r"'interface (eth\d)'(.*?)(?=-c 'interface|\Z)", step, re.DOTALL):
            settings = re.findall(r"'ip ospf (\S+) ?([^']*)'", lines)
            found[f"{router} {eth}"] = dict(settings)
    return {port: settings for port, settings in found.items() if port not in LAN}


def odd(text: str) -> tuple[str, str, str, str]:
    """The port that differs, in which setting, and its line and the one that it should be."""
    ports = typed(text)
    for key in NAMES:
        values = Counter(settings.get(key) for settings in ports.values())
        for port, settings in ports.items():
            value = settings.get(key)
            if values[value] == 1:
                common = values.most_common(1)[0][0] if key != "cost" else str(int(value or 0) // 100)
                right = "" if common is None else f"-c 'ip ospf {key} {common}'"
                return port, key, f"-c 'ip ospf {f'{key} {value}'.strip()}'", right
    raise AssertionError("all ports agree")


def mended(text: str, port: str, wrong: str, right: str) -> str:
    """The scenario with this line of a port put right."""
    router, eth = port.split()
    at = text.index(f"'interface {eth}'", text.index(f"- name: change-{router}\n"))
    return text[:at] + text[at:].replace("-c 'no ip ospf area' ", "", "area 1" in wrong).replace(wrong, right, 1)
