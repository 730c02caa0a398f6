"""What the runtime's tests share: a small lab of three nodes, and a look at everything that a lab leaves on a host."""

from __future__ import annotations

import csv
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl
import psutil

from ewan.labs.base.product import NODE_BINARY
from ewan.labs.link import Egress, Fifo, Tbf
from ewan.labs.plan import Containers, End, Interface, Neighbour, Node, Plan, Route, Spinner, Wire
from ewan.labs.record.tables import TABLES
from ewan.labs.runtime.progress import reading
from ewan.labs.runtime.state import LOCK

BINARY = Path(os.environ.get("EWAN_NODE") or NODE_BINARY).resolve()
FORWARDING = {"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1", "net/ipv4/tcp_no_metrics_save": "1"}
FIFO = Fifo(1000)
TBF = Tbf(rate_bps=50_000_000_000, burst_bytes=262_144, limit_bytes=4_194_304, overhead_bytes=24)


class StopAfter(threading.Event):
    """Ends the virtual run in `place` when its clock has come to `virtual_ns`, however fast this machine is."""

    def __init__(self, place: Path, virtual_ns: int) -> None:
        super().__init__()
        self.progress, self.virtual_ns = place / "progress", virtual_ns

    def is_set(self) -> bool:
        found = reading(self.progress.read_bytes())
        return found is not None and found.virtual_ns >= self.virtual_ns


def mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def interface(name: str, number: int, peer: int, net: int, host: int, egress: Egress) -> Interface:
    other = 3 - host
    return Interface(
        name=name,
        mac=mac(number),
        mtu=1500,
        addresses=(f"10.99.{net}.{host}/30", f"fd99::{net}:{host}/126"),
        neighbours=(Neighbour(f"10.99.{net}.{other}", mac(peer)), Neighbour(f"fd99::{net}:{other}", mac(peer))),
        egress=egress,
        steer=True,
    )


def small(name: str, spinners: tuple[Spinner, ...] = (), sysctls: dict[str, str] | None = None) -> Plan:
    """left — router — right, both families; no emulated link."""
    left, right = interface("eth0", 1, 2, 1, 1, TBF), interface("eth0", 4, 3, 2, 1, FIFO)
    near, far = interface("eth0", 2, 1, 1, 2, TBF), interface("eth1", 3, 4, 2, 2, FIFO)

    def default(net: int) -> tuple[Route, ...]:
        return Route("0.0.0.0/0", f"10.99.{net}.2", "eth0"), Route("::/0", f"fd99::{net}:2", "eth0")

    nodes = (
        Node("left", "host", (left,), default(1), sysctls or FORWARDING, (), (), None, None),
        Node("router", "router", (near, far), (), FORWARDING, (), (), None, None),
        Node("right", "host", (right,), default(2), FORWARDING, (), (), None, None),
    )
    wires = (
        Wire("near", End("left", "eth0"), End("router", "eth0")),
        Wire("far", End("router", "eth1"), End("right", "eth0")),
    )
    return Plan(
        name, "graph", 1, "static", Containers(), nodes, wires, (), spinners, (), (min(os.sched_getaffinity(0)),)
    )


def table(place: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a run's NAME.csv, whose columns are those of the record's table; None for what is not counted."""
    with (place / f"{name}.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        assert reader.fieldnames == list(TABLES[name])
        words = {column for column, kind in TABLES[name].items() if kind == pl.String}
        return [
            {key: value if key in words else int(value) if value else None for key, value in row.items()}
            for row in reader
        ]


def traces(lab: str, state: Path) -> list[str]:
    """Everything of a lab that can be found on this host: namespaces, mounts, files, processes."""
    mark = f"ewan-{lab}-"
    found = [str(path) for place in ("/run/netns", "/etc/netns") for path in Path(place).glob(f"{mark}*")]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if mark in line]
    found += [str(path) for path in state.glob(f"**/{lab}*")]
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            if process.pid != os.getpid() and str(state / lab) in command:
                found.append(f"process {process.pid}: {command}")
    return found


OF_OTHER_TESTS = "outside"
"""The beginning of the names of interfaces that a test makes in this process's own network namespace."""


def links_of_host() -> set[str]:
    """The interfaces of this process's own network namespace, but for those of other tests that run now."""
    names = {path.name for path in Path("/sys/class/net").iterdir()}
    return {name for name in names if not name.startswith(OF_OTHER_TESTS)}


@contextmanager
def own_state(purpose: str) -> Iterator[Path]:
    """A state root of one test's own; afterwards its labs are down, and the host has the interfaces it had before."""
    assert os.geteuid() == 0, "these tests make network namespaces: run them as root"
    root = Path(f"/run/ewan-test-{purpose}-{os.getpid()}")
    before = links_of_host()
    yield root
    for directory in root.glob("[!.]*"):
        run(str(BINARY), "down", "--state", str(directory))
    if root.exists():
        (root / LOCK).unlink(missing_ok=True)
        root.rmdir()
    assert links_of_host() == before


def run(
    *command: str, environment: dict[str, str] | None = None, text: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, input=text, capture_output=True, env=os.environ | (environment or {}), timeout=60)
