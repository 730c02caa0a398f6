"""Whether what comes from elsewhere may execute its commands: they are shown, asked for once, and remembered by a hash.

In: an experiment or a scenario, and what the user says. Out: nothing, or LabError in one line. From elsewhere are
archives, crates, and files of other users: whoever made them decides which commands run. One's own files do not ask.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from generator.engine.experiment import Experiment
from generator.readers.captures import FILE
from generator.scenario import ScenarioRun
from labs import cache, writing
from labs.context import ROOT, Context
from labs.runtime.base import LabError
from labs.runtime.services import OURSELVES

CRATE = "ro-crate-metadata.json"
SCENARIOS = (".yaml", ".yml", ".xml")
KIND = "trusted"
MOST_LETTERS = 200
"""An error shows one line, cut off after so many letters. A question shows all lines whole."""
OWN_PARTS = (("capture", FILE), ("packet-sockets", "--pid-file={run}/vswitchd.pid"))
"""The project itself adds these commands of the node binary to runs: its subcommand and last word. They start no other
program."""
EXECUTED = ("binds", "cmd", "driver", "entrypoint", "exec", "image", "startup")
"""The keys of a lab's description by which it has programs executed or files shown."""
OF_LIVE = "a lab of namespaces, made as root on this machine"

Confirm = Callable[[str], bool]
"""Shows a text, and asks; None in its place: there is nobody to ask."""


def is_from_elsewhere(context: Context, path: Path) -> bool:
    """An archive, a crate, or what belongs to another user than the one who calls; root's files are the machine's."""
    if path.is_dir() and (path / CRATE).exists():
        return True
    if not path.is_dir() and path.suffix not in SCENARIOS:
        return True
    return _is_another(context, path.stat().st_uid)


def _is_another(context: Context, user: int) -> bool:
    caller = context.environment.get("SUDO_UID", "")
    return user not in {0, os.geteuid(), int(caller) if caller.isdigit() else 0}


def of_experiment(experiment: Experiment) -> list[str]:
    """What its runs execute beside the project's own programs, each line once; of the live clock first of all a lab."""
    lines = {} if experiment.virtual else {OF_LIVE: None}
    for entry in experiment.runs:
        contents = experiment.contents(entry)
        plan, program = orjson.loads(contents["plan.json"]), orjson.loads(contents["program.json"])
        lines |= dict.fromkeys(_commands(plan, program))
    return list(lines)


def _commands(plan: dict[str, Any], program: dict[str, Any]) -> Iterator[str]:
    for step in (*program.get("prepare", ()), *program.get("commands", ())):
        if not _is_own(step["argv"]):
            yield f"{step['node']}: {shlex.join(step['argv'])}"
    yield from (f"reads {path}" for path in program.get("needs", ()))
    for node in plan["nodes"]:
        own, name = node.get("own") or {}, node["name"]
        yield from (f"{name}: {shlex.join(argv)}" for argv in own.get("exec", ()))
        if own.get("image"):
            yield f"{name}: the image {own['image']}"
        services = (service["argv"] for service in node.get("services", ()))
        yield from (f"{name}: {shlex.join(argv)}" for argv in services if not _is_own(argv))


def _is_own(argv: Sequence[str]) -> bool:
    return argv[0] == OURSELVES and len(argv) > 2 and (argv[1], argv[-1]) in OWN_PARTS


def of_scenario(runs: Iterable[ScenarioRun], *, virtual: bool) -> list[str]:
    """The same of a scenario whose labs are not made yet: of its runs."""
    lines = {} if virtual else {OF_LIVE: None}
    for run in runs:
        lines |= {f"{','.join(step.on or ())}: {step.run}": None for step in run.document.steps if step.run}
        lines |= {f"reads {text}": None for text in run.document.needs}
        lines |= dict.fromkeys(_of_lab(run.spec.raw))
    return list(lines)


def _of_lab(raw: Any) -> Iterator[str]:
    for key, value in raw.items() if isinstance(raw, dict) else enumerate(raw if isinstance(raw, list) else ()):
        if key in EXECUTED:
            yield f"lab: {key}: {orjson.dumps(value, default=str).decode()}"
        else:
            yield from _of_lab(value)


def ask(
    context: Context, path: Path, lines: Sequence[str], trusted: bool, confirm: Confirm | None, text: str = ""
) -> None:
    """LabError where nobody vouches for what would be executed. `trusted`: the user has said so; `text`: what decides
    beside the lines what is executed."""
    if not lines:
        return
    digest = hashlib.sha256("\n".join((*sorted(lines), text)).encode()).hexdigest()
    known = cache.kept(context.environment, KIND, ROOT) / digest
    if known.exists() and not _is_another(context, known.lstat().st_uid):  # a cache may be shared
        return
    if not trusted:
        shown = [_printable(line) for line in lines]
        if confirm is None:
            first = shown[0] if len(shown[0]) <= MOST_LETTERS else f"{shown[0][: MOST_LETTERS - 1]}…"
            more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
            raise LabError(
                f"{path}: comes from elsewhere and executes {first}{more}: write --trust where you trust who made "
                "it (SECURITY.md)"
            )
        listed = "\n".join(f"  {line}" for line in shown)
        if not confirm(f"{path} comes from elsewhere. It executes:\n{listed}\nExecute that?"):
            raise LabError(f"{path}: is not trusted: nothing was executed")
    writing.write(known, b"")


def _printable(line: str) -> str:
    """A line of somebody else on this terminal, without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)
