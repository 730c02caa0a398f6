"""Machines of --machines are named in a file, which decides what is executed: another user's needs the user's trust."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ewan.experiments.tests.engines import CONTEXT
from ewan.experiments.tests.test_trust import given_away
from ewan.labs.runtime.base import LabError


def test_a_file_of_machines_of_another_user_is_asked_for(tmp_path: Path) -> None:
    machines = tmp_path / "machines.yaml"
    machines.write_text("machines: {one: {ssh: root@node-1, interface: eth1}}\n")
    given_away(machines)
    with pytest.raises(LabError, match=r"executes machines.yaml: machines: .*: write --trust"):
        dataclasses.replace(CONTEXT, machines=machines).multi_machine()
