"""What version 0.1 left is still read: an archive, a crate, a store, a lab that is up, and what a student handed in."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard

from tests.conftest import ROOT, Ewan

MADE = ROOT / "tests" / "made_by_0_1"
LAB = "made01"


def unpacked(name: str, into: Path) -> Path:
    packed = zstandard.ZstdDecompressor().decompressobj().decompress((MADE / name).read_bytes())
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(into, filter="data")
    return into


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (found,) = unpacked("experiment.tar.zst", tmp_path / "results").iterdir()
    return found


@pytest.mark.slow
def test_an_experiment_is_reported_exported_and_compared(experiment: Path, tmp_path: Path, ewan: Ewan) -> None:
    name = str(experiment)
    said(ewan("results", "report", name, cwd=tmp_path))
    assert "goodput" in (experiment / "report.html").read_text()
    said(ewan("results", "export", name, "--csv", "csv", cwd=tmp_path))
    with (tmp_path / "csv" / "points.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2
    assert json.loads(said(ewan("lab", "certificate", name, "--json", cwd=tmp_path)))
    compared = json.loads(said(ewan("exp", "compare", name, name, "-o", "compared.html", "--json", cwd=tmp_path)))
    assert compared
    (run,) = json.loads(said(ewan("exp", "list", "--json", cwd=tmp_path)))
    assert run["status"] == "complete"


@pytest.mark.virtual
@pytest.mark.parametrize("name", ["experiment.tar.zst", "crate.zip"])
def test_an_experiment_is_repeated_to_the_byte(name: str, tmp_path: Path, ewan: Ewan) -> None:
    assert said(ewan("exp", "rerun", str(MADE / name), "--trust", cwd=tmp_path)).splitlines()[-1] == "identical"


@pytest.mark.slow
def test_a_store_is_listed_and_verified(tmp_path: Path, ewan: Ewan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EWAN_STORE", str(unpacked("store.tar.zst", tmp_path / "store")))
    listed = json.loads(said(ewan("exp", "store", "list", "--json", cwd=tmp_path)))
    assert "old" in json.dumps(listed)
    said(ewan("exp", "store", "verify", cwd=tmp_path))
    assert len(list((tmp_path / "store").rglob("*.tar.zst"))) == 3


@pytest.mark.untimed
def test_a_lab_that_is_up_is_taken_down(tmp_path: Path, state: Path, ewan: Ewan) -> None:
    state.mkdir(exist_ok=True)
    unpacked("lab-that-is-up.tar.zst", state)
    named: list[str] = json.loads((state / LAB / "manifest.json").read_text())["namespaces"]
    for namespace in named:
        subprocess.run(["ip", "netns", "add", namespace], check=True)
    try:
        assert LAB in said(ewan("ps", cwd=tmp_path))
        assert f"removed {len(named)} namespaces" in said(ewan("down", LAB, cwd=tmp_path))
    finally:
        left = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout.split()
        for namespace in set(named) & set(left):
            subprocess.run(["ip", "netns", "delete", namespace], check=True)
    assert not set(named) & set(left)
    assert not (state / LAB).exists()


@pytest.mark.virtual
def test_what_a_student_handed_in_is_graded(tmp_path: Path, ewan: Ewan) -> None:
    handed_in = tmp_path / "handed-in"
    handed_in.mkdir()
    (handed_in / "delay-rate-bdp-4711.zip").write_bytes((MADE / "delay-rate-bdp-4711.zip").read_bytes())
    said(ewan("course", "grade", "handed-in", cwd=tmp_path))
    with (tmp_path / "grades.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["student"] == "4711"
    assert "12" in row.values(), row
