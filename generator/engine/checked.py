"""Whether an experiment's document, which may come from others, is one: the keys that the engine goes by. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from labs.plan import read_typed
from labs.spec.values import LONGEST_NAME, NAME

_DIRECTORY = re.compile(r"runs/[0-9]{3,9}")
_KINDS: dict[str, Any] = {
    "scenario": str,
    "clock": str,
    "unverified": bool,
    "status": str,
    "stages": dict[str, Any],
    "files": dict[str, str],
}


def check(document: Mapping[str, Any], stages: Mapping[str, str]) -> None:
    """ValueError for a key that is missing, of another type, or leads out of the experiment's directory."""
    for key, kind in _KINDS.items():
        if key not in document:
            raise ValueError(f"has no key {key!r}")
        read_typed(kind, document[key], key)
    if not NAME.fullmatch(document["scenario"]) or len(document["scenario"]) > LONGEST_NAME:
        raise ValueError("scenario is no name")
    if document["clock"] not in ("live", "virtual"):
        raise ValueError("clock is neither live nor virtual")
    if document["stages"].keys() != stages.keys():
        raise ValueError("stages are not those of an experiment")
    for name, stage in document["stages"].items():
        if not isinstance(stage, dict) or not isinstance(stage.get("status"), str):
            raise ValueError(f"stages.{name} has no status")
    for name in document["files"]:
        if name.startswith("/") or ".." in name.split("/") or "\0" in name:
            raise ValueError("files name one outside of the experiment")
    if not isinstance(document.get("runs"), list):
        raise ValueError("runs is no list")


def check_directory(name: str) -> None:
    if not _DIRECTORY.fullmatch(name):
        raise ValueError("a run's directory is none of the experiment")
