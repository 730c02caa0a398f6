"""Modules of this machine's kernel, with a kernel that only pretends: what is refused, noted, and unloaded.

A real kernel of Debian's loads them in `python -m tests.vm.host_modules`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from pathlib import Path

import pytest

from ewan.labs.base import codec
from ewan.labs.congestion.host_kernel import HostKernel
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.runtime import host_modules, kernel_modules
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.host_modules import LoadedModule
from ewan.labs.runtime.kernel_modules import BuiltModule
from ewan.labs.runtime.program import KernelModule

SOURCE = ModuleSource("tcp_mine.c", b"", {})
BUILD_ID = bytes(range(20))
NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + BUILD_ID
BUILT = BuiltModule("tcp_mine", "", {})


class PretendedKernel:
    """It loads every module under the name tcp_mine, or answers with an error."""

    def __init__(self, place: Path) -> None:
        self.module = place / "module/tcp_mine"
        self.refuses = self.holds = 0

    def init_module(self, image: bytes, size: object, parameters: bytes) -> int:
        if self.refuses:
            ctypes.set_errno(self.refuses)
            return -1
        (self.module / "notes").mkdir(parents=True)
        (self.module / "notes/.note.gnu.build-id").write_bytes(image)
        return 0

    def delete_module(self, name: bytes, flags: int) -> int:
        if self.holds or not self.module.exists():
            ctypes.set_errno(self.holds or errno.ENOENT)
            return -1
        (self.module / "notes/.note.gnu.build-id").unlink()
        (self.module / "notes").rmdir()
        self.module.rmdir()
        return 0


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedKernel:
    found = PretendedKernel(tmp_path / "sys")
    (tmp_path / "tcp_mine.ko").write_bytes(NOTE)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/modules").touch()
    monkeypatch.setattr(host_modules, "SYS", tmp_path / "sys")
    monkeypatch.setattr(host_modules, "PROC", tmp_path / "proc")
    monkeypatch.setattr(host_modules, "MODULES", tmp_path / "lib")
    monkeypatch.setattr(host_modules, "ENDS_S", 0.0)
    monkeypatch.setattr(host_modules, "_libc", lambda: found)
    monkeypatch.setattr(kernel_modules, "file_of", lambda built: tmp_path / "tcp_mine.ko")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return found


def headers(tmp_path: Path, release: str) -> Path:
    place = tmp_path / "lib" / platform.release() / "build"
    (place / "include/generated").mkdir(parents=True)
    (place / "Makefile").touch()
    (place / "include/generated/utsrelease.h").write_text(f'#define UTS_RELEASE "{release}"\n')
    return place


def refusal(tmp_path: Path) -> str:
    with pytest.raises(LabError) as refused:
        host_modules.built(SOURCE, tmp_path)
    return str(refused.value)


def test_what_a_machine_lacks_is_one_line_each(kernel: PretendedKernel, tmp_path: Path) -> None:
    release = platform.release()
    assert refusal(tmp_path).endswith(f"are not in {tmp_path}/lib/{release}/build: apt install linux-headers-{release}")
    place = headers(tmp_path, "9.9")
    assert f"the headers in {place} are of Linux 9.9, and this kernel is {release}: " in refusal(tmp_path)
    (tmp_path / "sys/kernel/security").mkdir(parents=True)
    (tmp_path / "sys/kernel/security/lockdown").write_text("none [integrity] confidentiality\n")
    assert "this machine's kernel is locked down (integrity, Secure Boot): " in refusal(tmp_path)
    (tmp_path / "proc/modules").unlink()
    assert f"this machine's kernel ({release}) loads no modules: run it with --runtime virtual" in refusal(tmp_path)


def test_a_module_is_loaded_only_where_it_is_asked_for(tmp_path: Path) -> None:
    of_user = HostKernel(tmp_path, tmp_path, False, pytest.fail)
    with pytest.raises(LabError) as refused, of_user.having([KernelModule(SOURCE, ("mine",))]):
        pass
    assert str(refused.value) == (
        "congestion control mine: this machine's kernel does not have it: --load-module compiles tcp_mine.c for this "
        "kernel and loads it, or run it with --runtime virtual"
    )


def test_a_module_is_there_while_a_block_runs(kernel: PretendedKernel, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with host_modules.loaded(KernelModule(SOURCE), BUILT, state, pytest.fail):
        assert kernel.module.exists() and host_modules.left(state) == []
        with pytest.raises(LabError, match="has a module tcp_mine already"):
            host_modules.loaded(KernelModule(SOURCE), BUILT, state, pytest.fail).__enter__()
    assert not kernel.module.exists() and not state.exists()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (errno.EKEYREJECTED, "it takes only modules that are signed"),
        (errno.ENOEXEC, "it has another version or configuration than the headers"),
        (errno.EEXIST, "it has a congestion control of this name"),
        (errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_the_kernels_refusal_is_one_line(kernel: PretendedKernel, tmp_path: Path, error: int, why: str) -> None:
    kernel.refuses = error
    with pytest.raises(LabError, match=f"tcp_mine.c: this machine's kernel does not load it: {why}"):
        host_modules.loaded(KernelModule(SOURCE), BUILT, tmp_path / "state", pytest.fail).__enter__()
    assert not (tmp_path / "state").exists()


def test_a_module_in_use_stays_and_is_unloaded_later(kernel: PretendedKernel, tmp_path: Path) -> None:
    state, lines = tmp_path / "state", list[str]()
    with host_modules.loaded(KernelModule(SOURCE), BUILT, state, lines.append):
        kernel.holds = errno.EAGAIN
    assert lines == ["module tcp_mine stays loaded, as a socket uses it: later, ewan down unloads it"]
    note = state / host_modules.NOTES / "tcp_mine.json"
    note.write_bytes(codec.document(LoadedModule("tcp_mine", BUILD_ID.hex(), os.getpid(), 0.0)))  # a process of before
    assert host_modules.left(state) == [note]
    assert host_modules.unload_left(state) == lines
    kernel.holds = 0
    host_modules.unload_left(state)
    assert not kernel.module.exists() and not state.exists()


def test_a_module_that_another_has_loaded_stays(kernel: PretendedKernel, tmp_path: Path) -> None:
    note = tmp_path / "state" / host_modules.NOTES / "tcp_mine.json"
    note.parent.mkdir(parents=True)
    note.write_bytes(codec.document(LoadedModule("tcp_mine", "00" * 20, 1, 0.0)))
    kernel.init_module(NOTE, 0, b"")
    assert host_modules.unload_left(tmp_path / "state") == []
    assert kernel.module.exists() and not note.exists()
