"""Several who compile into one directory: each finds what the one before has written whole, or says who is at work."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.render import files
from ewan.labs.spec import from_template

PLAN = compile_spec(from_template("dumbbell", {"rtt": "20ms"}), HostFacts(cpus=(0, 1), networks=()))


def test_one_waits_for_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        fcntl.flock(other, fcntl.LOCK_UN)

    monkeypatch.setattr(time, "sleep", sleep)
    made = files.written(PLAN, tmp_path, sheet="", version="1")
    os.close(other)
    assert len(waited) == 1 and all(path.exists() for path in made.values())


def test_one_that_is_at_work_for_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    monkeypatch.setattr(files, "WAITS_S", 0.0)
    with pytest.raises(OSError, match="another `ewan lab compile` writes there for long"):
        files.written(PLAN, tmp_path, sheet="", version="1")
    os.close(other)
    assert list(tmp_path.iterdir()) == []
