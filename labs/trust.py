"""Decides whether files from elsewhere may execute their commands: they are shown, asked for once, and remembered by a
hash.

In: a plan, or files, and the user's answer. Out: nothing, or LabError in one line. Files of another user are from
elsewhere: that user decides which commands run. A user's own files need no question.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from ewan.labs import plan
from ewan.labs.base import cache, ownership, reading, writing
from ewan.labs.base.product import ROOT
from ewan.labs.capture.words import FILE
from ewan.labs.context import Context
from ewan.labs.hardware import catalogue
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.services import OURSELVES

KIND = "trusted"
MOST_LETTERS = 200
"""An error shows one line, cut off after so many letters. A question shows all lines whole."""
MOST_OF_A_FILE = 4000
"""Letters of a service's file that are shown; of a longer one its size and SHA-256."""
OWN_PARTS = (("capture", FILE), ("packet-sockets", "--pid-file={run}/vswitchd.pid"))
"""The project itself adds these commands of the node binary to runs: its subcommand and last word. They start no other
program."""
OF_LIVE = "a lab of namespaces, made as root on this machine"

Confirm = Callable[[str], bool]
"""Shows a text, and asks; None in its place: there is no user to ask."""


def is_of_another(context: Context, user: int) -> bool:
    """Return whether a file's owner is another user than the caller; root's files count as the machine's."""
    return user not in ownership.own_users(context.environment)


def first_of_another(context: Context, files: Mapping[Path, os.stat_result]) -> Path | None:
    """The first of files with their status, as `reading.noted` finds them, that belongs to another user."""
    return next((path for path, status in files.items() if is_of_another(context, status.st_uid)), None)


def of_plan(data: Any) -> Iterator[str]:
    """The commands that a lab executes, and the settings that select them, from its plan's JSON."""
    for node in data["nodes"]:
        name, own = node["name"], node.get("own") or {}
        for key, value in own.items():
            if key == "exec":
                yield from (f"{name}: {shlex.join(argv)}" for argv in value)
            else:
                yield f"{name}: {key}: {_json(value)}"
        for service in node.get("services", ()):
            if not is_own(service["argv"]):
                yield f"{name}: {shlex.join(service['argv'])}"
            yield from (f"{name}: {{run}}/{file}: {_content(text)}" for file, text in service["files"].items())
        if node.get("machine"):
            yield f"{name}: the machine {node['machine']}"
    for device in data.get("hardware", ()):
        program = _sha256_of(device["driver"]) if catalogue.is_path(device["driver"]) else ""
        yield f"{device['link']}: driver: {_json(device)}{program}"


def is_own(argv: Sequence[str]) -> bool:
    """Return whether a command is one that the project itself adds to runs."""
    return len(argv) > 2 and argv[0] == OURSELVES and (argv[1], argv[-1]) in OWN_PARTS


def _content(text: str) -> str:
    if len(text) <= MOST_OF_A_FILE:
        return _json(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    place = "read them in the plan (`ewan lab compile`, or runs/*/plan.json)"
    return f"{len(text)} letters with the SHA-256 {digest}: {place}"


def _sha256_of(driver: str) -> str:
    try:
        return f" with the SHA-256 {hashlib.sha256(reading.read_bytes(driver)).hexdigest()}"
    except OSError:
        return ""


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()


def ask_for_lab(context: Context, files: Mapping[Path, os.stat_result], lab: plan.Plan, *, virtual: bool) -> None:
    """LabError if a lab was read from another user's files and its commands are not trusted."""
    if (path := first_of_another(context, files)) is not None:
        text = plan.to_json(lab).decode()
        lines = [*([] if virtual else [OF_LIVE]), *of_plan(orjson.loads(text))]
        ask(context, path, lines, context.trusted, context.reporter.confirmation(), text)
        reading.hold(files)


def ask_for_file(context: Context, path: Path) -> None:
    """The same of a file that says which programs run on which machines: all of its lines are shown."""
    try:
        with reading.noted() as files:
            lines = [
                f"{reading.printable(path.name)}: {line}"
                for line in reading.read_text(path).splitlines()
                if line.strip()
            ]
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    if first_of_another(context, files) is not None:
        ask(context, path, lines, context.trusted, context.reporter.confirmation())
        reading.hold(files)


def ask(
    context: Context, path: Path, lines: Sequence[str], trusted: bool, confirm: Confirm | None, text: str = ""
) -> None:
    """LabError if the commands to execute are not trusted. `trusted`: the user has confirmed them; `text`: what decides
    beside the lines what is executed."""
    if not lines:
        return
    digest = hashlib.sha256(_json([lines, text]).encode()).hexdigest()
    known = _answers(context)
    if known is not None and _is_answer(context, known / digest, digest):
        return
    if not trusted:
        shown = [reading.printable(line) for line in lines]
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
    if known is not None:
        with suppress(OSError):
            writing.write(known / digest, digest)


def _answers(context: Context) -> Path | None:
    """The directory of answers; None where others could put theirs, or none can be kept: all is asked for each time."""
    try:
        place = cache.kept(context.environment, KIND, ROOT)
        if place.stat().st_uid == os.geteuid():
            place.chmod(0o700)
        found = [each.stat() for each in (place, place.parent)]
    except OSError:
        return None
    open_to_others = (
        is_of_another(context, each.st_uid) or (each.st_mode & 0o022 and not each.st_mode & stat.S_ISVTX)
        for each in found
    )
    return None if any(open_to_others) else place


def _is_answer(context: Context, known: Path, digest: str) -> bool:
    """Return whether this user wrote the answer, and to this question: another user can rename a file of this user."""
    try:
        with open(known, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            found = os.fstat(file.fileno())
            own = stat.S_ISREG(found.st_mode) and not is_of_another(context, found.st_uid)
            return own and file.read(len(digest) + 1) == digest.encode()
    except OSError:
        return False
