"""Finds kept certificates: those of a file, a run, an experiment, a lab, or the last one.

In: a word of a person, and the directory of results. Out: paths.
"""

from __future__ import annotations

from pathlib import Path

from ewan.labs import rundir
from ewan.labs.base.documents import DocumentError
from ewan.labs.record import CERTIFICATE_FILE, CERTIFICATES_FOLDER, SO_FAR_FILE, journal
from ewan.labs.record.experiment import DOCUMENT


def find(where: str | None, results: Path) -> list[Path]:
    """Certificates of what `where` names (None: of what was measured last), of an experiment one for each lab.

    LookupError, one line, where there are none.
    """
    if where is not None and (path := Path(where)).exists():
        if found := [path] if path.is_file() else _of_directory(path):
            return found
        lacks = f"has no {CERTIFICATE_FILE}, and no {CERTIFICATES_FOLDER}"
        raise LookupError(f"{path}: {lacks}: write the directory of a verification or of a run")
    for directory in _newest_first(results):
        if where in (None, directory.name, rundir.lab_of(directory)) and (found := _of_directory(directory)):
            return found
    if where is None:
        raise LookupError(f"no certificate in {results}: ewan lab and ewan lab verify leave one, and so does ewan run")
    raise LookupError(f"{where}: neither a file or directory, nor a lab with a certificate in {results}")


def newest(lab: str, results: Path) -> Path | None:
    """The last certificate of a verification of a lab, or the rows so far of one that has not ended."""
    for directory in _newest_first(results):
        if rundir.lab_of(directory) == lab and not directory.is_symlink():
            for name in (CERTIFICATE_FILE, SO_FAR_FILE):
                if (directory / name).is_file():
                    return directory / name
    return None


def _newest_first(results: Path) -> list[Path]:
    """The entries of a directory of results in the order of their names, newest first. No entry is opened: there may be
    thousands, and few are needed."""
    try:
        return sorted(results.iterdir(), key=lambda path: path.name, reverse=True)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _of_directory(directory: Path) -> list[Path]:
    if (directory / CERTIFICATE_FILE).is_file():
        return [directory / CERTIFICATE_FILE]
    if found := sorted((directory / CERTIFICATES_FOLDER).glob("*.json")):
        return found
    return _of_run(directory.absolute())


def _of_run(directory: Path) -> list[Path]:
    """A run shares its certificate with others of the experiment; the experiment's document says which one."""
    experiment = directory.parents[1] if len(directory.parents) > 1 else directory
    if not (experiment / DOCUMENT).is_file():
        return []
    try:
        runs = journal.load(experiment).runs
    except DocumentError as error:
        raise LookupError(str(error)) from None
    own = [run.certificate for run in runs if experiment / run.directory == directory and run.certificate]
    return [experiment / name for name in own]
