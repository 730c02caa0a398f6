"""The first process of a machine of the rig: makes the machine's own /run, /sys, users and name, and runs sshd.

Started by tests/extras/machines_rig.py in new network, mount, UTS and PID namespaces, with the interpreter alone
(`python -I -S`). In: name, directory and sshd as words; on standard input a line when the network is there, then
nothing until its end, which is the machine's. Out: a line with its process id as the host sees it, a line when sshd
listens.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path("/run/machine")
"""The machine's directory, as the machine sees it: what stays when it is killed and comes back."""


def mount(*words: str) -> None:
    """Mounts something in this namespace alone."""
    subprocess.run(["mount", *words], check=True)


def furnish(directory: str) -> None:
    """The file systems that a machine has of its own."""
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for name in ("sshd", "netns", "lock", "machine", "cgroup"):
        Path("/run", name).mkdir()
    mount("--bind", directory, str(HERE))
    mount("-t", "proc", "proc", "/proc")
    # A new sysfs shows this namespace's interfaces; control groups are mounted below the old one.
    mount("--rbind", "/sys/fs/cgroup", "/run/cgroup")
    mount("-t", "sysfs", "sysfs", "/sys")
    mount("--rbind", "/run/cgroup", "/sys/fs/cgroup")
    subprocess.run(["umount", "--lazy", "/run/cgroup"], check=True)
    Path("/run/cgroup").rmdir()
    for file in sorted((HERE / "etc").iterdir()):
        mount("--bind", str(file), f"/etc/{file.name}")


def listening(longest_s: float = 10.0) -> bool:
    """Whether sshd takes connections by then."""
    end = time.monotonic() + longest_s
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", 22)) == 0:
                return True
        time.sleep(0.01)
    return False


def main() -> None:
    """Runs until standard input ends, or sshd does; the kernel ends all other processes of the machine then."""
    name, directory, sshd, libraries = sys.argv[1:]
    # Of the host's /proc.
    print(Path("/proc/self").readlink(), flush=True)
    socket.sethostname(name)
    furnish(directory)
    if not sys.stdin.readline():
        return
    with (HERE / "sshd.log").open("ab") as log:
        daemon = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(HERE / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": os.environ["PATH"], **({"LD_LIBRARY_PATH": libraries} if libraries else {})},
        )
    if not listening():
        return
    print("listening", flush=True)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    with selectors.DefaultSelector() as selector:
        selector.register(wake, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        # Who loses its parent becomes a child of this process.
        while True:
            while True:
                try:
                    ended, _ = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    return
                if ended == daemon.pid:
                    return
                if ended == 0:
                    break
            if any(key.fd == 0 for key, _ in selector.select()):
                return
            os.read(wake, 4096)


if __name__ == "__main__":
    main()
