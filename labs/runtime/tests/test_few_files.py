"""A lab that needs more open files than a shell allows: it is up, or one line names the cause and what to do."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.labs.context import COMMAND
from ewan.labs.runtime.tests.lab import own_state, traces

pytestmark = pytest.mark.untimed

LAB = f"few{os.getpid()}"


@pytest.fixture
def state() -> Iterator[Path]:
    with own_state("few") as root:
        yield root


@pytest.mark.parametrize("files", [64, 200])
def test_too_few_open_files_are_told_as_what_they_are(state: Path, tmp_path: Path, files: int) -> None:
    """With 64 the making of namespaces finds too few, with 200 that of links."""
    file = tmp_path / "star.lab.yaml"
    file.write_text(f"name: {LAB}\ntopology: {{star: {{arms: 40}}}}\nrtt: 20ms\n")
    done = subprocess.run(
        [*COMMAND, "up", str(file), "--runtime", "netns"],
        env=os.environ | {"EWAN_STATE": str(state)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:  # root that the kernel lets raise limits has the lab
        (line,) = done.stderr.splitlines()
        assert line.endswith("Too many open files (os error 24): raise the limit of open files (ulimit -n)")
        assert done.returncode == 2 and traces(LAB, state) == []
