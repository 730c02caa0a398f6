"""Makes profile.tar.xz anew, in about ten minutes: `python3 images/kernel/make_profile.py`.

A kernel that counts how often it takes each branch runs bulk flows and programs over links of each kind. build.py
compiles the kernel by what was counted, object by object. Objects of which nothing was executed often are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRANSFER = ["transfer", "dumbbell", "--rtt", "100ms", "--cc", "cubic", "--runtime", "virtual"]
BATCH = ["batch", "dumbbell", "--rate", "1G", "--runtime", "virtual", "--do", "right1: iperf3 -s -1"]
OFTEN = 1000
WORKLOADS = (
    [*TRANSFER, "--rate", "1G", "--for", "10s"],
    [*TRANSFER, "--rate", "1G", "--for", "10s", "--emulator", "kernel"],
    [*TRANSFER, "--rate", "10G", "--for", "4s"],
    [*TRANSFER, "--rate", "10G", "--for", "4s", "--emulator", "kernel"],
    [*TRANSFER, "--rate", "100M", "--for", "10s", "--loss", "0.1%", "--ip", "6"],
    [*TRANSFER, "--rate", "100M", "--for", "10s", "--flows", "10", "--emulator", "tbf"],
    [*BATCH, "--rtt", "20ms", "--do", "left1 at 1s: iperf3 -c right1 -t 1"],
    [*BATCH, "--rtt", "20ms", "--do", "left1 at 1s: iperf3 -c right1 -t 2 -u -b 100M"],
)


def main() -> None:
    """The archive takes its new place when it is complete."""
    built = subprocess.run([HERE / "build.sh", "--counting"], stdout=subprocess.PIPE, text=True, check=True)
    kernel = Path(built.stdout.strip())
    tree = kernel.parents[1] / "tree"
    for old in tree.rglob("*.gcda"):
        old.unlink()
    with TemporaryDirectory() as place:
        for number, words in enumerate(WORKLOADS, 1):
            print(f"profile: {number} of {len(WORKLOADS)}: ewan {' '.join(words)}", file=sys.stderr, flush=True)
            # The kernel writes its counts beside its objects, which no wall would let it do.
            command = ["env", f"EWAN_KERNEL={kernel}", "EWAN_WALL=off", str(ROOT / ".venv/bin/ewan"), *words]
            subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, check=True)
    counted = sorted(path for path in tree.rglob("*.gcda") if executed(path))
    if not counted:
        sys.exit("profile: nothing was counted, and the old one stays")
    new = HERE / "profile.new"
    with tarfile.open(new, "w:xz", preset=9) as archive:
        for path in counted:
            member = archive.gettarinfo(path, str(path.relative_to(tree)))
            member.mtime, member.uid, member.gid, member.uname, member.gname, member.mode = 0, 0, 0, "", "", 0o644
            with path.open("rb") as file:
                archive.addfile(member, file)
    new.rename(HERE / "profile.tar.xz")
    print(f"profile: {len(counted)} objects", file=sys.stderr)


def executed(path: Path) -> bool:
    """Does any of the object's counters say that it was executed more than at its start?"""
    told = subprocess.run(["gcov-dump", "-l", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    counted = re.findall(r":COUNTERS arcs .* counts\n((?:.*: +\d+:(?: \d+)+ *\n)+)", told)
    return any(
        int(count) >= OFTEN
        for lines in counted
        for line in lines.splitlines()
        for count in line.rpartition(":")[2].split()
    )


if __name__ == "__main__":
    main()
