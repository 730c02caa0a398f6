"""What it takes to read a sweep of ten thousand runs, beside one of a hundred: the report's wall time and memory.

In: a context that can run the virtual kernel, whose two runs the sweeps are copies of (calibration/many_runs.py). Out:
seconds and bytes by number of runs; tables of them for `bench.py`. The commands are processes of their own, so that
their start counts and their memory is all that it takes.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from calibration import many_runs
from labs.context import Context
from labs.runtime.base import LabError
from labs.units import NS_PER_SECOND, about

EWAN = Path(__file__).parent.parent / "ewan.py"
LOOKED_S = 0.05
"""Between two looks at what memory the processes have."""
SCENARIO = """
name: bench-sweep
title: Two flows on one link
about: Short transfers share a link.
lab: {topology: {dumbbell: {pairs: 2}}, rtt: "${rtt}", wan: {rate: 10Mbit/s, buffer: "${buffer}"}}
parameters: {congestion: reno, rtt: 20ms, buffer: 1BDP}
sweep: {congestion: [reno, cubic], rtt: [20ms], buffer: [1BDP]}
sample: 100ms
series: 100ms
watch: 100ms
metrics: [aggregate goodput, fairness per flow, utilisation, mean queueing delay, total loss]
normalise: {by: congestion, to: reno}
figures: ["utilisation by buffer, lines congestion", "rtt over time, where rtt=20ms, facets buffer"]
steps:
  - {name: load, from: "left[1-2]", to: "right[1-2]", offset: 100ms, congestion: "${congestion}", for: 3s, bulk: {}}
"""
CONTROLS = ("reno", "cubic", "bbr", "htcp", "bic")
SEEDS = 10
RUNS, QUICK_RUNS = (100, 10_000), (100, 1000)


def points(runs: int) -> list[dict[str, str | int]]:
    """Of a sweep of so many runs with ten seeds: congestion controls, RTTs, buffers."""
    rtts = 10 if runs >= 10_000 else 2 if runs >= 1000 else 1
    buffers = runs // (SEEDS * len(CONTROLS) * rtts)
    return many_runs.points(
        {
            "congestion": CONTROLS,
            "rtt": [f"{10 * (number + 1)}ms" for number in range(rtts)],
            "buffer": [f"{(number + 1) / 4:g}BDP" for number in range(buffers)],
        }
    )


def measure(context: Context, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The report of each sweep, made for the first time and again; `say` is told what is at work."""
    with tempfile.TemporaryDirectory(prefix="ewan-bench-") as scratch:
        place = Path(scratch)
        say("two runs in the virtual clock")
        (place / "bench.scenario.yaml").write_text(SCENARIO)
        spent(["run", "bench.scenario.yaml", "--runtime", "virtual"], place)
        (original,) = (place / "results").glob("*-bench-sweep")
        rows = []
        for runs in QUICK_RUNS if quick else RUNS:
            say(f"{runs} copies of them")
            copies = many_runs.write(original, place / f"{runs}-runs", points(runs), range(1, SEEDS + 1))
            for what in ("first", "again"):
                say(f"report over {runs} runs, {what}")
                seconds, peak = spent(["report", str(copies)], place)
                rows.append({"runs": runs, "what": what, "seconds": seconds, "peak_bytes": peak})
        return {"report": rows}


def spent(arguments: Sequence[str], place: Path) -> tuple[float, int]:
    """Seconds that a command of `ewan` takes in a directory, and the most memory that its processes have together;
    LabError with what it says where it fails."""
    begun_ns = time.perf_counter_ns()
    peak = 0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, str(EWAN), *arguments], cwd=place, stdout=subprocess.DEVNULL, stderr=said
        )
        try:
            while process.poll() is None:
                peak = max(peak, memory_bytes(process.pid))
                time.sleep(LOOKED_S)
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            said.seek(0)
            raise LabError(f"ewan {' '.join(arguments)}: {said.read().decode(errors='replace').strip()}")
    return (time.perf_counter_ns() - begun_ns) / NS_PER_SECOND, peak


def memory_bytes(number: int) -> int:
    """What a process and all below it have in memory; pages that they share are counted of each."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):  # one ended meanwhile
        process = psutil.Process(number)
        for each in (process, *process.children(recursive=True)):
            total += each.memory_info().rss
    return total


Sheet = tuple[str, list[str], list[list[str]]]


def tables(found: dict[str, Any]) -> list[Sheet]:
    """Title, columns, rows."""
    rows = [
        [
            f"{row['runs']:,}",
            row["what"],
            f"{row['seconds']:.1f} s",
            about(row["peak_bytes"], "size", 3),
        ]
        for row in found["report"]
    ]
    return [("Sweeps: the report", ["runs", "made", "wall time", "peak memory"], rows)]
