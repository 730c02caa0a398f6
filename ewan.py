"""The command line `ewan`: composes the parts' own commands, no logic of its own.

A command's part is imported when the command is called: drawing and statistics alone take a second to import.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - pathlib takes a while to import

from labs import interrupt, limits

if __name__ == "__main__":
    # The processes that work for this one are started with its options: without -P they would import what others have
    # written into the directory where it was called.
    if not sys.flags.safe_path:
        interrupt.block()
        os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])
    interrupt.begin()
    limits.check()

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labs.commands.group import Commands
from labs.context import Context
from labs.ownership import restrict_umask

if TYPE_CHECKING:
    from analysis.api import Results
    from generator.course.session import Session

COMMANDS = {
    "lab": "calibration.cli:lab_command",
    "batch": "labs.commands.batch:batch_command",
    "transfer": "generator.cli:transfer_command",
    "run": "generator.engine.cli:run_command",
    "collect": "generator.shards.cli:collect_command",
    "rerun": "generator.engine.rerun:rerun_command",
    "archive": "generator.engine.crate.cli:archive_command",
    "advise": "generator.advice.cli:advise_command",
    "hstts": "generator.suites.cli:hstts_command",
    "paper": "generator.papers.cli:paper_command",
    "course": "generator.course.cli:course_command",
    "transfers": "generator.transfers.cli:transfers_command",
    "tag": "generator.engine.tag:tag_command",
    "store": "generator.store.cli:store_command",
    "report": "analysis.cli:report_command",
    "export": "analysis.cli:export_command",
    "plot": "analysis.cli:plot_command",
    "runs": "analysis.cli:runs_command",
    "compare": "analysis.compare.cli:compare_command",
    "compile": "labs.commands.compile:compile_command",
    "up": "labs.commands.up:up_command",
    "down": "labs.commands.down:down_command",
    "adopt": "labs.commands.adopt:adopt_command",
    "ps": "labs.commands.ps:ps_command",
    "exec": "labs.commands.use:exec_command",
    "shell": "labs.commands.use:shell_command",
    "capture": "labs.commands.capture:capture_command",
    "verify": "calibration.cli:verify_command",
    "certificate": "calibration.cli:certificate_command",
    "calibrate": "calibration.calibrate_cli:calibrate_command",
    "characterise": "calibration.advice.cli:characterise_command",
    "envelope": "calibration.host.cli:envelope_command",
    "set": "labs.commands.set:set_command",
    "recorded": "generator.recorded_cli:recorded_command",
    "import": "labs.commands.importing:import_command",
    "trace": "labs.commands.trace:trace_command",
    "watch": "labs.commands.watch:watch_command",
    "path": "labs.commands.path:path_command",
    "metrics": "labs.commands.metrics:metrics_command",
    "studio": "studio.cli:studio_command",
    "driver": "emulator.hardware.cli:driver_command",
    "doctor": "calibration.cli:doctor_command",
    "bench": "calibration.bench:bench_command",
    "figures": "calibration.paper_figures:figures_command",
    "completion": "labs.commands.manual:completion_command",
    "docs": "labs.commands.manual:docs_command",
}
PAGES = {
    "description.md": "labs.spec:markdown",
    "scenario.md": "generator.scenario.manual:markdown",
    "metrics.md": "labs.record.manual:markdown",
    "certificate.schema.json": "labs.record.schema:certificate_schema",
    "characterisation.schema.json": "labs.record.characterisation:schema",
}
PARTS = {
    "certify": "calibration.certificates:certify",
    "analyse": "analysis.summary:analyse",
    "report": "analysis.report:write",
    "estimate": "analysis.statistics:mean_interval",
    "welch": "analysis.differences:expanded",
    "outside": "calibration.host.refusal:outside",
    "wall": "calibration.host.measurement:wall_of",
}
EXPORTS = {"write": "generator.exports:write"}
ADVICE = {"compare": "analysis.comparisons:of"}
PAPERS = {"page": "analysis.papers:write"}
COURSE = {"see": "analysis.one_run:OneRun"}
METERS = {"bursts": "calibration.bursts:points"}
"""What targets of papers measure without a scenario."""


@click.group(
    cls=Commands,
    commands_at=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option("0.1.0", prog_name="ewan")
@click.pass_context
def main(context: click.Context) -> None:
    """A network emulation lab whose links are measured before anyone trusts them.

    \b
    ewan lab dumbbell --rtt 100ms      compile, bring up, verify, leave it up
    ewan exec left1 -- ping right1     run something in a node
    ewan down dumbbell                 nothing left
    ewan lab dumbbell --rtt 100ms --rate 10G --runtime virtual
                                       the same in simulated time: exact, without root
    ewan run parallel-streams --scale quick --runtime virtual
                                       a scenario, from its lab to its report
    """
    restrict_umask()
    context.obj = Context.of(os.environ)
    context.meta.update(
        {
            "ewan.parts": PARTS,
            "ewan.pages": PAGES,
            "ewan.exports": EXPORTS,
            "ewan.meters": METERS,
            "ewan.advice": ADVICE,
            "ewan.papers": PAPERS,
            "ewan.course": COURSE,
        }
    )


def load(directory: str | os.PathLike[str]) -> Results:
    """An experiment's results, for notebooks: `ewan.load("results/…").metric("utilisation").by("buffer")`."""
    from analysis.api import Results

    return Results(Path(directory))


def course(folder: str | os.PathLike[str] = ".") -> Session:
    """A lab of the course, for notebooks, in a folder that `ewan course start` made: `ewan.course().check()`."""
    from analysis.api import Results
    from analysis.one_run import OneRun
    from generator.course.session import Session

    return Session(Path(folder), Context.of(os.environ), OneRun, Results)


if __name__ == "__main__":
    interrupt.run(lambda: main(prog_name="ewan"))
