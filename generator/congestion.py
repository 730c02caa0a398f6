"""The congestion controls that each clock has, so that a scenario that wants another is refused before anything starts.

In: the names wanted. Out: those a socket in a lab's node may have. Live, the answer is the kernel's own: sockets are
tried in a network namespace of their own, which also loads the modules that load on demand. Virtual, it is in the
virtual kernel's configuration (images/kernel/fragment.config). The names of our own are in their modules' sources
(emulator/kernel/tcp), which other kernels take by DKMS or as BPF programs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

from ewan.labs.base.product import ROOT, shown
from ewan.labs.runtime.base import LabError

PROC = Path("/proc/sys/net/ipv4")
FRAGMENT = ROOT / "images/kernel/fragment.config"
MODULES = ROOT / "emulator/kernel/tcp"
BTF = Path("/sys/kernel/btf/vmlinux")
_REGISTERED = re.compile(r"^\s*\.name\s*=\s*\"(\w+)\"", re.MULTILINE)
_PACKAGE = re.compile(r'^PACKAGE_(NAME|VERSION)="(.*)"$', re.MULTILINE)
_CONFIGURED = re.compile(r"^CONFIG_TCP_CONG_(\w+)=y$", re.MULTILINE)
# What the kernel calls itself, where that is not the configuration's word in small letters.
_NAMED = {"HSTCP": "highspeed"}
_NO_NAME = "ADVANCED"

_TRIAL = """
import ctypes, socket, sys
CLONE_NEWNET = 0x40000000
if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
    sys.exit(1)
for name in sys.argv[1:]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        try:
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            continue
        print(name)
"""


def in_virtual(fragment: Path = FRAGMENT) -> tuple[str, ...]:
    """The congestion controls that are built into the virtual kernel; Reno is in every kernel."""
    modules = own()
    found = {"reno"}
    for word in _CONFIGURED.findall(fragment.read_text()):
        registered = [name for name, module in modules.items() if module == f"tcp_{word.lower()}"]
        if word != _NO_NAME:
            found.update(registered or [_NAMED.get(word, word.lower())])
    return tuple(sorted(found))


def own(folder: Path = MODULES) -> dict[str, str]:
    """Our own congestion controls: the name that a socket asks for, and its module."""
    sources = sorted(folder.glob("tcp_*.c"))
    return {name: source.stem for source in sources for name in _REGISTERED.findall(source.read_text())}


def as_bpf(folder: Path = MODULES) -> dict[str, str]:
    """The congestion controls of this project that exist as BPF programs, too."""
    programs = {path.name.removesuffix(".bpf.c") for path in (folder / "bpf").glob("*.bpf.c")}
    return {name: module for name, module in own(folder).items() if module in programs}


def in_live(wanted: Iterable[str] = (), proc: Path = PROC) -> tuple[str, ...]:
    """The congestion controls that this kernel lets a node's sockets have: tried as root, else those that the kernel
    allows to all users."""
    listed = {name for file in ("available", "allowed") for name in _words(proc / f"tcp_{file}_congestion_control")}
    command = [sys.executable, "-I", "-c", _TRIAL, *sorted(listed | set(wanted))]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    result = tried.stdout.split() if tried.returncode == 0 else _words(proc / "tcp_allowed_congestion_control")
    return tuple(sorted(result))


def refuse(
    wanted: Iterable[str], virtual: bool, added: Iterable[str] = (), built_in: Iterable[str] | None = None
) -> None:
    """LabError for the first that the clock's kernel lacks, with those it has. `added`: those that the user gave the
    virtual kernel. `built_in`: those of a virtual kernel other than the default one."""
    names = sorted(set(wanted))
    of_kernel = in_virtual() if built_in is None else built_in
    known = tuple(sorted({*of_kernel, *added})) if virtual else in_live(names)
    missing = [name for name in names if name not in known]
    if missing:
        raise LabError(_refusal(missing, known, virtual, set(added)))


def _refusal(missing: Sequence[str], known: Sequence[str], virtual: bool, added: Set[str]) -> str:
    listed = ", ".join(missing)
    if virtual:
        names = ", ".join(known)
        return (
            f"congestion control {listed}: the virtual kernel has none of that name: write one of {names}, or add "
            "yours: ewan cc add FILE.c"
        )
    there = [name for name in missing if name in added or name in in_virtual()]
    has = "them all" if len(there) == len(missing) else ", ".join(there)
    hint = f": run it with --runtime virtual, whose kernel has {has}" if there else ""
    return f"congestion control {listed}: this kernel lets nodes have {', '.join(known)}{hint}{_loaded(missing)}"


def _loaded(missing: Sequence[str]) -> str:
    """The remedy for missing congestion controls of this project: BPF programs where the kernel describes its types,
    else modules."""
    modules = sorted({module for name, module in own().items() if name in missing})
    if not modules:
        return ""
    only = sorted(set(modules) - set(as_bpf().values())) if BTF.exists() else []
    if BTF.exists() and not only:
        needs = "apt install make clang bpftool libbpf-dev"
        return f"; or give this kernel ours, as root: make -C {shown(MODULES)} bpf-load ({needs})"
    package = dict(_PACKAGE.findall((MODULES / "dkms.conf").read_text()))
    name, version = package["NAME"], package["VERSION"]
    steps = (
        f"cp -r {shown(MODULES)} /usr/src/{name}-{version}",
        f"dkms install {name}/{version}",
        f"modprobe -a {' '.join(modules)}",
    )
    why = f" ({', '.join(only)}: no BPF program)" if only else ""
    return f"; or give this kernel ours, as root{why}: {' && '.join(steps)}"


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
