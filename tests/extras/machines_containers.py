"""`python -m tests.extras.machines_containers`: containerlab makes a lab of the files that `ewan lab compile` writes
for machines.

In: the rig's machines (tests/extras/machines_rig.py). In each runs a Docker Engine, into which our images are loaded;
then `containerlab deploy` of the file for that machine, on all side by side, a ping both ways through the tunnel, and
`containerlab destroy`. Out: a line for each step; exit status 1 where one fails. It takes about a minute, and so is no
part of `make test`. Needs root, and containerlab and the images (`make test` builds both).
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.container_engine import oci_runtime
from tests.extras.machines_rig import ROOT, Rig, machines

CONTAINERLAB = ROOT / "target/containerlab/containerlab"
LAB = "clustered"
HOST = "unix:///run/docker.sock"
# What the engine and containerlab write into directories of the host stays in the machine's own /run.
ENGINE = """
for directory in /etc/docker /opt/containerd; do
    mkdir -p /run/own$directory $directory && mount --bind /run/own$directory $directory || exit
done
exec dockerd --data-root "$1"/root --exec-root /run/docker-exec --pidfile /run/dockerd.pid --cgroup-parent "$2" \\
    --host "$3" $4
"""
ALONE = 'cp /etc/hosts /run/hosts && mount --bind /run/hosts /etc/hosts && cd "$1" && shift && exec "$@"'
STARTS_S = 60.0


def within(rig: Rig, machine: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on a machine, which finds the machine's engine."""
    command = ["nsenter", f"--target={rig.first(machine)}", "--all", "--wdns=/", "--", *words]
    environment = os.environ | {"DOCKER_HOST": HOST}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def must(done: subprocess.CompletedProcess[str]) -> str:
    """What it printed."""
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, done.args))[:200]}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def engine(rig: Rig, machine: str, data: Path) -> Iterator[None]:
    """A Docker Engine on a machine, with our images."""
    (own := rig.directory / machine / "engine").mkdir()
    less = f"--add-runtime less={oci_runtime.install(own)} --default-runtime less" if oci_runtime.lacking() else ""
    words = ["sh", "-c", ENGINE, "sh", str(data), f"/ewan-engine-{data.name}-{machine}", HOST, less]
    log = data / "dockerd.log"
    with log.open("wb") as output:
        command = ["nsenter", f"--target={rig.first(machine)}", "--all", "--", *words]
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        end = time.monotonic() + STARTS_S
        while within(rig, machine, "docker", "version").returncode != 0:
            if daemon.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"machine {machine}: dockerd does not answer: {log.read_text()[-1000:]}")
            time.sleep(0.2)
        must(within(rig, machine, str(ROOT / "images/build-images.sh")))
        yield
    finally:
        left = within(rig, machine, "docker", "ps", "-aq").stdout.split()
        if left:
            within(rig, machine, "docker", "rm", "-f", *left)
        within(rig, machine, "sh", "-c", "kill $(cat /run/dockerd.pid)")
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(20)


def deploy(rig: Rig, machine: str, files: Path, *words: str) -> str:
    """containerlab, with the file for a machine."""
    alone = ["unshare", "--mount", "sh", "-c", ALONE, "sh", str(files / machine), str(CONTAINERLAB), *words]
    return must(within(rig, machine, *alone, "-t", f"{LAB}.clab.yml"))


def main() -> None:
    """Two machines, and a dumbbell over both."""
    with contextlib.ExitStack() as stack:
        rig = stack.enter_context(machines(2, mtu=1600))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ewan-engines-")))
        words = [
            "lab",
            "compile",
            "dumbbell",
            "--rtt",
            "40ms",
            "--rate",
            "20M",
            "--name",
            LAB,
            "--machines",
            str(rig.file),
        ]
        command = [sys.executable, str(ROOT / "ewan" / "cli.py"), *words, "-o", str(scratch / "out")]
        with rig.inside():
            must(subprocess.run(command, capture_output=True, text=True))
        for machine in rig.names:
            (scratch / machine).mkdir()
            stack.enter_context(engine(rig, machine, scratch / machine))
            print(f"machine {machine}: an engine with our images", flush=True)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda machine: deploy(rig, machine, scratch / "out", "deploy"), rig.names))
        print("containerlab deploy: done on both", flush=True)
        for machine, source, sink in (("one", "left1", "right1"), ("two", "right1", "left1")):
            words = ["docker", "exec", f"ewan-{LAB}-{source}", "ping", "-c", "10", "-i", "0.1", sink]
            said = must(within(rig, machine, *words))
            print(f"{source} to {sink}: {re.findall('.*received.*|rtt.*', said)}", flush=True)
        for machine in rig.names:
            deploy(rig, machine, scratch / "out", "destroy", "--cleanup")
            look = "docker ps -aq; ip -br link | grep -v -e ^lo -e ^eth1 -e ^docker0"
            left = within(rig, machine, "sh", "-c", look).stdout
            print(f"machine {machine}: after containerlab destroy: {left.split() or 'nothing is left'}", flush=True)


if __name__ == "__main__":
    main()
