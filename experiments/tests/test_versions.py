"""Experiments and labs that another version of ewan made: one line that names the version, and the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ewan.analysis import load
from ewan.cli import main
from ewan.experiments.engine import archive

OLDER = (
    "experiment.json: an older version made this experiment (format ewan-experiment/1, this version reads "
    "ewan-experiment/2): run its scenario.yaml once more with `ewan run`"
)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """An experiment as the version before wrote it, with plans of that version."""
    directory = tmp_path / "20260101T000000Z-load"
    run = directory / "runs/001"
    run.mkdir(parents=True)
    entry = {
        "number": 1, "name": "seed=1", "parameters": {}, "seed": 1, "plan_sha256": "0" * 64, "family": "0" * 64,
        "directory": "runs/001", "expected_ns": 0, "status": "waiting", "error": None, "certificate": None,
        "verified": None,
    }  # fmt: skip
    document = {"format": "ewan-experiment/1", "scenario": "load", "clock": "virtual", "stages": {}, "runs": [entry]}
    (directory / "experiment.json").write_text(json.dumps(document))
    (run / "plan.json").write_text(json.dumps({"format": "ewan-plan/2"}))
    (directory / "scenario.yaml").write_text("lab: {topology: dumbbell}\nsteps: []\n")
    return directory


def test_report_rerun_and_resume_say_that_an_experiment_is_older(older: Path) -> None:
    packed = archive.pack(older, "load")
    for shown, words in (
        (older, ["results", "report", str(older)]),
        (older, ["exp", "rerun", str(older)]),
        (packed, ["exp", "rerun", str(packed)]),
        (older, ["exp", "resume", str(older)]),
    ):
        said = CliRunner().invoke(main, words)
        assert (said.exit_code, said.stdout, said.stderr) == (2, "", f"ewan: {shown}/{OLDER}\n")
    with pytest.raises(load.LoadError, match="older version"):
        load.experiment(older)
