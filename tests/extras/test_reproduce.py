"""Results that others can check: a crate on another machine repeats its experiment and says what came of it.

Real runs in the virtual clock. `extras/crate/tests/test_crate.py` has what needs none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.experiments.engine import sums
from ewan.extras.crate import files
from ewan.labs.record.experiment import checksum
from tests.conftest import ROOT, Ewan
from tests.experiments import only, vouch, written

pytestmark = pytest.mark.virtual


@pytest.fixture(scope="module")
def crate(ewan: Ewan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crate of an experiment of one run, unpacked elsewhere."""
    home, elsewhere = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("another machine")
    ran = ewan("run", written(home), "--runtime", "virtual", cwd=home)
    assert ran.returncode == 0, ran.stderr
    packed = elsewhere / "x.zip"
    made = ewan("exp", "archive", str(only(home)), "-o", str(packed), "--author", "Lovelace, Ada", cwd=home)
    assert made.returncode == 0, made.stderr
    shutil.rmtree(home)
    with zipfile.ZipFile(packed) as content:
        content.extractall(elsewhere / "crate")
        mode = content.getinfo(files.REPRODUCE).external_attr >> 16
    assert mode & 0o111, "unzip makes it a program"
    return elsewhere / "crate"


def reproduced(crate: Path, place: Path) -> subprocess.CompletedProcess[str]:
    """What the crate's own script says, with `ewan` on the PATH."""
    programs = place / "bin"
    programs.mkdir()
    (programs / "ewan").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/ewan/cli.py" "$@"\n')
    (programs / "ewan").chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "200"}
    environment.pop("EWAN", None)
    command = ["sh", str(crate / files.REPRODUCE)]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


def test_the_same_experiment_is_identical(crate: Path, tmp_path: Path) -> None:
    before = sorted(crate.rglob("*"))
    done = reproduced(crate, tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "identical"), done.stdout + done.stderr
    assert sorted(crate.rglob("*")) == before, "the crate stays as it is"
    compared = orjson.loads((only(tmp_path) / "comparison.json").read_bytes())
    assert compared["outcome"] == "identical" and compared["original"] == str(crate)


def test_other_seeds_with_their_checksums_differ_and_the_place_is_named(crate: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(crate, other)
    for name in ("runs/001/plan.json", "runs/001/program.json"):
        stored = orjson.loads((other / name).read_bytes())
        (other / name).write_bytes(orjson.dumps(reseeded(stored)))
        vouch(other, name)
    named = [each for each in other.rglob("*") if each.is_file() and each.name != sums.SUMS]
    (other / sums.SUMS).write_text(sums.text({each.relative_to(other).as_posix(): checksum(each) for each in named}))
    done = reproduced(other, tmp_path)
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 1, done.stdout + done.stderr
    assert last.startswith("differs, here: run 1 (cc=reno seed=1): "), last
    assert " before, " in last and last.endswith(" now"), last


def reseeded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: each + 1 if key == "seed" else reseeded(each) for key, each in value.items()}
    return [reseeded(each) for each in value] if isinstance(value, list) else value


def test_a_damaged_crate_is_not_repeated(crate: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(crate, damaged)
    (damaged / "runs/001/flows.parquet").write_bytes(b"PAR1")
    done = reproduced(damaged, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "reproduce.sh: runs/001/flows.parquet: FAILED: the crate is changed or damaged: take another copy"
    ]
    assert not (tmp_path / "results").exists()
