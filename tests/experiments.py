"""A small scenario for tests of experiments, and what they ask of its directory and of its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from ewan.experiments.engine.experiment import Experiment
from ewan.labs.base.reading import is_locked
from ewan.labs.record import journal
from ewan.labs.record.experiment import LOCK, to_json
from tests.conftest import ROOT

SCENARIO = """
name: {name}
title: Two flows on one link
about: |
  Two transfers share a link.
lab: {{topology: {{dumbbell: {{pairs: 2}}}}, rtt: 20ms, wan: {{rate: 10Mbit/s}}}}
parameters: {{cc: reno, length: 2s}}
sweep: {{cc: [{variants}]}}
seeds: {seeds}
sample: 100ms
series: 100ms
watch: 100ms
longest: {longest}
steps:
  - {{name: load, from: "left[1-2]", to: "right[1-2]", congestion: "${{cc}}", for: "${{length}}", bulk: {{}}}}
{more}
"""


def written(place: Path, more: str = "", variants: str = "reno", seeds: int = 1, longest: str = "30s") -> str:
    """A scenario's file, whose labs have a name that no user's has."""
    path = place / "two.scenario.yaml"
    text = SCENARIO.format(name=f"t{os.getpid() % 10000}", variants=variants, seeds=seeds, longest=longest, more=more)
    path.write_text(text)
    return str(path)


def only(place: Path) -> Path:
    """The one experiment in results/."""
    (found,) = in_results(place)
    return found


def in_results(place: Path) -> list[Path]:
    """What commands left in results/, the earliest first, without the store."""
    return sorted(path for path in (place / "results").iterdir() if path.name != "store")


def document(directory: Path) -> dict[str, Any]:
    """experiment.json with all that its journal tells, as JSON data."""
    content: dict[str, Any] = orjson.loads(to_json(journal.load(directory)))
    return content


def vouch(directory: Path, *names: str) -> None:
    """The experiment records the present bytes of these files."""
    changed = Experiment.load(directory)
    for name in names:
        changed.record(directory / name)
    changed.save()


def statuses(directory: Path) -> list[str]:
    """What became of each run so far."""
    return [run["status"] for run in document(directory)["runs"]]


class RunProcess:
    """A command that executes runs, as a process of its own."""

    def __init__(self, place: Path, *arguments: str, state: Path | None = None) -> None:
        self.place = place
        command = [sys.executable, str(ROOT / "ewan" / "cli.py"), *arguments]
        environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
        if state is not None:
            environment["EWAN_STATE"] = str(state)
        self.process = subprocess.Popen(
            command, cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def until(self, complete: int) -> Path:
        """Waits till so many runs have ended; the experiment's directory."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            found = list(self.place.glob("results/*/experiment.json"))
            if found and statuses(found[0].parent).count("complete") >= complete:
                return found[0].parent
            time.sleep(0.05)
        raise AssertionError(f"it did not come so far: {self.process.communicate()[1]}")

    def _locks(self) -> list[Path]:
        return list(self.place.glob(f"results/*/{LOCK}"))

    def end(self) -> tuple[int, str]:
        """Its exit status, and what it wrote on standard error, once nobody holds its experiments any more: a program
        that it was just starting when it was killed has its lock until it runs."""
        said = self.process.communicate(timeout=60)[1]
        deadline = time.monotonic() + 10
        while self.process.returncode == -signal.SIGKILL and any(map(is_locked, self._locks())):
            assert time.monotonic() < deadline, "a child of the engine holds its experiment"
            time.sleep(0.01)
        return self.process.returncode, said
