"""The composite action for continuous integration (action.yml), and its steps as a runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
TESTS = "tests: [{name: t, lab: dumbbell, steps: [{name: a, on: left1, run: 'ping -c 1 right1'}]}]\n"
FILE = "n.test.yaml"


def inputs(**given: str) -> dict[str, str]:
    """The values of all inputs, where these are given; FILE has the tests."""
    return {name: str(value.get("default", "")) for name, value in ACTION["inputs"].items()} | {"file": FILE} | given


def run(
    step: Mapping[str, Any], values: Mapping[str, str], folder: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """A step with its inputs put in, by bash as a runner calls it. `more`: variables of the runner."""

    def put(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: values[match[1]], text)

    environment = {**os.environ, "RUNNER_TEMP": str(folder / "temp"), **more}
    environment |= {key: put(value) for key, value in step.get("env", {}).items()}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", put(step["run"])]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
