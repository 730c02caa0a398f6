"""Folders of experiments with a file that is damaged, or that is none: refused in one line, and never waited for.

A file of an experiment becomes a FIFO, a link to a device or into /proc, a directory, a huge or an empty file, or its
bytes are changed; then a command reads the experiment.
"""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import tempfile
from pathlib import Path

import click
from click.testing import CliRunner

from ewan import cli
from ewan.analysis.tests import synthetic
from ewan.experiments.engine import archive
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.source import SETTINGS, kept
from ewan.labs.base.errors import UserError
from ewan.labs.record import summary as summaries
from tests.torture import harness, mutations

TIER = "torture"
QUICK = 25
LONG = 5000

STRANGE = ("/proc/self/mem", "/proc/kmsg", "/dev/zero", "/dev/tty")
COMMANDS = (
    ["exp", "list"], ["exp", "list", "--json"], ["lab", "certificate", "results/x"],
    ["results", "export", "results/x", "--csv", "out"],
    ["exp", "tag", "results/x", "+a"],
)  # fmt: skip


def trial(seed: int, place: Path) -> None:
    draw = random.Random(seed)
    directory = place / "results" / "x"
    shutil.copytree(whole(), directory)
    file = _damaged(draw, directory)
    before = Path.cwd()
    os.chdir(place)
    try:
        with harness.within_time():
            draw.choice((_command, _command, _read))(draw, directory)
    except AssertionError as error:
        raise AssertionError(f"{file}: {error}") from error
    finally:
        os.chdir(before)


@functools.cache
def whole() -> Path:
    place = Path(tempfile.mkdtemp(prefix="ewan-folders-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    points = [{"congestion": name} for name in ("reno", "cubic")]
    synthetic.experiment(place / "x", points, seeds=(1,), pairs=1, seconds=2)
    (place / "x" / "scenario.yaml").write_text("lab: dumbbell\nsteps: [{from: left1, to: right1, for: 1s, bulk: }]\n")
    (place / "x" / SETTINGS).write_text('{"file": "x.scenario.yaml", "scale": null, "settings": {}, "seeds": null}')
    synthetic.summary(place / "x", [])
    synthetic.vouch(place / "x")
    return place / "x"


def _damaged(draw: random.Random, directory: Path) -> Path:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    first = [directory / name for name in ("experiment.json", SETTINGS, summaries.FILE)]
    file = draw.choice(first if draw.random() < 0.6 else files)
    content = file.read_bytes()
    kind = draw.choice(("bytes", "bytes", "bytes", "bytes", "fifo", "link", "folder", "huge", "empty", "gone"))
    file.unlink()
    if kind == "bytes":
        file.write_bytes(mutations.mutated(content, draw, structured=file.suffix == ".json"))
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to(
            draw.choice(("/proc/self/mem", "/proc/kmsg", "/dev/zero", "/dev/tty", "/", "nowhere", file.name))
        )
    elif kind == "folder":
        file.mkdir()
    elif kind == "huge":
        with file.open("wb") as made:
            made.truncate(300 << 20)
    elif kind == "empty":
        file.touch()
    return file


def _command(draw: random.Random, directory: Path) -> None:
    words = draw.choice(COMMANDS)
    done = CliRunner().invoke(cli.main, words, catch_exceptions=True)
    error = done.exception
    assert error is None or isinstance(error, SystemExit), f"{words}: {type(error).__name__} {error}"
    assert done.exit_code in (0, 1, 2), done.exit_code
    if done.exit_code == 2:
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr[:2000]
        harness.one_line(lines[0])


def _read(draw: random.Random, directory: Path) -> None:
    """As `run --resume`, `rerun`, `archive` and `collect` do before they make anything."""
    try:
        match draw.randrange(4):
            case 0:
                kept(directory, ": run it once more")
            case 1:
                with archive.opened(directory) as before:
                    archive.intact(before, directory)
                    for entry in before.runs:
                        before.job(entry)
            case 2:
                Experiment.load(directory).check()
                archive.pack(directory, "x")
            case _:
                summaries.read(directory)
    except (UserError, click.ClickException) as refused:
        harness.one_line(str(refused))
    except FileNotFoundError:
        pass  # it says so itself: nothing is there
