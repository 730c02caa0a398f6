"""The process of a virtual kernel: started on its CPUs, with a place for its memory, measured, and gone at its end.

In: a command line, the run's directory and its lock. Out: the process, what it used, and nothing that is left of it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from resource import struct_rusage

from labs.runtime import sessions
from labs.runtime.base import LabError

SHARED_MEMORY = Path("/dev/shm")
KIB = 1 << 10


@contextlib.contextmanager
def memory_place() -> Iterator[Path]:
    """A directory for the file that is the guest's memory: nothing else of /dev/shm is shown to it."""
    try:
        place = Path(tempfile.mkdtemp(prefix=f"ewan-{os.getpid()}-", dir=SHARED_MEMORY))
    except OSError as error:
        raise LabError(f"{SHARED_MEMORY}: {error.strerror}: the virtual clock needs room there") from None
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def guest(
    command: Sequence[Path | str], directory: Path, lock: int, cpus: set[int], memory_in: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The kernel's process on its CPUs, in a session of its own; whatever happens, it and all its children are gone
    afterwards.

    They hold the lock on the directory too.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(directory),
        "TMPDIR": str(memory_in),
    }
    with (directory / "console.log").open("wb") as console:
        guest = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment,
            start_new_session=True,
            pass_fds=(lock,),
        )
        with contextlib.suppress(OSError):  # it is ours to say where; without the right, or its end, as it is
            os.sched_setaffinity(guest.pid, cpus)
        try:
            yield guest
        finally:
            guest.kill()
            for pid in sessions.members(guest.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            guest.wait()


def usage(guest: subprocess.Popen[bytes], patience_s: float) -> struct_rusage | None:
    """What the guest's process used, as soon as it has ended; None where it does not within so long."""
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
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return
        if not children:
            return
        pid = int(children[0])


def _most_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in status.splitlines() if line.startswith("VmHWM:"))
    return next((int(words[1]) * KIB for words in lines), 0)
