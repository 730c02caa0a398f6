"""An entry of the store: one file that holds the results of a run, with a manifest before them.

In: files with their names, and their origin. Out: a tar archive, compressed by Zstandard, whose first member is
manifest.json: the key, the origin, and the size and SHA-256 of each file. Reading checks each byte against the
manifest: a changed, missing or additional one is a `DamagedError`. `tar --zstd -xf` unpacks one too."""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Literal

import zstandard

from ewan.generator.tars import Member
from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.writing import anew
from ewan.labs.record.experiment import checksum

ENDING = ".tar.zst"
LEVEL = 3
MANIFEST = "manifest.json"
MOST_MANIFEST = 16 << 20
MOST_BYTES = 4 << 30
"""The size of all files of an entry, unpacked; an entry with a larger size in its manifest is not unpacked."""
_MODE = 0o644
_PIECE = 1 << 20

Kind = Literal["run", "certificate"]


class DamagedError(ValueError):
    """A file is no whole entry of its key; the message follows the file's name."""


class File(Struct):
    """One file of an entry."""

    bytes: int
    sha256: str


class EntryOrigin(Struct):
    """The origin of an entry. `experiment`: the name of its directory; `name`: that of the run or lab; `made`: in UTC.
    `wall_ns` and `cpu_ns`: the time that it took where it was executed, which a user of the entry saves."""

    kind: Kind
    scenario: str
    experiment: str
    name: str
    made: str
    wall_ns: int
    cpu_ns: int


class Manifest(Document, tag="ewan-store/1"):
    """The first member of an entry. `files`: by their names in the run's directory."""

    key: str
    origin: EntryOrigin
    files: Mapping[str, File]

    @property
    def bytes(self) -> int:
        """The size of all files, unpacked."""
        return sum(each.bytes for each in self.files.values())


def manifest(key: str, origin: EntryOrigin, files: Mapping[str, Path]) -> Manifest:
    """The manifest of files as they are now; OSError where one cannot be read."""
    found = {name: File(path.stat().st_size, checksum(path)) for name, path in sorted(files.items())}
    return Manifest(key, origin, found)


def write(to: IO[bytes], told: Manifest, files: Mapping[str, Path]) -> None:
    """Writes an entry of files that are as `told` describes them. The same manifest gives the same bytes."""
    with (
        zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).stream_writer(to, closefd=False) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        text = codec.document(told).removesuffix(b"\n")
        _add(tar, MANIFEST, len(text), io.BytesIO(text))
        for name, file in sorted(told.files.items()):
            with files[name].open("rb") as source:
                _add(tar, name, file.bytes, source)


def _add(tar: tarfile.TarFile, name: str, size: int, source: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, _MODE
    tar.addfile(member, source)


def packed(told: Manifest, files: Mapping[str, Path]) -> bytes:
    """The bytes that `write` writes."""
    result = io.BytesIO()
    write(result, told, files)
    return result.getvalue()


def read_manifest(source: IO[bytes], key: str) -> Manifest:
    """Read only the manifest; DamagedError where it is not that of an entry of `key`."""
    with _opened(source, whole=False) as tar:
        return _manifest(tar, key)


def unpack(source: IO[bytes], key: str, place: Path) -> Manifest:
    """Writes an entry's files into a directory that has none of them; DamagedError where one differs from the manifest,
    and then some may be there. OSError where they cannot be written."""
    with _opened(source) as tar:
        told = _manifest(tar, key)
        for name, member, content in _members(tar, told):
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with anew(path) as file:
                _copy(content, file, member, told.files[name])
    return told


def read(source: IO[bytes], key: str) -> tuple[Manifest, dict[str, bytes]]:
    """A small entry's files in memory; DamagedError as `unpack`."""
    result = {}
    with _opened(source) as tar:
        told = _manifest(tar, key)
        for name, member, content in _members(tar, told):
            file = io.BytesIO()
            _copy(content, file, member, told.files[name])
            result[name] = file.getvalue()
    return told, result


def verify(source: IO[bytes], key: str) -> Manifest:
    """Reads all of an entry; DamagedError as `unpack`."""
    with _opened(source) as tar:
        told = _manifest(tar, key)
        for name, member, content in _members(tar, told):
            _copy(content, None, member, told.files[name])
    return told


@contextlib.contextmanager
def _opened(source: IO[bytes], *, whole: bool = True) -> Iterator[tarfile.TarFile]:
    try:
        with (
            zstandard.ZstdDecompressor().stream_reader(source, closefd=False) as plain,
            tarfile.open(fileobj=plain, mode="r|", tarinfo=Member) as tar,
        ):
            yield tar
            while whole and plain.read(_PIECE):  # to the end, where the checksum of all that was compressed is
                pass
    except (zstandard.ZstdError, tarfile.TarError, EOFError, OverflowError, RecursionError) as error:
        raise DamagedError(f"is no whole archive ({error})") from None


def _manifest(tar: tarfile.TarFile, key: str) -> Manifest:
    member = tar.next()
    content = None if member is None or member.name != MANIFEST else tar.extractfile(member)
    if member is None or content is None or member.size > MOST_MANIFEST:
        raise DamagedError(f"does not begin with {MANIFEST}")
    try:
        told = codec.decode(Manifest, content.read(member.size), "manifest")
    except ValueError as error:
        raise DamagedError(f"has another {MANIFEST} ({error})") from None
    if told.key != key:
        raise DamagedError(f"is the entry of {told.key[:12]}…")
    if told.bytes > MOST_BYTES or any(each.bytes < 0 for each in told.files.values()):
        raise DamagedError(f"says that it has {told.bytes} bytes, and an entry has at most {MOST_BYTES >> 20} MiB")
    for name in told.files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise DamagedError(f"names a file outside of its place, {name!r}")
    return told


def _members(tar: tarfile.TarFile, told: Manifest) -> Iterator[tuple[str, tarfile.TarInfo, IO[bytes]]]:
    """Each file that the manifest names, once and in order; DamagedError for others, and where one is missing."""
    wanted = sorted(told.files)
    for name in wanted:
        member = tar.next()
        content = None if member is None or not member.isreg() or member.issparse() else tar.extractfile(member)
        if member is None or content is None or member.name != name:
            raise DamagedError(f"has {'nothing' if member is None else repr(member.name)} where {name} should be")
        yield name, member, content
    if (more := tar.next()) is not None:
        raise DamagedError(f"has {more.name!r}, which its {MANIFEST} does not name")


def _copy(content: IO[bytes], to: IO[bytes] | None, member: tarfile.TarInfo, file: File) -> None:
    found = hashlib.sha256()
    if member.size != file.bytes:
        raise DamagedError(f"has {member.size} bytes of {member.name}, not {file.bytes}")
    while piece := content.read(_PIECE):
        found.update(piece)
        if to is not None:
            to.write(piece)
    if found.hexdigest() != file.sha256:
        raise DamagedError(f"holds other bytes of {member.name} than were put in")
