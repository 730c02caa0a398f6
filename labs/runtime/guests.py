"""The process of a virtual kernel: started on its CPUs, with a place for its memory, measured, and gone at its end.

In: a command line, the run's directory and its lock. Out: the process, what it used, and nothing that is left of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from resource import struct_rusage

from ewan.labs.base.writing import anew
from ewan.labs.runtime import sessions
from ewan.labs.runtime.base import LabError

PREFIX = "ewan-memory-"
KIB = 1 << 10
STAT_BLOCK_BYTES = 512


@contextlib.contextmanager
def memory_place(shared: Path) -> Iterator[Path]:
    """A directory for the file that is the guest's memory: nothing else of `shared` is shown to it.

    It is locked as long as it is used: a command that was killed leaves it, and the next one removes it.
    """
    try:
        for left in shared.glob(f"{PREFIX}*"):
            if (descriptor := _locked(left)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(descriptor)
        descriptor = None
        while descriptor is None:  # another command may take it for one that was left, before it is locked
            place = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=shared))
            descriptor = _locked(place)
    except OSError as error:
        raise LabError(f"{shared}: {error.strerror}: the virtual clock needs room there") from None
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(descriptor)


def _locked(directory: Path) -> int | None:
    """A descriptor that locks a directory; None if another process locks it, or if it is another user's, or gone."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_uid == os.geteuid() and os.path.samestat(os.fstat(descriptor), directory.lstat()):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


@contextlib.contextmanager
def _on_cpus(cpus: set[int]) -> Iterator[None]:
    """Make programs that this thread starts run on these CPUs from their first instruction; on all CPUs if this user
    may not set that."""
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


@contextlib.contextmanager
def guest(
    command: Sequence[Path | str],
    directory: Path,
    lock: int,
    cpus: set[int],
    memory_in: Path,
    controller: int | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """The kernel's process on its CPUs, in a session of its own; whatever happens, it and all its children are gone
    afterwards.

    They hold the lock on the directory too. `controller`: the standard input, in place of /dev/null.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(directory),
        "TMPDIR": str(memory_in),
    }
    with anew(directory / "console.log") as console, _on_cpus(cpus):
        guest = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if controller is None else controller,
            stdout=console,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment,
            start_new_session=True,
            pass_fds=(lock,),
        )
    try:
        yield guest
    finally:
        others = sessions.members(guest.pid)  # as long as they can be found by who began them
        guest.kill()
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        guest.wait()


def usage(guest: subprocess.Popen[bytes], patience_s: float) -> struct_rusage | None:
    """The resource usage of the guest's process, as soon as it has ended; None if it does not end within
    `patience_s`."""
    descriptor = os.pidfd_open(guest.pid)
    try:
        if not select.select([descriptor], [], [], patience_s)[0]:
            return None
    finally:
        os.close(descriptor)
    _, status, usage = os.wait4(guest.pid, 0)
    guest.returncode = os.waitstatus_to_exitcode(status)
    return usage


def touched_bytes(pid: int) -> int:
    """The most memory that a guest has had so far; 0 when it is gone. `pid`: who started it, or itself."""
    return max(_most_bytes(each) for each in _line_of(pid))


def _line_of(pid: int) -> Iterator[int]:
    """A process, its only child and so on: behind the wall the kernel is the child of its namespace's first process."""
    for _ in range(3):
        yield pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(errors="replace").split()
        except OSError:
            return
        if not children:
            return
        pid = int(children[0])


def _most_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")  # it has the process's name
    except OSError:
        return 0
    lines = (line.split() for line in status.splitlines() if line.startswith("VmHWM:"))
    return max(next((int(words[1]) * KIB for words in lines), 0), _memory_file_bytes(pid))


def _memory_file_bytes(pid: int) -> int:
    """The size of the kernel's memory file, which has no name. The processes of its programs touch it, too."""
    most = 0
    try:
        for each in Path(f"/proc/{pid}/fd").iterdir():
            found = each.stat()
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                most = max(most, found.st_blocks * STAT_BLOCK_BYTES)
    except OSError:
        pass  # it has ended, or a descriptor was closed meanwhile
    return most
