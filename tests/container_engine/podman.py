"""Podman for the tests, which needs no daemon: its own images, containers and configuration, beside any other's.

In: Debian's podman; a directory for its settings. Out: the environment in which `podman`, and what asks it, finds what
is the tests' own, and nothing else. Images stay below target/engine between runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.container_engine import oci_runtime
from tests.container_engine.docker import DATA, EngineError

STORAGE = DATA / "podman"


@contextlib.contextmanager
def configured(place: Path) -> Iterator[dict[str, str]]:
    """The variables to set. Raises EngineError where there is no podman; removes all containers at the end."""
    if os.geteuid() != 0:
        raise EngineError("labs of containers need root: run as root")
    if not shutil.which("podman"):
        raise EngineError("podman is missing: apt install podman")
    # Podman keeps to the place that it was first told.
    run = Path("/run") / f"ewan-podman-{hashlib.sha256(str(STORAGE).encode()).hexdigest()[:8]}"
    settings, storage = place / "containers.conf", place / "storage.conf"
    lines = ["[engine]", 'cgroup_manager = "cgroupfs"', 'events_logger = "file"']
    if oci_runtime.lacking():
        lines += ['runtime = "less"', "[engine.runtimes]", f'less = ["{oci_runtime.install(place)}"]']
    settings.write_text("\n".join([*lines, ""]))
    storage.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{STORAGE}"\nrunroot = "{run}"\n')
    environment = {
        "CONTAINERS_CONF": str(settings),
        "CONTAINERS_STORAGE_CONF": str(storage),
        "EWAN_ENGINE": "podman",
    }
    try:
        yield environment
    finally:
        inside = os.environ | environment
        subprocess.run(["podman", "rm", "--all", "--force", "--time", "0"], env=inside, capture_output=True)
        # Who watched commands would call podman again after five minutes; podman leaves its storage mounted on itself.
        subprocess.run(["pkill", "-KILL", "-f", f"conmon .*{STORAGE}/"], capture_output=True)
        subprocess.run(["umount", str(STORAGE / "overlay")], capture_output=True)
        shutil.rmtree(run, ignore_errors=True)
