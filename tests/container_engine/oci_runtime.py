"""runc for hosts whose root lacks capabilities: takes out of a container's configuration what cannot be given.

Docker asks for every capability in privileged containers and in `exec`; runc then fails where the bounding set has
fewer. Called by the engine in place of runc, with runc's arguments; changes the bundle's config.json, and the file of
`exec --process`, then becomes runc. Only for the engines of the tests.
"""

import json
import os
import re
import resource
import shutil
import sys
from pathlib import Path

# Numbers as in linux/capability.h.
KNOWN = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
"""
NAMES = KNOWN.split()


def bounding_set() -> int:
    """The capabilities that this process may ever have, as a mask."""
    found = re.search(r"^CapBnd:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found.group(1), 16)


def lacking() -> list[str]:
    """The capabilities that the kernel knows and this process cannot have, as "CAP_SYS_RESOURCE"."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    have = bounding_set()
    return [f"CAP_{name}" for number, name in enumerate(NAMES[: last + 1]) if not have >> number & 1]


def install(place: Path) -> Path:
    """Writes the program that an engine calls into a directory; returns its path.

    An engine calls it several times for each container, so it starts this very interpreter, and without packages.
    """
    program = place / "oci-runtime"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {__file__} "$@"\n')
    program.chmod(0o755)
    return program


def without(process: dict[str, object], lost: list[str]) -> None:
    """Takes capabilities out of the description of a process, in place, and resource limits above our own."""
    sets = process.get("capabilities")
    if isinstance(sets, dict):
        for kind, names in sets.items():
            sets[kind] = [name for name in names or [] if name not in lost]
    limits = process.get("rlimits")
    if isinstance(limits, list) and "CAP_SYS_RESOURCE" in lost:
        for limit in limits:
            hard = resource.getrlimit(getattr(resource, limit["type"]))[1]
            if hard != resource.RLIM_INFINITY:
                limit["hard"], limit["soft"] = min(limit["hard"], hard), min(limit["soft"], hard)


def value(arguments: list[str], *options: str) -> str | None:
    """The value of an option, written `--name value` or `--name=value`."""
    for place, argument in enumerate(arguments):
        for option in options:
            if argument == option and place + 1 < len(arguments):
                return arguments[place + 1]
            if argument.startswith(f"{option}="):
                return argument.removeprefix(f"{option}=")
    return None


def main() -> None:
    arguments = sys.argv[1:]
    lost = lacking()
    bundle = value(arguments, "--bundle", "-b")
    if bundle and (config := Path(bundle) / "config.json").exists():
        content = json.loads(config.read_text())
        without(content["process"], lost)
        config.write_text(json.dumps(content))
    process = value(arguments, "--process", "-p")
    if process and "exec" in arguments:
        content = json.loads(Path(process).read_text())
        without(content, lost)
        Path(process).write_text(json.dumps(content))
    runc = shutil.which("runc") or "/usr/sbin/runc"
    os.execv(runc, ["runc", *arguments])


if __name__ == "__main__":
    main()
