"""wall.json: what a run took, in either clock."""

from __future__ import annotations

import hashlib
from pathlib import Path

import orjson
import pytest

from ewan.labs import clock
from ewan.labs.base import codec
from ewan.labs.record import experiment, host_facts
from ewan.labs.record.experiment import checksum
from ewan.labs.runtime.virtual import Cost, Ended, Run


def run_with(kernel: Path) -> Run:
    """One that took 2 s for 8 s."""
    return Run(
        kernel.parent,
        kernel,
        Ended("completed", None, (), 8_000_000_000, "6.12"),
        Cost(2_000_000_000, 8_000_000_000, 42, 1 << 20, 1_900_000_000, 4000, 1 << 19),
    )


def test_a_record_tells_of_the_machine_the_time_and_the_kernel(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_bytes(b"kernel")
    clock.write_wall(tmp_path, "2024-01-01T00:00:00+00:00", clock.cost_of(run_with(kernel)))
    assert orjson.loads((tmp_path / "wall.json").read_bytes()) == {
        "format": "ewan-wall/1",
        "started": "2024-01-01T00:00:00+00:00",
        "host": codec.data_of(host_facts({})),
        "kernel": str(kernel),
        "kernel_sha256": hashlib.sha256(b"kernel").hexdigest(),
        "wall_ns": 2_000_000_000,
        "virtual_ns": 8_000_000_000,
        "ratio": 0.25,
        "packets": 42,
        "memory_bytes": 1 << 20,
        "cpu_ns": 1_900_000_000,
        "entries": 4000,
        "touched_bytes": 1 << 19,
    }


def test_a_live_run_has_no_kernel_of_its_own(tmp_path: Path) -> None:
    clock.write_wall(tmp_path, "2024-01-01T00:00:00+00:00", {"wall_ns": 7})
    record = orjson.loads((tmp_path / "wall.json").read_bytes())
    assert record.keys() == {"format", "started", "host", "wall_ns"} and record["wall_ns"] == 7


def test_a_kernel_is_read_once_and_again_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counted(path: Path) -> str:
        read.append(path)
        return checksum(path)

    monkeypatch.setattr(experiment, "checksum", counted)
    kernel = tmp_path / "linux"
    kernel.write_bytes(b"old")
    hashes = [clock.cost_of(run_with(kernel))["kernel_sha256"] for _ in range(3)]
    assert hashes == [hashlib.sha256(b"old").hexdigest()] * 3 and read == [kernel]
    kernel.write_bytes(b"newer")
    assert clock.cost_of(run_with(kernel))["kernel_sha256"] == hashlib.sha256(b"newer").hexdigest()
    assert read == [kernel, kernel]
