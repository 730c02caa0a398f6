"""Modules of this machine's kernel, which a command loads and unloads: congestion controls of a user's own.

In: modules with their sources, the state root of live labs, where a note of each stays while it is loaded. Out: modules
that are loaded while a block runs, and what commands left that were killed. Only modules of these notes are unloaded;
one that a socket uses stays, and is reported. LabError in one line for what this machine or its kernel refuses.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import re
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from ewan.labs.base import codec, documents, writing
from ewan.labs.base.codec import Document
from ewan.labs.base.reporter import Tell
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.runtime import kernel_modules
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.kernel_modules import BuiltModule, KernelHeaders
from ewan.labs.runtime.program import KernelModule
from ewan.labs.runtime.state import State

MODULES = Path("/lib/modules")
PROC, SYS = Path("/proc"), Path("/sys")
NOTES = ".modules"
"""In the state root; no lab's name begins so."""
ENDS_S = 5.0
"""A lab's sockets are gone some time after its namespaces are removed."""
POLL_S = 0.05
_BUILD_ID = re.compile(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", re.DOTALL)
_RELEASE = re.compile(r'UTS_RELEASE\s+"(.*)"')
_LOCKED = re.compile(r"\[(integrity|confidentiality)\]")
_WITHOUT_BTF = ("CONFIG_DEBUG_INFO_BTF_MODULES=",)
"""A module needs no types for BPF; pahole, which makes them, may be missing."""
_INSTEAD = "run it with --runtime virtual"
_UNSIGNED = f"it takes only modules that are signed with a key of its own, or none any more: {_INSTEAD}"
_REFUSALS = {
    errno.EPERM: _UNSIGNED,
    errno.EKEYREJECTED: _UNSIGNED,
    errno.ENOKEY: _UNSIGNED,
    errno.ENOEXEC: "it has another version or configuration than the headers: install those of this very kernel",
    errno.EEXIST: "it has a congestion control of this name: unload that, or write another name",
    errno.ENOENT: "it does not export what the module uses: its log (dmesg) has the name",
    errno.EINVAL: "a congestion control needs ssthresh, undo_cwnd, and cong_avoid or cong_control",
}


class LoadedModule(Document, tag="ewan-loaded-module/1"):
    """A module that a command loads. `build_id`: of the compiled file, empty where it has none; `pid` and `born`: the
    command's process, and its time of birth."""

    name: str
    build_id: str
    pid: int
    born: float


def built(source: ModuleSource, binary: Path) -> BuiltModule:
    """The module of a source for this machine's kernel, from the cache where it was compiled for it before."""
    release = platform.release()
    headers = MODULES / release / "build"
    if not (PROC / "modules").exists():
        raise LabError(f"{source.file}: this machine's kernel ({release}) loads no modules: {_INSTEAD}")
    with contextlib.suppress(OSError):
        if found := _LOCKED.search((SYS / "kernel/security/lockdown").read_text()):
            raise LabError(
                f"{source.file}: this machine's kernel is locked down ({found[1]}, Secure Boot): {_UNSIGNED}"
            )
    if not (headers / "Makefile").exists():
        raise LabError(
            f"{source.file}: the headers of this kernel are not in {headers}: apt install linux-headers-{release}"
        )
    with contextlib.suppress(OSError):
        said = _RELEASE.search((headers / "include/generated/utsrelease.h").read_text())
        if said and (other := said[1]) != release:
            raise LabError(
                f"{source.file}: the headers in {headers} are of Linux {other}, and this kernel is {release}: start "
                f"that one, or apt install linux-headers-{release}"
            )
    kernel = f"{release} {platform.version()}"
    of_host = KernelHeaders(headers.resolve(), _WITHOUT_BTF, "this machine's kernel")
    return kernel_modules.compiled(source, kernel, lambda _: of_host, binary)


@contextlib.contextmanager
def loaded(module: KernelModule, compiled: BuiltModule, state: Path, tell: Tell) -> Iterator[None]:
    """This machine's kernel has a module while the block runs; `tell` gets a line where it stays loaded."""
    file, name = module.source.file, compiled.name
    if os.geteuid() != 0:
        raise LabError(f"{file}: loading a module needs root: use sudo")
    for line in unload_left(state):
        tell(line)
    image = kernel_modules.file_of(compiled).read_bytes()
    note = state / NOTES / f"{name}.json"
    with State(state).locked():
        if (SYS / "module" / name).exists():
            raise LabError(
                f"{file}: this machine's kernel has a module {name} already, perhaps of another run that goes on: wait "
                "for it, or unload it"
            )
        born = psutil.Process().create_time()
        note.parent.mkdir(exist_ok=True)
        writing.write(note, codec.document(LoadedModule(name, _build_id(image), os.getpid(), born)))
        try:
            _load(file, image, module.parameters)
        except BaseException:
            _forget(note)
            raise
    try:
        yield
    finally:
        for line in _unloaded(state, [note]):
            tell(line)


def left(state: Path) -> list[Path]:
    """The notes of modules whose commands have ended."""
    return [note for note in sorted((state / NOTES).glob("*.json")) if not _is_alive(_read(note))]


def unload_left(state: Path) -> list[str]:
    """Unloads the modules that commands left; a line for each."""
    return _unloaded(state, found) if (found := left(state)) else []


def _unloaded(state: Path, notes: list[Path]) -> list[str]:
    """Unloads these modules; a line for each that stays, or whose command has ended."""
    lines = []
    with State(state).locked():
        for note in notes:
            if not note.exists():
                continue
            module = _read(note)
            of_another = not _is_own(module)
            if of_another or _unload(module.name):
                _forget(note)
                if not of_another and module.pid != os.getpid():
                    lines.append(f"module {module.name}, which a command had left loaded, is unloaded")
            else:
                lines.append(f"module {module.name} stays loaded, as a socket uses it: later, ewan down unloads it")
    return lines


def _forget(note: Path) -> None:
    note.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        note.parent.rmdir()


def _read(note: Path) -> LoadedModule:
    try:
        return documents.read(LoadedModule, note)
    except documents.DocumentError as error:
        raise LabError(f"{error}: see lsmod, and remove it") from None


def _is_alive(module: LoadedModule) -> bool:
    try:
        return psutil.Process(module.pid).create_time() == module.born
    except psutil.Error:
        return False


def _build_id(content: bytes) -> str:
    found = _BUILD_ID.search(content)
    return found[1].hex() if found else ""


def _is_own(module: LoadedModule) -> bool:
    """Return whether the kernel has the very module of a note, and no other of its name."""
    place = SYS / "module" / module.name
    try:
        return place.exists() and _build_id((place / "notes/.note.gnu.build-id").read_bytes()) == module.build_id
    except OSError:
        return module.build_id == ""


def _load(file: str, image: bytes, parameters: str) -> None:
    if _libc().init_module(image, ctypes.c_ulong(len(image)), parameters.encode()):
        error = ctypes.get_errno()
        why = _REFUSALS.get(error, os.strerror(error))
        raise LabError(f"{file}: this machine's kernel does not load it: {why}")


def _unload(name: str) -> bool:
    """Return whether the module is gone; False: something uses it."""
    deadline = time.monotonic() + ENDS_S
    while _libc().delete_module(name.encode(), os.O_NONBLOCK):
        if ctypes.get_errno() == errno.ENOENT:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
