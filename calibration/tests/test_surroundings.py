"""Where a host's Linux runs, and what its kernel was seen to allow."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ewan.calibration.host import surroundings, trials
from ewan.calibration.host.surroundings import Surroundings
from ewan.labs.base.product import NODE_BINARY as BINARY
from ewan.labs.runtime import kernel
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.wall import Walls

DEBIAN = "Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org) (gcc-12) #1 SMP"
WSL1 = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0 (GCC) ) #1237-Microsoft"
WSL2 = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1) (gcc (GCC) 11.2.0) #1 SMP"


@pytest.mark.parametrize(
    ("version", "environment", "marks", "where"),
    [
        (DEBIAN, {}, (), None),
        (WSL1, {}, (), ("WSL 1", "/proc/version")),
        (WSL2, {"WSL_INTEROP": "/run/WSL/8_interop"}, (), ("WSL 2", "/proc/version")),
        (WSL2, {}, (surroundings.DOCKER,), ("WSL 2", "/proc/version")),
        (DEBIAN, {"WSL_INTEROP": "/run/WSL/8_interop"}, (), ("WSL 2", "WSL_INTEROP")),
        (
            DEBIAN,
            {"CODESPACES": "true", "REMOTE_CONTAINERS": "true"},
            (surroundings.DOCKER,),
            ("Codespaces", "CODESPACES"),
        ),
        (DEBIAN, {"REMOTE_CONTAINERS": "true"}, (), ("a dev container", "REMOTE_CONTAINERS")),
        (DEBIAN, {}, (surroundings.PODMAN, surroundings.LIMA), ("a container", surroundings.PODMAN)),
        (DEBIAN, {}, (surroundings.LIMA,), ("a Lima machine", surroundings.LIMA)),
    ],
)
def test_surroundings_are_recognised(
    version: str, environment: Mapping[str, str], marks: tuple[str, ...], where: tuple[str, str] | None
) -> None:
    assert Surroundings("x86_64", version, environment, marks).where() == where


def test_what_works_where_is_said_plainly() -> None:
    arm = {each.what: each for each in Surroundings("aarch64", WSL2, {}).findings()}
    assert arm["architecture"].verdict == "limited" and "no simulated time" in arm["architecture"].meaning
    assert "/mnt/c" in arm["surroundings"].meaning
    (old,) = [each for each in Surroundings("x86_64", WSL1, {}).findings() if each.what == "surroundings"]
    assert old.verdict == "missing" and "wsl --set-version" in old.meaning


def test_on_another_architecture_the_virtual_clock_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(LabError, match=r"no virtual clock on aarch64: .* live lab as root") as refused:
        kernel.kernel(print)
    assert "\n" not in str(refused.value)


class Tried:
    """What a kernel answers to trials, in the place of `subprocess.run`."""

    def __init__(self, *worked: str, error: str = "") -> None:
        self.worked, self.error = worked, error
        self.words: list[str] = []

    def __call__(self, words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.words = words
        output = "" if self.error else "\n".join(("begun", *self.worked))
        return subprocess.CompletedProcess(words, 0, output, self.error)


@pytest.mark.parametrize(
    ("kernel", "root", "sudo", "verdict", "said"),
    [
        (Tried(*trials.STEPS), True, False, "good", "they can be made as root"),
        (Tried(*trials.STEPS), False, True, "good", "under sudo"),
        (Tried(*trials.STEPS), False, False, "limited", "root or sudo is what lacks"),
        (Tried("veth", "packet sockets"), True, False, "limited", "access links cannot be limited"),
        (Tried("tbf", "IPv6"), True, False, "limited", "none on this kernel"),
        (Tried(error="unshare: unshare failed: Operation not permitted"), True, False, "limited", "in this container"),
        (Tried(error="unshare: unshare failed: Operation not permitted"), False, True, "limited", "a lab comes up"),
        (Tried(error="unshare: unshare failed: Operation not permitted"), False, False, "limited", "none without root"),
    ],
)
def test_live_labs_are_what_was_tried(kernel: Tried, root: bool, sudo: bool, verdict: str, said: str) -> None:
    found = trials.live_finding(trials.live(root, kernel), root, sudo)
    assert found.verdict == verdict and said in found.meaning
    assert ("--user" in kernel.words) == (not root)
    if kernel.error:
        assert "Operation not permitted" in found.found


@pytest.mark.untimed
def test_trials_leave_nothing() -> None:
    before = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    tried = trials.live(os.geteuid() == 0)
    assert tried == trials.LiveTrial(frozenset(trials.STEPS))
    assert subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout == before


@pytest.mark.virtual
def test_a_lab_in_simulated_time_is_tried(tmp_path: Path) -> None:
    found = trials.simulated(BINARY, kernel.kernel(print))
    assert found.verdict == "good" and found.found.startswith("a lab ran, in "), found.meaning
    broken = tmp_path / "linux"
    broken.write_text("#!/bin/sh\necho no such system call\nexit 1\n")
    broken.chmod(0o755)
    found = trials.simulated(BINARY, broken)
    assert found.verdict == "limited" and "no such system call" in found.meaning


@pytest.mark.parametrize(
    ("landlock", "namespaces", "processes", "verdict", "meaning"),
    [
        (7, True, True, "good", "only what is shown to them"),
        (7, True, False, "good", "processes have no bound"),
        (7, "not permitted", True, "limited", "/dev/shm has no bound for them"),
        (4, "not permitted", True, "limited", "they can signal your processes"),
        (0, True, True, "good", "by one wall of two"),
        (0, "not permitted", False, "limited", "EWAN_WALL=off"),
    ],
)
def test_what_the_wall_lacks_is_said(
    landlock: int, namespaces: bool | str, processes: bool, verdict: str, meaning: str
) -> None:
    found = trials.walled(Walls(landlock, namespaces, processes), "root")
    assert found.verdict == verdict and meaning in found.meaning
