"""Runs every target of the Makefile once in a fresh clone, as a reader of the documents does.

usage: python -m tests.targets [TARGET …]

In: the committed tree, names of targets (default: all). Out: a line a target with its time and what was wrong, exit
status 1 where one failed. It takes about an hour and needs root: it is run by hand, weekly and before a release. A
target runs what it needs first (`needs`).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
INTERRUPTED = 130
PLACE = "ewan-targets-"
"""What the clone's directory begins with. It has no blank: the virtual kernel refuses a path with one."""
LAB = "TOPO=dumbbell RTT=20 RATE=100M NAME=weekly"
SCENARIO = "SCENARIO=parallel-streams SIZE=quick RUNTIME=virtual"
NEWEST = 'RUN="$(ls -d results/*-parallel-streams | tail -n 1)"'


@dataclass(frozen=True)
class TargetCall:
    """One call of make: its words, what must be there first, how it may end.

    `serves_s`: it goes on until Ctrl-C, which comes after so many seconds.
    """

    target: str
    words: str = ""
    needs: tuple[str, ...] = ()
    serves_s: int | None = None
    given: str = ""
    longest_s: int = 600

    @property
    def command(self) -> str:
        return f"make {self.target} {self.words}".strip()


CALLS = (
    TargetCall("help"),
    TargetCall("setup"),
    TargetCall("install", 'PREFIX="$PWD/out/prefix"'),
    TargetCall("uninstall", 'PREFIX="$PWD/out/prefix"', needs=("install",)),
    TargetCall("doctor"),
    TargetCall("lint"),
    TargetCall("check"),
    TargetCall("docs"),
    TargetCall("kernel", longest_s=1800),
    TargetCall("compile", "TOPO=dumbbell RTT=100"),
    TargetCall("calibrate", "SIZE=quick"),
    TargetCall("lab", LAB),
    TargetCall("ps", needs=("lab",)),
    TargetCall("exec", 'NAME=weekly NODE=left1 CMD="ping -c 3 right1"', needs=("lab",)),
    TargetCall("shell", "NAME=weekly NODE=left1", needs=("lab",), given="hostname\nexit\n"),
    TargetCall("capture", "NAME=weekly NODE=left1", needs=("lab",), serves_s=3),
    TargetCall("set", 'NAME=weekly LINK=core SET="rate=50Mbit/s"', needs=("lab",)),
    TargetCall("verify", "NAME=weekly", needs=("lab",)),
    TargetCall("certificate", "NAME=weekly", needs=("lab",)),
    TargetCall("watch", "NAME=weekly", needs=("lab",), serves_s=3),
    TargetCall("metrics", "NAME=weekly LISTEN=127.0.0.1:0", needs=("lab",), serves_s=3),
    TargetCall("down", "NAME=weekly", needs=("lab",)),
    TargetCall("up", LAB),
    TargetCall("down", "NAME=weekly", needs=("up",)),
    TargetCall("batch", "TOPO=dumbbell RTT=20 RUNTIME=virtual DO='left1: ping -c 3 right1'"),
    TargetCall("run", f"{SCENARIO} TAG=weekly", longest_s=1200),
    TargetCall("runs", "TAG=weekly", needs=("run",)),
    TargetCall("report", NEWEST, needs=("run",)),
    TargetCall("export", f"{NEWEST} CSV=out/csv", needs=("run",)),
    TargetCall("tag", f'{NEWEST} TAG="+kept"', needs=("run",)),
    TargetCall("archive", f'{NEWEST} LICENCE=CC-BY-4.0 AUTHOR="Doe, Jane"', needs=("run",)),
    TargetCall(
        "rerun", 'ARCHIVE="$(ls results/*/*.tar.zst | head -n 1)" OPTS=--trust', needs=("archive",), longest_s=1200
    ),
    TargetCall("collect", "OPTS=--help"),
    TargetCall("store", "OPTS=verify"),
    TargetCall("hstts", "APP=BU SIZE=quick RUNTIME=virtual", longest_s=3600),
    TargetCall("transfers", "FILE=labs/library/transfers.yaml"),
    TargetCall("trace", 'FILE="labs/library/lte.csv"'),
    TargetCall("course", "OPTS=list"),
    TargetCall("machine", longest_s=1800),
    TargetCall("udt"),
    TargetCall("quic"),
    TargetCall("mpi"),
    TargetCall("image", longest_s=1800),
    TargetCall("images", longest_s=1800),
    TargetCall("setup-containerlab", longest_s=1800),
    TargetCall("adopt", "OPTS=--help"),
    TargetCall("setup-cluster"),
    TargetCall("setup-gym"),
    TargetCall("setup-notebook"),
    TargetCall("notebook", "LAB=bufferbloat STUDENT=4711 OPTS='--no-browser --allow-root'", serves_s=20),
    TargetCall("studio", 'OPTS="--no-open --port 0"', serves_s=20),
    TargetCall("bundle", longest_s=1800),
    TargetCall("wheel", longest_s=1800),
    TargetCall("sdist"),
    TargetCall("check-aarch64", longest_s=1800),
    TargetCall("torture", 'NAMES="mutants"', longest_s=1800),
    TargetCall("figures", longest_s=3600),
    TargetCall("papers", "NAMES=nxe-table-4", longest_s=3600),
    TargetCall("bench", "PART=compile OPTS=--quick", longest_s=3600),
    TargetCall("test", longest_s=5400),
    TargetCall("clean"),
)


def chosen(names: Sequence[str]) -> list[TargetCall]:
    """The calls of these targets and those that they need, in the order of CALLS. KeyError for an unknown target."""
    wanted = set(names)
    if unknown := wanted - {call.target for call in CALLS}:
        raise KeyError(", ".join(sorted(unknown)))
    for call in reversed(CALLS):
        if call.target in wanted:
            wanted |= set(call.needs)
    return [call for call in CALLS if not names or call.target in wanted]


def wrong(call: TargetCall, clone: Path) -> str:
    """Why the call is not as it must be; empty where it is."""
    limit = call.longest_s if call.serves_s is None else call.serves_s + 120
    begin = time.monotonic()
    command = call.command if call.serves_s is None else f"timeout -s INT -k 20 {call.serves_s} {call.command}"
    try:
        done = subprocess.run(
            ["sh", "-c", command], cwd=clone, input=call.given, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"still at work after {limit} s"
    served = call.serves_s is not None and time.monotonic() - begin >= call.serves_s
    if done.returncode != 0 and not (served and done.returncode in (2, 124, INTERRUPTED)):
        return f"exit status {done.returncode}: {' / '.join((done.stdout + done.stderr).strip().splitlines()[-3:])}"
    return "Traceback" if "Traceback (most recent call last)" in done.stdout + done.stderr else ""


def main(names: Iterable[str]) -> int:
    try:
        calls = chosen(list(names))
    except KeyError as unknown:
        print(
            f"tests.targets: {unknown.args[0]}: the Makefile has no such target: make help lists them", file=sys.stderr
        )
        return 2
    failed = 0
    with tempfile.TemporaryDirectory(prefix=PLACE) as place:
        clone = Path(place) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        for call in calls:
            begin = time.monotonic()
            why = wrong(call, clone)
            failed += bool(why)
            print(f"{time.monotonic() - begin:7.0f} s  {call.command}: {why or 'as it must be'}", flush=True)
    print(f"{len(calls) - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
