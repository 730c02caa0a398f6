"""The command line `ewan`: composes the parts' own commands, no logic of its own.

A command's part is imported when the command is called: drawing and statistics alone take a second to import.
"""

from __future__ import annotations

import click

from labs.commands import Commands, imported
from labs.runtime import interrupt

COMMANDS = {
    "lab": "calibration.cli:lab_command",
    "batch": "labs.batch:batch_command",
    "transfer": "generator.cli:transfer_command",
    "run": "generator.engine.cli:run_command",
    "rerun": "generator.engine.cli:rerun_command",
    "hstts": "generator.suites.cli:hstts_command",
    "report": "analysis.cli:report_command",
    "runs": "analysis.cli:runs_command",
    "compile": "labs.cli:compile_command",
    "up": "labs.cli:up_command",
    "down": "labs.cli:down_command",
    "ps": "labs.cli:ps_command",
    "exec": "labs.use:exec_command",
    "shell": "labs.use:shell_command",
    "verify": "calibration.cli:verify_command",
    "set": "labs.use:set_command",
    "watch": "labs.watch:watch_command",
    "metrics": "labs.metrics:metrics_command",
    "doctor": "calibration.cli:doctor_command",
    "bench": "calibration.bench:bench_command",
    "figures": "calibration.paper_figures:figures_command",
    "completion": "labs.cli:completion_command",
    "docs": "labs.cli:docs_command",
}
PAGES = {
    "description.md": "labs.spec:markdown",
    "scenario.md": "generator.scenario.manual:markdown",
    "metrics.md": "labs.record.manual:markdown",
}
PARTS = {
    "certify": "calibration.certificates:certify",
    "analyse": "analysis.summary:analyse",
    "report": "analysis.report:write",
    "estimate": "analysis.statistics:mean_interval",
}


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
    interrupt.heeded()
    context.obj = {
        "parts": lambda: {name: imported(place) for name, place in PARTS.items()},
        "pages": lambda: {name: imported(place) for name, place in PAGES.items()},
    }


if __name__ == "__main__":
    main(prog_name="ewan")
