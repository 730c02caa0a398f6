"""Finds the virtual kernel to start: EWAN_KERNEL, else the kernel that images/kernel builds on demand, or that of an
installed package, which is unpacked into the cache once.

In: the environment, images/kernel/build.sh. Out: its path, or LabError with one line.
"""

from __future__ import annotations

import lzma
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from ewan.labs.base import cache, ownership, writing
from ewan.labs.base.codec import replace
from ewan.labs.base.product import INSTALLED, KERNEL, ROOT
from ewan.labs.plan import Plan
from ewan.labs.runtime import whole
from ewan.labs.runtime.base import LabError

MACHINE = "x86_64"
"""The output of `uname -m` on machines that can run the virtual kernel: User-Mode Linux supports no other present-day
architecture."""
MAKER = "ewan" if INSTALLED else "`make kernel`"
KIND = "kernel-of-package"
"""The kind of the unpacked kernels in the cache."""
BUILD = ROOT / "images/kernel/build.sh"


def built(how: Literal["--path", "--last"] = "--path") -> Path | None:
    """The kernel that is there already: EWAN_KERNEL, else that of these sources or, by `how`, the one built last.

    None where it is not there.
    """
    wanted = os.environ.get("EWAN_KERNEL")
    if wanted:
        return Path(wanted).resolve() if Path(wanted).is_file() and os.access(wanted, os.X_OK) else None
    if KERNEL is not None:  # A package for another machine has none.
        return of_package(KERNEL, os.environ) if KERNEL.exists() else None
    shown = subprocess.run([BUILD, how], capture_output=True, text=True, check=False)
    paths = shown.stdout.splitlines()
    return Path(paths[-1]) if shown.returncode == 0 and paths else None


def of_package(packed: Path, environment: Mapping[str, str]) -> Path:
    """The kernel that a compressed file holds, unpacked where it is not there; LabError where it cannot be."""
    place = cache.kept(environment, KIND, ROOT) / whole.sha256(packed)[:16] / "linux"
    if place.exists():
        whole.check(place, f"remove {place.parent}")
        return place
    try:
        place.parent.mkdir(exist_ok=True)
        new = writing.beside(place)
        try:
            new.write_bytes(lzma.decompress(packed.read_bytes()))
            new.chmod(0o755)
            new.replace(place)
        finally:
            new.unlink(missing_ok=True)
        writing.write(place.with_name(place.name + whole.ENDING), whole.line(place, whole.sha256(place)))
    except (OSError, lzma.LZMAError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise LabError(f"the virtual kernel cannot be unpacked into {place.parent}: {why}") from None
    ownership.give_back_tree(place.parent, environment)
    return place


def chosen(plan: Plan) -> Plan:
    """The plan with the SHA-256 of the kernel that it names."""
    if plan.kernel is None:
        return plan
    from ewan.labs.kernels import library

    return library.chosen(plan, os.environ)


def of_plan(plan: Plan) -> tuple[Plan, Path | None]:
    """The plan with the SHA-256 of the kernel that it names, and this kernel; None: it takes the default one."""
    if plan.kernel is None:
        return plan, None
    from ewan.labs.kernels import library

    named, path = library.program_of(plan.kernel, os.environ)
    return replace(plan, kernel=named), path


def congestion_of(name: str) -> tuple[str, ...] | None:
    """The congestion controls that an added kernel has built in; None for the default one."""
    from ewan.labs.kernels import library

    return library.congestion_of(name, os.environ)


def kernel(tell: Callable[[str], None]) -> Path:
    """Builds it where it is not there; `tell` gets what the build says, line by line.

    Where that fails and an older one is there, that one serves: `tell` says so, and records name each kernel by hash.
    """
    if (here := platform.machine()) != MACHINE:
        raise LabError(
            f"there is no virtual clock on {here}: User-Mode Linux, in which it runs, is only for {MACHINE}: make a "
            "live lab as root (--runtime netns), or run this on another machine (docs/start/install.md)"
        )
    found = built()
    if found is not None:
        return found
    wanted = os.environ.get("EWAN_KERNEL")
    if wanted:
        raise LabError(f"EWAN_KERNEL={wanted}: no program there: name a virtual kernel, or leave it to {MAKER}")
    tell("kernel: the virtual kernel is built once, in up to five minutes on two CPUs")
    last = ""
    with subprocess.Popen([BUILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as build:
        assert build.stdout is not None and build.stderr is not None
        try:
            for line in build.stderr:
                last = line.strip() or last
                tell(last)
            lines = build.stdout.read().split()
        except BaseException:
            build.terminate()
            raise
    if build.returncode == 0 and lines:
        return Path(lines[-1])
    why = last.removeprefix("kernel: ") or f"{BUILD} ended with status {build.returncode}"
    older = built("--last")
    if older is None:
        raise LabError(why)
    tell(f"warning: {why}; the kernel built before serves")
    return older
