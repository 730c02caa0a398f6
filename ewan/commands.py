"""The commands of the core, each imported when it is called: the libraries for drawing and statistics take a second to
import.

A command's name is the words that people type after `ewan`: `lab verify` is the command `verify` of the group `lab`.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

NAMES = (
    "lab",
    "up",
    "run",
    "transfer",
    "down",
    "ps",
    "doctor",
    "lab compile",
    "lab verify",
    "lab certificate",
    "lab exec",
    "lab shell",
    "lab set",
    "lab watch",
    "lab capture",
    "lab path",
    "lab record",
    "lab batch",
    "lab adopt",
    "lab metrics",
    "cc add",
    "cc list",
    "cc remove",
    "kernel add",
    "kernel list",
    "kernel verify",
    "kernel remove",
    "exp list",
    "exp resume",
    "exp rerun",
    "exp compare",
    "exp tag",
    "exp collect",
    "exp store",
    "results report",
    "results plot",
    "results export",
    "measure host",
    "measure lab",
    "measure envelope",
    "trace",
    "new",
    "completion",
    "docs",
)
"""The names of the commands, in the order in which `--help` lists them."""

OF_EXTRAS = ("lab import",)
"""Names of commands that extras add to a group which has a command of its own name: none of them is a topology."""

GROUPS = {
    "lab": "Labs: bring one up, use it, change its links, measure it.",
    "cc": "Congestion controls: add your own, list those of each clock.",
    "kernel": "Kernels of the virtual clock: add your own, check it.",
    "exp": "Experiments: list, resume, repeat, compare, tag and archive them.",
    "results": "Results of an experiment: its report, figures and exports.",
    "measure": "Measurements of this host, of a lab as it is deployed, and of any path.",
    "gym": "Reinforcement learning: an environment in which an agent sets the window of a TCP flow.",
    "suite": "Ready studies: HSTTS, papers, bulk transfers, advice on protocols.",
}
"""The purpose of each group of commands, in one line."""

OLD_NAMES = {
    "batch": "lab batch",
    "collect": "exp collect",
    "rerun": "exp rerun",
    "tag": "exp tag",
    "store": "exp store",
    "report": "results report",
    "export": "results export",
    "plot": "results plot",
    "runs": "exp list",
    "compare": "exp compare",
    "compile": "lab compile",
    "adopt": "lab adopt",
    "exec": "lab exec",
    "shell": "lab shell",
    "capture": "lab capture",
    "verify": "lab verify",
    "certificate": "lab certificate",
    "envelope": "measure envelope",
    "set": "lab set",
    "recorded": "lab record",
    "watch": "lab watch",
    "path": "lab path",
    "metrics": "lab metrics",
    "advise": "suite advise",
    "characterise": "measure path",
    "archive": "exp archive",
    "import": "lab import",
    "paper": "suite papers",
    "figures": "suite figures",
    "hstts": "suite hstts",
    "transfers": "suite transfers",
}
"""Names of version 0.1 that work until 0.4, and what they are now. `calibrate` is in `current_name`."""

_OF_THE_HOST = ("--profile", "--size", "--nic")


def current_name(words: Sequence[str]) -> str | None:
    """The present name of the command whose old name and arguments are `words`; None where the first word is no old
    name."""
    name, *arguments = words
    if name == "calibrate":
        options = {word.partition("=")[0] for word in arguments}
        host = not options - {"--json", "-h", "--help"} or not options.isdisjoint(_OF_THE_HOST)
        return "measure host" if host else "measure lab"
    return OLD_NAMES.get(name)


def load(name: str) -> click.Command | None:
    """The command of a name; None where the core has none of this name."""
    match name:
        case "lab":
            from ewan.calibration.cli import lab_command as command
        case "up":
            from ewan.labs.commands.up import up_command as command
        case "run":
            from ewan.experiments.engine.cli import run_command as command
        case "transfer":
            from ewan.generator.cli import transfer_command as command
        case "down":
            from ewan.labs.commands.down import down_command as command
        case "ps":
            from ewan.labs.commands.ps import ps_command as command
        case "doctor":
            from ewan.calibration.cli import doctor_command as command
        case "lab compile":
            from ewan.labs.commands.compile import compile_command as command
        case "lab verify":
            from ewan.calibration.cli import verify_command as command
        case "lab certificate":
            from ewan.calibration.cli import certificate_command as command
        case "lab exec":
            from ewan.labs.commands.use import exec_command as command
        case "lab shell":
            from ewan.labs.commands.use import shell_command as command
        case "lab set":
            from ewan.labs.commands.set import set_command as command
        case "lab watch":
            from ewan.labs.commands.watch import watch_command as command
        case "lab capture":
            from ewan.labs.commands.capture import capture_command as command
        case "lab path":
            from ewan.labs.commands.path import path_command as command
        case "lab record":
            from ewan.generator.recorded_cli import recorded_command as command
        case "lab batch":
            from ewan.labs.commands.batch import batch_command as command
        case "lab adopt":
            from ewan.labs.commands.adopt import adopt_command as command
        case "lab metrics":
            from ewan.labs.commands.metrics import metrics_command as command
        case "cc add":
            from ewan.generator.congestion_cli import add_command as command
        case "cc list":
            from ewan.generator.congestion_cli import list_command as command
        case "cc remove":
            from ewan.generator.congestion_cli import remove_command as command
        case "kernel add":
            from ewan.calibration.kernel_cli import add_command as command
        case "kernel list":
            from ewan.calibration.kernel_cli import list_command as command
        case "kernel verify":
            from ewan.calibration.kernel_cli import verify_command as command
        case "kernel remove":
            from ewan.calibration.kernel_cli import remove_command as command
        case "exp list":
            from ewan.analysis.cli import runs_command as command
        case "exp resume":
            from ewan.experiments.engine.cli import resume_command as command
        case "exp rerun":
            from ewan.experiments.engine.rerun import rerun_command as command
        case "exp compare":
            from ewan.analysis.compare.cli import compare_command as command
        case "exp tag":
            from ewan.experiments.engine.tag import tag_command as command
        case "exp collect":
            from ewan.experiments.shards.cli import collect_command as command
        case "exp store":
            from ewan.experiments.store.cli import store_command as command
        case "results report":
            from ewan.analysis.cli import report_command as command
        case "results plot":
            from ewan.analysis.cli import plot_command as command
        case "results export":
            from ewan.analysis.cli import export_command as command
        case "measure host":
            from ewan.calibration.calibrate_cli import host_command as command
        case "measure lab":
            from ewan.calibration.calibrate_cli import lab_command as command
        case "measure envelope":
            from ewan.calibration.host.cli import envelope_command as command
        case "trace":
            from ewan.labs.commands.trace import trace_command as command
        case "new":
            from ewan.labs.commands.new import new_command as command
        case "completion":
            from ewan.labs.commands.manual import completion_command as command
        case "docs":
            from ewan.labs.commands.manual import docs_command as command
        case _:
            return None
    return command
