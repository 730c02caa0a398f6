"""A long experiment's result as a small table that is kept with the product, with what leads back to all of it.

In: a complete experiment with its archive, its summary. Out: CSV, a line for each point and metric that the scenario
names; before it, as comments, the command, the version and the archive's SHA-256.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ewan.analysis import export, load
from ewan.labs.record.experiment import checksum

HEADS = ("metric", "unit", "mean", "low", "high", "runs")
_UNITS = {"ns": "s"}


def text(experiment: load.ExperimentResults, found: Mapping[str, Any]) -> str:
    """LoadError where runs are missing, or the archive."""
    document = experiment.document
    if document.status != "complete":
        raise load.LoadError(f"{experiment.directory}: is {document.status}: a reference is of a complete experiment")
    archives = sorted(experiment.directory.glob("*.tar.zst"))
    if len(archives) != 1:
        raise load.LoadError(f"{experiment.directory}: has {len(archives)} archives: a reference names its only one")
    head = {
        "scenario": f"{document.scenario}{f' --scale {document.scale}' if document.scale else ''}",
        "command": document.command,
        "started": document.started,
        "commit": document.commit,
        "virtual kernel": document.kernel_sha256,
        "archive": f"{archives[0].name} {checksum(archives[0])}",
    }
    rows = [
        [
            *(point["parameters"].get(name) for name in experiment.varied),
            metric,
            _UNITS.get(value["unit"], value["unit"]),
            *(_short(export.in_seconds(metric, value[key])) for key in ("mean", "low", "high")),
            value["n"],
        ]
        for point in found["points"]
        for metric in document.metrics
        if (value := point["metrics"].get(metric)) is not None
    ]
    lines = [f"# {name}: {value}\n" for name, value in head.items() if value is not None]
    return "".join(lines) + export.table([*experiment.varied, *HEADS], rows)


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
