"""Long work: its beginning, its progress, its end on request. Runs wait for each other; work on a lab begins at once.

In: an action with its file or lab. Out: jobs, with their output; for runs, the progress of their experiments."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from starlette.routing import BaseRoute

from ewan.analysis.experiment_progress import ExperimentProgress, of_command, progress
from ewan.extras.studio.server import files, live, results, threads
from ewan.extras.studio.server.api import Body, Endpoint, Word
from ewan.extras.studio.server.guard import Access
from ewan.extras.studio.server.jobs import PLACE, Job, Jobs
from ewan.labs import change
from ewan.labs.base.product import RESULTS
from ewan.labs.context import Context

LOOKS_S = 1.0
"""The interval in which waiting work is looked for whose turn has come and whose predecessor could not begin it."""


class Begin(Body):
    """A job: its action, with its file, lab or experiment."""

    kind: Literal["lab", "run", "verify", "down", "report"]
    name: Word
    where: files.Where = "here"
    runtime: Literal["auto", "netns", "containerlab", "virtual"] = "auto"
    scale: Word | None = None


class Later(Body):
    """A link of a lab that is up fails, or is mended, at a time, "+10s" from now."""

    lab: Word
    link: Word
    up: bool
    at: Word


class Work:
    """Jobs of one directory."""

    def __init__(self, context: Context, here: Path, access: Access) -> None:
        self._files, self._live = files.Files(here), live.Live(context)
        self._named = results.Experiments(here, context.environment)
        self._jobs = Jobs(here / PLACE, context.environment)
        self._results, self._view = here / RESULTS, access.view
        self._experiments: dict[str, Path] = {}

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Begins waiting jobs whose turn has come, while the server runs."""
        if self._view:
            yield
            return

        async def look() -> None:
            while True:
                with contextlib.suppress(OSError, ValueError):
                    await threads.run("turn", self._jobs.turn)
                await asyncio.sleep(LOOKS_S)

        looking = asyncio.create_task(look())
        try:
            yield
        finally:
            looking.cancel()

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
            return self._jobs.start(["down", body.name] if body.kind == "down" else ["lab", "verify", body.name])
        if body.kind == "report":
            return self._jobs.start(["results", "report", self._named.words(body.name)])
        path = self._files.path(body.name, body.where)
        if not path.is_file():
            raise files.RefusedError(f"{body.name}: save it first")
        ending = f".{'lab' if body.kind == 'lab' else 'scenario'}.yaml"
        if not body.name.endswith(ending):
            raise files.RefusedError(f"{body.name}: {body.kind} takes a file that ends in {ending}")
        scale = [] if body.scale is None else ["--size", body.scale]
        words = [body.kind, str(path.absolute()), "--runtime", body.runtime, *scale]
        return self._jobs.queue(words) if body.kind == "run" else self._jobs.start(words)

    def later(self, body: Later) -> Job:
        """Waits until a link is to fail, or to be mended; it ends as other jobs do."""
        plan = self._live.plan(body.lab)
        if body.link not in {link.name for link in plan.links}:
            raise files.RefusedError(f"{body.lab} has no link {body.link}")
        change.delay_until(body.at)
        word = "up" if body.up else "down"
        return self._jobs.start(["lab", "set", "--lab", plan.lab, body.link, word, f"at={body.at}"])

    def points(self, job: str) -> ExperimentProgress | None:
        """The progress of the experiment of a run, point by point; null where it has none, or none yet."""
        found = self._jobs.find(job)
        if found.words[:1] != ("run",) or found.state == "waiting":
            return None
        if job not in self._experiments:
            began = datetime.fromisoformat(found.started).timestamp()
            command = shlex.join(["ewan", *found.words])
            place = of_command(self._results, command, began, found.ended or time.time())
            if place is None:
                return None
            self._experiments[job] = place
        try:
            return progress(self._experiments[job])
        except (OSError, ValueError):  # it was moved away
            return None

    def stop(self, job: str) -> Job:
        """Asks a job to end, or takes it out of the line."""
        return self._jobs.stop(job)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint("GET", "/api/jobs", "long work, the newest first", self.jobs),
            Endpoint("POST", "/api/jobs", "begin long work", self.begin),
            Endpoint("POST", "/api/jobs/later", "fail a link at a time, or mend it", self.later),
            Endpoint("GET", "/api/jobs/{job}", "one job", self.job),
            Endpoint(
                "GET", "/api/jobs/{job}/points", "the progress of the experiment of a run, point by point", self.points
            ),
            Endpoint("POST", "/api/jobs/{job}/stop", "ask a job to end, or take it out of the queue", self.stop),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """No routes but the endpoints."""
        return ()
