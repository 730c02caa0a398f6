"""What programs cost in the virtual clock: unmodified ones, each beside itself in a namespace of this machine.

In: the virtual kernel, iperf3, ping, curl; user namespaces. Out: measurements, and a table of them for `bench.py`.
Packets are those that crossed the bottleneck, both ways; of the namespace's loopback, which has the same MTU and no
segmentation offload, those that it carried. Of the virtual clock both wall time and CPU time are told: the latter is
what a machine that does nothing else takes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ewan.generator.traffic_request import addresses_of
from ewan.labs.base.product import RELEASE
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.context import Context
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command, Program
from tests.bench.virtual import BulkCase, Sheet, dumbbell

ROUNDS = 3
PAYLOAD_BYTES = 64 << 20
QUICKER = 4
QUIC = (("quinn", "ewan-quic", 64), ("aioquic", "ewan-aioquic", 16))
"""The libraries of QUIC, their programs (`make quic`), and how many MB they send."""
_SERVE = "python3 -m http.server --bind :: 8000"
_FETCH = "curl -s -o /dev/null --retry 50 --retry-connrefused --retry-delay 0 http://{host}:8000/{file}"


@dataclass(frozen=True, slots=True)
class Case:
    """`service` runs in right1 until `client`, in left1, ends; {host} is the other side, {address} its address, {file}
    a file that is served. `ends`: the service ends by itself. `one_cpu`: in the namespace both ends have one CPU
    together, as they have in the virtual clock."""

    name: str
    service: str
    client: str
    ends: bool = False
    one_cpu: bool = False


def cases(quick: bool) -> list[Case]:
    """Bulk TCP by a program that is woken for each packet; packets one by one; a server that is an interpreter."""
    share = QUICKER if quick else 1
    return [
        Case("iperf3, TCP", "iperf3 -s -1", f"iperf3 -c {{host}} -n {(256 << 20) // share}", ends=True),
        Case("ping -f", "", f"ping -f -q -c {60_000 // share} {{host}}"),
        Case("http.server, curl", _SERVE, _FETCH),
        *(_quic(name, program, (size << 20) // share) for name, program, size in QUIC if (RELEASE / program).exists()),
    ]


def _quic(name: str, program: str, size: int) -> Case:
    ends = "--address {address} --port 34000 --streams 1"
    words = RELEASE / program
    return Case(name, f"{words} receive {ends}", f"{words} send {ends} --bytes {size}", one_cpu=True)


def native(case: Case, file: Path) -> dict[str, float]:
    """The case in a network namespace of its own."""
    host = "localhost" if case.service == _SERVE else "127.0.0.1"
    words = {"host": host, "address": "127.0.0.1", "file": file.name}
    client, service = case.client.format(**words), case.service.format(**words)
    script = "ip link set lo mtu 1500 gso_max_segs 1 up\n"
    script += f"{service} >/dev/null 2>&1 &\nsleep {2 if case.one_cpu else 0.3}\n" if service else ""
    script += "begun=$(date +%s%N)\n" + client + " >/dev/null || exit 1\n"
    script += "echo $(date +%s%N) $begun $(grep lo: /proc/net/dev)\nkill %1 2>/dev/null\nexit 0\n"
    pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if case.one_cpu else []
    command = [
        *pinned,
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        script,
    ]
    try:
        said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=file.parent, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"{case.name}: does not run in a namespace of this machine: {error}") from None
    ended, begun, _, _, packets, *_ = said.stdout.splitlines()[-1].split()
    return {"packets": float(packets), "wall_s": (int(ended) - int(begun)) / NS_PER_SECOND}


class ProgramsBench:
    """Runs cases in a scratch directory."""

    def __init__(self, context: Context, scratch: Path) -> None:
        self._runtime, self._scratch = context.virtual(), scratch
        self._plan = dumbbell(BulkCase("1Gbit/s", 0, rtt="10ms"))
        self._runs = 0

    def virtual(self, case: Case, file: Path) -> dict[str, float]:
        """The case over a dumbbell of 1 Gbit/s and 10 ms."""
        named = {"host": "right1", "address": addresses_of(self._plan)["right1"], "file": file.name}
        words, service = case.client.format(**named).split(), case.service.format(**named).split()
        # An interpreter reads its modules first.
        at_ns = 4 * NS_PER_SECOND if case.one_cpu else NS_PER_SECOND // 2
        commands = [Command("left1", tuple(words), at_ns)]
        if case.service == _SERVE:
            service += ["--directory", str(file.parent)]
        if service:
            commands.append(Command("right1", tuple(service), service=not case.ends))
        needs = (str(file.parent),) if case.service == _SERVE else ()
        program = Program(commands=tuple(commands), longest_ns=600 * NS_PER_SECOND, needs=needs)
        self._runs += 1
        begun = time.perf_counter()
        done = self._runtime.run(self._plan, program, self._scratch / str(self._runs))
        wall_s = time.perf_counter() - begun
        counted = done.document("links.json")
        assert counted is not None
        packets = sum(way.get("out_packets", way.get("sent_packets")) for way in counted["links"])
        cpu_s = done.cost.cpu_ns / NS_PER_SECOND
        return {"packets": packets, "wall_s": wall_s, "cpu_s": cpu_s, "entries": done.cost.entries}


def measure(context: Context, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """All cases, each side in turn."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="ewan-bench-") as scratch:
        bench = ProgramsBench(context, Path(scratch))
        served = Path(scratch) / "served"
        served.mkdir()
        file = served / "file"
        file.write_bytes(bytes(PAYLOAD_BYTES // (QUICKER if quick else 1)))
        for case in cases(quick):
            rounds = []
            for number in range(ROUNDS):
                say(f"{case.name}, {number + 1} of {ROUNDS}")
                rounds.append({"native": native(case, file), "virtual": bench.virtual(case, file)})
            found[case.name] = rounds
    return found


def tables(found: dict[str, Any]) -> list[Sheet]:
    """The median round of each case, by the ratio."""
    rows = []
    for name, rounds in found.items():
        pace = sorted(rounds, key=_ratio)[len(rounds) // 2]
        ours, beside = pace["virtual"], pace["native"]
        rows.append(
            [
                name,
                f"{ours['packets']:,.0f}",
                f"{ours['packets'] / ours['wall_s']:,.0f}",
                f"{ours['packets'] / ours['cpu_s']:,.0f}",
                f"{beside['packets'] / beside['wall_s']:,.0f}",
                f"{_ratio(pace):.2f}",
                f"{ours['entries'] / ours['packets']:.1f}",
            ]
        )
    columns = ["program", "packets", "packets/s", "per CPU second", "in a namespace", "ratio", "entries a packet"]
    return [("Virtual clock: programs, beside this machine's own kernel", columns, rows)]


def _ratio(pace: dict[str, Any]) -> float:
    ours, beside = pace["virtual"], pace["native"]
    ratio: float = (ours["packets"] / ours["wall_s"]) / (beside["packets"] / beside["wall_s"])
    return ratio
