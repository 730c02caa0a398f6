"""Long work: what is begun, how far it is, asked to end.

In: what is done with which file or lab. Out: jobs, with what they said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from starlette.routing import BaseRoute

from labs.context import Context
from studio.server import files, live, results
from studio.server.api import Body, Endpoint
from studio.server.jobs import PLACE, Job, Jobs


class Begin(Body):
    """A job: what is done with which file, lab or experiment."""

    kind: Literal["lab", "run", "verify", "down", "report"]
    name: str
    where: files.Where = "here"
    runtime: Literal["auto", "netns", "containerlab", "virtual"] = "auto"
    scale: str | None = None


class Work:
    """Jobs of one directory."""

    def __init__(self, context: Context, here: Path) -> None:
        self._files, self._live = files.Files(here), live.Live(context)
        self._results = results.Experiments(here, context.environment)
        self._jobs = Jobs(here / PLACE, context.environment)

    def jobs(self) -> list[Job]:
        """Long work, the newest first."""
        return self._jobs.every()

    def job(self, job: str) -> Job:
        """One job."""
        return self._jobs.find(job)

    def begin(self, body: Begin) -> Job:
        """Begins long work."""
        if body.kind in ("verify", "down"):
            self._live.plan(body.name)
            return self._jobs.start([body.kind, body.name])
        if body.kind == "report":
            return self._jobs.start(["report", self._results.words(body.name)])
        path = self._files.path(body.name, body.where)
        if not path.is_file():
            raise files.RefusedError(f"{body.name}: save it first")
        ending = f".{'lab' if body.kind == 'lab' else 'scenario'}.yaml"
        if not body.name.endswith(ending):
            raise files.RefusedError(f"{body.name}: {body.kind} takes a file that ends in {ending}")
        scale = [] if body.scale is None else ["--scale", body.scale]
        return self._jobs.start([body.kind, str(path.absolute()), "--runtime", body.runtime, *scale])

    def stop(self, job: str) -> Job:
        """Asks a job to end."""
        return self._jobs.stop(job)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint("GET", "/api/jobs", "long work, the newest first", self.jobs),
            Endpoint("POST", "/api/jobs", "begin long work", self.begin),
            Endpoint("GET", "/api/jobs/{job}", "one job", self.job),
            Endpoint("POST", "/api/jobs/{job}/stop", "ask a job to end", self.stop),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """None but the endpoints."""
        return ()
