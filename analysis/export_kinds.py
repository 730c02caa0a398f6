"""What `ewan export` can write: an option each, of which the command and Studio's page have their words.

In: the formats that extras add. Out: kinds by the words of their options.
"""

from __future__ import annotations

from dataclasses import dataclass

from ewan.extra import installed

FILE = "FILE"


@dataclass(frozen=True, slots=True)
class ExportKind:
    """An option of `ewan export`. `into`: `DIR` for several files, or `FILE.csv`."""

    kind: str
    what: str
    into: str

    @property
    def ending(self) -> str:
        """Of the one file; empty where there are several."""
        return self.into.removeprefix(FILE) if self.into.startswith(FILE) else ""


RESULTS = {
    each.kind: each
    for each in (
        ExportKind("latex", "tables for LaTeX: booktabs, siunitx", "DIR"),
        ExportKind("csv", "points.csv and runs.csv, units in the heads", "DIR"),
        ExportKind("parquet", "each table, of all runs together", "DIR"),
        ExportKind("flent", "a file for flent for each run", "DIR"),
        ExportKind("reference", "a small table of the scenario's metrics, with the archive's SHA-256", f"{FILE}.csv"),
    )
}
"""Kinds that are made of results."""


def formats() -> dict[str, ExportKind]:
    """Kinds that are the experiment itself for other programs, which extras add."""
    return {kind: ExportKind(kind, each.help, f"{FILE}{each.ending}") for kind, each in installed().exports.items()}
