"""Verdicts: whether a text runs live on this host, and its cost in the virtual clock.

In: texts. Out: the verdicts of `ewan measure envelope FILE`."""

from __future__ import annotations

import threading
from pathlib import Path

from starlette.routing import BaseRoute

from ewan.experiments import feasibility
from ewan.extras.studio.server import files
from ewan.extras.studio.server.api import Body, Endpoint, Word
from ewan.generator import scenario as scenarios
from ewan.labs.base.product import RESULTS
from ewan.labs.context import Context


class Judge(Body):
    """A description or a scenario, by the end of its name."""

    name: Word
    where: files.Where = "here"
    text: str
    scale: Word | None = None


class Verdicts:
    """Feasibility before anything is made. A verdict takes a second where there are many points, so there is one at a
    time: the page asks when the user has not typed for a while."""

    def __init__(self, context: Context, here: Path) -> None:
        self._files, self._results = files.Files(here), here / RESULTS
        self._known = feasibility.Verdicts(context)
        self._one = threading.Lock()

    def judge(self, body: Judge) -> feasibility.Verdict:
        """The verdict on a text, for both clocks."""
        path = self._files.path(body.name, body.where)
        with self._one:
            if body.name.endswith(".lab.yaml"):
                return self._known.of_lab(body.text, path)
            place = self._results if self._results.is_dir() else self._results.parent
            return self._known.of_scenario(scenarios.parse(body.text, path), place, body.scale)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint("POST", "/api/verdict", "the feasibility of a text: live here, and its virtual cost", self.judge),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """No routes but the endpoints."""
        return ()
