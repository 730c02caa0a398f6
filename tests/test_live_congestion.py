"""Congestion controls of a user's own in this machine's kernel: it has them for the length of a run, and no longer."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from ewan.labs.base.product import ROOT
from ewan.labs.congestion.host_kernel import AVAILABLE, HostKernel
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.program import KernelModule
from tests.conftest import Ewan

PROGRAM = ROOT / "labs/congestion/tests/tcp_mine.bpf.c"
SCENARIO = """lab: {{topology: dumbbell, name: {lab}, rtt: 10ms, wan: {{rate: 20Mbit/s}}}}
cc:
  {control}: {{source: {file}}}
steps:
  - {{name: bulk, from: left1, to: right1, for: 500ms, congestion: {control}, bulk: }}
"""
pytestmark = pytest.mark.live


def written(place: Path, control: str, lab: str, file: str = "tcp_mine.bpf.c") -> Path:
    """A scenario whose control is a BPF program of a name that nobody else on this machine has."""
    (place / "tcp_mine.bpf.c").write_text(PROGRAM.read_text().replace('"mine"', f'"{control}"'))
    path = place / "mine.scenario.yaml"
    path.write_text(SCENARIO.format(control=control, lab=lab, file=file))
    return path


@pytest.fixture
def control() -> str:
    return f"mine{os.getpid()}"


def test_a_run_has_the_program_of_its_scenario(ewan: Ewan, tmp_path: Path, name: str, control: str) -> None:
    done = ewan("run", str(written(tmp_path, control, name)), "--unverified", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (results,) = tmp_path.glob("results/*")
    assert list(results.glob("sources/tcp_mine-*/tcp_mine.bpf.c"))
    flows = orjson.loads((results / "runs/001/traffic/traffic.json").read_bytes())["flows"]
    assert {flow["congestion"] for flow in flows} == {control}
    assert control not in AVAILABLE.read_text().split()


def test_the_name_of_another_run_is_refused(ewan: Ewan, tmp_path: Path, name: str, control: str) -> None:
    path = written(tmp_path, control, name)
    other = ModuleSource("tcp_other.bpf.c", (tmp_path / "tcp_mine.bpf.c").read_bytes(), {})
    with HostKernel(node_binary(None), tmp_path, False, pytest.fail).having([KernelModule(other, (control,))]):
        refused = ewan("run", str(path), cwd=tmp_path)
    assert refused.returncode == 2 and "deployment" not in refused.stderr
    assert refused.stderr.splitlines()[-1] == (
        "ewan: tcp_mine.bpf.c: this kernel does not register it: this kernel has a congestion control of its name, "
        "perhaps by another run that goes on: wait for it"
    )


def test_what_cannot_be_had_is_refused_before_a_lab_is_made(
    ewan: Ewan, tmp_path: Path, name: str, control: str
) -> None:
    path = written(tmp_path, control, name)
    path.write_text(path.read_text().replace(control, "other"))
    unnamed = ewan("run", str(path), cwd=tmp_path)
    assert unnamed.returncode == 2 and "deployment" not in unnamed.stderr
    assert "tcp_mine.bpf.c: this kernel has no congestion control other when it is registered" in unnamed.stderr
    path = written(tmp_path, control, name, file="tcp_mine.bpf.c, parameters: {alpha: 2}")
    with_parameter = ewan("run", str(path), cwd=tmp_path)
    assert with_parameter.returncode == 2
    line = "ewan: tcp_mine.bpf.c: unknown parameter alpha of the module, it has none: leave it out"
    assert with_parameter.stderr.splitlines()[-1] == line
