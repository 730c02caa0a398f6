"""The command line `ewan`: composes the parts' own commands, no logic of its own.

A command's part is imported when the command is called: drawing and statistics alone take a second to import.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # pathlib takes a while to import
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120

from ewan.labs.base import interrupt, limits

if __name__ == "__main__":
    # The processes that work for this one are started with its options: without -P they would import what others have
    # written into the directory where it was called.
    if not sys.flags.safe_path:
        interrupt.block()
        os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])
    interrupt.begin()
    limits.check()

import click

from ewan import __version__
from ewan.labs.base.ownership import restrict_umask
from ewan.labs.commands.group import Commands
from ewan.labs.context import Context

COMMANDS = {
    "lab": "ewan.calibration.cli:lab_command",
    "batch": "ewan.labs.commands.batch:batch_command",
    "transfer": "ewan.generator.cli:transfer_command",
    "run": "ewan.experiments.engine.cli:run_command",
    "collect": "ewan.experiments.shards.cli:collect_command",
    "rerun": "ewan.experiments.engine.rerun:rerun_command",
    "archive": "ewan.experiments.engine.crate.cli:archive_command",
    "advise": "ewan.generator.advice.cli:advise_command",
    "hstts": "ewan.generator.suites.cli:hstts_command",
    "paper": "ewan.generator.papers.cli:paper_command",
    "course": "ewan.generator.course.cli:course_command",
    "transfers": "ewan.generator.transfers.cli:transfers_command",
    "tag": "ewan.experiments.engine.tag:tag_command",
    "store": "ewan.experiments.store.cli:store_command",
    "report": "ewan.analysis.cli:report_command",
    "export": "ewan.analysis.cli:export_command",
    "plot": "ewan.analysis.cli:plot_command",
    "runs": "ewan.analysis.cli:runs_command",
    "compare": "ewan.analysis.compare.cli:compare_command",
    "compile": "ewan.labs.commands.compile:compile_command",
    "up": "ewan.labs.commands.up:up_command",
    "down": "ewan.labs.commands.down:down_command",
    "adopt": "ewan.labs.commands.adopt:adopt_command",
    "ps": "ewan.labs.commands.ps:ps_command",
    "exec": "ewan.labs.commands.use:exec_command",
    "shell": "ewan.labs.commands.use:shell_command",
    "capture": "ewan.labs.commands.capture:capture_command",
    "verify": "ewan.calibration.cli:verify_command",
    "certificate": "ewan.calibration.cli:certificate_command",
    "calibrate": "ewan.calibration.calibrate_cli:calibrate_command",
    "characterise": "ewan.calibration.advice.cli:characterise_command",
    "envelope": "ewan.calibration.host.cli:envelope_command",
    "set": "ewan.labs.commands.set:set_command",
    "recorded": "ewan.generator.recorded_cli:recorded_command",
    "import": "ewan.labs.commands.importing:import_command",
    "trace": "ewan.labs.commands.trace:trace_command",
    "watch": "ewan.labs.commands.watch:watch_command",
    "path": "ewan.labs.commands.path:path_command",
    "metrics": "ewan.labs.commands.metrics:metrics_command",
    "studio": "ewan.studio.cli:studio_command",
    "driver": "ewan.emulator.hardware.cli:driver_command",
    "doctor": "ewan.calibration.cli:doctor_command",
    "bench": "ewan.calibration.bench:bench_command",
    "figures": "ewan.calibration.paper_figures:figures_command",
    "completion": "ewan.labs.commands.manual:completion_command",
    "docs": "ewan.labs.commands.manual:docs_command",
}


@click.group(
    cls=Commands,
    commands_at=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(__version__, prog_name="ewan")
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


if __name__ == "__main__":
    interrupt.run(lambda: main(prog_name="ewan"))
