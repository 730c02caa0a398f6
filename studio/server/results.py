"""Experiments of the directory where Studio was started: which there are, and their reports.

In: names. Out: a row of each, as `ewan runs` has them; files of reports. A report is a page of its own, which may
not run scripts here or ask this server for anything.
"""

from __future__ import annotations

import re
from pathlib import Path

from starlette.responses import FileResponse, Response

from analysis import listing
from labs.record.experiment import DOCUMENT
from labs.rundir import RESULTS
from studio.server.files import RefusedError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
SHOWN = re.compile(r"report\.html|figures/[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.(svg|csv|pdf|png)")
"""Of an experiment's files, those that a report names."""
MOST = 500
POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src data:",
        "frame-ancestors 'none'",
        "sandbox allow-downloads",
    ]
)


class Experiments:
    """Those below one directory."""

    def __init__(self, here: Path) -> None:
        self._place = here / RESULTS

    def every(self) -> list[listing.Row]:
        """The newest first; those that cannot be read say so."""
        places = sorted((path for path in self._place.glob("*") if (path / DOCUMENT).is_file()), reverse=True)
        return [listing.describe(path) for path in places[:MOST] if NAME.fullmatch(path.name)]

    def file(self, name: str, path: str) -> Response:
        """A file of a report; RefusedError for what is none, or is not there."""
        place = self._place / name
        if not NAME.fullmatch(name) or not SHOWN.fullmatch(path):
            raise RefusedError(f"{name}: there is no such report")
        file = place / path
        if not file.is_file() or file.resolve() != self._place.resolve() / name / path:
            raise RefusedError(f"{name}: has no {path}: ewan report {name} makes it")
        return FileResponse(file, headers={"content-security-policy": POLICY})
