"""The changes of an experiment since its experiment.json was last replaced: one line of JSON for each change, in a file
beside it.

In: a run's entry with the checksums of its files, or the live lab that is up. Out: experiment.journal, and the document
with the changes made in it. The bytes that are written while runs end therefore grow with the number of runs; with the
whole document each time they would grow with its square. The first line names the document that the changes follow, by
the SHA-256 of its bytes: changes that follow an earlier document are already in the present one and are not made again.
A last line that is incomplete is ignored.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.documents import DocumentError, check_values
from ewan.labs.base.reading import is_locked, read_bytes
from ewan.labs.base.writing import add_line, journal
from ewan.labs.record import MachineFacts
from ewan.labs.record.experiment import (
    DOCUMENT,
    LOCK,
    MOST_BYTES,
    DeployedLab,
    Entry,
    ExperimentDocument,
    from_json,
    inside,
)

JOURNAL = "experiment.journal"
FORMAT = "ewan-journal/1"
MOST_TRIES = 100
"""Readings of a document that is replaced while it is read."""


class RunChange(Struct):
    """A run whose entry changed, or a further run. `files`: the checksums of all of its files that the experiment
    vouches for."""

    run: Entry
    files: dict[str, str]

    def __post_init__(self) -> None:
        inside(self.files)


class LabChange(Struct):
    """The live lab that is up, if there is one; who made it, and on what."""

    deployed: DeployedLab | None
    runtime: str
    host: MachineFacts


Change = RunChange | LabChange


class Journal:
    """The journal of one directory, for one writer."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / JOURNAL
        self._document: str | None = None
        self._bytes = 0

    @property
    def begun(self) -> bool:
        """Return whether the document that the changes follow is known."""
        return self._document is not None

    def begin(self, document: bytes) -> None:
        """The document was replaced by one of these bytes: the changes so far are in it."""
        self._path.unlink(missing_ok=True)
        self._document, self._bytes = hashlib.sha256(document).hexdigest(), 0

    def add(self, change: Change) -> None:
        """Writes a change at the end; after an OSError what was there before is whole, and it can be tried again."""
        assert self._document is not None, "the document was written before"
        head = {"format": FORMAT, "document": self._document}
        lines = [change] if self._bytes else [head, change]
        text = b"".join(codec.sorted_line(each) for each in lines)
        with journal(self._path) as descriptor:
            os.ftruncate(descriptor, self._bytes)
            add_line(self._path, descriptor, text)
        self._bytes += len(text)


def load(directory: Path, shown: Path | None = None) -> ExperimentDocument:
    """The document of an experiment with all changes since; OSError where it cannot be read, DocumentError where it is
    none. `shown` stands for the directory in errors. One whose engine was killed is incomplete, and not running."""
    path, place = directory / DOCUMENT, shown or directory
    for _ in range(MOST_TRIES):
        before = path.stat()
        text = read_bytes(path, MOST_BYTES)
        try:
            changes = read_bytes(directory / JOURNAL, MOST_BYTES)
        except FileNotFoundError:
            changes = b""
        after = path.stat()
        if (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns):
            break
    check_values(changes, str(place / JOURNAL))
    document = from_json(text, place)
    apply(document, _changes(changes.split(b"\n")[:-1], text, place))
    if document.status == "running" and not is_locked(directory / LOCK):
        _left(document)
    return document


def _left(document: ExperimentDocument) -> None:
    """True if its engine was killed and could not record that it is incomplete."""
    document.status = "incomplete"
    for stage in document.stages.values():
        if stage.status == "running":
            stage.status = "incomplete"


def _changes(lines: list[bytes], document: bytes, place: Path) -> Iterator[Change]:
    """Those that follow the document."""
    for number, line in enumerate(lines, 1):
        try:
            if number > 1:
                yield _change(line)
            elif orjson.loads(line) != {"format": FORMAT, "document": hashlib.sha256(document).hexdigest()}:
                return
        except ValueError:
            remedy = f"remove it, and `ewan exp resume {place}` does anew what it tells of"
            raise DocumentError(f"{place / JOURNAL}: line {number} is damaged: {remedy}") from None


def _change(line: bytes) -> Change:
    """The change of a line: of a run where it has one, else of the lab."""
    if b'"run":' in line:
        return codec.decode(RunChange, line, "")
    return codec.decode(LabChange, line, "")


def apply(document: ExperimentDocument, changes: Iterable[Change]) -> None:
    """Makes the changes in the document, in order."""
    by_number: dict[int, int] = {}
    by_run: dict[str, dict[str, None]] = {}
    for change in changes:
        if isinstance(change, LabChange):
            document.deployed, document.runtime, document.host = change.deployed, change.runtime, change.host
            continue
        if not by_number:
            by_number = {entry.number: index for index, entry in enumerate(document.runs)}
            by_run = of_runs(document.files)
        place = by_number.setdefault(change.run.number, len(document.runs))
        document.runs[place : place + 1] = [change.run]
        for name in by_run.get(change.run.directory, ()):
            del document.files[name]
        document.files.update(change.files)
        by_run[change.run.directory] = dict.fromkeys(change.files)


def of_runs(files: Iterable[str]) -> dict[str, dict[str, None]]:
    """The names of the files of each run, by its directory; of names within the experiment's directory."""
    result: dict[str, dict[str, None]] = {}
    for name in files:
        if name.startswith("runs/"):
            result.setdefault("/".join(name.split("/", 2)[:2]), {})[name] = None
    return result
