"""The command line `ewan`: composes the parts' own commands, no logic of its own."""

from __future__ import annotations

import click

from analysis import report, statistics, summary
from analysis.cli import report_command, runs_command
from calibration.bench import bench_command
from calibration.certificates import certify
from calibration.cli import doctor_command, lab_command, verify_command
from calibration.figures import figures_command
from generator.cli import transfer_command
from generator.engine import Parts
from generator.engine.cli import rerun_command, run_command
from generator.scenario import manual
from generator.suites.cli import hstts_command
from labs import cli as labs
from labs import use
from labs.batch import batch_command
from labs.runtime import interrupt
from labs.watch import watch_command


@click.group(cls=labs.Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
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
    context.obj = Parts(certify, summary.analyse, report.write, statistics.mean_interval)


labs.PAGES |= {"scenario.md": manual.markdown}

for command in (
    lab_command,
    batch_command,
    transfer_command,
    run_command,
    rerun_command,
    hstts_command,
    report_command,
    runs_command,
    labs.compile_command,
    labs.up_command,
    labs.down_command,
    labs.ps_command,
    use.exec_command,
    use.shell_command,
    verify_command,
    use.set_command,
    watch_command,
    doctor_command,
    bench_command,
    figures_command,
    labs.completion_command,
    labs.docs_command,
):
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="ewan")
