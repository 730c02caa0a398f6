"""The composite action for continuous integration: its steps, run as a runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
TESTS = "tests: [{name: t, lab: dumbbell, steps: [{name: a, on: left1, run: 'ping -c 1 right1'}]}]\n"


def run(step: dict[str, Any], inputs: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A step with its inputs put in, by bash as a runner calls it."""

    def put(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], text)

    environment = {**os.environ, "RUNNER_TEMP": str(folder / "temp")}
    environment |= {key: put(value) for key, value in step.get("env", {}).items()}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", put(step["run"])]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.virtual
def test_its_second_step_runs_the_tests_of_a_file(tmp_path: Path) -> None:
    install, test = ACTION["runs"]["steps"]
    assert install["run"].count("pip") == 1
    (tmp_path / "temp/ewan/bin").mkdir(parents=True)
    (tmp_path / "temp/ewan/bin/ewan").symlink_to(ROOT / ".venv/bin/ewan")
    (tmp_path / "n.test.yaml").write_text(TESTS)
    inputs = {name: str(value.get("default", "")) for name, value in ACTION["inputs"].items()} | {"file": "n.test.yaml"}
    ended = run(test, inputs, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert 'tests="1" failures="0"' in (tmp_path / "ewan-junit.xml").read_text()
    ended = run(test, inputs | {"names": "none"}, tmp_path)
    assert ended.returncode == 2
    assert "has no test none" in ended.stderr


def test_every_input_is_used_and_none_is_put_into_the_script() -> None:
    steps = ACTION["runs"]["steps"]
    used = {name for step in steps for value in step["env"].values() for name in re.findall(r"inputs\.(\w+)", value)}
    assert used == set(ACTION["inputs"])
    assert all("${{" not in step["run"] for step in steps)
