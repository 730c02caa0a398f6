"""Permission for the commands of a stored experiment or a scenario from elsewhere (`ewan.labs.trust`).

In: an experiment or a scenario, and the user's answer. Out: nothing, or LabError in one line. Archives, crates, and
other users' files are from elsewhere: their maker decides which commands run."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import orjson

from ewan.experiments.engine import source
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.preparation import facts_of
from ewan.generator.scenario import Runs, controls, schedule
from ewan.labs import plan as plans
from ewan.labs import trust
from ewan.labs.base import reading
from ewan.labs.base.errors import UserError
from ewan.labs.compile import compile as compile_spec
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.context import Context
from ewan.labs.record.experiment import DOCUMENT, INPUTS
from ewan.labs.record.journal import JOURNAL
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command, Controller, Preparation, Program

CRATE = "ro-crate-metadata.json"


def ask_for_experiment(context: Context, path: Path, experiment: Experiment, *, resumed: bool = False) -> None:
    """LabError where the experiment is from elsewhere and the user does not vouch for the commands of its runs;
    `resumed`: its scenario may make further ones."""
    places = [experiment.place(entry) for entry in experiment.runs]
    read = [experiment.directory / name for name in ("", DOCUMENT, JOURNAL, source.SCENARIO, source.SETTINGS)]
    read += [place / name for place in places for name in INPUTS]
    try:
        files = {file: file.stat() for file in read if file.exists()}
    except OSError as error:
        raise LabError(f"{error.filename}: {error.strerror}") from None
    if resumed and (runs := _further(experiment)) is not None:
        with suppress(UserError):  # what cannot be read makes no runs
            files |= _files_of(runs)
    if is_from_elsewhere(path) or trust.first_of_another(context, files) is not None:
        lines, text = of_experiment(experiment, resumed=resumed)
        trust.ask(context, path, lines, context.trusted, context.reporter.confirmation(), text)


def ask_for_scenario(
    context: Context, runs: Runs, *, virtual: bool, read: Mapping[Path, os.stat_result] | None = None
) -> None:
    """The same of a scenario's runs, whose labs may lie in files of their own; `read`: files of which the scenario was
    made, with their status."""
    file = Path(str(runs[0].scenario.file))
    labs = _files_of(runs)
    files = {**(read or {}), **labs}
    if file.exists():
        files[file] = file.stat()
    if (path := trust.first_of_another(context, files)) is not None:
        lines, text = of_scenario(runs, virtual=virtual)
        trust.ask(context, path, lines, context.trusted, context.reporter.confirmation(), text)
        reading.hold(labs)


def _files_of(runs: Runs) -> dict[Path, os.stat_result]:
    """The files that labs and congestion controls of runs are read from, with their status."""
    with reading.noted() as files:
        for number in runs.firsts if runs.alike else range(1, len(runs) + 1):
            controls.sources(runs[number - 1])
    return files


def _further(experiment: Experiment) -> Runs | None:
    """The scenario's runs, where going on with an experiment may make some of them."""
    kept = source.perhaps(experiment.directory)
    if kept is None or experiment.document.rerun_of is not None:
        return None
    if kept.scenario.stop_at(kept.scale) is None and all(entry.written for entry in experiment.runs):
        return None
    return kept.scenario.runs(kept.settings, kept.scale, kept.seeds)


def is_from_elsewhere(path: Path) -> bool:
    """Return whether it is an archive or a crate, and no directory of results."""
    return not path.is_dir() or (path / CRATE).exists()


def of_experiment(experiment: Experiment, *, resumed: bool = False) -> tuple[list[str], str]:
    """The programs that the runs execute beside the project's own, each line once, for the live clock first of all a
    lab; and the SHA-256 of all files that decide it."""
    lines, digest = {} if experiment.virtual else {trust.OF_LIVE: None}, hashlib.sha256()
    for entry in experiment.runs:
        if resumed and not entry.written:
            continue
        job = experiment.job(entry)
        contents = job.contents
        for name in sorted(contents):
            digest.update(hashlib.sha256(contents[name]).digest())
        lines |= dict.fromkeys(_of_program(job.program, experiment.virtual))
        lines |= dict.fromkeys(trust.of_plan(orjson.loads(contents["plan.json"])))
    if resumed and (runs := _further(experiment)) is not None:
        more, text = of_scenario(runs, virtual=experiment.virtual)
        lines |= dict.fromkeys(more)
        digest.update(text.encode())
    return list(lines), digest.hexdigest()


def _of_program(program: Program, virtual: bool) -> Iterator[str]:
    steps: tuple[Preparation | Command, ...] = (*program.prepare, *program.commands)
    for step in steps:
        if not trust.is_own(step.argv):
            yield f"{step.node}: {shlex.join(step.argv)}"
    yield from (f"reads {path}" for path in program.needs)
    if program.controller is not None:
        yield _of_source(program.controller, virtual)
    yield from (_of_source(each.source, virtual) for each in program.modules or ())


def _of_source(source: ModuleSource | Controller, virtual: bool) -> str:
    if isinstance(source, Controller):
        return f"beside the virtual kernel: {shlex.join(source.argv)}, SHA-256 with its files {source.digest[:16]}"
    whose = "the virtual" if virtual else "this machine's"
    return f"in {whose} kernel: the module of {source.file}, SHA-256 {source.digest[:16]}"


def of_scenario(runs: Runs, *, virtual: bool) -> tuple[list[str], str]:
    """The same of a scenario whose labs are not made yet: of its runs."""
    lines, digest = {} if virtual else {trust.OF_LIVE: None}, hashlib.sha256()
    facts = facts_of(virtual)
    for run in runs:
        digest.update(orjson.dumps([run.scenario.text, run.spec.raw], default=str))
        lines |= {f"{','.join(step.on or ())}: {step.run}": None for step in run.document.steps if step.run}
        lines |= {f"reads {path}": None for path in schedule.needed(run)}
        for each in controls.sources(run):
            digest.update(each.digest.encode())
            lines[_of_source(each, virtual)] = None
        lines |= dict.fromkeys(trust.of_plan(orjson.loads(plans.to_json(compile_spec(run.spec, facts)))))
    return list(lines), digest.hexdigest()
