"""A program that tries to leave the wall around the virtual kernel, behind which it is started.

In: JSON with what there is outside (paths, sockets, a process) and what is inside. Out: JSON with the names of the
attempts that worked, and counts. The kernel's process may be anybody's program one day, so this is none of User-Mode
Linux's: it attempts directly what a stranger's kernel would.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

CALLS: dict[str, tuple[Any, ...]] = {
    "unshare": (272, 0x10000000),
    "bpf": (321, 0, 0, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "userfaultfd": (323, 0),
    "io_uring_setup": (425, 8, 0),
    "keyctl": (250, 0, -3, 0),
    "mount": (165, b"none", b"/tmp", b"tmpfs", 0, None),
    "fsopen": (430, b"tmpfs", 0),
    "chroot": (161, b"/"),
    "open_by_handle_at": (304, -100, None, 0),
    "pidfd_open": (434, os.getppid(), 0),
    "memfd_secret": (447, 0),
    "sethostname": (170, b"x", 1),
    "shmget": (29, 4711, 4096, 0o1600),
    "iopl": (172, 3),
}
"""System calls by number: each must fail, and not for what is passed."""
FAILS_OTHERWISE = (14, 22)
"""EFAULT and EINVAL: the call was made and did not like its arguments."""
PTRACE_SEIZE = 0x4206
TIOCSTI = 0x5412
FS_IOC_SETFLAGS = 0x40086602


def attempts(given: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Each raises OSError where it is refused."""
    run, outside = Path(given["run"]), Path(given["outside"])
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: Any) -> None:
        if libc.syscall(number, *arguments) < 0 and (error := ctypes.get_errno()) not in FAILS_OTHERWISE:
            raise OSError(error, os.strerror(error))

    def connect(kind: int, sort: int, address: Any) -> None:
        with socket.socket(kind, sort) as to:
            to.connect(address)

    def write(path: Path) -> None:
        with path.open("w") as file:
            file.write("was here")

    def made(name: str) -> Path:
        (run / name).write_text("x")
        return run / name

    def type_into_terminal() -> None:
        with Path("/dev/null").open() as null:
            try:
                fcntl.ioctl(null, TIOCSTI, b"x")
            except OSError as error:
                if error.errno == 1:
                    raise

    def datagram(address: str) -> None:
        for sort in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            for end in socket.socketpair(socket.AF_UNIX, sort):
                end.sendto(b"x", address)

    def flags(path: Path) -> None:
        with path.open("rb") as file:
            fcntl.ioctl(file, FS_IOC_SETFLAGS, b"\x40\0\0\0\0\0\0\0")

    def become_root() -> None:
        os.setuid(0)
        if given["uid"] == 0:
            os.chown(made("owned"), 4711, 4711)

    found: dict[str, Callable[[], Any]] = {
        "read a secret": lambda: Path(given["secret"]).read_text(),
        "list a home": lambda: list(Path(given["secret"]).parent.iterdir()),
        "write outside": lambda: write(outside / "written"),
        "write to /usr": lambda: write(Path("/usr/written")),
        "write to /tmp": lambda: write(Path("/tmp/ewan-written")),
        "write to what is shown": lambda: write(Path(given["shown"])),
        "write to /dev/shm": lambda: write(Path("/dev/shm/ewan-written")),
        "change a mode": lambda: Path(given["shown"]).chmod(0o600),
        "change times": lambda: os.utime(given["shown"]),
        "change an attribute": lambda: os.setxattr(given["shown"], "user.ewan", b"x"),
        "change flags": lambda: flags(Path(given["shown"])),
        "change a device": lambda: Path("/dev/null").chmod(0o666),
        "change a device that was inherited": lambda: os.fchmod(0, stat.S_IMODE(os.fstat(0).st_mode)),
        "empty what is shown": lambda: os.truncate(given["shown"], 0),
        "empty by reading": lambda: os.close(os.open(given["shown"], os.O_RDONLY | os.O_TRUNC)),
        "move a process to a CPU": lambda: os.sched_setaffinity(given["pid"], {0}),
        "move out": lambda: made("moved").rename(outside / "moved"),
        "look at a process": lambda: Path(f"/proc/{given['pid']}/environ").read_bytes(),
        "look at the first process": lambda: Path("/proc/1/environ").read_bytes(),
        "change a sysctl": lambda: write(Path("/proc/sys/kernel/core_pattern")),
        "signal a process": lambda: os.kill(given["pid"], 0),
        "trace a process": lambda: call(101, PTRACE_SEIZE, given["pid"], 0, 0),
        "limit a process": lambda: call(302, given["pid"], 7, None, None),
        "reach TCP": lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", given["tcp"])),
        "reach UDP": lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 53)),
        "reach a socket": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, given["socket"]),
        "reach an abstract socket": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + given["abstract"]),
        "reach a socket by a datagram": lambda: datagram(given["datagrams"]),
        "ask the kernel's routes": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
        "type into a terminal": type_into_terminal,
        "make a link": lambda: (run / "link").symlink_to("/etc/passwd"),
        "make a hard link": lambda: os.link(made("linked"), run / "hard"),
        "make a pipe": lambda: os.mkfifo(run / "pipe"),
        "make a device": lambda: os.mknod(run / "device", stat.S_IFCHR | 0o600, os.makedev(1, 1)),
        "make a setuid program": lambda: made("setuid").chmod(0o4755),
        "open a setuid program": lambda: os.close(os.open(run / "setuid2", os.O_CREAT | os.O_WRONLY, 0o4755)),
        "become root": become_root,
        "take much private memory": lambda: mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE),
        "take much shared memory": lambda: mmap.mmap(-1, 1 << 34),
    }
    for name in ("mem", "kmsg", "kvm", "tty", "fuse", "net/tun", "vda", "ptmx"):
        found[f"open /dev/{name}"] = partial(os.open, f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK)
    for name, words in CALLS.items():
        found[f"call {name}"] = partial(call, *words)
    return found


def forks(most: int) -> int:
    """How many processes can be there at once."""
    children: list[int] = []
    try:
        while len(children) < most:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    except OSError:
        pass
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    return len(children)


def fills(place: Path, most: int) -> int:
    """How many bytes of memory a file takes."""
    with (place / "memory").open("wb", buffering=0) as file:
        try:
            while file.tell() < most and file.write(bytes(1 << 24)):
                pass
        except OSError:
            pass
        return file.tell()


def main(given: dict[str, Any]) -> dict[str, Any]:
    """All attempts, one after the other."""
    worked = []
    for name, attempt in attempts(given).items():
        try:
            attempt()
        except (OSError, ValueError):
            continue
        worked.append(name)
    run = Path(given["run"])
    (run / "kept").mkdir()
    (run / "kept" / "a").write_text("written")
    (run / "kept" / "a").rename(run / "b")
    return {
        "worked": worked,
        "shown": Path(given["shown"]).read_text(),
        "descriptors": sorted(int(each) for each in range(3, 64) if _is_open(each)),
        "forks": forks(given["forks"]),
        "fills": fills(Path(given["memory"]), given["fills"]),
    }


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
