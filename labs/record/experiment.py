"""What engine and analysis both know of experiment.json: its format, and the SHA-256 of each file that it vouches for.

In: an experiment's directory and `files`, the document's map from a file's path in that directory to its SHA-256. Out:
checksums; what is wrong with a file, in one line that begins with its path and ends with what to do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT = "ewan-experiment/2"
OLDER = ("ewan-experiment/1",)
DOCUMENT = "experiment.json"
INPUTS = ("plan.json", "program.json", "schedule.json")
"""Of each run: what it executes."""

_WORD = (str, type(None))
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("scenario", "clock", "status", "started"), (str,)),
    **dict.fromkeys(("title", "about", "source", "scale", "commit", "ended", "runtime"), _WORD),
    **dict.fromkeys(("settings", "stages", "files"), (dict,)),
    **dict.fromkeys(("runs", "metrics", "beside"), (list,)),
    **dict.fromkeys(("normalise", "host"), (dict, type(None))),
    "confidence": (int, float),
}
_RUN_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("number", "seed"), (int,)),
    **dict.fromkeys(("name", "status", "directory"), (str,)),
    **dict.fromkeys(("error", "certificate", "plan_sha256"), _WORD),
    "parameters": (dict,),
}
MOST_SHOWN = 80  # characters of a value that is wrong


def refusal(document: object, directory: Path) -> str:
    """Why a document is no experiment that this version reads; empty: it is one."""
    found = document.get("format") if isinstance(document, Mapping) else None
    path = directory / DOCUMENT
    if isinstance(document, Mapping) and found == FORMAT:
        wrong = _mistyped(document)
        return f"{path}: not an experiment: {wrong}: take it from the experiment's archive" if wrong else ""
    if found in OLDER:
        return (
            f"{path}: an older version made this experiment (format {found}, this version reads {FORMAT}): "
            "run its scenario.yaml once more with `ewan run`"
        )
    return f"{path}: format is {found!r}, this version reads {FORMAT!r}"


def _mistyped(document: Mapping[str, Any]) -> str:
    """The first value that is not of its key's type; which keys there must be is for readers to say."""
    if wrong := _wrong(document, _KINDS, ""):
        return wrong
    for number, run in enumerate(document.get("runs", ())):
        if not isinstance(run, dict):
            return f"runs[{number}] is {repr(run)[:MOST_SHOWN]}"
        if "number" not in run:
            return f"runs[{number}] has no number"
        if wrong := _wrong(run, _RUN_KINDS, f"runs[{number}]."):
            return wrong
    for key, inner in (("stages", dict), ("beside", dict), ("files", str), ("metrics", str)):
        group = document.get(key, ())
        for name, value in group.items() if isinstance(group, dict) else enumerate(group):
            if not isinstance(value, inner):
                return f"{key}[{str(name)[:MOST_SHOWN]}] is {repr(value)[:MOST_SHOWN]}"
    return ""


def _wrong(group: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]], where: str) -> str:
    for key, allowed in kinds.items():
        if key in group and (not isinstance(group[key], allowed) or isinstance(group[key], bool)):
            return f"{where}{key} is {repr(group[key])[:MOST_SHOWN]}"
    return ""


def checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damage(directory: Path, name: str, files: Mapping[str, str]) -> str:
    """What is wrong with a file of an experiment; empty where its bytes are those that were recorded, and where it is
    neither there nor recorded."""
    path, remedy = directory / name, _remedy(directory, name)
    if not path.exists():
        return f"{path}: is missing: {remedy}" if name in files else ""
    if name not in files:
        return f"{path}: {DOCUMENT} does not record it, its writing was interrupted: {remedy}"
    if checksum(path) != files[name]:
        return f"{path}: is damaged, its bytes are not those that {DOCUMENT} records: {remedy}"
    return ""


def _remedy(directory: Path, name: str) -> str:
    place, last = name.partition("/")[0], name.rpartition("/")[2]
    if place not in ("runs", "certificates") or last in INPUTS:
        return "take it from the experiment's archive, or run the scenario once more"
    stage = "execution" if place == "runs" else "configuration"
    return f"`ewan run --resume {directory} --from {stage}` measures it anew"
