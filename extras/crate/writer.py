"""A crate, written in one step: a directory or a .zip that is whole, or nothing.

In: an experiment, whose files are copied; who is credited, under which licence. Out: the crate's path. The copy is made
beside it under a hidden name, and takes its place when it is complete.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ewan.experiments.engine import archive, sums
from ewan.experiments.engine.experiment import Experiment
from ewan.extras.crate import citation, files, metadata, sbom, sources, texts
from ewan.extras.crate.citation import Author, Licence
from ewan.extras.crate.metadata import CrateFile
from ewan.labs import rundir
from ewan.labs.base import codec, documents, writing
from ewan.labs.base.codec import Struct
from ewan.labs.base.reading import open_regular
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record.experiment import DOCUMENT, checksum
from ewan.labs.runtime.base import LabError

ZIP = ".zip"
_STORED = (".parquet",)
"""Compressed already."""
_PIECE = 1 << 20
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a .zip can tell: files have none, so that equal contents give equal bytes."""
_FILE_MODE, _PROGRAM_MODE = 0o644, 0o755


@dataclass(frozen=True, slots=True)
class Terms:
    """`repository`: where others get ewan's sources, None: where this clone came from."""

    authors: Sequence[Author]
    licence: Licence
    repository: str | None


def write(
    experiment: Experiment, output: Path, terms: Terms, moment: datetime, progress: Callable[[int, int], None]
) -> int:
    """Make the crate at `output`, which must not exist, and return the number of its files.

    `moment`: now, in UTC; `progress` is called with the number of copied files and of all. LabError where the
    experiment cannot be published, or where the crate cannot be written; no file is left then."""
    if not (experiment.directory / metadata.SCENARIO).is_file():
        raise LabError(
            f"{experiment.directory}: has no {metadata.SCENARIO}: run the scenario once more with `ewan run`"
        )
    with rundir.kept(output.parent, "write -o with a place where you may write"):
        try:
            work = Path(tempfile.mkdtemp(prefix=f".{output.name}-", dir=output.parent))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(output)) from None
        try:
            with writing.noticed(work):
                stage = work / "crate"
                stage.mkdir()
                stored = _copied(experiment, stage, progress)
                number = _described(experiment, stage, stored, terms, moment)
                whole = stage
                if output.suffix == ZIP:
                    whole = work / "crate.zip"
                    _zipped(stage, whole)
                whole.rename(output)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return number


def _copied(experiment: Experiment, stage: Path, progress: Callable[[int, int], None]) -> dict[str, CrateFile]:
    """Copy the files that belong into an archive of the experiment; return the size and SHA-256 of each."""
    every = list(archive.contents(experiment.directory))
    result = {}
    for number, path in enumerate(every, 1):
        name = path.relative_to(experiment.directory).as_posix()
        if name in files.OWN:  # of the crate that this experiment was unpacked from
            continue
        result[name] = _copy(path, stage / name)
        if experiment.files.get(name, result[name].sha256) != result[name].sha256:
            raise LabError(f"{path}: changed while it was read: run ewan exp archive once more")
        progress(number, len(every))
    return result


def _copy(source: Path, target: Path) -> CrateFile:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with open_regular(source) as content, target.open("wb") as file:
        while piece := content.read(_PIECE):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
    return CrateFile(size, digest.hexdigest())


def _described(
    experiment: Experiment, stage: Path, stored: dict[str, CrateFile], terms: Terms, moment: datetime
) -> int:
    """Writes the crate's own files beside the experiment's; how many files there are."""
    document = experiment.document
    made = sources.of(document.commit, terms.repository)
    title, now = texts.title(document), moment.astimezone(UTC)
    record = stored[DOCUMENT].sha256
    assert record is not None, "only the file of checksums has none"
    created = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    bill = sbom.bill(document, made, terms.authors, created, record)
    cited = citation.cff(title, texts.description(document), now.date().isoformat(), terms.authors, terms.licence)
    own = {
        files.README: texts.readme(document, list(stored), made, terms.authors, terms.licence).encode(),
        files.REPRODUCE: texts.reproduce(document, made).encode(),
        citation.FILE: cited.encode(),
        sbom.FILE: codec.ordered(bill),
    }
    for name, content in own.items():
        (stage / name).write_bytes(content)
        stored[name] = CrateFile(len(content), hashlib.sha256(content).hexdigest())
    (stage / files.REPRODUCE).chmod(_PROGRAM_MODE)
    stored[sums.SUMS] = CrateFile(sums.size([*stored, files.METADATA]), None)
    told = metadata.CrateFacts(
        title=title,
        description=texts.description(document),
        published=created,
        authors=terms.authors,
        licence=terms.licence,
        sources=made,
        walls=walls(experiment),
    )
    # Its files are where the description is written, so that the library copies none.
    (stage / sums.SUMS).touch()
    metadata.crate(document, stored, told, stage).write(stage)
    checked = {name: each.sha256 for name, each in stored.items() if each.sha256 is not None}
    checked[files.METADATA] = checksum(stage / files.METADATA)
    (stage / sums.SUMS).write_text(sums.text(checked))
    return len(checked) + 1


class _WallTime(Struct, forbid_unknown_fields=False):
    """wall.json."""

    started: str
    wall_ns: int


def walls(experiment: Experiment) -> dict[str, tuple[str, str]]:
    """The start and the end, ISO 8601, of each run that was executed, by its directory."""
    result = {}
    for entry in experiment.runs:
        path = experiment.place(entry) / "wall.json"
        if entry.status == "waiting" or not path.exists():
            continue
        try:
            wall = documents.read(_WallTime, path)
            started, over = wall.started, metadata.ended(wall.started, wall.wall_ns / NS_PER_SECOND)
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            raise LabError(f"{path}: is damaged ({error}): take it from the experiment's archive") from None
        assert over is not None, "it is known how long the run took"
        result[entry.directory] = started, over
    return result


def _zipped(stage: Path, target: Path) -> None:
    """All files of the crate in a .zip, the description at its top level, as RO-Crate has it."""
    with zipfile.ZipFile(target, "w") as packed:
        for path in archive.contents(stage):
            name = path.relative_to(stage).as_posix()
            member = zipfile.ZipInfo(name, _FIRST_DAY)
            member.compress_type = zipfile.ZIP_STORED if path.suffix in _STORED else zipfile.ZIP_DEFLATED
            mode = _PROGRAM_MODE if name == files.REPRODUCE else _FILE_MODE
            member.create_system, member.external_attr = 3, (0o100000 | mode) << 16  # Unix, a regular file
            member.file_size = path.stat().st_size
            with path.open("rb") as content, packed.open(member, "w") as file:
                shutil.copyfileobj(content, file, _PIECE)
