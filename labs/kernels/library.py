"""The kernels that a user has added to the virtual clock, beside the default one.

In: names. Out: paths of kernels, and the notes of what went into each. The library is the folder `ewan/kernels` of the
user's data directory (XDG_DATA_HOME), with a folder for each kernel: the program `linux`, its configuration, the
headers by which modules are built for it, and the note. Under sudo it is that of the user who called it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ewan.labs.base import cache, codec, documents
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.product import ROOT
from ewan.labs.plan import OwnKernel, Plan
from ewan.labs.runtime import whole
from ewan.labs.runtime.base import LabError
from ewan.labs.spec.values import DEFAULT_KERNEL, KERNEL_NAME

DEFAULT = DEFAULT_KERNEL
KIND = "kernels"
"""The kind of the trees in the cache."""
NOTE = "kernel.json"
_NAME = KERNEL_NAME


class KernelSource(Struct):
    """The source of a kernel. `kind`: a tree, an archive, a package of Debian's, or the default kernel's source.
    `what`: its name; `path`: where it was, empty where it was downloaded. `sha256`: of the archive, or of all files of
    a tree; `commit`: that a tree of Git had checked out, whose files may have been changed since."""

    kind: str
    what: str
    path: str
    sha256: str
    commit: str


class OwnPatch(Struct):
    """A patch of the user's own, and its SHA-256."""

    name: str
    sha256: str


class SeriesPatch(Struct):
    """The outcome of a patch that makes a kernel one of the virtual clock. `kind`: what it is needed for. `state`:
    "applied", "in the tree" if the tree has the change already, or "does not apply". `lost`: what is lost without
    it."""

    name: str
    title: str
    kind: str
    lost: str
    state: str
    why: str


class AddedKernel(Document, tag="ewan-kernel/1"):
    """A kernel of the library. `patches`: those of the product; `controls_left_out`: congestion controls of the product
    that it does not have, each with the reason; `options_left_out`: options of the default configuration that it does
    not know. `congestion`: those that it had when it was added. `seconds`: how long its build took."""

    name: str
    version: str
    source: KernelSource
    own_patches: tuple[OwnPatch, ...]
    patches: tuple[SeriesPatch, ...]
    controls_left_out: dict[str, str]
    options_left_out: tuple[str, ...]
    kernel_sha256: str
    config_sha256: str
    congestion: tuple[str, ...]
    seconds: float

    def left_out(self) -> tuple[SeriesPatch, ...]:
        """The patches of the product without which it runs."""
        return tuple(patch for patch in self.patches if patch.state == "does not apply")


def folder(environment: Mapping[str, str]) -> Path | None:
    """The library's folder, which need not exist; None without a home."""
    return cache.data(environment, "kernels")


def check_name(name: str) -> str:
    """The name, if a kernel can have it."""
    if name == DEFAULT:
        raise LabError(f"the name {DEFAULT} is that of the default kernel: choose another")
    if not _NAME.fullmatch(name):
        raise LabError(f'kernel "{name}": write a name of at most 31 small letters, digits, ".", "_" and "-", as bbr3')
    return name


def added(environment: Mapping[str, str]) -> dict[str, AddedKernel]:
    """The kernels of the library by name; a damaged note is a LabError."""
    found: dict[str, AddedKernel] = {}
    if (place := folder(environment)) is None:
        return found
    for note in sorted(place.glob(f"*/{NOTE}")):
        name = note.parent.name
        if _NAME.fullmatch(name):
            try:
                found[name] = documents.read(AddedKernel, note)
            except documents.DocumentError as error:
                raise LabError(f"{error}: ewan kernel remove {name}, and add it again") from None
    return found


def path_of(name: str, environment: Mapping[str, str]) -> Path | None:
    """The kernel of a name, with the bytes that were built; None for the default kernel, whose path is known once it is
    built. LabError for a name that the library does not have."""
    if name == DEFAULT:
        return None
    place = folder(environment)
    path = None if place is None else place / name / "linux"
    if not _NAME.fullmatch(name) or path is None or not path.with_name(NOTE).exists():
        raise LabError(f"kernel {name}: there is none of this name: {_known(environment)}")
    if not path.exists():
        raise LabError(f"kernel {name}: {path} is not there: add it again")
    whole.check(path, f"ewan kernel remove {name}, and add it again")
    return path


def chosen(plan: Plan, environment: Mapping[str, str]) -> Plan:
    """The plan with the SHA-256 of the kernel that it names; LabError where the library has none of this name."""
    if plan.kernel is None or plan.kernel.sha256:
        return plan
    return codec.replace(plan, kernel=program_of(plan.kernel, environment)[0])


def program_of(kernel: OwnKernel, environment: Mapping[str, str]) -> tuple[OwnKernel, Path]:
    """A plan's kernel with its SHA-256, and its program: that of its name where it has no SHA-256, else that of these
    bytes, whatever the library calls it. LabError where there is none."""
    kernels = added(environment)
    if not kernel.sha256 and (path := path_of(kernel.name, environment)) is not None:
        return OwnKernel(kernel.name, kernels[kernel.name].kernel_sha256), path
    for name, each in kernels.items():
        if each.kernel_sha256 == kernel.sha256 and (path := path_of(name, environment)) is not None:
            return kernel, path
    raise LabError(
        f"kernel {kernel.name}, SHA-256 {kernel.sha256[:16]}, is not on this machine: copy the folder ewan/kernels/"
        f"{kernel.name} of the data directory of the machine that has it"
    )


def congestion_of(name: str, environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """The congestion controls that an added kernel has built in; None for the default one."""
    return None if path_of(name, environment) is None else added(environment)[name].congestion


def remove(name: str, environment: Mapping[str, str]) -> int:
    """Removes a kernel and the tree that it was built in; results of its runs stay. Returns the bytes that are free
    then."""
    place, tree = folder(environment), cache.kept(environment, KIND, ROOT) / name
    if name == DEFAULT:
        raise LabError(f"kernel remove {name}: this is the default kernel, which is not in the library")
    if not _NAME.fullmatch(name) or place is None or not ((place / name).is_dir() or tree.is_dir()):
        raise LabError(f"kernel remove {name}: there is none of this name: {_known(environment)}")
    freed = size(place / name) + size(tree)
    for each in (place / name, tree):
        shutil.rmtree(each, ignore_errors=True)
    return freed


def size(directory: Path) -> int:
    """The bytes of the files below a directory."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if not path.is_symlink() and path.is_file())


def _known(environment: Mapping[str, str]) -> str:
    try:
        names = ", ".join(sorted(added(environment)))
    except LabError:
        names = ""
    return f"the library has {names}, and {DEFAULT} is the default" if names else f"write {DEFAULT}, or add one"
