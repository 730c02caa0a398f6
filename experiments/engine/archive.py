"""The last stage: files that are no results are removed, and one file holds all that is needed to repeat the
experiment; and stored experiments, opened again: a directory, an archive (.tar.zst), or a crate (a directory or .zip).

In: an experiment's directory. Out: <scenario>.tar.zst in it; the `Experiment` of either. Equal contents give equal
bytes: names are sorted, and owners and times are not kept. Unpacking, also of a crate's .zip, takes plain files and
directories below the place it is given, nothing else, and no more than a limit: archives come from others."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import zstandard

from ewan.experiments.engine import sums
from ewan.experiments.engine.experiment import Experiment
from ewan.generator.tars import Member
from ewan.labs.base.reading import open_regular
from ewan.labs.base.writing import anew
from ewan.labs.record.disturbances import TABLES as DISTURBANCES
from ewan.labs.record.experiment import DOCUMENT, hidden
from ewan.labs.runtime.base import LabError

ENDING = ".tar.zst"
LEVEL = 10
# What Parquet holds as well, and what only the making of a run needed.
CLEANED = (
    "runs/*/traffic/*.csv",
    "runs/*/links.csv",
    "runs/*/device.csv",
    "runs/*/classes.csv",
    "runs/*/drops.csv",
    *(f"runs/*/{table}.csv" for table in DISTURBANCES),
    "runs/*/progress",
    "runs/.*.root",
    "runs/*/uml",
)
_CONSOLE = "runs/*/console.log"
_FILE_MODE = 0o644
MOST_UNPACKED = 4 << 30
MOST_MEMBERS = 2_000_000
"""Files of an archive: those of 100,000 runs are fewer."""
FEW_MEMBERS, MEMBER_BYTES = 10_000, 64
"""An archive has no more files than the first, and one for so many of its own bytes: those of runs take more."""
SMALL_BYTES, MOST_RATIO = 64 << 20, 1000
"""Unpacked it has no more bytes than the first, and so many times its own: JSON of runs compresses less."""
MOST_DIRECTORY = 16 << 20
"""Bytes of the list of a .zip's members, which zipfile reads into memory whole; those of 10,000 runs take less."""
_ZIP_BEGINS = b"PK\x03\x04"


class _BoundedStream(io.RawIOBase):
    """A stream of at most `most` bytes; LabError beyond, which names a way for those that really are that large.

    `used`: of the bytes, by streams before it.
    """

    def __init__(self, stream: IO[bytes], most: int, archive: Path, used: int = 0) -> None:
        self._stream, self._most, self._archive, self.used = stream, most, archive, used

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self.used += len(content)
        if self.used > self._most:
            raise _too_large(self._archive, self._most)
        return content


def _too_large(archive: Path, most: int) -> LabError:
    return LabError(
        f"{archive}: is larger than {most >> 20} MiB unpacked: if it is an archive of an experiment, unpack it where "
        "there is room (tar --zstd -xf, unzip), and name the directory"
    )


class _BoundedZip:
    """A file that zipfile reads: refuses a list of members that would fill the memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > MOST_DIRECTORY:
            raise zipfile.BadZipFile(f"its list of members has {size} bytes")
        return self._file.read(size)


def clean(directory: Path) -> None:
    """Removes the sources of existing tables, and empty consoles."""
    for pattern in CLEANED:
        for path in directory.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix != ".csv" or any(directory.glob(f"{_run_of(path, directory)}/*.parquet")):
                path.unlink()
    for path in directory.glob(_CONSOLE):
        if path.stat().st_size == 0:
            path.unlink()


def _run_of(path: Path, directory: Path) -> str:
    return "/".join(path.relative_to(directory).parts[:2])


def contents(directory: Path) -> Iterator[Path]:
    """All files that belong into the archive, sorted."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory)
        is_archive = len(name.parts) == 1 and path.name.endswith(ENDING)
        if path.is_file() and not path.is_symlink() and not hidden(name) and not is_archive:
            yield path


def pack(directory: Path, name: str) -> Path:
    """The archive's path; one that was there is replaced in one step."""
    archive, new = directory / f"{name}{ENDING}", directory / f".{name}{ENDING}"
    try:
        with (
            anew(new) as file,
            zstandard.ZstdCompressor(level=LEVEL).stream_writer(file) as squeezed,
            tarfile.open(fileobj=squeezed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for path in contents(directory):
                member = tarfile.TarInfo(f"{name}/{path.relative_to(directory).as_posix()}")
                with open_regular(path) as source:
                    member.size, member.mode = os.fstat(source.fileno()).st_size, _FILE_MODE
                    tar.addfile(member, source)
        new.replace(archive)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return archive


def unpack(archive: Path, place: Path) -> Path:
    """The directory of the experiment in an archive, unpacked below `place`; LabError for another file."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        most = min(MOST_UNPACKED, shutil.disk_usage(place).free // 2)
        with open_regular(archive) as file:
            begins, size = file.read(len(_ZIP_BEGINS)), os.fstat(file.fileno()).st_size
            bound = min(most, SMALL_BYTES + MOST_RATIO * size)
            limits = _UnpackLimits(archive, place, bound, FEW_MEMBERS + size // MEMBER_BYTES)
            each = _of_zip if begins == _ZIP_BEGINS else _of_tar
            for write in (False, True):  # all of it is looked at before the first file is written
                file.seek(0)
                for target, source in each(file, limits):
                    if write:
                        _put(source, target)
    except (zstandard.ZstdError, tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _no_archive(archive, error) from None
    except (ValueError, OverflowError, RecursionError, NotImplementedError, RuntimeError) as error:
        # For numbers and names that no archive has, and for members that are encrypted or compressed in other ways.
        raise _no_archive(archive, error) from None
    except OSError as error:
        raise LabError(f"{error.filename or archive}: {error.strerror}") from None
    result = [path for path in (place / DOCUMENT, *place.glob(f"*/{DOCUMENT}")) if path.exists()]
    if len(result) != 1:
        raise LabError(f"{archive}: holds no experiment ({DOCUMENT} is not in it)")
    return result[0].parent


def _no_archive(archive: Path, error: Exception) -> LabError:
    return LabError(f"{archive}: is no archive of an experiment, or not whole ({error})")


@dataclass(frozen=True, slots=True)
class _UnpackLimits:
    """Limits of an archive that is unpacked into `place`: bytes in all, and members."""

    archive: Path
    place: Path
    most_bytes: int
    most_members: int

    def check(self, number: int, known_bytes: int = 0) -> None:
        """LabError for a member, counted from 0, that is one too many, or by whose end there are too many bytes."""
        if number >= min(self.most_members, MOST_MEMBERS):
            raise LabError(
                f"{self.archive}: holds more than {number} files, too many for its size: it is no archive of an "
                "experiment"
            )
        if known_bytes > self.most_bytes:
            raise _too_large(self.archive, self.most_bytes)

    def target(self, name: str, plainly: bool) -> Path:
        """The path of a member in `place`."""
        return _target(name, plainly, self.archive, self.place)


_Members = Iterator[tuple[Path, "IO[bytes] | io.RawIOBase | None"]]
"""The path of each member, and its contents; None: a directory."""


def _of_tar(file: IO[bytes], limits: _UnpackLimits) -> _Members:
    with (
        zstandard.ZstdDecompressor().stream_reader(file, closefd=False) as plain,
        tarfile.open(
            fileobj=_BoundedStream(plain, limits.most_bytes, limits.archive), mode="r|", tarinfo=Member
        ) as tar,
    ):
        number = 0
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # all of them would stay in memory
            plainly = member.isdir() or (member.isreg() and not member.issparse())
            target = limits.target(member.name, plainly)
            limits.check(number, member.size)
            number += 1
            yield target, None if member.isdir() else tar.extractfile(member)


def _of_zip(file: IO[bytes], limits: _UnpackLimits) -> _Members:
    used = known = 0
    with zipfile.ZipFile(_BoundedZip(file)) as packed:
        for number, member in enumerate(packed.infolist()):
            known += member.file_size
            limits.check(number, known)
            kind = stat.S_IFMT(member.external_attr >> 16)
            target = limits.target(member.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR))
            if member.is_dir():
                yield target, None
                continue
            with packed.open(member) as content:
                bounded = _BoundedStream(content, limits.most_bytes, limits.archive, used)
                yield target, bounded
                used = bounded.used


def _target(name: str, plainly: bool, archive: Path, place: Path) -> Path:
    """The path of a member; LabError where it is no plain file or directory, or would be outside `place`."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not plainly:
        raise LabError(f"{archive}: {name!r} in it would leave its place: it is no archive of an experiment")
    return place / path


def _put(source: IO[bytes] | io.RawIOBase | None, target: Path) -> None:
    """Writes a file; None: makes a directory."""
    if source is None:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with anew(target) as file:
        shutil.copyfileobj(source, file)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Experiment]:
    """The experiment in a directory, or in an archive or crate, which is unpacked for as long as it is looked at."""
    if path.is_dir():
        yield Experiment.load(path)
        return
    with tempfile.TemporaryDirectory(prefix="ewan-rerun-") as place:
        yield Experiment.load(unpack(path, Path(place)), shown=path)


def intact(before: Experiment, original: Path) -> None:
    """LabError where files of the original, or of the crate that holds it, are not those that were written."""
    sums.check(before.directory, original)
    try:
        before.check()
    except LabError as error:
        if original.is_dir():
            raise
        name = str(error).removeprefix(f"{before.directory}/").partition(":")[0]
        raise LabError(
            f"{original}: {name} in it is damaged or missing, it is not what {DOCUMENT} records: take another copy"
        ) from None
