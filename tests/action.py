"""The composite action for continuous integration (action.yml), and its steps as a runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import yaml

from tests.conftest import ROOT


class ActionStep(TypedDict):
    """A step of the action: a script of bash, and its environment."""

    name: str
    shell: str
    env: dict[str, str]
    run: str


class ActionRuns(TypedDict):
    """The steps of the action, in their order."""

    using: str
    steps: list[ActionStep]


class Action(TypedDict):
    """The file action.yml."""

    name: str
    description: str
    inputs: dict[str, dict[str, str | bool]]
    runs: ActionRuns


ACTION: Action = yaml.safe_load((ROOT / "action.yml").read_text())
TESTS = "tests: [{name: t, lab: dumbbell, steps: [{name: a, on: left1, run: 'ping -c 1 right1'}]}]\n"
FILE = "n.test.yaml"


def inputs(**given: str) -> dict[str, str]:
    """The values of all inputs, where these are given; FILE has the tests."""
    return {name: str(value.get("default", "")) for name, value in ACTION["inputs"].items()} | {"file": FILE} | given


def run(step: ActionStep, values: Mapping[str, str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A step with its inputs put in, by bash as a runner calls it. `more`: variables of the runner."""

    def put(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: values[match[1]], text)

    environment = {**os.environ, "RUNNER_TEMP": str(folder / "temp"), **more}
    environment |= {key: put(value) for key, value in step["env"].items()}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", put(step["run"])]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
