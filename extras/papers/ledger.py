"""The finished part of the targets: results/papers/NAME.json, from which an interrupted call goes on.

In: experiments by their keys, outcomes of targets. Out: the file, replaced in one step whenever something ended. While
its status is `running`, the next call of the same takes the complete experiments from it and goes on with the
others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ewan.extras.papers.verdicts import Outcome, PaperSummary
from ewan.labs import rundir
from ewan.labs.base import codec, documents
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.product import RESULTS
from ewan.labs.base.writing import write

FOLDER = RESULTS / "papers"


class LedgerExperiment(Struct, omit_defaults=False):
    """An experiment: its directory, `measured` for a measurement without one, and whether all of it was run. `error`:
    the reason why not."""

    directory: str | None
    status: Literal["running", "complete", "incomplete"] = "running"
    seconds: float = 0.0
    summary: PaperSummary | None = None
    """The summary of a measurement without a directory."""
    error: str = ""


class OutcomePage(Outcome):
    """An outcome with the further data of its page: the target's words, its picture, and by the names of its
    experiments the directory of each; None: it has none."""

    about: str
    scaled: str
    picture: Any
    experiments: Mapping[str, str | None]


class LedgerDocument(Document, tag="ewan-papers/1"):
    """The file. `experiments`: by key."""

    scale: str
    commit: str | None
    status: Literal["running", "complete"]
    experiments: dict[str, LedgerExperiment]
    outcomes: tuple[OutcomePage, ...]


@dataclass(slots=True)
class PaperLedger:
    """The file of one call: `experiments` by key."""

    path: Path
    scale: str
    commit: str | None
    status: Literal["running", "complete"] = "running"
    experiments: dict[str, LedgerExperiment] = field(default_factory=dict)
    outcomes: tuple[OutcomePage, ...] = ()

    def save(self) -> None:
        """Replaces the file; LabError where it cannot be written."""
        kept = LedgerDocument(self.scale, self.commit, self.status, self.experiments, self.outcomes)
        with rundir.kept(FOLDER):
            FOLDER.mkdir(parents=True, exist_ok=True)
            write(self.path, codec.ordered(kept))
        rundir.give_back(FOLDER)

    def end(self, outcomes: Sequence[OutcomePage]) -> None:
        """All that was asked for was tried. `outcomes`: of each target, which analysis/papers.py reads."""
        self.outcomes = tuple(outcomes)
        self.status = "complete"
        self.save()


def opened(name: str, scale: str, commit: str | None, again: bool) -> PaperLedger:
    """The ledger of an interrupted call of the same, where this version of the project began it; else a new one."""
    path = FOLDER / f"{name}-{scale}.json"
    fresh = PaperLedger(path, scale, commit)
    if again or not path.exists():
        return fresh
    try:
        kept = documents.read(LedgerDocument, path)
    except (OSError, ValueError):
        return fresh
    if (kept.status, kept.commit) != ("running", commit):
        return fresh
    return PaperLedger(path, scale, commit, "running", kept.experiments)
