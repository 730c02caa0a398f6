"""A class on one server: `python -m tests.extras.course_class [--students 30] [--lab NAME]`, as root, in a few minutes.

An administrator's tree and a cache for all users are made in a directory of their own, from this clone's commit and a
release bundle (`make bundle`), as docs/start/install.md says. Then so many students, each a user of the system without
a name, work in the virtual clock at once: all run the same scenario, or, with --lab, each begins a lab of the course
with a number of its own, runs its scenarios and has it checked. Said is how long each took, how CPU time was shared
out, and how much memory it took. It fails where a run failed, where results of the same scenario differ, where a
student's share of the CPU time is below half of the median while all are at it, or where one student can read another's
files. Nothing of it stays.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
FIRST_UID = 61_184
"""Of users that no system gives to anybody (systemd's range for dynamic users begins here)."""
LEAST_SHARE = 0.5
SCENARIO = """\
name: bufferbloat
lab: {topology: dumbbell, rtt: 40ms, wan: {rate: 10Mbit/s, buffer: "${buffer}"}}
sweep: {buffer: [0.1BDP, 1BDP, 10BDP]}
steps:
  - {name: load, from: left1, to: right1, congestion: cubic, for: 20s, bulk: {}}
  - {name: probe, on: left1, run: "ping -q -i 0.2 -c 90 right1"}
"""
WORK = {
    "scenario": '"$EWAN" run lab.scenario.yaml --runtime virtual',
    "course": """
"$EWAN" course start "$LAB" --student "$NUMBER"
cd "$LAB"
for scenario in *.scenario.yaml; do "$EWAN" run "$scenario" --runtime virtual; done
"$EWAN" course check || [ $? = 1 ]  # 1: no answer is written yet
""",
}
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin"


@dataclass
class Student:
    """A user, and what its command took."""

    uid: int
    home: Path
    process: subprocess.Popen[bytes] | None = None
    wall_s: float = 0.0
    status: int = -1

    def words(self, *command: str) -> list[str]:
        """The command as this user, with no group of anybody else's."""
        ids = ["--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups", "--no-new-privs"]
        return ["setpriv", *ids, "env", "-i", f"HOME={self.home}", f"PATH={PATH}", "LANG=C.UTF-8", *command]


def administrator(place: Path) -> tuple[Path, Path]:
    """A tree and a cache for all users, and how they came about: the commands of docs/start/install.md."""
    tree, cache = place / "ewan", place / "cache"
    run("git", "clone", "--quiet", f"file://{ROOT}", str(tree))
    (bundle,) = (ROOT / "target/bundle").glob("ewan-bundle-x86_64-*.tar.xz")
    environment = {
        **os.environ,
        "EWAN_CACHE": str(cache),
        "BUNDLE": str(bundle),
        "PATH": f"{PATH}:{os.environ['PATH']}",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(["make", "install", f"PREFIX={place}/usr"], cwd=tree, env=environment, check=True)
    return tree, cache


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def at_work(students: list[Student]) -> dict[int, float]:
    """CPU time (s) that each user's processes that are there now have had, with that of their ended children."""
    spent = dict.fromkeys((each.uid for each in students), 0.0)
    for process in psutil.process_iter(["uids", "cpu_times"]):
        uids, times = process.info["uids"], process.info["cpu_times"]
        if uids and times and uids.real in spent:
            spent[uids.real] += times.user + times.system + times.children_user + times.children_system
    return spent


class Watch(threading.Thread):
    """Memory and CPU time while students are at work, twice a second."""

    def __init__(self, students: list[Student]) -> None:
        super().__init__(daemon=True)
        self.students = students
        self.free_before = self.least_free = psutil.virtual_memory().available
        self.shares: dict[int, float] = {}
        self.most_runs = 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.5):
            self.least_free = min(self.least_free, psutil.virtual_memory().available)
            text = Path("/proc/net/unix").read_text()
            self.most_runs = max(self.most_runs, sum(f"@ewan-run-{each.uid}-" in text for each in self.students))
            if all(each.process is not None and each.process.poll() is None for each in self.students):
                self.shares = at_work(self.students)  # the last look while nobody has ended


def work(student: Student, tree: Path, cache: Path, lab: str | None) -> None:
    begun = time.monotonic()
    ewan = tree.parent / "usr/bin/ewan"
    told = [f"EWAN_SHARED_CACHE={cache}", f"EWAN={ewan}", f"LAB={lab or ''}", f"NUMBER={student.uid}"]
    words = ["env", *told, "sh", "-euc", WORK["course" if lab else "scenario"]]
    with (student.home / "log").open("wb") as log:
        # Each has logged in on his own: systems share CPUs between sessions, or between users.
        student.process = subprocess.Popen(
            student.words(*words), cwd=student.home, stdout=log, stderr=log, start_new_session=True
        )
        student.status = student.process.wait()
    student.wall_s = time.monotonic() - begun


def digest(student: Student) -> str:
    """Of the tables of all runs, which are the same bytes for all."""
    found = hashlib.sha256()
    for path in sorted(student.home.glob("results/*-*/runs/*/*.parquet")):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def seen_by_others(students: list[Student]) -> list[str]:
    """Files of one student that the next one can read, or write."""
    found = []
    for each, other in zip(students, [*students[1:], students[0]], strict=True):
        words = other.words("find", str(each.home), "-readable", "-o", "-writable")
        found += subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()
    return [path for path in found if path not in {str(each.home) for each in students}]


def main(number: int, lab: str | None) -> int:
    """The exit status."""
    place = Path(tempfile.mkdtemp(prefix="ewan-class-"))
    place.chmod(0o755)
    students = [Student(FIRST_UID + each, place / f"home{each}") for each in range(number)]
    try:
        tree, cache = administrator(place)
        for each in students:
            each.home.mkdir(mode=0o700)
            (each.home / "lab.scenario.yaml").write_text(SCENARIO)
            run("chown", "-R", f"{each.uid}:{each.uid}", str(each.home))
        alone = students[0]
        work(alone, tree, cache, lab)
        print(f"one student: {alone.wall_s:.1f} s", flush=True)
        if alone.status:
            print(f"  wrong: {tail(alone)}")
            return 1
        for name in ("results", lab or "results"):
            shutil.rmtree(alone.home / name, ignore_errors=True)
        watch = Watch(students)
        watch.start()
        threads = [threading.Thread(target=work, args=(each, tree, cache, lab)) for each in students]
        begun, spent = time.monotonic(), spent_s()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - begun
        watch.ended.set()
        watch.join()
        return told(students, watch, took, spent_s() - spent, alike=lab is None)
    finally:
        for each in students:
            if each.process is not None and each.process.poll() is None:
                each.process.terminate()
                each.process.wait()
        shutil.rmtree(place, ignore_errors=True)


def spent_s() -> float:
    """CPU time of this process's children that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def told(students: list[Student], watch: Watch, took_s: float, cpu_s: float, alike: bool) -> int:
    """What was found, printed; the exit status. `alike`: all ran the same."""
    walls = sorted(each.wall_s for each in students)
    memory = (watch.free_before - watch.least_free) / 1e6
    print(
        f"{len(students)} students at once on {os.cpu_count()} CPUs: {took_s:.0f} s in all, {cpu_s:.0f} s of CPU time"
    )
    print(f"  each: {walls[0]:.0f} to {walls[-1]:.0f} s, median {statistics.median(walls):.0f} s")
    print(
        f"  memory: {memory:.0f} MB at most, {memory / len(students):.0f} MB a student; runs at once: {watch.most_runs}"
    )
    wrong = [f"student {each.uid}: status {each.status}: {tail(each)}" for each in students if each.status]
    shares = sorted(watch.shares.values())
    if shares and (median := statistics.median(shares)):
        print(f"  CPU time while all were at it: {shares[0]:.1f} to {shares[-1]:.1f} s, median {median:.1f} s")
        wrong += [f"a student had {shares[0] / median:.0%} of the median's CPU time"] * (
            shares[0] < LEAST_SHARE * median
        )
    if alike and len({digest(each) for each in students}) != 1:
        wrong.append("students' tables differ")
    wrong += [f"another student can read {path}" for path in seen_by_others(students)]
    for each in wrong:
        print(f"  wrong: {each}")
    print("  " + ("as it should be" if not wrong else f"{len(wrong)} wrong"))
    return 1 if wrong else 0


def tail(student: Student) -> str:
    lines = (student.home / "log").read_text(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "no word")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.extras.course_class", description="A class on one server.")
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--lab", metavar="NAME", help="a lab of the course, a number each; absent: a scenario")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("tests.extras.course_class makes processes of other users: run it as root")
    sys.exit(main(options.students, options.lab))
