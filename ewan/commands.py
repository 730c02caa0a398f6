"""The commands of the core, each imported when it is called: drawing and statistics alone take a second to import."""

from __future__ import annotations

import click

NAMES = (
    "lab",
    "batch",
    "transfer",
    "run",
    "collect",
    "rerun",
    "tag",
    "store",
    "report",
    "export",
    "plot",
    "runs",
    "compare",
    "compile",
    "up",
    "down",
    "adopt",
    "ps",
    "exec",
    "shell",
    "capture",
    "verify",
    "certificate",
    "calibrate",
    "envelope",
    "set",
    "recorded",
    "trace",
    "watch",
    "path",
    "metrics",
    "doctor",
    "new",
    "completion",
    "docs",
)
"""The names of the commands, in the order in which `--help` lists them."""


def load(name: str) -> click.Command | None:
    """The command of a name; None where the core has none of this name."""
    match name:
        case "lab":
            from ewan.calibration.cli import lab_command as command
        case "batch":
            from ewan.labs.commands.batch import batch_command as command
        case "transfer":
            from ewan.generator.cli import transfer_command as command
        case "run":
            from ewan.experiments.engine.cli import run_command as command
        case "collect":
            from ewan.experiments.shards.cli import collect_command as command
        case "rerun":
            from ewan.experiments.engine.rerun import rerun_command as command
        case "tag":
            from ewan.experiments.engine.tag import tag_command as command
        case "store":
            from ewan.experiments.store.cli import store_command as command
        case "report":
            from ewan.analysis.cli import report_command as command
        case "export":
            from ewan.analysis.cli import export_command as command
        case "plot":
            from ewan.analysis.cli import plot_command as command
        case "runs":
            from ewan.analysis.cli import runs_command as command
        case "compare":
            from ewan.analysis.compare.cli import compare_command as command
        case "compile":
            from ewan.labs.commands.compile import compile_command as command
        case "up":
            from ewan.labs.commands.up import up_command as command
        case "down":
            from ewan.labs.commands.down import down_command as command
        case "adopt":
            from ewan.labs.commands.adopt import adopt_command as command
        case "ps":
            from ewan.labs.commands.ps import ps_command as command
        case "exec":
            from ewan.labs.commands.use import exec_command as command
        case "shell":
            from ewan.labs.commands.use import shell_command as command
        case "capture":
            from ewan.labs.commands.capture import capture_command as command
        case "verify":
            from ewan.calibration.cli import verify_command as command
        case "certificate":
            from ewan.calibration.cli import certificate_command as command
        case "calibrate":
            from ewan.calibration.calibrate_cli import calibrate_command as command
        case "envelope":
            from ewan.calibration.host.cli import envelope_command as command
        case "set":
            from ewan.labs.commands.set import set_command as command
        case "recorded":
            from ewan.generator.recorded_cli import recorded_command as command
        case "trace":
            from ewan.labs.commands.trace import trace_command as command
        case "watch":
            from ewan.labs.commands.watch import watch_command as command
        case "path":
            from ewan.labs.commands.path import path_command as command
        case "metrics":
            from ewan.labs.commands.metrics import metrics_command as command
        case "doctor":
            from ewan.calibration.cli import doctor_command as command
        case "new":
            from ewan.labs.commands.new import new_command as command
        case "completion":
            from ewan.labs.commands.manual import completion_command as command
        case "docs":
            from ewan.labs.commands.manual import docs_command as command
        case _:
            return None
    return command
