"""The source of a module that a user wrote: a C file, and the headers beside it that it includes.

In: the path of the C file. Out: its text, and those of the files in its folder that it includes in quotes, and that
they include; LabError with file and line for what lies elsewhere. A file that is not there is left to the compiler,
which looks among the kernel's headers, too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ewan.labs.base import reading
from ewan.labs.base.codec import Struct
from ewan.labs.runtime.base import LabError

MOST_BYTES = 1 << 20
"""The size of a file; the largest source in Linux has 40 kB."""
MOST_BYTES_TOGETHER = 4 << 20
BPF = ".bpf.c"
"""The end of a BPF program's name."""
_FILE = re.compile(r"[a-z]\w{0,50}(\.bpf)?\.c", re.ASCII)
_HEADER = re.compile(r"([\w+-][\w.+-]*/)*[\w+-][\w.+-]*\.[ch]", re.ASCII)
_UNREAD = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
STRUCTURE = re.compile(r"\bstruct\s+tcp_congestion_ops\s+(\w+)[^;={]*=\s*\{(.*?)\}\s*;", re.DOTALL)
CALLED_BY = re.compile(r"\.name\s*=\s*\"([^\"\s]*)\"")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"", re.MULTILINE)


class ModuleSource(Struct):
    """`file`: the C file's name; `headers`: the files that it includes, by their paths in its folder, in the order of
    these paths."""

    file: str
    text: bytes
    headers: dict[str, bytes]

    @property
    def name(self) -> str:
        """The module's name: tcp_mine for tcp_mine.c and for tcp_mine.bpf.c."""
        return self.file.removesuffix(".c").removesuffix(".bpf")

    @property
    def bpf(self) -> bool:
        """Return whether it is a BPF program."""
        return self.file.endswith(BPF)

    @property
    def files(self) -> dict[str, bytes]:
        """All files by their paths in the C file's folder; the C file is the first."""
        return {self.file: self.text, **self.headers}

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal digits: of a C file without headers that of its text, else one of all files with their
        paths."""
        if not self.headers:
            return hashlib.sha256(self.text).hexdigest()
        parts = (part for name, text in self.files.items() for part in (name.encode(), text))
        return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


def read(path: Path) -> ModuleSource:
    """The C file at `path` with its headers."""
    if not _FILE.fullmatch(path.name):
        raise LabError(
            f"{path}: write the name of a C source of small letters, digits and _, such as tcp_mine.c or tcp_mine.bpf.c"
        )
    try:
        text = _content(path)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    if text is None:
        raise LabError(f"{path}: is no text of C")
    headers: dict[str, bytes] = {}
    waiting, together = [(path.name, text)], len(text)
    while waiting:
        name, content = waiting.pop()
        for line, header in includes(content.decode(errors="replace")):
            where = f"{path.parent / name}:{line}"
            found = _beside(path, name, header, where)
            if found is None or found in headers or found == path.name:
                continue
            try:
                more = _content(path.parent / found)
            except OSError as error:
                raise LabError(f'{where}: "{header}": {error.strerror}') from None
            if more is None:
                raise LabError(f'{where}: "{header}" is no text')
            together += len(more)
            if together > MOST_BYTES_TOGETHER:
                raise LabError(f'{where}: with "{header}" the source has more than 4 MiB: leave out what it needs not')
            headers[found] = more
            waiting.append((found, more))
    return ModuleSource(path.name, text, dict(sorted(headers.items())))


def includes(text: str) -> Iterator[tuple[int, str]]:
    """The files that a file includes in quotes, as it writes them, each with its line."""
    code = blanked(text, strings=False)
    return ((code.count("\n", 0, found.start()) + 1, found[1]) for found in _INCLUDE.finditer(code))


def names(source: ModuleSource) -> list[str]:
    """The names of congestion controls that its files write into structures of the kernel's; the kernel has the last
    word on them."""
    texts = (blanked(text.decode(errors="replace"), strings=False) for text in source.files.values())
    return [name for text in texts for _, body in STRUCTURE.findall(text) for name in CALLED_BY.findall(body)]


def blanked(text: str, strings: bool = True) -> str:
    """The text with comments and, unless `strings` is False, strings as spaces."""

    def spaces(found: re.Match[str]) -> str:
        part = found.group()
        if part[0] in "\"'":
            return part[0] + " " * (len(part) - 2) + part[0] if strings else part
        return re.sub(r"[^\n]", " ", part)

    return _UNREAD.sub(spaces, text)


def _beside(path: Path, name: str, header: str, where: str) -> str | None:
    """The path in the source's folder of a header that the file `name` of that folder includes; None without one."""
    inside = os.path.normpath(PurePosixPath(name).parent / header)
    if header.startswith("/") or inside.startswith(".."):
        raise LabError(f'{where}: "{header}" lies outside of the folder of {path.name}: put it beside the source')
    place = path.parent / inside
    if not place.is_file():
        return None
    if not place.resolve().is_relative_to(path.parent.resolve()):
        raise LabError(f'{where}: "{header}" is a link out of the folder of {path.name}: put the file there')
    if not _HEADER.fullmatch(inside):
        raise LabError(f'{where}: "{header}": give it a name of letters, digits and _ that ends in .h')
    if path.name.endswith(BPF) and PurePosixPath(inside).name == "vmlinux.h":
        return None  # each clock has its own
    return inside


def _content(path: Path) -> bytes | None:
    """A file's bytes; None where it is no text. Raises OSError, also where it is too large."""
    content = reading.read_bytes(path, MOST_BYTES)
    return None if b"\0" in content else content
