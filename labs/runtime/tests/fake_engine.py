"""A container engine and a containerlab that only pretend, for what real ones cannot be made to do at will.

Two programs, `docker` and `containerlab`, in a directory that comes first in PATH. What the engine has is in a JSON
file that both and the test read and write; `Fakes` is the test's hand on it.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ewan.labs import images

# Whole or not at all, whoever reads it or is killed meanwhile.
WORLD = """#!{python} -SE
import fcntl, json, os, re, sys, time
path = {world!r}
turn = open(path + ".lock", "w")
def save(world):
    with open(path + ".new", "w") as file:
        json.dump(world, file)
    os.replace(path + ".new", path)
"""

DOCKER = """
words = sys.argv[1:]
fcntl.flock(turn, fcntl.LOCK_EX)
world = json.load(open(path))
if world["dead"]:
    sys.exit("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")
if words[0] == "version":
    print("20.10.24")
elif words[1:2] == ["inspect"]:
    found, status = [], 0
    for name in words[2:]:
        if name in world[words[0]]:
            found.append(world[words[0]][name])
        else:
            print(f"Error: No such {{words[0]}}: {{name}}", file=sys.stderr)
            status = 1
    print(json.dumps(found))
    sys.exit(status)
elif words[0] == "rm":
    identities = words[3:]
    world["container"] = {{name: each for name, each in world["container"].items() if each["Id"] not in identities}}
    save(world)
elif words[:2] == ["network", "rm"]:
    world["network"] = {{name: each for name, each in world["network"].items() if name not in words[2:]}}
    save(world)
elif words[0] == "start":
    sys.exit('Error: unable to start container "x": crun: setrlimit: Operation not permitted: OCI permission denied')
elif words[0] == "logs":
    print("its last words")
else:
    sys.exit("fake engine: " + " ".join(words))
"""

CONTAINERLAB = """
def change(**more):
    fcntl.flock(turn, fcntl.LOCK_EX)
    save(json.load(open(path)) | more)
    fcntl.flock(turn, fcntl.LOCK_UN)
before = json.load(open(path))
if sys.argv[1] == "version":
    print("    version: " + before["containerlab"])
    sys.exit()
topology = sys.argv[sys.argv.index("--topo") + 1]
state = os.path.dirname(topology)
assert os.path.exists(state + "/manifest.json"), "nothing is made before the manifest"
assert os.environ["CLAB_LABDIR_BASE"] == state
names = json.load(open(state + "/manifest.json"))["containers"]
made = dict(before["container"])
for name in names[: before["makes"]]:
    print('time="2026-01-01" level=info msg="Creating container: \\\\"x\\\\""', file=sys.stderr, flush=True)
    time.sleep(before["takes_s"])
    made[name] = dict(Name="/" + name, Id="id-" + name, Config=dict(Labels={{"clab-topo-file": topology}}),
                      State=dict(Running=before["starts"], Status="running" if before["starts"] else "created",
                                 Pid=0, ExitCode=0))
    change(container=made)
change(dead=before["dies"], made=True)
for line in before["says"]:
    print(line, file=sys.stderr)
sys.exit(before["starts"])
"""


class Fakes:
    """What the pretended engine has, and what the pretended containerlab will do."""

    def __init__(self, place: Path, binary: Path) -> None:
        self._world = place / "world.json"
        self.binary = binary
        self.programs = place / "bin"
        self.programs.mkdir()
        labels = {images.NODE_LABEL: images.digest(binary)}
        found = {name: {"RepoTags": [name], "Config": {"Labels": labels}} for name in images.IMAGES.values()}
        self.write(
            {
                "dead": False,
                "image": found,
                "container": {},
                "network": {},
                "containerlab": "0.60.0",
                "makes": 2,
                "starts": True,
                "takes_s": 0.0,
                "says": ['time="2026-01-01" level=error msg="wires: no such device"', "Error: not all could be made"],
                "dies": False,
            }
        )
        for name, text in (("docker", DOCKER), ("containerlab", CONTAINERLAB)):
            path = self.programs / name
            path.write_text((WORLD + text).format(python=sys.executable, world=str(self._world)))
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    @property
    def path(self) -> str:
        return f"{self.programs}:{os.environ['PATH']}"

    def read(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self._world.read_text())
        return content

    def write(self, world: Mapping[str, Any]) -> None:
        new = self._world.with_suffix(".test")
        new.write_text(json.dumps(world))
        new.replace(self._world)

    def set(self, **more: Any) -> None:
        self.write(self.read() | more)

    def container(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """One that is there before."""
        state = {"Running": True, "Status": "running", "Pid": 0, "ExitCode": 0}
        described = {"Name": f"/{name}", "Id": f"id-{name}", "Config": {"Labels": dict(labels or {})}, "State": state}
        self.set(container=self.read()["container"] | {name: described})

    def containers(self) -> list[str]:
        return sorted(self.read()["container"])
