"""Congestion controls that are BPF programs, in this machine's kernel.

In: sources with their headers. Out: object files in the cache, compiled for the types of this kernel in the sandbox of
modules; the controls are registered while a block runs, and gone when this process ends, also when it is killed.
SourceError where the compiler or the kernel refuses a program.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ewan.labs.base import writing
from ewan.labs.base.product import ROOT
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.runtime import bpf_loader, module_cache, whole
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.kernel_modules import MOST_LINES, SourceError, digest, in_sandbox, need, place_of_cache, refused
from ewan.labs.runtime.services import SEARCH

BTF = Path("/sys/kernel/btf/vmlinux")
HEADERS = ROOT / "emulator/kernel/tcp/bpf"
"""The headers in the place of the kernel's own, which a program may include."""
FLAGS = ("-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-fno-builtin")
LIBBPF = Path("/usr/include/bpf/bpf_helpers.h")
_LINKED = re.compile(rb'(\bSEC\s*\(\s*"\.struct_ops)\.link(")')
_LOG = re.compile(r"-- BEGIN PROG LOAD LOG --\n(.*?)-- END PROG LOAD LOG --", re.DOTALL)
_PROGRAM = re.compile(r"prog '(\w+)': BPF program load failed")
_STATE = re.compile(r"\d+:|;|cur state|old state|from |R\d|func ")
"""Lines of the verifier's log that are not its reason."""
MOST_OF_LOG = 12
_EXISTS = "File exists"


def tools() -> dict[str, tuple[str, bool]]:
    """The tools that compile BPF programs, each with its package, and whether this machine has it."""
    found = {name: (name, shutil.which(name, path=SEARCH) is not None) for name in ("clang", "bpftool")}
    return found | {"libbpf's headers": ("libbpf-dev", LIBBPF.exists())}


def compiled(source: ModuleSource, binary: Path) -> Path:
    """The object file of a program, from the cache where the same source was compiled for this kernel before."""
    if not BTF.exists():
        raise LabError(
            f"{source.file}: this kernel does not describe its types ({BTF}), which BPF needs: run it with "
            "--runtime virtual"
        )
    if packages := [package for package, there in tools().values() if not there]:
        raise LabError(f"{source.file}: what compiles BPF programs is missing here: apt install {' '.join(packages)}")
    compiler, types = need("clang", "clang"), _types()
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    own = [path.read_bytes() for path in (Path(__file__), *sorted(HEADERS.rglob("*.h")))]
    parts = [source.digest.encode(), source.file.encode(), types.name.encode(), version, *own]
    key = digest(b"".join(len(part).to_bytes(8, "big") + part for part in parts))
    target = place_of_cache() / f"{key}.bpf.o"
    with module_cache.looking(target.parent):
        there = target.exists()
        module_cache.used(target)
    if not there:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as scratch:
            _compile(source, Path(compiler), types, binary, Path(scratch), target)
        module_cache.prune(target.parent)
    return target


@contextlib.contextmanager
def registered(objects: Mapping[str, Path]) -> Iterator[None]:
    """This kernel has the controls of these object files, by the names of their sources, while the block runs. It needs
    root."""
    with contextlib.ExitStack() as held:
        for name, path in objects.items():
            held.enter_context(_registered(name, path))
        yield


@contextlib.contextmanager
def _registered(name: str, path: Path) -> Iterator[None]:
    with tempfile.TemporaryFile() as said:
        loader = subprocess.Popen(
            [sys.executable, "-I", bpf_loader.__file__, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,  # a Ctrl-C is for this process, which ends it afterwards
        )
        with loader:
            assert loader.stdout is not None
            answer = loader.stdout.readline().decode(errors="replace").strip()
            if answer != "registered":
                said.seek(0)
                raise _not_registered(name, answer.removeprefix("refused "), said.read().decode(errors="replace"))
            yield


def _not_registered(name: str, why: str, said: str) -> SourceError:
    """`said`: the messages of libbpf, among them the verifier's log of the program that the kernel refuses."""
    log = _LOG.search(said)
    if log is None:
        if why == _EXISTS:
            why = "this kernel has a congestion control of its name, perhaps by another run that goes on: wait for it"
        lines = [line for line in said.splitlines() if line.strip()]
        return SourceError(f"{name}: this kernel does not register it: {why or 'no answer'}", lines[-MOST_LINES:])
    lines = [line for line in log[1].splitlines() if line.strip() and not line.startswith("processed ")]
    at = next((line.lstrip("; ") for line in reversed(lines) if line.startswith(";")), "")
    function = found[1] if (found := _PROGRAM.search(said)) else "a program"
    reason = next((line for line in reversed(lines) if not _STATE.match(line)), why)
    return SourceError(f"{name}: this kernel refuses {function}: {reason} (at: {at})", lines[-MOST_OF_LOG:])


@functools.cache
def _types() -> Path:
    """A folder of the cache with vmlinux.h, this kernel's types."""
    wanted = place_of_cache() / f"btf-{whole.sha256(BTF)[:16]}"
    header = wanted / "vmlinux.h"
    with module_cache.looking(wanted.parent):
        there = header.exists()
        module_cache.used(wanted)
    if not there:
        bpftool = need("bpftool", "bpftool")
        done = subprocess.run([bpftool, "btf", "dump", "file", BTF, "format", "c"], capture_output=True, check=False)
        if done.returncode:
            raise LabError(f"bpftool cannot read {BTF}: {done.stderr.decode(errors='replace').strip()}")
        wanted.mkdir(exist_ok=True)
        writing.write(header, done.stdout)
    return wanted


def _compile(source: ModuleSource, compiler: Path, types: Path, binary: Path, folder: Path, target: Path) -> None:
    for name, text in source.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        # libbpf 1.1 does not know the section, and each control is linked in any case.
        (folder / name).write_bytes(_LINKED.sub(rb"\1\2", text))
    compiled_here = folder / "program.o"
    command: Sequence[Path | str] = [
        compiler, *FLAGS, "-I", HEADERS, "-I", types, "-c", source.file, "-o", compiled_here
    ]  # fmt: skip
    done = in_sandbox(binary, folder, [HEADERS, types], command, source.file)
    if done.returncode or not compiled_here.exists():
        raise refused(source, done.stderr, folder)
    writing.write(target, compiled_here.read_bytes())
