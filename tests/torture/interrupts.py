"""Ctrl-C, SIGTERM or SIGKILL at a random instant of a random command: no traceback, and nothing is left in silence.

The instant is anywhere from the first millisecond on, often while Python still imports; Ctrl-C comes once or twice in
quick succession, to the whole process group as a terminal sends it. After Ctrl-C and SIGTERM the status is that of a
program that the signal ended, or the command had come to its end; a lab, a file or a process that is left is named in
what was printed. After SIGKILL one `ewan down` leaves nothing of a lab, and no experiment is shown as running.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil

from ewan.labs.runtime.tests.lab import traces
from tests.torture.commands import EWAN, TOPOLOGY

TIER = "untimed"
QUICK = 6
LONG = 900

EARLIEST_S, IMPORTS_S = 0.001, 0.3
LONGEST_S = 6.0
"""Of the part of a command in which signals come."""
ENDS_S = 60.0
GONE_S = 5.0
WRONG = ("Traceback", "Exception ignored", "Fatal Python error", "KeyboardInterrupt", "not JSON serializable")
TWICE = "SIGINT twice"
SIGNALS = ("SIGINT", TWICE, "SIGTERM", "SIGKILL")
LAB = "torn"
SCENARIO = """
name: torn
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}
parameters: {cc: reno}
sweep: {cc: [reno, cubic]}
longest: 10s
steps:
  - {name: load, from: left1, to: right1, congestion: "${cc}", for: 1s, bulk: {}}
"""
SCRIPT = "tc qdisc add dev eth0 root netem delay 10ms rate 10mbit\n"
DUMBBELL = ("dumbbell", "--rtt", "20ms", "--rate", "10M")
DONE = "results/done"
PING = ("--do", "left1: ping -c 3 -i 0.2 right1")


@dataclass(frozen=True, slots=True)
class Command:
    """Words of the command line. `up`: in a lab that is up; `stays`: it ends when it is asked to, with status 0."""

    words: tuple[str, ...]
    up: bool = False
    stays: bool = False


COMMANDS = {
    "help": Command(("--help",)),
    "compile": Command(("lab", "compile", *DUMBBELL, "-o", "out")),
    "up": Command(("up", *TOPOLOGY, "--name", LAB)),
    "lab": Command(("lab", *TOPOLOGY, "--name", LAB)),
    "lab virtual": Command(("lab", *DUMBBELL, "--runtime", "virtual")),
    "down": Command(("down", LAB), up=True),
    "ps": Command(("ps",), up=True),
    "exec": Command(("lab", "exec", "left1", "--", "ping", "-c", "5", "-i", "0.2", "right1"), up=True),
    "capture": Command(("lab", "capture", "left1", "-w", "left1.pcapng"), up=True, stays=True),
    "set": Command(("lab", "set", "hop1", "delay=5ms"), up=True),
    "verify": Command(("lab", "verify", LAB), up=True),
    "metrics": Command(("lab", "metrics", "--listen", "127.0.0.1:0"), up=True, stays=True),
    "batch": Command(("lab", "batch", *TOPOLOGY, "--name", LAB, *PING)),
    "batch virtual": Command(("lab", "batch", *DUMBBELL, *PING, "--runtime", "virtual")),
    "transfer": Command(("transfer", *TOPOLOGY, "--name", LAB, "--rate", "10M", "--for", "1s")),
    "transfer virtual": Command(("transfer", *DUMBBELL, "--cc", "reno,cubic", "--for", "1s", "--runtime", "virtual")),
    "run": Command(("run", "torn.scenario.yaml", "--runtime", "netns", "--unverified")),
    "run virtual": Command(("run", "torn.scenario.yaml", "--runtime", "virtual", "--again")),
    "resume": Command(("exp", "resume", DONE, "--from", "execution")),
    "rerun": Command(("exp", "rerun", DONE)),
    "calibrate": Command(("measure", "host", "--size", "quick")),
    "report": Command(("results", "report", DONE)),
    "plot": Command(("results", "plot", DONE, "cwnd", "--output", "cwnd.svg")),
    "export": Command(("results", "export", DONE, "--csv", "data", "--latex", "tables")),
    "archive": Command(("exp", "archive", DONE, "-o", "done.crate.zip", "--author", "Lovelace, Ada")),
    "tag": Command(("exp", "tag", DONE, "+tried")),
    "runs": Command(
        (
            "exp",
            "list",
        )
    ),
    "compare": Command(("exp", "compare", DONE, DONE, "-o", "compare.html")),
    "import": Command(("lab", "import", "shape.sh", "-o", "shape.lab.yaml")),
    "doctor": Command(("doctor",)),
    "driver": Command(("driver", "list")),
    "simulate": Command(
        (
            "driver",
            "simulate",
            "gtrcnet-1",
            "--ports",
            "torn0,torn1",
            "--address",
            f"unix:/tmp/ewan-torn-{os.getpid()}",
        ),
        stays=True,
    ),
    "studio": Command(("studio", "--port", "0", "--no-open"), stays=True),
    "course start": Command(("course", "start", "bufferbloat", "--student", "4712", "--folder", "begun")),
    "course check": Command(("course", "check", "bufferbloat")),
    "course hand-in": Command(("course", "hand-in", "bufferbloat", "--output", "handed")),
    "course grade": Command(("course", "grade", "submissions")),
}


def trial(seed: int, place: Path) -> None:
    """AssertionError when a command that was ended early said what it should not, or left what it did not name."""
    draw = random.Random(seed)
    name = draw.choice(list(COMMANDS))
    how = draw.choice(SIGNALS)
    tried(name, how, draw, place)


def tried(name: str, how: str, draw: random.Random, place: Path) -> None:
    """One command, ended in one way."""
    command, work, mark = COMMANDS[name], place / "work", f"{os.getpid()}-{place.name}"
    shutil.copytree(prepared(), work)
    took_s = _took_s(name)
    latest_s = draw.choice((IMPORTS_S, max(took_s, IMPORTS_S)))
    after_s = draw.uniform(EARLIEST_S, latest_s)
    again_s = draw.choice((0.0, 0.01, 0.1, 0.5)) if how == TWICE else None
    told = f"{name}, {how} after {after_s:.3f} s{f' and {again_s} s later' if again_s is not None else ''}"
    environment = _environment(place, mark)
    try:
        if command.up:
            done = _run(work, environment, "up", *TOPOLOGY, "--name", LAB)
            assert done.returncode == 0, done.stdout
        before = _files(work)
        process = _start(work, environment, *command.words)
        time.sleep(after_s)
        _send(process, how, again_s)
        try:
            said, _ = process.communicate(timeout=ENDS_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"it goes on for more than {ENDS_S:.0f} s") from None
        if how == "SIGKILL":
            _found_and_removed(work, environment, place / "state", before)
        else:
            _nothing_in_silence(command, how, process.returncode, said, work, place, before, environment)
        assert not (wrong := [word for word in WRONG if word in said]), f"{wrong}:\n{said}"
    except AssertionError as error:
        raise AssertionError(f"{told}: {error}") from None
    finally:
        _run(work, environment, "down", "--all")
        for left in _marked(mark):
            left.kill()


def _send(process: subprocess.Popen[str], how: str, again_s: float | None) -> None:
    with contextlib.suppress(ProcessLookupError):
        if how in ("SIGINT", TWICE):  # a terminal's goes to all that the command started, too
            os.killpg(process.pid, signal.SIGINT)
            if again_s is not None:
                time.sleep(again_s)
                os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.Signals[how])


def _nothing_in_silence(
    command: Command,
    how: str,
    status: int,
    said: str,
    work: Path,
    place: Path,
    before: dict[str, tuple[int, int]],
    environment: dict[str, str],
) -> None:
    number = signal.Signals[how.split()[0]]
    ended = status in (-number, 128 + number)
    assert ended or status in (0, 1), f"status {status}:\n{said}"
    if status == 0 and not command.stays:
        return
    labs = [path.parent.name for path in (place / "state").glob("*/manifest.json")]
    if not command.up:
        assert all(f"{each} is up" in said for each in labs), f"status {status}, {labs} up:\n{said}"
        if not labs and command.words[0] != "studio":
            assert not (left := _gone(environment["EWAN_TRIAL"])), f"processes {left}:\n{said}"
    after = _files(work)
    changed = {path for path in after if after[path] != before.get(path)} | set(before) - set(after)
    unnamed = sorted(path for path in changed if not _is_named(path, f"{said} {' '.join(command.words)}"))
    assert status == 1 or not unnamed, f"status {status}, {unnamed}:\n{said}"
    in_part = [path for path in changed if path in after and _is_in_part(work / path)]
    assert not in_part, f"status {status}, {in_part}:\n{said}"
    temporary = [str(path) for path in (place / "tmp").iterdir() if path.name != "ewan-0"]
    assert not temporary, f"{temporary}:\n{said}"


def _is_named(path: str, said: str) -> bool:
    """Whether the path, or a folder above it below results/, is in what was printed. Caches are nobody's affair."""
    parts = Path(path).parts
    if parts[:2] == ("results", "store") or parts[0] == "home":
        return True
    joined = said.replace("\n", "")
    if any(f"{Path(path).stem}{each}" in joined for each in (".svg", ".pdf")):  # a figure's data lie beside it
        return True
    return any("/".join(parts[:count]) in joined for count in range(2 if parts[0] == "results" else 1, len(parts) + 1))


def _is_in_part(path: Path) -> bool:
    """Whether a file was left while it was written: it has a temporary name, or is JSON that does not end."""
    if path.suffix == ".json":
        try:
            orjson.loads(path.read_bytes())
        except ValueError:
            return True
    return path.name.startswith(".") and "store" not in path.parts


def _found_and_removed(
    work: Path, environment: dict[str, str], state: Path, before: dict[str, tuple[int, int]]
) -> None:
    done = _run(work, environment, "down", "--all")
    assert done.returncode == 0, done.stdout
    assert not (left := traces(LAB, state)), left
    assert not list(state.rglob("*")), list(state.rglob("*"))
    shown = _run(work, environment, "runs")
    assert "running" not in shown.stdout, shown.stdout
    assert not (others := _gone(environment["EWAN_TRIAL"])), others


@functools.cache
def prepared() -> Path:
    """A directory with an experiment that has ended, a script, a student's folder and what was handed in."""
    place = Path(tempfile.mkdtemp(prefix="ewan-torture-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    environment = _environment(place, f"{os.getpid()}-prepared")
    work = place / "work"
    work.mkdir()
    (work / "torn.scenario.yaml").write_text(SCENARIO)
    (work / "shape.sh").write_text(SCRIPT)
    for words in (
        ("run", "torn.scenario.yaml", "--runtime", "virtual"),
        ("course", "start", "bufferbloat", "--student", "4711"),
        ("course", "hand-in", "bufferbloat", "--output", "submissions"),
    ):
        if words[1] == "hand-in":
            (work / "submissions").mkdir()
            (work / "handed").mkdir()
        done = _run(work, environment, *words)
        assert done.returncode == 0, done.stdout
    (directory,) = (work / "results").glob("*-torn")
    directory.rename(work / DONE)
    return work


@functools.cache
def _took_s(name: str) -> float:
    """How long a command takes that nobody ends, at most `LONGEST_S`."""
    command = COMMANDS[name]
    with tempfile.TemporaryDirectory(prefix="ewan-torture-") as text:
        place = Path(text)
        work, mark = place / "work", f"{os.getpid()}-{place.name}"
        environment = _environment(place, mark)
        shutil.copytree(prepared(), work)
        if command.up:
            assert _run(work, environment, "up", *TOPOLOGY, "--name", LAB).returncode == 0
        begun = time.monotonic()
        process = _start(work, environment, *command.words)
        with contextlib.suppress(subprocess.TimeoutExpired):
            said, _ = process.communicate(timeout=LONGEST_S)
            if not command.stays:
                assert process.returncode in (0, 1), said
        took_s = time.monotonic() - begun
        if process.poll() is None:
            process.terminate()
            process.communicate()
        _run(work, environment, "down", "--all")
        return took_s


def _environment(place: Path, mark: str) -> dict[str, str]:
    (place / "tmp").mkdir()
    told = {"EWAN_STATE": str(place / "state"), "EWAN_TRIAL": mark, "TMPDIR": str(place / "tmp")}
    told |= {"NO_COLOR": "1", "COLUMNS": "300"}
    return {**os.environ, **told}


def _words(*words: str) -> list[str]:
    launcher = EWAN.parent / ".venv/bin/ewan"
    return [str(launcher) if launcher.exists() else sys.executable, *([] if launcher.exists() else [str(EWAN)]), *words]


def _start(work: Path, environment: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        _words(*words),
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _run(work: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    process = _start(work, environment, *words)
    said, _ = process.communicate(timeout=120)
    return subprocess.CompletedProcess(words, process.returncode, said)


def _files(work: Path) -> dict[str, tuple[int, int]]:
    """The files below a directory, each with its inode and time of change."""
    found = {}
    for path in work.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if not path.is_dir():
                found[str(path.relative_to(work))] = (status.st_ino, status.st_mtime_ns)
    return found


def _marked(mark: str) -> list[psutil.Process]:
    """Processes that the trial's commands started."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("EWAN_TRIAL") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _gone(mark: str) -> Sequence[str]:
    """The processes that are there yet, after they had time to end."""
    end = time.monotonic() + GONE_S
    while (left := _marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    found = []
    for each in left:
        with contextlib.suppress(psutil.Error):
            found.append(" ".join(each.cmdline()))
    return found
