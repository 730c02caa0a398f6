"""A program of the machine of `python -m tests.vm.host_modules`: its kernel takes modules, and refuses what it must.

Out: lines "name: value".
"""

from __future__ import annotations

import os
import platform
import socket
from pathlib import Path

from ewan.labs.base import documents, writing
from ewan.labs.base.codec import document, replace
from ewan.labs.congestion import source
from ewan.labs.congestion.host_kernel import HostKernel
from ewan.labs.runtime import host_modules, kernel_modules
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.host_modules import LoadedModule
from ewan.labs.runtime.program import KernelModule

PLACE, STATE = Path("/sys/module/tcp_mine"), Path("/run/ewan")
SOURCE = source.read(Path("/run/given/data/ewan/congestion/tcp_mine/tcp_mine.c"))
MINE = KernelModule(SOURCE, ("mine",), "alpha=4")
BUILD = Path("/lib/modules") / platform.release() / "build"
told: list[str] = []
kernel = HostKernel(node_binary(None), STATE, True, told.append)


def refused(name: str, module: KernelModule = MINE) -> None:
    """Prints why the kernel does not get a module."""
    try:
        with kernel.having([module]):
            print(f"{name}: it is loaded", flush=True)
    except LabError as error:
        print(f"{name}: {error}", flush=True)


def refused_change(name: str, old: bytes, new: bytes) -> None:
    """Prints the same for a changed source."""
    assert old in SOURCE.text
    refused(name, replace(MINE, source=replace(SOURCE, text=SOURCE.text.replace(old, new))))


def refused_image(name: str, image: bytes) -> None:
    """Prints why the kernel does not load a compiled module."""
    try:
        host_modules._load("tcp_mine.c", image, "")
        print(f"{name}: it is loaded", flush=True)
    except LabError as error:
        print(f"{name}: {error}", flush=True)


with kernel.having([MINE]):
    print("parameter:", (PLACE / "parameters/alpha").read_text().strip())
    refused("twice")
print("unloaded:", PLACE.exists(), STATE.exists(), told)
with socket.socket() as tcp:
    with kernel.having([MINE]):
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"mine")
    print("used:", PLACE.exists(), told)
(note,) = (STATE / host_modules.NOTES).iterdir()
of_another = replace(documents.read(LoadedModule, note), born=0.0)
writing.write(note, document(of_another))
print("later:", host_modules.unload_left(STATE), PLACE.exists(), STATE.exists())
refused("text", replace(MINE, parameters="alpha=x"))
refused("controls", replace(MINE, controls=("other",)))
refused_change("undo", b"\t.undo_cwnd = tcp_reno_undo_cwnd,\n", b"")
refused_change("taken", b'"mine"', b'"cubic"')
refused_change("syntax", b"mine->losses = 0", b"mine->loss = 0")

image = kernel_modules.file_of(host_modules.built(SOURCE, kernel.binary)).read_bytes()
assert b" mod_unload " in image
refused_image("configuration", image.replace(b" mod_unload ", b" mod_onload "))
host_modules._load("tcp_mine.c", image, "")
refused("foreign")
note.parent.mkdir(parents=True)
writing.write(note, document(replace(of_another, build_id="00" * 20)))
print("left:", host_modules.unload_left(STATE), PLACE.exists(), STATE.exists(), host_modules._unload("tcp_mine"))

release = BUILD / "include/generated/utsrelease.h"
text = release.read_text()
release.write_text(text.replace(platform.release(), "9.9"))
refused("version")
release.write_text(text)
target = BUILD.readlink()
BUILD.unlink()
refused("headers")
BUILD.symlink_to(target)
Path("/sys/kernel/security/lockdown").write_text("integrity")
refused("lockdown")
refused_image("signature", image)
os._exit(0)
