"""Namespaces, files and processes of others, named as a lab's are nearly or wholly, are as before when a lab went."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from ewan.labs.runtime.namespaces import NAMESPACES, identity_of
from ewan.labs.runtime.tests.lab import traces
from tests.torture.commands import TOPOLOGY, run, start

TIER = "untimed"
QUICK = 2
LONG = 100
PER_NAMESPACE_FILES = Path("/etc/netns")


def trial(seed: int, place: Path) -> None:
    random_ = random.Random(seed)
    lab, state = f"tf{os.getpid()}s{seed}", place / "state"
    names = [f"ewan-{lab}x-left1", f"ewan-{lab}-left1x", f"ewan-{lab}"]
    taken = f"ewan-{lab}-{random_.choice(('left1', 'r1', 'right1'))}"
    plain = NAMESPACES / f"ewan-{lab}-file"
    hosts = PER_NAMESPACE_FILES / f"ewan-{lab}x-left1" / "hosts"
    others: list[subprocess.Popen[bytes]] = []
    try:
        for name in (*names, taken):
            subprocess.run(["ip", "netns", "add", name], check=True)
        plain.write_text("mine")
        hosts.parent.mkdir(parents=True)
        hosts.write_text("192.0.2.1 mine\n")
        # In a foreign namespace, and with words on its command line that a lab's spinner has, but for the lab's id.
        waits = ["-c", "import time; time.sleep(100)"]
        others.append(subprocess.Popen(["ip", "netns", "exec", names[0], sys.executable, *waits]))
        others.append(subprocess.Popen(["ewan-node", *waits, "link", "--id", lab], executable=sys.executable))
        before = [identity_of(NAMESPACES / name) for name in (*names, taken)]
        # A node's namespace is somebody else's: the lab is refused, and the namespace stays.
        status, said = run(place, "up", *TOPOLOGY, "--name", lab)
        assert status == 2 and taken in said, said
        assert identity_of(NAMESPACES / taken) == before.pop()
        subprocess.run(["ip", "netns", "del", taken], check=True)
        process = start(place, "up", *TOPOLOGY, "--name", lab)
        killed = random_.random() < 0.5
        if killed:
            try:
                process.wait(random_.uniform(0.5, 2.5))
            except subprocess.TimeoutExpired:
                process.kill()
        said, _ = process.communicate(timeout=120)
        assert killed or process.returncode == 0, said
        status, said = run(place, "down", "--all")
        assert status == 0, said
        assert [identity_of(NAMESPACES / name) for name in names] == before
        assert (plain.read_text(), hosts.read_text()) == ("mine", "192.0.2.1 mine\n")
        assert [other.poll() for other in others] == [None, None]
        assert not state.exists()
    finally:
        for other in others:
            other.kill()
            other.wait()
        for name in (*names, taken):
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)
        plain.unlink(missing_ok=True)
        hosts.unlink(missing_ok=True)
        if hosts.parent.is_dir():
            hosts.parent.rmdir()
    assert traces(lab, state) == []
