"""Random system calls behind the wall of the virtual clock change nothing outside, and end.

As root and as an ordinary user, with namespaces, with Landlock alone and with both: files that are shown and files that
are not, their modes, owners and times, and a process of the same user are as they were before.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

from ewan.labs.runtime import wall
from ewan.labs.runtime.tests.lab import BINARY

TIER = "torture"
QUICK = 20
LONG = 5000

ORDINARY = 61001
CALLS = 300
MEMORY = 1 << 26
HOSTILE = Path(__file__).with_name("hostile.py")
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or "python3"


def trial(seed: int, place: Path) -> None:
    draw = random.Random(seed)
    uid = draw.choice((0, ORDINARY)) if os.geteuid() == 0 else os.geteuid()
    only = draw.choice(("", "landlock", "namespaces"))
    place.chmod(0o755)
    for name in ("hidden/secret", "shown/data", "run/result", "memory/x"):
        (place / name).parent.mkdir()
        (place / name).write_text(name)
    shutil.copy(HOSTILE, place / "shown/hostile.py")
    shutil.copy(BINARY, place / "ewan-node")
    (place / "memory/x").unlink()
    for path in (place, *place.rglob("*")):
        os.chown(path, uid, uid)
    victim = subprocess.Popen(["sleep", "60"], user=uid, group=uid, extra_groups=[])
    try:
        before = _outside(place, victim.pid)
        paths = [
            place / name for name in ("hidden/secret", "hidden", "hidden/new", "shown/data", "run/new", "run/result")
        ]
        _behind(
            place,
            uid,
            only,
            [seed, CALLS, victim.pid, *paths, "/dev/null", "/proc/self/mem", "/", f"/proc/{victim.pid}"],
        )
        after = _outside(place, victim.pid)
        changed = {name: (before[name], after.get(name)) for name in before if after.get(name) != before[name]}
        assert after == before, f"uid {uid}, {only or 'both'}: {changed}"
        assert victim.poll() is None, "a process outside has ended"
    finally:
        victim.kill()
        victim.wait()
    left = [path for path in (place / "run").rglob("*") if path.is_symlink() or not (path.is_file() or path.is_dir())]
    assert left == []


def _behind(place: Path, uid: int, only: str, words: list[object]) -> None:
    shown = [*map(Path, wall.SYSTEM), place / "shown"]
    command: list[object] = [place / "ewan-node", "launch"]
    command += [word for path in shown for word in ("--read", path.resolve(), "--link", path)]
    command += ["--write", place / "run", "--memory-in", place / "memory", "--memory", MEMORY, "--processes", 420]
    command += [*(("--only", only) if only else ()), "--", PYTHON, "-I", place / "shown/hostile.py", *words]
    subprocess.run(
        [str(word) for word in command],
        user=uid,
        group=uid,
        extra_groups=[],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


def _outside(place: Path, pid: int) -> dict[str, object]:
    """What must stay as it is."""
    paths = [path for top in ("hidden", "shown") for path in (place / top, *sorted((place / top).rglob("*")))]
    found: dict[str, object] = {}
    for path in [*paths, place / "ewan-node", Path("/dev/null"), Path("/dev/zero")]:
        status = path.lstat()
        times = () if path.is_char_device() else (status.st_mtime_ns, status.st_size)
        names = os.listxattr(path, follow_symlinks=False)
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_nlink, *times, *names)
    found |= {str(path): path.read_bytes() for path in paths if path.is_file()}
    limits = Path(f"/proc/{pid}/limits").read_text()
    return found | {"CPUs": os.sched_getaffinity(pid), "limits": limits, "nice": os.getpriority(os.PRIO_PROCESS, pid)}
