"""The composite action for continuous integration; tests/test_wheel.py runs its steps."""

from __future__ import annotations

import re

from tests.action import ACTION


def test_every_input_is_used_and_none_is_put_into_the_script() -> None:
    steps = ACTION["runs"]["steps"]
    used = {name for step in steps for value in step["env"].values() for name in re.findall(r"inputs\.(\w+)", value)}
    assert used == set(ACTION["inputs"])
    assert all("${{" not in step["run"] for step in steps)
