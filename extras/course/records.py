"""Records of the experiments that a student ran: by which a teacher's machine can tell that they were run.

In: the experiments in a student's `results/`. Out: of each run in the virtual clock that is complete, checksums of what
it executed and of its tables. The same run leaves the same bytes everywhere, so whoever runs it again finds the same
checksums, and they cannot be found without running it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from ewan.experiments.engine.experiment import Experiment as Loaded
from ewan.experiments.engine.source import SCENARIO
from ewan.extras.course.submission import (
    MOST_EXPERIMENTS,
    MOST_RUNS,
    MOST_SETTINGS,
    PARAMETER,
    SubmittedExperiment,
    SubmittedRun,
)
from ewan.labs.base.errors import UserError
from ewan.labs.base.product import RESULTS
from ewan.labs.base.reading import one_line
from ewan.labs.record import schedule as schedules
from ewan.labs.record.experiment import DOCUMENT, INPUTS, Entry, checksum

TABLES = ".parquet"
MOST_LINE = 200


def inputs(contents: Mapping[str, bytes]) -> str:
    """SHA-256 of what a run executes: its plan, program and schedule by the names of their files, without the names of
    scenario, run and parameters. ValueError where the schedule is none."""
    plan, program, schedule = (contents[name] for name in INPUTS)
    made = schedules.unnamed_to_json(schedules.from_json(schedule))
    return digest(hashlib.sha256(each).hexdigest() for each in (plan, program, made))


def tables(files: Mapping[str, str]) -> str:
    """SHA-256 over a run's tables. `files`: the SHA-256 of each file that it left, by its name in its directory."""
    return digest(f"{name} {sha256}" for name, sha256 in sorted(files.items()) if name.endswith(TABLES))


def found(folder: Path) -> tuple[list[SubmittedExperiment], list[str]]:
    """Records of the experiments in a student's folder, and a line for each that is not taken."""
    places = sorted(path.parent for path in (folder / RESULTS).glob(f"*/{DOCUMENT}"))
    result: list[SubmittedExperiment] = []
    notes: list[str] = []
    for place in places:
        try:
            experiment = Loaded.load(place)
            if experiment.virtual and (record := _record(experiment, notes)):
                result.append(record)
            elif not experiment.virtual:
                notes.append(f"{place}: was run live: no other machine can repeat it to the byte")
        except (UserError, ValueError) as error:
            notes.append(one_line(str(error)))
    if len(result) > MOST_EXPERIMENTS:
        notes.append(f"{len(result)} experiments: {MOST_EXPERIMENTS} are taken, without the oldest tries")
    return taken(result), notes


def taken(found: Iterable[SubmittedExperiment]) -> list[SubmittedExperiment]:
    """As many as may be handed in, the latest last. Where there are more, the oldest are left out of the scenario that
    was run most often, and first of all those with settings of the student's own: who tries much has run what is asked
    for all the same."""
    result = sorted(found, key=lambda each: each.started)
    while len(result) > MOST_EXPERIMENTS:
        ((often, _),) = Counter(each.scenario for each in result).most_common(1)
        those = [number for number, each in enumerate(result) if each.scenario == often]
        del result[next((number for number in those if result[number].changed), those[0])]
    return result


def _record(experiment: Loaded, notes: list[str]) -> SubmittedExperiment | None:
    """Return the record of an experiment in the virtual clock; None where none of its runs is complete."""
    document = experiment.document
    complete = [entry for entry in experiment.runs if entry.status == "complete" and entry.key is not None]
    text = experiment.directory / SCENARIO
    if not complete or not text.is_file() or document.kernel_sha256 is None or document.binary_sha256 is None:
        return None
    if len(complete) > MOST_RUNS:
        notes.append(f"{experiment.directory}: {len(complete)} runs: the first {MOST_RUNS} are taken")
    return SubmittedExperiment(
        scenario=document.scenario,
        started=document.started,
        command=one_line(document.command, MOST_LINE),
        text=checksum(text),
        changed=bool(document.settings or document.scale),
        settings=_settings(document.settings) if document.scale is None else {},
        kernel=document.kernel_sha256,
        binary=document.binary_sha256,
        runs=tuple(_run(experiment, entry) for entry in complete[:MOST_RUNS]),
    )


def _settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Parameters given on the command line, where a submission may say them."""
    found = dict(settings)
    short = all(re.fullmatch(PARAMETER, name) and len(value) <= MOST_LINE for name, value in found.items())
    return found if short and len(found) <= MOST_SETTINGS else {}


def _run(experiment: Loaded, entry: Entry) -> SubmittedRun:
    assert entry.key is not None
    below = f"{entry.directory}/"
    files = {name.removeprefix(below): digest for name, digest in experiment.files.items() if name.startswith(below)}
    return SubmittedRun(
        name=one_line(entry.name, MOST_LINE),
        key=entry.key,
        inputs=inputs(experiment.contents(entry)),
        tables=tables(files),
    )


def digest(lines: Iterable[str]) -> str:
    """SHA-256 of lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
