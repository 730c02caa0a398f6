"""Verifications: the measured behaviour of a lab, also while it is measured.

In: names of labs. Out: the newest certificate of each, its rows as `ewan lab` prints them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from starlette.routing import BaseRoute

from ewan.calibration import kept, report
from ewan.extras.studio.server.api import Endpoint
from ewan.labs.base.product import RESULTS
from ewan.labs.record import SO_FAR_FILE


@dataclass(frozen=True, slots=True)
class Verification:
    """`whole`: all rows are there; else `words` and `advice` are empty. Cells of `rows` are in the order of `columns`,
    the last one is the number of a note, from 1, or empty."""

    plan_sha256: str
    whole: bool
    passed: bool
    clock: Literal["live", "virtual"]
    time: str
    directory: str
    words: str
    advice: list[str]
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]


class Verifications:
    """The verifications in the results of one directory; one that has not changed is not read again."""

    def __init__(self, here: Path) -> None:
        self._results = here / RESULTS
        self._known: dict[str, tuple[object, Verification]] = {}

    def newest(self, lab: str) -> Verification | None:
        """The last verification of a lab; null where it was not verified."""
        path = kept.newest(lab, self._results)
        if path is None:
            return None
        try:
            state = (path, path.stat().st_mtime_ns)
            known = self._known.get(lab)
            if known is None or known[0] != state:
                known = self._known[lab] = (state, _read(path))
        except (OSError, ValueError):  # it became the whole one meanwhile, or is of another version
            return None
        return known[1]

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint(
                "GET",
                "/api/labs/{lab}/verification",
                "the last verification of a lab, also while it goes on",
                self.newest,
            ),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """No routes but the endpoints."""
        return ()


def _read(path: Path) -> Verification:
    certificate = report.read(path)
    whole = path.name != SO_FAR_FILE
    rows, notes = report.sheet(certificate)
    return Verification(
        certificate.plan_sha256,
        whole,
        certificate.passed,
        certificate.clock,
        certificate.time,
        str(Path(RESULTS.name, path.parent.name)),
        report.summary(certificate) if whole else "",
        report.advice(certificate) if whole else [],
        list(report.COLUMNS),
        rows,
        notes,
    )
