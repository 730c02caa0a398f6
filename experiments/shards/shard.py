"""One shard of a study: its runs that the store does not have are executed on this machine, and kept there.

In: the study, which shard, the engine's parts. Out: entries of the store, and the shard's record in the study's
directory. A shard is an experiment for the time of its execution, in a directory for temporary files; nothing of that
stays.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ewan.experiments.engine import engine, interruption, preparation, unit
from ewan.experiments.engine.executor import ThisMachine
from ewan.experiments.engine.experiment import Job
from ewan.experiments.engine.parts import Facts, Parts
from ewan.experiments.engine.unit import Versions, now
from ewan.experiments.shards.share import Shard
from ewan.experiments.shards.study import AS_WHO_MAY, Record, RunOutcome, Study
from ewan.experiments.store import Store
from ewan.labs import rundir
from ewan.labs.context import Context
from ewan.labs.record.experiment import Entry
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.virtual import check_path


@dataclass(slots=True)
class Work:
    """A shard's runs: those that the store had, and those that were to be executed."""

    study: Study
    shard: Shard
    versions: Versions
    store: Store
    fresh: bool
    known: list[RunOutcome] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    checked: bool = False
    """All of them were made, and can be executed."""

    def jobs(self) -> Iterator[Job]:
        """The runs to execute, each made and checked when it is asked for."""
        for job in self.study.jobs(self.shard.numbers(self.study.total)):
            named = unit.key_of(job.contents, self.versions)
            if not self.fresh and self.store.has(named):
                self.known.append(RunOutcome(job.entry.number, named, "complete", None, True))
            else:
                self.entries.append(job.entry)
                yield job

    def done(self) -> list[RunOutcome]:
        """The outcome of each run so far."""
        executed = [
            RunOutcome(entry.number, entry.key, entry.status, entry.error, self._kept(entry)) for entry in self.entries
        ]
        return sorted([*self.known, *executed], key=lambda each: each.number)

    def _kept(self, entry: Entry) -> bool:
        return entry.status == "complete" and entry.key is not None and self.store.has(entry.key)


def run(
    context: Context, study: Study, shard: Shard, facts: Facts, parts: Parts, *, unverified: bool, fresh: bool
) -> tuple[int, list[RunOutcome]]:
    """Execute the missing runs of a shard; return the exit status, and the outcome of each of its runs.

    LabError where results cannot be kept: without them the work of a shard would be lost."""
    if context.store is None:
        raise LabError("a shard leaves its results in the store: leave EWAN_STORE=off out, or name a directory")
    store = Store(context.store, context.environment)
    _writable(store)
    with rundir.kept(study.directory, AS_WHO_MAY):
        study.begin(facts.files)
    machine = ThisMachine(context)
    versions, _ = machine.ready()
    work = Work(study, shard, versions, store, fresh)
    begun = now()
    above = Path(tempfile.mkdtemp(prefix="ewan-shard-"))
    place = above / study.directory.name
    status = 1
    try:
        check_path(place / "runs/000000000")

        def execute() -> int:
            place.mkdir()
            prepared = preparation.prepare(work.jobs(), facts, virtual=True, directory=place, unverified=unverified)
            work.checked = True
            if work.known:
                total = len(work.known) + len(work.entries)
                context.reporter.tell(f"{len(work.known)} of {total} runs are in the store ({store.root})")
            if not work.entries:
                return 0
            return engine.run(prepared, parts=parts, context=context, fresh=fresh, executor=machine, last="execution")

        again = f"the same command goes on with what is missing of shard {shard}"
        status = interruption.status_of(context, place, execute, str(store.root), again)
    finally:
        shutil.rmtree(above, ignore_errors=True)
        if work.checked:
            kept = Record(
                shard=str(shard),
                kernel=versions.kernel,
                binary=versions.binary,
                unverified=unverified,
                machine=os.uname().nodename,
                started=begun,
                ended=now(),
                runs=tuple(work.done()),
            )
            with rundir.kept(study.directory, AS_WHO_MAY):
                study.keep(kept)
            rundir.give_back(study.directory)
    done = work.done()
    lost = [each for each in done if each.status == "complete" and not each.stored]
    if lost:
        raise LabError(
            f"{len(lost)} of {len(done)} runs were executed and could not be put into {store.root}: make room there, "
            "or name another store by EWAN_STORE, and run the shard again"
        )
    return status, done


def _writable(store: Store) -> None:
    """LabError where nothing can be put into the store."""
    try:
        store.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=store.root):
            pass
    except OSError as error:
        raise LabError(
            f"{store.root}: {error.strerror}: a shard leaves its results in the store: name one by EWAN_STORE where "
            "you may write"
        ) from None
