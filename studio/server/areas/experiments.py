"""Experiments: which there are, and their reports.

In: names. Out: rows as `ewan runs` has them, files of reports.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from analysis.listing import Row
from studio.server import api, files, results
from studio.server.api import Endpoint


class Experiments:
    """What came out."""

    def __init__(self, here: Path) -> None:
        self._results = results.Experiments(here)

    def experiments(self) -> list[Row]:
        """Experiments, the newest first."""
        return self._results.every()

    async def report(self, request: Request) -> Response:
        """A file of an experiment's report."""
        words = request.path_params
        try:
            return await run_in_threadpool(self._results.file, words["name"], words["path"])
        except files.RefusedError as error:
            return api.refused(HTTPStatus.NOT_FOUND, str(error))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (Endpoint("GET", "/api/experiments", "experiments, the newest first", self.experiments),)

    def routes(self) -> tuple[BaseRoute, ...]:
        """Files."""
        return (Route("/results/{name}/{path:path}", self.report),)
