"""Tar archives that come from others: their headers are read within limits."""

from __future__ import annotations

import tarfile

MOST_HEADER = 1 << 20
"""Bytes of what a member's header says more than fits in it: tarfile reads that into memory whole."""
_EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME)
_MORE_EXTENDED = (tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE)


class Member(tarfile.TarInfo):
    """A member that refuses headers which tarfile would read for as long as their size says."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size < 0 or (self.type in (*_EXTENDED, *_MORE_EXTENDED) and self.size > MOST_HEADER):
            raise tarfile.ReadError(f"a header says that it has {self.size} bytes")
        member: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return member
