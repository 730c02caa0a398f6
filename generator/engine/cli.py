"""The commands `run` and `rerun`: a scenario from its description to its report, and the same once more.

In: the command line, and the parts that `ewan.py` gives. Out: an experiment's directory; on standard error each stage
with its time, on standard output the table of metrics. Exit status 0 when all was measured (rerun: and it is the same),
1 when something is missing or was refused by the verification, 2 for what the user can put right.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click
import orjson

from generator import scenario as scenarios
from generator.engine import archive, compare, engine, show, verification
from generator.engine.experiment import STAGES, Experiment, Job
from generator.engine.parts import Facts, Parts
from generator.scenario import Scenario, Stop
from labs import rundir
from labs.commands.errors import Incomplete, Refused, guarded
from labs.commands.group import composed
from labs.commands.options import json_option, pass_context, runtime_option
from labs.commands.privileges import as_root, is_virtual
from labs.context import ROOT, Context
from labs.reading import read_bytes, read_text
from labs.record import host_facts
from labs.record.experiment import DOCUMENT, Origin, StageName
from labs.runtime.base import NAMES, LabError
from labs.sheet import grid
from labs.units import about

SCENARIO, SETTINGS = "scenario.yaml", "settings.json"
COMPARISON = "comparison.json"
MOST_FINDINGS = 60
COLOURS = {"same": "green", "within noise": "green", "different": "bold red", "shown": "dim"}


@click.command("run")
@click.argument("name", metavar="SCENARIO|NAME", required=False)
@click.option("--scale", metavar="NAME", help="one of the scenario's own scales, like quick or paper")
@click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help='a parameter; several values: "cc=reno,bic"'
)
@click.option("--seeds", metavar="N", type=click.IntRange(1), help="how many runs of each point")
@runtime_option
@click.option("--unverified", is_flag=True, help="run in a lab that is outside its tolerances; the records say so")
@click.option("--resume", "resumed", metavar="DIR", type=click.Path(path_type=Path), help="go on with an experiment")
@click.option("--from", "start", type=click.Choice(list(STAGES)), help="with --resume: do all from this stage on again")
@json_option
@guarded
@pass_context
def run_command(
    context: Context,
    name: str | None,
    scale: str | None,
    settings: tuple[str, ...],
    seeds: int | None,
    unverified: bool,
    resumed: Path | None,
    start: StageName | None,
    as_json: bool,
) -> None:
    """Run a scenario: every point of its parameters, from the lab to the report.

    SCENARIO is a file; NAME stands for NAME.scenario.yaml in the current directory, else in labs/library.

    \b
    ewan run parallel-streams --scale quick --runtime virtual
    ewan run my.scenario.yaml --set streams=1,2,5 --seeds 5
    ewan run --resume results/20261121T120000Z-parallel-streams
    """
    parts = parts_of(click.get_current_context())
    if resumed is not None:
        if name is not None or scale or settings or seeds or unverified:
            raise Refused("--resume goes on with an experiment as it was begun: leave the other words out")
        sys.exit(go_on(context, resumed, start, parts, as_json))
    if start is not None:
        raise Refused("--from repeats a stage of an experiment: write --resume DIR too")
    if name is None:
        raise Refused("which scenario? write its file, or a name of labs/library: ewan run parallel-streams")
    words = pairs(settings)
    scenario = scenarios.load(name)
    sys.exit(
        experiment(context, scenario, parts, as_json, scale=scale, settings=words, seeds=seeds, unverified=unverified)
    )


def experiment(
    context: Context,
    scenario: Scenario,
    parts: Parts,
    as_json: bool,
    *,
    scale: str | None = None,
    settings: Mapping[str, str] | None = None,
    seeds: int | None = None,
    unverified: bool = False,
) -> int:
    """Runs a scenario into a new directory of results/, prints what it found; the exit status."""
    virtual = is_virtual(context)
    runs = scenario.runs(settings or {}, scale, seeds)
    stop = scenario.stop_at(scale) if seeds is None else None
    if not virtual:
        as_root(context)
    facts = facts_of(scenario, stop, scale, settings or {}, seeds, "virtual" if virtual else context.runtime)
    directory = rundir.make(scenario.name)

    def work() -> int:
        prepared = engine.prepare(
            engine.jobs(runs, virtual), facts, virtual=virtual, directory=directory, unverified=unverified
        )
        if scale is None and scenario.scales:
            lasting = about(prepared.expected_ns, "time", 3)
            length = f"{lasting} in {engine.counted(len(runs), 'run')}"
            context.reporter.tell(f"{scenario.name} at full length, {length}: --scale {scenario.scales[0]} is another")
        return engine.run(prepared, parts=parts, context=context, stop=stop, repeat=runs.of)

    status = status_of(context, directory, work)
    shown(context, directory, as_json)
    return status


def go_on(context: Context, directory: Path, start: StageName | None, parts: Parts, as_json: bool) -> int:
    """Goes on with an experiment; the exit status."""
    loaded = Experiment.load(directory)
    if not loaded.virtual:
        as_root(context)
    stored = orjson.loads(read_bytes(directory / SETTINGS)) if (directory / SETTINGS).exists() else {}
    text = directory / SCENARIO
    scenario = scenarios.parse(read_text(text), Path(stored["file"])) if stored and text.exists() else None
    repeated = loaded.document.rerun_of is not None
    stop = None
    if scenario and not repeated and stored["seeds"] is None:
        stop = scenario.stop_at(stored["scale"])

    repeat = None
    if scenario and stop:
        repeat = scenario.runs(stored["settings"], stored["scale"], stored["seeds"]).of

    def work() -> int:
        return engine.resume(directory, parts=parts, context=context, start=start, stop=stop, repeat=repeat)

    status = status_of(context, directory, work)
    shown(context, directory, as_json)
    return status


@click.command("rerun")
@click.argument("original", metavar="ARCHIVE|DIR", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--runtime", "runtime_name", type=click.Choice(NAMES), help="of the same clock; the experiment's if absent"
)
@json_option
@guarded
@pass_context
def rerun_command(context: Context, original: Path, runtime_name: str | None, as_json: bool) -> None:
    """Run an experiment once more, in the same clock, and say whether the two differ.

    In the virtual clock nothing may differ; live, no metric beyond noise. Exit status 1 where something does,
    or where there is nothing to compare.

    \b
    ewan rerun results/20261121T120000Z-parallel-streams/parallel-streams.tar.zst
    """
    parts = parts_of(click.get_current_context())
    with original_of(original) as before:
        intact(before, original)
        runtime = again_on(before, runtime_name)
        if not before.virtual:
            as_root(context)
        directory = rundir.make(before.name)
        status = status_of(context, directory, lambda: repeat(context, before, original, directory, parts, runtime))
        findings = compared(before, Experiment.load(directory))
    document = {
        "format": "ewan-comparison/1",
        "original": str(original),
        "clock": before.document.clock,
        "complete": status == 0,
        "findings": findings,
    }
    (directory / COMPARISON).write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    rundir.give_back(directory)
    if as_json:
        context.reporter.emit({"directory": str(directory), **document})
    else:
        show_findings(context, findings, before.virtual)
        context.reporter.console.print(f"{verdict(findings, before.virtual)}  {directory}", soft_wrap=True)
    if status:
        context.reporter.tell(f"the repetition is not complete: ewan run --resume {directory} goes on with it")
    sys.exit(1 if status or not findings or any(each.verdict == "different" for each in findings) else 0)


@contextlib.contextmanager
def original_of(path: Path) -> Iterator[Experiment]:
    """The experiment in a directory, or in an archive, which is unpacked for as long as it is looked at."""
    if path.is_dir():
        yield Experiment.load(path)
        return
    with tempfile.TemporaryDirectory(prefix="ewan-rerun-") as place:
        yield Experiment.load(archive.unpack(path, Path(place)), shown=path)


def intact(before: Experiment, original: Path) -> None:
    """LabError where files of the original are not those that were written."""
    try:
        before.check()
    except LabError as error:
        if original.is_dir():
            raise
        name = str(error).removeprefix(f"{before.directory}/").partition(":")[0]
        raise LabError(
            f"{original}: {name} in it is damaged or missing, it is not what {DOCUMENT} records: take another copy"
        ) from None


def again_on(before: Experiment, wanted: str | None) -> str:
    """The runtime of the repetition."""
    first = "virtual" if before.virtual else before.document.runtime
    if wanted is None or wanted == "auto":
        return first
    if before.virtual != (wanted == "virtual"):
        clock = "virtual" if before.virtual else "live"
        raise Refused(f"--runtime {wanted}: the experiment was in the {clock} clock, and so is its repetition")
    return wanted


def repeat(context: Context, before: Experiment, original: Path, directory: Path, parts: Parts, runtime: str) -> int:
    """The same runs, from what was stored of them, in a new directory; the exit status."""

    def fresh() -> Iterator[Job]:
        for entry in before.runs:
            waiting = dataclasses.replace(entry, status="waiting", error=None, certificate=None, verified=None)
            yield dataclasses.replace(before.job(entry), entry=waiting)

    origin = Origin(**before.document.described(), **circumstances(), runtime=runtime, rerun_of=str(original))
    names = [name for name in (SCENARIO, SETTINGS) if (before.directory / name).exists()]
    files = {name: (before.directory / name).read_bytes() for name in names}
    prepared = engine.prepare(
        fresh(),
        Facts(files, origin),
        virtual=before.virtual,
        directory=directory,
        unverified=before.document.unverified,
    )
    return engine.run(prepared, parts=parts, context=context)


def compared(before: Experiment, now: Experiment) -> list[compare.Finding]:
    """What differs between an experiment and its repetition; nothing where one of the two has no results."""
    if before.virtual:
        return compare.virtual(before, now)
    summaries = [each.directory / "summary.json" for each in (before, now)]
    if not all(path.exists() for path in summaries):
        return []
    return compare.live(*(orjson.loads(path.read_bytes()) for path in summaries))


def show_findings(context: Context, findings: Sequence[compare.Finding], virtual: bool) -> None:
    """The table of a comparison."""
    rows = [
        [each.what, each.before, each.now, f"[{COLOURS[each.verdict]}]{each.verdict}[/]", each.why] for each in findings
    ]
    columns = ["run" if virtual else "metric", "before", "now", "verdict", "why"]
    context.reporter.console.print(grid("The repetition beside its original", columns, rows, most=MOST_FINDINGS))


def verdict(findings: Sequence[compare.Finding], virtual: bool) -> str:
    """In one line."""
    differ = [each for each in findings if each.verdict == "different"]
    if not findings:
        return "there is nothing to compare: one of the two has no results"
    if virtual:
        runs = [each for each in findings if each.verdict != "shown"]
        if not differ:
            return f"the same to the byte: every result of {engine.counted(len(runs), 'run')}"
        return f"{len(differ)} of {engine.counted(len(runs), 'run')} differ: {differ[0].what}: {differ[0].now}"
    if not differ:
        return "no metric differs beyond noise"
    first = differ[0]
    return f"{engine.counted(len(differ), 'metric')} beyond noise: {first.what}: {first.before}, now {first.now}"


def parts_of(context: click.Context) -> Parts:
    """What ewan.py gives."""
    return Parts(**composed(context, "parts"))


def pairs(settings: Sequence[str]) -> dict[str, str]:
    """`--set KEY=VALUE` by key."""
    result = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise Refused(f'--set "{text}": write KEY=VALUE, like streams=5 or "streams=1,2,5"')
        result[key.strip()] = value.strip()
    return result


def facts_of(
    scenario: Scenario,
    stop: Stop | None,
    scale: str | None,
    settings: Mapping[str, str],
    seeds: int | None,
    runtime: str,
) -> Facts:
    """What the record says of a scenario, and all that is needed to read it again; `runtime` as it was asked for."""
    asked = {"file": str(scenario.file.absolute()), "scale": scale, "settings": dict(settings), "seeds": seeds}
    repeated = {} if stop is None else {"confidence": stop.confidence}
    origin = Origin(
        scenario=scenario.name,
        title=scenario.title,
        about=scenario.about,
        source=scenario.source,
        metrics=list(scenario.metrics),
        normalise=scenario.normalise,
        beside=list(scenario.beside),
        scale=scale,
        settings=dict(settings),
        runtime=runtime,
        **circumstances(),
        **repeated,
    )
    return Facts({SCENARIO: scenario.text.encode(), SETTINGS: orjson.dumps(asked, option=orjson.OPT_INDENT_2)}, origin)


def circumstances() -> dict[str, Any]:
    """When asked: this machine, this version of the project, the command."""
    shown = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "host": host_facts({}),
        "commit": shown.stdout.strip() or None,
        "command": shlex.join(["ewan", *sys.argv[1:]]),
    }


def status_of(context: Context, directory: Path, work: Callable[[], int]) -> int:
    """The exit status of work in an experiment's directory; whatever ends it early is one line."""

    def ask(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGHUP)}
    resume = f"ewan run --resume {directory} goes on"
    try:
        status = work()
    except KeyboardInterrupt:
        if not directory.exists():
            raise Refused("interrupted: nothing was run") from None
        raise Refused(f"interrupted: what has ended is in {directory}: {resume}") from None
    except rundir.DiskFullError as error:
        if not directory.exists():
            raise
        raise Incomplete(f"{error}: what was measured is kept: {resume}") from None
    except verification.UnverifiedLabError as error:
        raise Incomplete(str(error)) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if directory.exists():
            rundir.give_back(directory)
    if status:
        context.reporter.tell(f"not complete: {resume} and runs what is missing once more")
    return status


def shown(context: Context, directory: Path, as_json: bool) -> None:
    """What was found: the tables, and where the rest is."""
    loaded = Experiment.load(directory)
    path = directory / "summary.json"
    if not path.exists():
        return
    summary = orjson.loads(path.read_bytes())
    if as_json:
        context.reporter.emit({"directory": str(directory), "status": loaded.document.status, "summary": summary})
        return
    title = loaded.document.title or loaded.name
    if loaded.document.unverified:
        title += " (in labs that did not pass their verification)"
    for table in show.points(summary, title, loaded.document.metrics):
        context.reporter.console.print(table)
    if (papers := show.beside(summary)) is not None:
        context.reporter.console.print()
        context.reporter.console.print(papers)
    context.reporter.console.print(f"\n{loaded.document.status}  report: {directory / 'report.html'}", soft_wrap=True)
