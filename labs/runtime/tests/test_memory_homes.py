"""Where the memory of a virtual kernel lies: also where /dev/shm is as in containers, small and not executable."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ewan.labs.context import COMMAND
from ewan.labs.runtime import memory, memory_homes
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.tests.lab import BINARY

GIB = 1 << 30
WITH_SHM = 'mount -t tmpfs -o "$1,mode=1777" tmpfs /dev/shm && shift && exec "$@"'
"""For sh in a mount namespace of its own: a command with another /dev/shm."""
WITHOUT_NAMESPACES = "echo 1 >/proc/sys/user/max_mnt_namespaces && " + WITH_SHM


def test_shared_memory_is_taken_where_it_has_room(tmp_path: Path) -> None:
    assert memory_homes.found(1, BINARY, tmp_path) == (tmp_path, memory.available(tmp_path))


def test_without_a_wall_the_memory_lies_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("EWAN_CACHE", str(cache))
    monkeypatch.setenv("EWAN_WALL", "off")
    found = memory_homes.found(1 << 20, BINARY, tmp_path / "absent")
    assert found.directory == cache / "memory"
    assert found.free_bytes is not None and found.free_bytes > 1 << 20


def test_nowhere_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EWAN_WALL", "off")
    monkeypatch.setattr(memory_homes, "_others", lambda: iter(()))
    with pytest.raises(LabError, match="not there or not writable: mount -t tmpfs"):
        memory_homes.found(1, BINARY, tmp_path / "absent")


@pytest.mark.virtual
@pytest.mark.parametrize("shm", ["size=64m,noexec", "size=1m"])
@pytest.mark.parametrize(("wall", "script"), [("", WITH_SHM), ("off", WITH_SHM), ("", WITHOUT_NAMESPACES)])
def test_a_lab_is_made_where_shared_memory_is_that_of_containers(
    shm: str, wall: str, script: str, tmp_path: Path
) -> None:
    environment = {**os.environ, "EWAN_WALL": wall, "NO_COLOR": "1"}
    other_user = os.geteuid() != 0 or script == WITHOUT_NAMESPACES
    unshare = ["unshare", "--mount", *(["--user", "--map-root-user"] if other_user else [])]
    command = [*unshare, "sh", "-c", script, "sh", shm, *COMMAND, "lab", "dumbbell", "--runtime", "virtual"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "dumbbell verified" in done.stdout, done.stderr
