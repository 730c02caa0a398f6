"""Our own congestion controls as BPF programs: this host's kernel takes them, live labs have them, then they are gone.

Their equations are held to in the virtual clock (test_own_congestion.py), of the same sources.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from ewan.generator import congestion
from tests.conftest import Ewan

pytestmark = pytest.mark.live


def make(*words: str | Path) -> None:
    done = subprocess.run(["make", "-s", "-C", congestion.MODULES, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def loaded() -> Iterator[None]:
    """As a user loads them, unless this host has them already."""
    if set(congestion.as_bpf()) <= set(congestion.in_live(congestion.as_bpf())):
        yield
        return
    make("bpf-load")
    yield
    make("bpf-unload")
    assert not set(congestion.as_bpf()) & set(congestion.in_live(congestion.as_bpf()))


def test_a_live_lab_has_them(loaded: None, ewan: Ewan, tmp_path: Path) -> None:
    names = sorted(congestion.as_bpf())
    congestion.refuse(names, virtual=False)
    lab = ("dumbbell", "--name", f"bpf-{os.getpid()}", "--rtt", "20ms", "--rate", "20M", "--runtime", "netns")
    result = ewan("transfer", *lab, "--cc", ",".join(names), "--for", "1500ms", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    flows = orjson.loads(result.stdout)["flows"]
    for name in names:
        (flow,) = flows[name]
        assert flow["congestion"] == name
        # Of 18.8 Mbit/s; the first round trips are slow.
        assert flow["goodput_bps"] > 12e6
