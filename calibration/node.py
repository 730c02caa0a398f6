"""What ewan-node says of a lab that is up, by one of its commands that read a plan."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import orjson

from labs.plan import Plan, to_json


def told(plan: Plan, binary: Path, command: str) -> list[dict[str, Any]]:
    """What the command prints as JSON; RuntimeError with one line where the lab's interfaces cannot be asked."""
    asked = subprocess.run([binary, command], input=to_json(plan), capture_output=True, check=False)
    if asked.returncode != 0:
        words = asked.stderr.decode(errors="replace").strip().splitlines()
        raise RuntimeError(words[-1] if words else f"ewan-node {command}: status {asked.returncode}")
    found: list[dict[str, Any]] = orjson.loads(asked.stdout)
    return found
