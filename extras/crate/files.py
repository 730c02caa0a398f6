"""The kind of each file of a crate: its role, its media type, and one line for a reader who does not know the project.

In: a file's name in the crate. Out: a `FileKind`. An experiment's files stand where `ewan` wrote them, so that an
unpacked crate is the experiment; the crate's own files stand beside them."""

from __future__ import annotations

import mimetypes
from fnmatch import fnmatchcase
from typing import NamedTuple

from ewan.experiments.engine import sums
from ewan.extras.crate import citation, sbom
from ewan.labs.record.columns import COLUMNS
from ewan.labs.record.experiment import DOCUMENT
from ewan.labs.record.journal import JOURNAL

METADATA = "ro-crate-metadata.json"
README, REPRODUCE = "README.md", "reproduce.sh"
OWN = (METADATA, README, REPRODUCE, citation.FILE, sbom.FILE, sums.SUMS)
"""Files of the crate that the experiment does not have."""

_JSON, _TEXT, _PARQUET = "application/json", "text/plain", "application/vnd.apache.parquet"


class FileKind(NamedTuple):
    """`pattern`: of names in the crate, as the shell has them; `encoding`: the media type."""

    pattern: str
    encoding: str
    meaning: str


KINDS = (
    FileKind(
        "scenario.yaml", "application/yaml", "the scenario: the lab, what is sent over it and when, what is varied"
    ),
    FileKind("settings.json", _JSON, "what was asked for beside the scenario: its scale, parameters, how many seeds"),
    FileKind(DOCUMENT, _JSON, "the experiment's record: stages, runs, the machine, SHA-256 of what is read again"),
    FileKind(JOURNAL, "application/jsonl", "the outcome of runs since the record was written"),
    FileKind("summary.json", _JSON, "metrics of each run, and of each point with confidence intervals"),
    FileKind("report.html", "text/html", "the report, for a browser"),
    FileKind("comparison.json", _JSON, "this experiment, a repetition, beside its original"),
    FileKind("sources/*", "text/plain", "a file of a congestion control of the runs: of a module, or of a program"),
    FileKind("figures/*.svg", "image/svg+xml", "a figure of the report"),
    FileKind("figures/*.csv", "text/csv", "the values of a figure"),
    FileKind(
        "certificates/*.json", _JSON, "what a lab was measured to do before it was used: each value and its tolerance"
    ),
    FileKind("runs/*/plan.json", _JSON, "the lab of a run, compiled: nodes, addresses, routes, links, seeds"),
    FileKind("runs/*/program.json", _JSON, "what a run executes, each part at its time"),
    FileKind("runs/*/schedule.json", _JSON, "the flows of a run, and when each starts"),
    FileKind("runs/*/wall.json", _JSON, "what a run took of wall time, and on which machine"),
    FileKind("runs/*/commands/*/*.pcapng", "application/x-pcapng", "packets at interfaces of a node of a run"),
    FileKind("runs/*/commands/*", _TEXT, "what a command of a run printed, or left in $EWAN_OUT"),
    *(
        FileKind(f"runs/*/{name}.parquet", _PARQUET, f"table {name}: a row is {each.meaning}")
        for name, each in COLUMNS.items()
    ),
    FileKind("runs/*/own/*.parquet", _PARQUET, "what a program of a run measured: of a CSV that it left"),
    FileKind("runs/*/*.json", _JSON, "what a part of a run recorded"),
    FileKind(README, "text/markdown", "what this is, and how to repeat it"),
    FileKind(REPRODUCE, "application/x-sh", "checks the crate, repeats the experiment, says whether it is the same"),
    FileKind(citation.FILE, "application/yaml", "how to cite this (Citation File Format 1.2.0)"),
    FileKind(sbom.FILE, "application/spdx+json", "the software that was used (SPDX 2.3)"),
    FileKind(sums.SUMS, _TEXT, "SHA-256 of every other file, for sha256sum -c"),
)


def kind(name: str) -> FileKind:
    """The first kind that a name matches; for files of a run's own programs, a guess by the ending."""
    for each in KINDS:
        if fnmatchcase(name, each.pattern):
            return each
    guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return FileKind(name, guessed, "what a program of the experiment left")
