"""The store as an experiment uses it: runs and certificates that are there are taken, new ones are kept.

In: an experiment of the virtual clock, the store, the versions that execute runs. Out: results in the runs'
directories, for which the experiment's document vouches; new entries in the store. An error of the store is reported
once and hinders nothing: a damaged entry is measured again, and results that the store cannot keep stay in the
experiment."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from ewan.experiments.engine import unit
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.unit import RunEnd, Versions
from ewan.experiments.store import DamagedError, EntryOrigin, Manifest, Store, key
from ewan.experiments.store.entry import unpack
from ewan.labs.base.reporter import Tell
from ewan.labs.record import CERTIFICATE_FILE
from ewan.labs.record.experiment import Entry

Result = TypeVar("Result")


class ResultKeeper:
    """Takes runs from the store and keeps new ones there, in several threads. `store` None: there is none; `fresh`:
    nothing is taken from it; `versions`: those that execute runs."""

    def __init__(
        self,
        experiment: Experiment,
        store: Store | None,
        versions: Versions,
        tell: Tell,
        *,
        fresh: bool = False,
    ) -> None:
        self._experiment, self._store, self._versions, self._tell = experiment, store, versions, tell
        self._fresh = fresh
        self._said = threading.Lock()
        self._full = False
        self._met = 0

    @property
    def fresh(self) -> bool:
        """Return whether nothing is taken from the store."""
        return self._fresh

    @property
    def place(self) -> Path | None:
        """The path of the store; None: there is no store."""
        return None if self._store is None else self._store.root

    def name(self, entries: Iterable[Entry]) -> None:
        """Gives runs their keys."""
        if self._store is None:
            return
        for entry in entries:
            entry.key = unit.key_of(self._experiment.contents(entry), self._versions)

    def known(self, entries: Iterable[Entry]) -> list[Entry]:
        """The runs that are in the store, and may be taken from it."""
        store = self._store
        if store is None or self._fresh:
            return []
        return [entry for entry in entries if entry.key is not None and store.has(entry.key)]

    def meet(self, entry: Entry) -> bool:
        """Names a run that has just been written, completes it from the store, and returns whether the store has it.

        OSError where it cannot be written into the experiment."""
        self.name([entry])
        if not self.known([entry]) or self.take(entry) is None:
            return False
        with self._said:
            self._met += 1
        return True

    def met(self) -> int:
        """The number of runs that the store completed since the last call."""
        with self._said:
            number, self._met = self._met, 0
        return number

    def take(self, entry: Entry) -> Manifest | None:
        """Completes a run from the store; None where the store has no whole entry of it.

        OSError where it cannot be written into the experiment."""
        if self._store is None or entry.key is None:
            return None
        self._experiment.forget(entry)
        place = self._experiment.place(entry)
        told = self._whole(entry.key, lambda store: store.take(entry.key or "", place), f"run {entry.number}")
        if told is None:
            self._experiment.forget(entry)
            return None
        self._experiment.record_known(entry, {name: file.sha256 for name, file in told.files.items()})
        entry.status, entry.taken = "complete", True
        return told

    def receive(self, entry: Entry, named: str, content: bytes | None) -> bool:
        """Completes a run by the store's entry of its key, which a worker sent, or put there itself; whether it is
        whole.

        OSError where it cannot be written into the experiment.
        """
        if content is None:
            taken = self.take(entry) is not None
            entry.taken = None
            return taken
        told = unpack(io.BytesIO(content), named, self._experiment.place(entry))
        self._experiment.record_known(entry, {name: file.sha256 for name, file in told.files.items()})
        if self._store is not None:
            self._write(lambda store: store.put_packed(named, content))
        return True

    def keep(self, entry: Entry, ended: RunEnd) -> None:
        """Puts a complete run into the store; the document vouches for its results."""
        experiment = self._experiment
        if self._store is None or entry.key is None or not ended.complete:
            experiment.record_results(entry)
            return
        files = dict(unit.results(experiment.place(entry)))
        origin = unit.origin(ended, experiment.name, experiment.directory.name, entry.name)
        told = self._put(entry.key, origin, files)
        if told is None:
            experiment.record_results(entry)
        else:
            experiment.record_known(entry, {name: file.sha256 for name, file in told.files.items()})

    def certificate(self, entry: Entry) -> bytes | None:
        """The store's certificate of the lab of a run; None where it has none."""
        if self._store is None or self._fresh:
            return None
        named = self._certificate(entry)
        found = self._whole(named, lambda store: store.read(named), f"the certificate of run {entry.number}")
        return None if found is None else found[1].get(CERTIFICATE_FILE)

    def keep_certificate(self, entry: Entry, lab: str, path: Path) -> None:
        """The certificate of a run's lab goes into the store."""
        origin = EntryOrigin(
            "certificate", self._experiment.name, self._experiment.directory.name, lab, unit.now(), 0, 0
        )
        if self._store is not None:
            self._put(self._certificate(entry), origin, {CERTIFICATE_FILE: path})

    def _certificate(self, entry: Entry) -> str:
        made_with = {"kernel": self._versions.kernel, "binary": self._versions.binary}
        return key.of_certificate(family=entry.family, judge=key.certificates_digest(), **made_with)

    def _whole(self, named: str, read: Callable[[Store], Result | None], what: str) -> Result | None:
        """The content of an entry; None, with a warning, where the entry is damaged."""
        assert self._store is not None
        try:
            return read(self._store)
        except DamagedError as error:
            aside = self._store.set_aside(named)
            moved = f"moved to {aside}" if aside else "left there"
            self._tell(f"warning: {self._store.path(named)}: {error}: {moved}; {what} is to be measured again")
            return None

    def _put(self, named: str, origin: EntryOrigin, files: dict[str, Path]) -> Manifest | None:
        """Keeps files; None where the store takes none."""
        return self._write(lambda store: store.put(named, origin, files))

    def _write(self, write: Callable[[Store], Result]) -> Result | None:
        """Writes into the store; None where that fails, which is reported once."""
        assert self._store is not None
        if self._full:
            return None
        try:
            return write(self._store)
        except OSError as error:
            with self._said:
                if not self._full:
                    self._tell(
                        f"warning: {self._store.root}: {error.strerror}: nothing more is put into the store; "
                        "results stay in the experiment"
                    )
                self._full = True
            return None
