"""Root, which the live clock needs: going on under sudo, and the clock that is taken where there is neither."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from ewan.labs.commands.errors import Refused
from ewan.labs.context import COMMAND, VARIABLES, Context
from ewan.labs.runtime.multi_machine import MANIFEST
from ewan.labs.runtime.state import State


def as_root(context: Context, command: Sequence[str] = COMMAND) -> None:
    """Goes on under sudo where this is not root, which the live clock needs, and says so; `command` starts this."""
    if os.geteuid() == 0 or _elsewhere(context):
        return
    if shutil.which("sudo") is None:
        raise Refused(
            "the live clock needs root, and there is no sudo here: run this as root, or a lab in the virtual clock "
            "(ewan lab … --runtime virtual, ewan lab batch … --runtime virtual)"
        )
    context.reporter.note("the live clock needs root: going on under sudo")
    keep = f"--preserve-env={','.join(VARIABLES)}"
    os.execvp("sudo", ["sudo", keep, *command, *sys.argv[1:]])


def _elsewhere(context: Context) -> bool:
    """Return whether the part that needs root runs on other machines, and this user may write the records here."""
    there = next(folder for folder in (context.state, *context.state.parents) if folder.exists())
    return os.access(there, os.W_OK) and (context.machines is not None or _stretched(State(context.state)))


def _stretched(state: State) -> bool:
    """Return whether a lab that is up runs on other machines."""
    return any((head := state.manifest(name)) and head.format == MANIFEST for name in state.names())


def is_virtual(context: Context) -> bool:
    """For commands that run a lab from start to end: auto is the live clock where root is to be had."""
    live = os.geteuid() == 0 or shutil.which("sudo") is not None or context.machines is not None
    return context.runtime == "virtual" or (context.runtime == "auto" and not live)
