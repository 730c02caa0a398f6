"""Experiments as the engine leaves them, made without a lab, for tests of their later use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.tests.engines import TEXT, jobs
from ewan.experiments.tests.origins import origin
from ewan.labs.record import CERTIFICATES_FOLDER, tables

WALL = {"format": "ewan-wall/1", "started": "2026-11-21T12:00:01+00:00", "wall_ns": 1_500_000_000}


def ended(directory: Path, complete: int = 2, **changes: Any) -> Experiment:
    """An experiment of two runs in the virtual clock, of which so many are complete and the rest incomplete."""
    directory.mkdir(parents=True)
    known = {"scenario": "engine", "title": "One flow, twice", "about": "A transfer\nalone.", **changes}
    experiment = Experiment.create(directory, origin(**known), "virtual")
    document = experiment.document
    document.kernel_sha256, document.binary_sha256 = "a" * 64, "b" * 64
    for name, content in (("scenario.yaml", TEXT), ("settings.json", "{}"), (f"{CERTIFICATES_FOLDER}/c.json", "{}")):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(content)
        experiment.record(directory / name)
    for job in jobs():
        experiment.add(job)
        place = experiment.place(job.entry)
        (place / "wall.json").write_bytes(orjson.dumps(WALL))
        tables.write(place, "flows", tables.empty("flows"))
        experiment.record_results(job.entry)
        job.entry.parameters["cc"] = "reno"
        job.entry.status, job.entry.verified = "complete", True
        if job.entry.number > complete:
            job.entry.status, job.entry.error = "incomplete", "interrupted"
    (directory / "summary.json").write_text("{}")
    for stage in document.stages.values():
        stage.status, stage.started, stage.seconds = "complete", "2026-11-21T12:00:00+00:00", 2.5
    experiment.finish("complete" if complete == 2 else "incomplete")
    return experiment
