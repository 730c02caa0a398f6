"""An experiment is killed at random moments of all stages; `--resume` gives the same bytes and leaves nothing behind.

The experiment is small and in the virtual clock. SIGKILL goes to its whole process group, up to three times, spread
over all stages, also right at a stage's beginning and before the first one. Only times of day and of wall may differ.
"""

from __future__ import annotations

import functools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from ewan.experiments.engine import archive
from ewan.labs.record.experiment import STAGES
from tests.experiments import in_results, only

TIER = "virtual"
QUICK = 7
LONG = 400

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = """
name: killed
lab: {topology: {dumbbell: {pairs: 2}}, rtt: 20ms, wan: {rate: 10Mbit/s}}
parameters: {cc: reno}
sweep: {cc: [reno, cubic]}
sample: 100ms
series: 100ms
watch: 100ms
longest: 10s
steps:
  - {name: load, from: "left[1-2]", to: "right[1-2]", congestion: "${cc}", for: 1s, bulk: {}}
  - {name: hello, on: left1, run: "echo hello"}
"""
BEFORE = "before"
"""The time from the command to its first stage."""
STOPS = (BEFORE, *STAGES)
MAY_DIFFER = {"experiment.json", "report.html", "wall.json", "settings.json"}
"""Files that hold times of day or of wall, and the path of the scenario."""
LONGEST_S = 60.0
GONE_S = 5.0


@dataclass(frozen=True, slots=True)
class Reference:
    """What an experiment that nobody killed leaves, and how long each of its stages took."""

    files: dict[str, bytes | None]
    seconds: dict[str, float]


def trial(seed: int, place: Path) -> None:
    """AssertionError when the resumed experiment differs, or when something is left."""
    known, random_ = reference(), random.Random(seed)
    scenario = write(place)
    kills = [STOPS[seed % len(STOPS)], *random_.choices(STOPS, k=random_.choice((0, 0, 1, 2)))]
    told = []
    directory: Path | None = None
    for stage in kills:
        share = random_.choice((0.0, random_.random(), random_.random()))
        begun = directory is not None and (directory / "experiment.json").exists()
        arguments = ["exp", "resume", str(directory)] if begun else ["run", str(scenario), "--runtime", "virtual"]
        told.append(f"{stage} {share:.2f}")
        kill_in(place, arguments, stage, share * known.seconds[stage])
        directory = max(in_results(place), default=None) if (place / "results").is_dir() else None
    begun = directory is not None and (directory / "experiment.json").exists()
    try:
        if directory is not None:
            resumed = ewan(place, "exp", "resume", str(directory))
            if begun:
                assert resumed.returncode == 0, resumed.stderr
            else:
                says = f"ewan: {directory}: the experiment had not begun when it ended: run it once more\n"
                assert (resumed.returncode, resumed.stderr) == (2, says)
        if not begun:
            done = ewan(place, "run", str(scenario), "--runtime", "virtual")
            assert done.returncode == 0, done.stderr
            directory = max((place / "results").glob("*/experiment.json")).parent
        assert directory is not None
        same(known.files, contents(directory))
        assert orjson.loads((directory / "experiment.json").read_bytes())["status"] == "complete"
        nobody_left(directory)
    except AssertionError as error:
        raise AssertionError(f"killed in {', '.join(told)}: {error}") from None


@functools.cache
def reference() -> Reference:
    with tempfile.TemporaryDirectory(prefix="ewan-torture-") as text:
        place = Path(text)
        scenario, begun = write(place), time.monotonic()
        process = start(place, "run", str(scenario), "--runtime", "virtual")
        at: dict[str, float] = {}
        assert process.stderr is not None
        for line in process.stderr:
            if stage := stage_of(line):
                at[stage] = time.monotonic()
        assert process.wait() == 0
        ends = [*at.values(), time.monotonic()]
        seconds = {stage: end - start for stage, start, end in zip(at, ends, ends[1:], strict=False)}
        directory = only(place)
        return Reference(contents(directory), {BEFORE: min(at.values()) - begun, **seconds})


def write(place: Path) -> Path:
    path = place / "killed.scenario.yaml"
    path.write_text(SCENARIO)
    return path


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "ewan" / "cli.py"), *arguments]


def start(place: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ewan(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=place, capture_output=True, text=True, timeout=LONGEST_S)


def kill_in(place: Path, arguments: list[str], stage: str, after_s: float) -> None:
    """Kills it so long after the stage's beginning; one that resumes may have passed that stage, and ends by itself."""
    process = start(place, *arguments)
    assert process.stderr is not None
    if stage != BEFORE:
        for line in process.stderr:
            if stage_of(line) == stage:
                break
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.stderr.close()
    process.wait()


def stage_of(line: str) -> str | None:
    """The stage whose beginning a line of standard error tells."""
    return next((stage for stage, name in STAGES.items() if line == f"{name} …\n"), None)


def contents(directory: Path) -> dict[str, bytes | None]:
    """Every name below the experiment's directory and in its archive; None for what may differ."""
    found: dict[str, bytes | None] = {}
    with tempfile.TemporaryDirectory(prefix="ewan-torture-") as unpacked:
        (packed,) = directory.glob(f"*{archive.ENDING}")
        trees = {"": directory, "archive: ": archive.unpack(packed, Path(unpacked))}
        for prefix, tree in trees.items():
            for path in tree.rglob("*"):
                fixed = path.is_file() and path.name not in MAY_DIFFER and path != packed
                found[f"{prefix}{path.relative_to(tree)}"] = path.read_bytes() if fixed else None
    return found


def same(wanted: dict[str, bytes | None], found: dict[str, bytes | None]) -> None:
    missing, more = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    assert not missing and not more, f"missing: {missing}, left behind: {more}"
    differing = sorted(name for name, text in wanted.items() if text != found[name])
    assert not differing, f"other bytes: {differing}"


def nobody_left(directory: Path) -> None:
    """No process of any attempt is at work in the experiment's directory; one that was killed takes a moment."""
    deadline = time.monotonic() + GONE_S
    while left := at_work(directory):
        assert time.monotonic() < deadline, f"processes are left: {left}"
        time.sleep(0.05)


def at_work(directory: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if re.fullmatch("[0-9]+", entry.name):
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                inside = str((entry / "cwd").readlink()).startswith(str(directory.absolute()))
            except OSError:
                continue
            if inside or str(directory.absolute()) in words:
                found.append(f"{entry.name} {words[:80]}")
    return found
