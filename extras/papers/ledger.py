"""What of the targets is done: results/papers/NAME.json, from which an interrupted call goes on.

In: experiments by their keys, outcomes of targets. Out: the file, replaced in one step whenever something ended. While
it says `running`, the next call of the same takes what is complete in it and goes on with what is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from ewan.labs import rundir
from ewan.labs.base import documents
from ewan.labs.base.writing import write

FORMAT = "ewan-papers/1"
FOLDER = rundir.RESULTS / "papers"


@dataclass(slots=True)
class Done:
    """An experiment: its directory, `measured` for what has none, and whether all of it was run. `error`: why not."""

    directory: str | None
    status: Literal["running", "complete", "incomplete"] = "running"
    seconds: float = 0.0
    summary: dict[str, Any] | None = None
    """Of a measurement without a directory."""
    error: str = ""


@dataclass(slots=True)
class Ledger:
    """The file of one call: `experiments` by key."""

    path: Path
    scale: str
    commit: str | None
    status: Literal["running", "complete"] = "running"
    experiments: dict[str, Done] = field(default_factory=dict)
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    def save(self) -> None:
        """Replaces the file; LabError where it cannot be written."""
        data = {"format": FORMAT, **asdict(self), "path": None}
        del data["path"]
        with rundir.kept(FOLDER):
            FOLDER.mkdir(parents=True, exist_ok=True)
            write(self.path, orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        rundir.give_back(FOLDER)

    def end(self, outcomes: Sequence[dict[str, Any]]) -> None:
        """All that was asked for was tried. `outcomes`: a dict of each target, as analysis/papers.py reads it."""
        self.outcomes = list(outcomes)
        self.status = "complete"
        self.save()


def opened(name: str, scale: str, commit: str | None, again: bool) -> Ledger:
    """The ledger of an interrupted call of the same, where this version of the project began it; else a new one."""
    path = FOLDER / f"{name}-{scale}.json"
    fresh = Ledger(path, scale, commit)
    if again or not path.exists():
        return fresh
    try:
        data = documents.read_object(path)
        if (data["format"], data["status"], data["commit"]) != (FORMAT, "running", commit):
            return fresh
        done = {key: Done(**each) for key, each in data["experiments"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return fresh
    return Ledger(path, scale, commit, "running", done)
