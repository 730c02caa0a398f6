"""The origin that an experiment's document has of its scenario, for tests that need one."""

from __future__ import annotations

from typing import Any

from ewan.labs.record import MachineFacts
from ewan.labs.record.experiment import ExperimentOrigin


def origin(**changes: Any) -> ExperimentOrigin:
    """The origin of a scenario `x` without parameters, metrics or published values."""
    keys: dict[str, Any] = {
        "scenario": "x",
        "title": "x",
        "about": "",
        "source": "",
        "metrics": [],
        "normalise": None,
        "beside": [],
        "scale": None,
        "settings": {},
        "host": MachineFacts("6.12", "x86_64", "a CPU", 2, 8 << 30, "tsc", False, {}),
        "commit": None,
        "command": "ewan run x",
        "runtime": "virtual",
    }
    return ExperimentOrigin(**{**keys, **changes})
