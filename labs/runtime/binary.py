"""Where the node binary is: what makes labs, in both clocks. In: a wished-for path. Out: the real one, or LabError."""

from __future__ import annotations

import shutil
from pathlib import Path

from labs.runtime.base import LabError

BUILT = Path(__file__).resolve().parents[2] / "target/release/ewan-node"


def node_binary(wanted: Path | None = None) -> Path:
    found = shutil.which("ewan-node")
    for candidate in (wanted, BUILT, Path(found) if found else None):
        if candidate is not None and candidate.exists():
            # The real name: a lab's processes are told by it.
            return candidate.resolve()
    raise LabError(f"{wanted or BUILT} is not there: build it with `make setup`")
