"""What a sweep takes beyond its runs: until the first one begins, of each run, here and by Dask's workers, and of a
report over ten thousand runs.

In: a context that can run the virtual kernel, whose two runs the sweeps that are read are copies of
(calibration/many_runs.py). Out: seconds and bytes by number of runs; tables of them for `bench.py`. The commands are
processes of their own, so that their start counts and their memory is all that it takes.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import psutil

from ewan.calibration import many_runs
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.context import COMMAND, Context
from ewan.labs.runtime import cpu
from ewan.labs.runtime.base import LabError

LOOKED_S = 0.05
"""Between two looks at what memory the processes have."""
ENDS_S = 60
"""Until a command that is interrupted has ended."""
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
SMALL = """
name: bench-runs
title: A transfer
about: One short transfer, many times.
lab: {topology: {dumbbell: {pairs: 1}}, rtt: 20ms, wan: {rate: "${rate}"}}
parameters: {rate: 10Mbit/s, length: 1s}
longest: 100s
steps:
  - {name: load, from: left1, to: right1, for: "${length}", bulk: {}}
"""
SHORT, LONG = {"rate": "10Mbit/s", "length": "1s"}, {"rate": "100Mbit/s", "length": "60s"}
EXECUTED = ((SHORT, 2000), (LONG, 60))
QUICK_EXECUTED = ((SHORT, 100), (LONG, 8))
WORKERS = {"this machine": ["--runtime", "virtual"], "Dask, local": ["--cluster", "../workers.yaml"]}
CONTROLS = ("reno", "cubic", "bbr", "htcp", "bic")
SEEDS = 10
RUNS, QUICK_RUNS = (100, 10_000), (100, 1000)
PLANNED = """
name: bench-planning
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}
sweep: {volume: [10kB, 20kB, 30kB, 40kB, 50kB, 60kB, 70kB, 80kB, 90kB, 100kB]}
steps:
  - {name: load, from: left1, to: right1, congestion: reno, bulk: {volume: "${volume}"}}
"""
PLANNED_POINTS = 10
PLANNED_RUNS, QUICK_PLANNED_RUNS = (1000, 10_000, 100_000), (1000, 2000)
PLANNING = ("run", "planning.scenario.yaml", "--runtime", "virtual")


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
                seconds, peak = spent(["results", "report", str(copies)], place)
                rows.append({"runs": runs, "what": what, "seconds": seconds, "peak_bytes": peak})
        begun = planned(place, QUICK_PLANNED_RUNS if quick else PLANNED_RUNS, say)
        done = executed(place, QUICK_EXECUTED if quick else EXECUTED, say)
        return {"planning": begun, "executed": done, "report": rows}


def planned(place: Path, sizes: Sequence[int], say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Seconds until the first of so many runs executes, and the command's memory until then."""
    (place / "planning.scenario.yaml").write_text(PLANNED)
    say("the first runs and the lab of a long sweep")
    spent([*PLANNING, "--seeds", "1"], place)
    rows = []
    for runs in sizes:
        say(f"planning of {runs} runs")
        seconds, peak = until_the_first(place, runs)
        rows.append({"runs": runs, "seconds": seconds, "peak_bytes": peak})
    return rows


def executed(
    place: Path, wanted: Sequence[tuple[Mapping[str, str], int]], say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Of so many runs of each kind, by each executor: seconds of the stage and of the runs' own processes.

    All are executed, none is taken from the store; what they left is kept there, as always.
    """
    (place / "runs.scenario.yaml").write_text(SMALL)
    at_once = len(cpu.free())
    (place / "workers.yaml").write_text(f"engine: local\ncores: {at_once}\n")
    rows = []
    for number, (settings, runs) in enumerate(wanted):
        for where, words in WORKERS.items():
            say(f"{runs} runs of {settings['length']}, {where}")
            there = place / f"{number}-{where.replace(' ', '-')}"
            there.mkdir()
            chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
            spent(["run", "../runs.scenario.yaml", "--seeds", str(runs), "--again", *chosen, *words], there)
            (found,) = (there / "results").glob("*-bench-runs")
            stages = orjson.loads((found / "experiment.json").read_bytes())["stages"]
            own_ns = sum(orjson.loads(path.read_bytes())["wall_ns"] for path in found.glob("runs/*/wall.json"))
            seconds = stages["execution"]["seconds"] + stages["logs"]["seconds"]
            rows.append(
                {"where": where, "runs": runs, "at_once": at_once, "seconds": seconds, "own_s": own_ns / NS_PER_SECOND}
            )
    return rows


def until_the_first(place: Path, runs: int) -> tuple[float, int]:
    """Seconds until the first of so many runs executes, and the most memory of the command until then. Its lab's
    certificate and the first run of each point are in the store; it is ended then."""
    known = set((place / "results").iterdir())
    begun_ns, peak = time.perf_counter_ns(), 0
    command = [*COMMAND, *PLANNING, "--seeds", str(runs // PLANNED_POINTS)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=said)
        try:
            while process.poll() is None:
                made = [each for each in (place / "results").iterdir() if each not in known]
                if any(True for each in made for _ in each.glob("runs/*/root")):
                    return (time.perf_counter_ns() - begun_ns) / NS_PER_SECOND, peak
                peak = max(peak, memory_bytes(process.pid))
                time.sleep(LOOKED_S)
        finally:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_S)
            process.kill()
            process.wait()
        said.seek(0)
        raise LabError(f"planning of {runs} runs: {said.read().decode(errors='replace').strip()}")


def spent(arguments: Sequence[str], place: Path) -> tuple[float, int]:
    """Seconds that a command of `ewan` takes in a directory, and the most memory that its processes have together;
    LabError with what it says where it fails."""
    begun_ns = time.perf_counter_ns()
    peak = 0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([*COMMAND, *arguments], cwd=place, stdout=subprocess.DEVNULL, stderr=said)
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
    runs = [
        [
            row["where"],
            f"{row['runs']:,}",
            f"{row['seconds']:.1f} s",
            f"{1000 * row['own_s'] / row['runs']:.1f} ms",
            f"{1000 * (row['at_once'] * row['seconds'] - row['own_s']) / row['runs']:.1f} ms",
            f"{row['own_s'] / (row['at_once'] * row['seconds']):.3f}",
        ]
        for row in found["executed"]
    ]
    columns = ["executed by", "runs", "wall time", "a run's own process", "beyond it", "efficiency"]
    sheets = [(f"Sweeps: runs, {found['executed'][0]['at_once']} at once", columns, runs)]
    begun = [
        [f"{row['runs']:,}", f"{row['seconds']:.1f} s", about(row["peak_bytes"], "size", 3)]
        for row in found["planning"]
    ]
    sheets.append(("Sweeps: until the first run executes", ["runs", "wall time", "peak memory"], begun))
    return [*sheets, ("Sweeps: the report", ["runs", "made", "wall time", "peak memory"], rows)]
