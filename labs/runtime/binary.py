"""Finds the node binary, which makes labs in both clocks.

In: a preferred path. Out: the real path of a binary that is there, or LabError.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ewan.labs.base.product import INSTALLED, NODE_BINARY
from ewan.labs.runtime import whole
from ewan.labs.runtime.base import LabError

SETUP = "pip install --force-reinstall ewan" if INSTALLED else "make setup"
"""The command that puts the node binary there."""


def node_binary(wanted: Path | None = None) -> Path:
    """The real path of `wanted`, else of the built binary, else of the one on the PATH; LabError if none is there."""
    found = shutil.which("ewan-node")
    for candidate in (wanted, NODE_BINARY, Path(found) if found else None):
        if candidate is not None and candidate.exists():
            # The real path: a lab's processes are recognised by it.
            real = candidate.resolve()
            whole.check(real, f"`{SETUP}` builds it anew", replaceable=True)
            return real
    raise LabError(f"{wanted or NODE_BINARY} is not there: build it with `{SETUP}`")
