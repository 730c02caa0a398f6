"""The kinds of files that `ewan results export` writes. Each is an option of the command, whose words Studio's page has
too.

In: the formats that extras add. Out: kinds by the words of their options.
"""

from __future__ import annotations

from dataclasses import dataclass

from ewan.extra import installed

FILE = "FILE"


@dataclass(frozen=True, slots=True)
class ExportKind:
    """An option of `ewan results export`. `into`: `DIR` for several files, or `FILE.csv`."""

    kind: str
    what: str
    into: str

    @property
    def ending(self) -> str:
        """The ending of the file; it is empty where there are several files."""
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
"""The kinds that are made of results."""


def formats() -> dict[str, ExportKind]:
    """The kinds that extras add: the experiment itself, for other programs."""
    return {kind: ExportKind(kind, each.help, f"{FILE}{each.ending}") for kind, each in installed().exports.items()}
