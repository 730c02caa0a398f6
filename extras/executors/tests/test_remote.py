"""Checks of a unit by a worker before it executes it."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import cast

import pytest

from ewan.experiments.engine import unit
from ewan.experiments.tests.engines import jobs
from ewan.extras.executors import remote
from ewan.labs.record.schedule import unnamed_from_json
from ewan.labs.runtime.base import LabError


def test_a_worker_finds_the_key_of_a_unit_by_its_bytes() -> None:
    """The worker has the schedule without names, and refuses a unit whose key it computes otherwise."""
    job = jobs()[0]
    tools = cast(unit.Tools, SimpleNamespace(versions=unit.Versions("k", "b")))
    made = unit.unit(job.contents, tools, 5, "x", "y", "z")
    assert unnamed_from_json(made.schedule) == job.schedule.unnamed
    remote._check(made, tools)
    with pytest.raises(LabError, match="has another version"):
        remote._check(dataclasses.replace(made, program=b"{}"), tools)
