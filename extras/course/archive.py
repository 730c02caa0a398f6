"""The members of a zip file that a stranger made, read in memory: nothing of it becomes a file.

In: the bytes of the file, the names that may be in it and how long each may be. Out: the contents by name; why it is
none that may be read, in one line. All that a zip can do beyond holding a few plain files is refused: links,
directories, names twice or of other places, encryption, methods whose expansion has no limit, more members than were
asked for, sizes that are not what it says. A member is expanded no further than one byte beyond what it may have.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from collections.abc import Mapping

from ewan.labs.base.reading import one_line
from ewan.labs.base.units.shown import about

MOST_DIRECTORY_BYTES = 16 << 10
"""The most bytes of the central directory: each member takes 46 bytes and its name."""
MOST_SHOWN = 60
_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_END64_SIGNATURE = b"PK\x06\x07"
_END64_BYTES = 20
_MOST_COMMENT = (1 << 16) - 1
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class ArchiveError(ValueError):
    """Why a file is no archive that may be read, in words that follow its name."""


def members(content: bytes, allowed: Mapping[str, int]) -> dict[str, bytes]:
    """Return the members of a zip by name; ArchiveError for anything beside `allowed`: the most bytes that each may
    have."""
    _check_directory(content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found: dict[str, bytes] = {}
            for each in archive.infolist():
                _check(each, allowed, found)
                found[each.filename] = _expanded(archive, each, allowed[each.filename])
            return found
    except ArchiveError:
        raise
    except Exception as error:  # of a damaged zip, zipfile raises errors of ten kinds
        raise ArchiveError(f"is a damaged zip ({one_line(str(error), MOST_SHOWN) or type(error).__name__})") from None


def _check_directory(content: bytes) -> None:
    """ArchiveError for what is no zip, and where its list of members is longer than one that is read.

    Before the list is parsed: the list of millions of members would take all memory.
    """
    start = content.rfind(_END_SIGNATURE, max(0, len(content) - _END.size - _MOST_COMMENT))
    if start < 0 or start + _END.size > len(content):
        raise ArchiveError("is no zip, or it is cut off")
    if content[max(0, start - _END64_BYTES) :].startswith(_END64_SIGNATURE):
        raise ArchiveError("is a zip for files of more than 4 GB (zip64)")
    directory_bytes, comment = _END.unpack_from(content, start)[5], _END.unpack_from(content, start)[7]
    if start + _END.size + comment != len(content):
        raise ArchiveError("is a zip with something behind its end")
    if directory_bytes > MOST_DIRECTORY_BYTES:
        raise ArchiveError("has too many members")


def _check(member: zipfile.ZipInfo, allowed: Mapping[str, int], found: Mapping[str, bytes]) -> None:
    """ArchiveError for a member that may not be there."""
    shown = one_line(repr(member.orig_filename), MOST_SHOWN)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if member.filename not in allowed or member.orig_filename != member.filename:
        raise ArchiveError(f"has a member {shown}: only {' and '.join(allowed)} may be in it")
    if member.filename in found:
        raise ArchiveError(f"has {shown} twice")
    if kind not in (0, stat.S_IFREG):
        raise ArchiveError(f"has {shown} as a link, or another thing that is no file")
    if member.flag_bits & _ENCRYPTED:
        raise ArchiveError("is encrypted")
    if member.compress_type not in _METHODS:
        raise ArchiveError(f"has {shown} compressed by a method that is not read (use deflate)")
    if member.file_size > allowed[member.filename]:
        raise _too_large(member, allowed[member.filename])


def _expanded(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    with archive.open(member) as file:
        content = file.read(most + 1)
        if len(content) > most:
            raise _too_large(member, most)
        if len(content) != member.file_size or file.read(1):
            raise ArchiveError(f"has {member.filename} cut off")
    return content


def _too_large(member: zipfile.ZipInfo, most: int) -> ArchiveError:
    return ArchiveError(f"has a {member.filename} of more than {about(most, 'size')}")
