"""Modules of kernels: built from C sources with a kernel's headers, in a sandbox; those of the virtual kernel stand
beside it.

In: a source with its headers, the kernel. Out: a compiled module in the cache, named by its SHA-256;
SourceError with the compiler's messages where the source does not compile. The build sees the system's programs, the
kernel's headers and its own directory, and has no network (`ewan-node launch`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.labs.base import cache, codec, ownership, writing
from ewan.labs.base.codec import Struct
from ewan.labs.base.product import INSTALLED, ROOT
from ewan.labs.base.wording import nearest
from ewan.labs.congestion import native
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.record.experiment import checksum_once
from ewan.labs.runtime import module_cache, wall, whole
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import KernelModule
from ewan.labs.runtime.services import SEARCH

HEADERS = "headers.tar.xz"
KIND = "modules"
"""The kind of these things in the cache."""
BUILDS_S = 120.0
MOST_LINES = 30
"""Lines of the compiler that are shown."""
NO_EXPORTS = "no_exports.h"
"""A header that is included first: no other module uses what this one exports, and the kernel may export the same."""
_MACROS = ("EXPORT_SYMBOL", "EXPORT_SYMBOL_GPL", "EXPORT_SYMBOL_NS", "EXPORT_SYMBOL_NS_GPL")
_NO_EXPORTS = "#include <linux/export.h>\n" + "".join(f"#undef {name}\n#define {name}(...)\n" for name in _MACROS)
_NUMBERS = ("byte", "short", "ushort", "int", "uint", "long", "ulong", "ullong", "hexint")
_SIGNED = ("short", "int", "long")
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|[0-9]+)")
_SYSTEM = (*wall.SYSTEM, "/etc/alternatives")


class SourceError(LabError):
    """The source of a module does not compile; `messages` are the compiler's lines."""

    def __init__(self, why: str, messages: Sequence[str]) -> None:
        super().__init__(why)
        self.messages = messages


class BuiltModule(Struct):
    """`name`: the module's name, of its file. `parameters`: those that it has, each with its type."""

    name: str
    sha256: str
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class KernelHeaders:
    """The headers of a kernel, in a folder. `words`: what make gets beside it; `whose`: the kernel, in messages."""

    folder: Path
    words: tuple[str, ...]
    whose: str


def check(module: KernelModule, kernel: Path, binary: Path) -> None:
    """LabError where a module does not compile, or has not the parameters that it is given."""
    check_parameters(module, built(module.source, kernel, binary).parameters)


def check_parameters(module: KernelModule, known: Mapping[str, str]) -> None:
    """LabError for the first parameter of a module that is none of those that it has, each with its type."""
    for word in module.parameters.split():
        name, _, value = word.partition("=")
        if name not in known:
            instead = nearest(name, known) if known else "it has none: leave it out"
            raise LabError(f"{module.source.file}: unknown parameter {name} of the module, {instead}")
        if known[name] in _NUMBERS and value.startswith("-") and known[name] not in _SIGNED:
            raise LabError(f'{module.source.file}: parameter {name} "{value}": write 0 or more')
        if known[name] in _NUMBERS and not _NUMBER.fullmatch(value):
            raise LabError(f'{module.source.file}: parameter {name} "{value}": write a whole number')


def file_of(module: BuiltModule) -> Path:
    """The compiled module in the cache; LabError where it is missing or damaged."""
    place = place_of_cache()
    path = place / f"{module.sha256}.ko"
    with module_cache.looking(place):
        module_cache.used(path)
    if not path.exists() or whole.sha256(path) != module.sha256:
        raise LabError(f"{path} is missing or damaged")
    return path


def digest(text: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(text).hexdigest()


def built(source: ModuleSource, kernel: Path, binary: Path) -> BuiltModule:
    """The module of a C source for `kernel`; taken from the cache where the same source was compiled before."""
    archive = kernel.with_name(HEADERS)
    if not archive.exists() and INSTALLED:
        raise LabError(
            "modules are built in the source tree of ewan: an installed package has not the kernel's headers"
        )
    if not archive.exists():
        raise LabError(
            f"{kernel} has no {HEADERS} beside it, with which modules are built: it came from another machine: copy "
            "that file from there, or take a bundle that has it (make bundle)"
        )

    def headers(place: Path) -> KernelHeaders:
        return KernelHeaders(_headers(archive, place), ("ARCH=um",), "the virtual kernel")

    return compiled(source, checksum_once(kernel), headers, binary)


def compiled(source: ModuleSource, kernel: str, headers: Callable[[Path], KernelHeaders], binary: Path) -> BuiltModule:
    """The same for a kernel of this identity; `headers` gets the cache's folder, and is called where the module is not
    there."""
    compiler = need("gcc", "gcc")
    version = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout
    parts = [source.digest.encode(), source.file.encode(), kernel.encode(), version.encode()]
    parts += native.recipe() if source.bpf else []
    key = digest(b"".join(len(part).to_bytes(8, "big") + part for part in parts))
    place = place_of_cache()
    note = place / f"{key}.json"
    try:
        found = codec.decode(BuiltModule, note.read_bytes(), str(note))
        file_of(found)
        module_cache.used(note)
    except (OSError, ValueError, LabError):
        found = _compile(source, headers(place), binary, place)
        writing.write(note, codec.document(found))
        ownership.give_back([note, place / f"{found.sha256}.ko"], os.environ)
        module_cache.prune(place)
    return found


def place_of_cache() -> Path:
    """The folder of compiled modules, of BPF programs, and of the headers for both."""
    return cache.kept(os.environ, KIND, ROOT).resolve()


def need(program: str, package: str) -> str:
    """The path of a program of this machine that is in a package; LabError without it."""
    found = shutil.which(program, path=SEARCH)
    if found is None:
        raise LabError(f"{program}, which builds modules, is not on this machine: apt install {package}")
    return found


def _headers(archive: Path, place: Path) -> Path:
    """The unpacked headers of a kernel."""
    wanted = place / f"headers-{checksum_once(archive)[:16]}"
    with module_cache.looking(place):
        there = wanted.is_dir()
        module_cache.used(wanted)
    if not there:
        with tempfile.TemporaryDirectory(dir=place, prefix=".headers-") as scratch:
            unpacked = Path(scratch) / "headers"
            unpacked.mkdir()
            unpack: list[Path | str] = ["tar", "-xJf", archive, "--no-same-owner", "-C", unpacked]
            done = subprocess.run(unpack, capture_output=True, text=True, check=False)
            if done.returncode:
                raise LabError(f"{archive} cannot be unpacked: {done.stderr.strip()}")
            module_cache.used(unpacked)
            ownership.give_back_tree(unpacked, os.environ)
            try:
                unpacked.rename(wanted)
            except OSError:
                if not wanted.is_dir():  # another process may have been quicker
                    raise
    return wanted


def _compile(source: ModuleSource, kernel: KernelHeaders, binary: Path, place: Path) -> BuiltModule:
    headers = kernel.folder
    with tempfile.TemporaryDirectory(dir=place, prefix=".build-") as scratch:
        folder = Path(scratch)
        for name, text in source.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text)
        more = _written_beside(source, headers, folder)
        # Debug information says where the variables of a congestion control stand. No place of this machine is in it.
        places = {folder: ".", headers: "kernel", **dict.fromkeys(more, "native")}
        flags = " ".join(["-g", *(f"-ffile-prefix-map={place}={name}" for place, name in places.items())])
        command: list[Path | str] = [
            need("make", "make"),
            "-s",
            "-C",
            headers,
            f"M={folder}",
            *kernel.words,
            f"KCFLAGS={flags}",
            "modules",
        ]
        done = in_sandbox(binary, folder, [headers, *more], command, source.file)
        compiled = folder / f"{source.name}.ko"
        if done.returncode or not compiled.exists():
            raise refused(source, done.stderr, folder, kernel.whose)
        content = compiled.read_bytes()
        writing.write(place / f"{digest(content)}.ko", content)
        return BuiltModule(source.name, digest(content), parameters(content))


def in_sandbox(
    binary: Path, folder: Path, reads: Sequence[Path], command: Sequence[Path | str], file_name: str
) -> subprocess.CompletedProcess[str]:
    """Runs a compiler in `folder`, the only place where it may write. It sees the system's programs and `reads`, and
    has no network."""
    words: list[Path | str] = [binary, "launch", "--write", folder]
    words += wall.readable([*reads, *map(Path, _SYSTEM)])
    environment = {"PATH": SEARCH, "LC_ALL": "C", "TMPDIR": str(folder)}
    try:
        return subprocess.run(
            [*words, "--", *command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=BUILDS_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"{file_name}: its compilation has not ended after {BUILDS_S:.0f} s") from None


def _written_beside(source: ModuleSource, headers: Path, folder: Path) -> list[Path]:
    """Writes the Makefile and what else the build needs beside the source; gives the folders that it reads."""
    if source.bpf:
        exports = native.exported((headers / "Module.symvers").read_text())
        (folder / native.c_file(source.name)).write_text(native.module(source, exports))
        (folder / "Makefile").write_text(native.makefile(source.name))
        return [native.HEADERS]
    (folder / NO_EXPORTS).write_text(_NO_EXPORTS)
    (folder / "Makefile").write_text(f"obj-m := {source.name}.o\nccflags-y := -include $(src)/{NO_EXPORTS}\n")
    return []


def refused(source: ModuleSource, said: str, folder: Path, kernel: str = "this kernel") -> SourceError:
    """The compiler's messages on the source, without the build's own lines."""
    lines = [line.replace(f"{folder}/", "") for line in said.splitlines() if not line.startswith("make")]
    if "GPL-incompatible module" in said or "missing MODULE_LICENSE" in said:
        return SourceError(f'{source.file}: a congestion control of Linux needs MODULE_LICENSE("GPL")', [])
    if missing := re.findall(r'ERROR: modpost: "(\w+)" \[', said):
        return SourceError(f"{source.file}: {kernel} exports no {', '.join(missing)} to modules", [])
    own = tuple(f"{name}:" for name in source.files)
    errors = sum(line.startswith(own) and " error: " in line for line in lines)
    count = f"{errors or 'no'} error{'' if errors == 1 else 's'} of its lines"
    return SourceError(f"{source.file}: it does not compile: {count}", lines[:MOST_LINES])


def parameters(module: bytes) -> dict[str, str]:
    """The parameters of a compiled module, each with its type, as its section .modinfo lists them."""
    pairs = re.findall(rb"(?:^|\0)parmtype=(\w+):([ -~]+)", module)
    return {name.decode(): kind.decode() for name, kind in pairs}
