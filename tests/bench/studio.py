"""Studio beside `ewan lab watch`: what a page that watches a lab costs, and what it does to the lab's links.

In: root, the page as it was built, Debian's Chromium. Out: frames a second and CPU of page and server, release errors
of the links with the page open and closed in one run, memory over time, and tables of them. The page's drawing is
measured with links whose values are made up and change at every frame: a lab of 500 nodes that are all busy fits no
small machine. All else is of live labs.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from ewan.labs import host
from ewan.labs.base.units.shown import about
from ewan.labs.compile import compile
from ewan.labs.context import COMMAND, Context
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError, LiveClockRuntime
from ewan.labs.runtime.requests import LinkSeriesAnswer, LinkSeriesRequest
from ewan.labs.spec import from_template
from tests.bench.studio_page import CHROMIUM, Browsing, Undriven, made_up

SIZES = (50, 500)
"""Nodes of a star, its hub among them."""
RATE, RTT = "10Mbit/s", "20ms"
BUSY = 4
"""Links with packets."""
PACKETS_S, PACKET_BYTES = 200, 1000
PHASE_S = 5.0
ROUNDS = 3
SERVER, PAGE, SCRIPT = "server", "page, with garbage", "page's script, without"
LOADING_S = 20.0
COLLECTIONS = 6
"""How often the page's garbage is collected: seldom, as it is not when nobody asks."""
LEAST_CPU = 0.02
"""CPU seconds a second: a page that shows fewer than a link's values takes less."""
Sheet = tuple[str, list[str], list[list[str]]]


class Bench:
    """`minutes`: for how long memory is watched."""

    def __init__(self, minutes: float) -> None:
        self._minutes = minutes

    def measure(self, context: Context, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
        """Pages of both sizes, then live labs of both; memory with the small one."""
        if not Path(CHROMIUM).exists():
            raise LabError(f"{CHROMIUM} is missing: install it (Debian: apt install chromium)")
        seconds = 2.0 if quick else PHASE_S
        found: dict[str, Any] = {"pages": []}
        for nodes in SIZES:
            say(f"a page of {nodes} nodes")
            found["pages"].append(_page(context, nodes, seconds))
        rounds = 1 if quick else ROUNDS
        minutes = {SIZES[0]: self._minutes}
        found["live"] = [_live(context, nodes, seconds, rounds, minutes.get(nodes, 0), say) for nodes in SIZES]
        return found

    def tables(self, found: dict[str, Any]) -> list[Sheet]:
        """Drawing, watching, release error, memory."""
        pages = [
            [str(row["nodes"]), f"{row['frames_s']:.1f}", f"{row['moving_frames_s']:.1f}", f"{row['page_cpu']:.2f}"]
            for row in found["pages"]
        ]
        live = found["live"]
        costs = [[str(lab["nodes"]), name, f"{cpu:.2f}"] for lab in live for name, cpu in lab["cpu"].items()]
        late = [
            [
                *(str(lab["nodes"]), row["page"], str(row["samples"])),
                *(about(row[key], "time") for key in ("p50", "p99", "max")),
            ]
            for lab in live
            for row in lab["lateness"]
        ]
        memory = [
            [name, *(about(row[key], "size") for key in ("first_bytes", "last_bytes", "highest_bytes")), _slope(row)]
            for name, row in live[0]["memory"].items()
        ]
        over = f"{self._minutes:g} min"
        return [
            (
                "Studio's page: a star whose links all change 20 times a second, values made up",
                ["nodes", "frames/s", "while it is moved and zoomed", "CPU seconds a second"],
                pages,
            ),
            ("Watching a live star", ["nodes", "by", "CPU seconds a second"], costs),
            (
                f"Release error of {BUSY} of the links, {PACKETS_S} packets/s each, worst of each millisecond",
                ["nodes", "page", "milliseconds", "p50", "p99", "max"],
                late,
            ),
            (
                f"Memory over {over} of watching the live star of {live[0]['nodes']} nodes",
                ["of", "first", "last", "highest", "slope of the second half"],
                memory,
            ),
        ]


@contextlib.contextmanager
def _server(context: Context, place: Path) -> Iterator[tuple[psutil.Process, str]]:
    """`ewan studio` in a directory, and its address."""
    command = [*COMMAND, "studio", "--no-open", "--port", "0", "--lab", "bench.lab.yaml"]
    process = subprocess.Popen(
        command, cwd=place, env=dict(context.environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise LabError(process.stderr.read().strip() or "studio did not start")
        yield psutil.Process(process.pid), address
    finally:
        process.terminate()
        process.wait()


def _page(context: Context, nodes: int, seconds: float) -> dict[str, Any]:
    """The page alone, whose links get their moments from here."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "bench.lab.yaml").write_text(f"topology: {{star: {{arms: {nodes - 1}}}}}\nname: bench\n")
        with (
            _server(context, place) as (_, address),
            made_up([f"arm{number}" for number in range(1, nodes)]) as port,
            Browsing(port) as browsing,
        ):
            browsing.open(address, "bench")
            before = browsing.cpu_s()
            begun = time.monotonic()
            frames_s = browsing.frames_s(seconds)
            cpu = (browsing.cpu_s() - before) / (time.monotonic() - begun)
            return {
                "nodes": nodes,
                "frames_s": frames_s,
                "page_cpu": cpu,
                "moving_frames_s": browsing.moving_frames_s(seconds),
            }


def _live(
    context: Context, nodes: int, seconds: float, rounds: int, minutes: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """`minutes`: for how long memory is watched."""
    name = f"bench{os.getpid()}"  # of this run alone: a lab called bench is somebody's
    settings = {"arms": str(nodes - 1), "name": name, "rate": RATE, "rtt": RTT}
    text = f"topology: {{star: {{arms: {nodes - 1}}}}}\nname: {name}\nrtt: {RTT}\nwan: {{rate: {RATE}}}\n"
    plan = compile(from_template("star", settings), host.facts())
    runtime = context.live("netns")
    pings: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "bench.lab.yaml").write_text(text)
        say(f"a live star of {nodes} nodes")
        try:
            runtime.up(plan)
            pings = [_ping(context, name, number) for number in range(1, BUSY + 1)]
            with _server(context, place) as (server, address):
                found = _watched(runtime, plan, server, address, seconds, rounds, say)
                memory = _memory(server, address, minutes, say) if minutes else {}
            say("ewan lab watch")
            found["cpu"]["ewan lab watch --json"] = _watch_cpu(context, name, seconds)
            return {"nodes": nodes, **found, "memory": memory}
        finally:
            for ping in pings:
                ping.terminate()
            for ping in pings:
                ping.wait()
            runtime.down(name)


def _ping(context: Context, name: str, number: int) -> subprocess.Popen[bytes]:
    target = f"host{number + BUSY}"
    command = [*COMMAND, "lab", "exec", "--lab", name, f"host{number}", "--", "ping", "-4", "-q"]
    command += ["-i", str(1 / PACKETS_S), "-s", str(PACKET_BYTES), target]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env=dict(context.environment), stdin=quiet, stdout=quiet, stderr=quiet)


def _watch_cpu(context: Context, name: str, seconds: float) -> float:
    command = [*COMMAND, "lab", "watch", name, "--json"]
    process = subprocess.Popen(command, env=dict(context.environment), stdout=subprocess.DEVNULL)
    try:
        time.sleep(2)  # it has started
        seen = psutil.Process(process.pid)
        before = sum(seen.cpu_times()[:2])
        time.sleep(seconds)
        return (sum(seen.cpu_times()[:2]) - before) / seconds
    finally:
        process.terminate()
        process.wait()


def _watched(
    runtime: LiveClockRuntime,
    plan: Plan,
    server: psutil.Process,
    address: str,
    seconds: float,
    rounds: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Phases without and with the page, in turn."""
    late: dict[str, list[int]] = {"closed": [], "open": []}
    cpu = {"studio's server": 0.0, "studio's page": 0.0}
    for number in range(rounds):
        say(f"release error, {number + 1} of {rounds}")
        late["closed"] += _lateness(runtime, plan, seconds)
        with Browsing() as browsing:
            browsing.open(address, plan.lab)
            before = sum(server.cpu_times()[:2]), browsing.cpu_s()
            late["open"] += _lateness(runtime, plan, seconds)
            cpu["studio's server"] += (sum(server.cpu_times()[:2]) - before[0]) / seconds / rounds
            cpu["studio's page"] += (browsing.cpu_s() - before[1]) / seconds / rounds
    return {"cpu": cpu, "lateness": [{"page": page, **_quantiles(values)} for page, values in late.items()]}


def _memory(server: psutil.Process, address: str, minutes: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Of the server, of the page, and what the page's script uses; from when the page has loaded."""
    found: dict[str, list[tuple[float, int]]] = {SERVER: [], PAGE: [], SCRIPT: []}
    with Undriven(address) as browser:
        time.sleep(LOADING_S)
        begun, busy_s = time.monotonic(), browser.cpu_s()
        while (passed := time.monotonic() - begun) < minutes * 60:
            say(f"memory, {passed / 60:.0f} of {minutes:g} min")
            found[SERVER].append((passed, server.memory_info().rss))
            found[PAGE].append((passed, browser.memory_bytes()))
            if not found[SCRIPT] or passed - found[SCRIPT][-1][0] > minutes * 60 / COLLECTIONS:
                found[SCRIPT].append((passed, browser.heap_bytes()))
            time.sleep(1)
        if browser.cpu_s() - busy_s < LEAST_CPU * passed:
            raise LabError("the page that nobody drives showed nothing: is the address right?")
    return {name: _course(samples) for name, samples in found.items()}


def _lateness(runtime: LiveClockRuntime, plan: Plan, seconds: float) -> list[int]:
    """The worst of each millisecond in which a busy link sent something (ns)."""
    since = {link: _series(runtime, plan, link, 0, 0).end_ms for link in _busy(plan)}
    time.sleep(seconds)
    found: list[int] = []
    for link, since_ms in since.items():
        series = _series(runtime, plan, link, since_ms)
        for columns in (series.forward, series.backward):
            rows = zip(columns.out_packets, columns.lateness_max_ns, strict=True)
            found += [late for packets, late in rows if packets]
    return found


def _busy(plan: Plan) -> list[str]:
    return [link.name for link in plan.links if re.fullmatch(rf"arm[1-{BUSY}]", link.name)]


def _series(
    runtime: LiveClockRuntime, plan: Plan, link: str, since_ms: int, most: int | None = None
) -> LinkSeriesAnswer:
    return runtime.control(plan.lab, link, LinkSeriesRequest(link, since_ms, most, ("out_packets", "lateness_max_ns")))


def _quantiles(values: list[int]) -> dict[str, Any]:
    if not values:
        raise LabError("the busy links sent nothing: is ping installed?")
    ordered = sorted(values)
    at = {"p50": len(ordered) // 2, "p99": len(ordered) * 99 // 100, "max": -1}
    return {"samples": len(ordered), **{key: ordered[place] for key, place in at.items()}}


def _course(samples: list[tuple[float, int]]) -> dict[str, float]:
    """First, last and highest of a memory's course (bytes); slope of its second half (kB/min) by least squares."""
    later = samples[len(samples) // 2 :]
    mean_t, mean_b = (sum(each[axis] for each in later) / len(later) for axis in (0, 1))
    spread = sum((t - mean_t) ** 2 for t, _ in later)
    slope = sum((t - mean_t) * (size - mean_b) for t, size in later) / spread if spread else 0.0
    highest = max(size for _, size in samples)
    sizes = {"first_bytes": samples[0][1], "last_bytes": samples[-1][1], "highest_bytes": highest}
    return {**sizes, "slope": slope * 60 / 1000}


def _slope(row: dict[str, float]) -> str:
    return f"{row['slope']:+.1f} kB/min"
