"""Hands images to the container engine that is there, Docker or Podman, by its own command.

In: an archive and the name in it; `EWAN_ENGINE` (docker, podman). Out: the image in the engine; the image that had the
name before is removed unless a container uses it. `DOCKER_HOST` is respected by Docker's command itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from images.container.packages import ImagesError

ANSWERS_S = 20


def find() -> str | None:
    """The command of the engine that answers, or None."""
    for command, question in (("docker", "version"), ("podman", "info")):
        wanted = os.environ.get("EWAN_ENGINE") or ("docker" if "DOCKER_HOST" in os.environ else command)
        if command != wanted:
            continue
        if shutil.which(command):
            try:
                asked = subprocess.run([command, question], capture_output=True, timeout=ANSWERS_S)
            except subprocess.TimeoutExpired:
                continue
            if asked.returncode == 0:
                return command
    return None


def inspect(command: str, name: str) -> tuple[str, dict[str, str], int] | None:
    """An image's id, labels and size in bytes; None where the engine has none of that name."""
    asked = subprocess.run([command, "image", "inspect", name], capture_output=True, text=True)
    if asked.returncode:
        return None
    image = json.loads(asked.stdout)[0]
    return image["Id"], image["Config"].get("Labels") or {}, image["Size"]


def load(command: str, name: str, archive: Path) -> None:
    """Loads an archive. Raises ImagesError with the engine's own words."""
    before = inspect(command, name)
    done = subprocess.run([command, "load", "--quiet", "--input", str(archive)], capture_output=True, text=True)
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ImagesError(f"{command} load of {archive} failed ({words}): check the engine's disk space and log")
    after = inspect(command, name)
    if before and after and before[0] != after[0]:
        # Without --force: an image that has another name too, or that a container uses, stays.
        subprocess.run([command, "image", "rm", before[0]], capture_output=True)
