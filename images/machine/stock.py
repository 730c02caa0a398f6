"""Debian's own kernels, and archives from which they boot: packages fetched and unpacked, modules, programs, initramfs.

In: names of packages, modules, programs. Out: files. Nothing is installed: packages are downloaded with apt-get.
"""

from __future__ import annotations

import lzma
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from images.locks import hold


class MissingError(Exception):
    """Something this host lacks, in one line, with the remedy."""


def check_tools(tools: Mapping[str, str]) -> None:
    """MissingError for commands that are not here; `tools`: command → Debian package."""
    absent = sorted({package for tool, package in tools.items() if not shutil.which(tool)})
    if absent:
        raise MissingError(f"the virtual machine needs packages: apt install {' '.join(absent)}")


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command and return its output; MissingError with its last line if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise MissingError(f"{' '.join(str(part) for part in command)}: {said[-1] if said else done.returncode}")
    return done.stdout


def depends(package: str, pattern: str) -> list[str]:
    """The packages it depends on directly whose names match."""
    lines = run("apt-cache", "depends", "--no-recommends", "--no-suggests", package).splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if "Depends:" in line]
    return [name for name in names if re.fullmatch(pattern, name)]


def kernel_package(image: str) -> str:
    """The package with the newest kernel, by the package that always depends on it; MissingError where apt knows
    none."""
    found = depends(image, r"linux-image-[\d.].*")
    if not found:
        raise MissingError(f"apt knows no {image}: enable bookworm-security, then apt update")
    return found[0]


def fetch(packages: Iterable[str], into: Path) -> None:
    """Download and unpack, once; `into` then holds the packages' files. Whoever comes meanwhile waits."""
    done, archives = into / ".done", into / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    with hold(into / ".lock"):
        if done.exists():
            return
        for left in archives.glob("*"):  # of an earlier download, which a full disk may have cut off
            left.unlink()
        run("apt-get", "download", *packages, cwd=archives)
        for archive in archives.glob("*.deb"):
            run("dpkg-deb", "-x", archive, into)
        shutil.rmtree(archives)
        done.touch()


def needed(modules: Path, names: Iterable[str]) -> dict[str, bytes]:
    """These modules and all they depend on, each after those it needs; what the kernel has built in is left out."""
    found: dict[str, bytes] = {}
    for name in names:
        paths = list(modules.rglob(f"{name}.ko*")) + list(modules.rglob(f"{name.replace('_', '-')}.ko*"))
        if not paths:
            continue
        data = paths[0].read_bytes()
        if paths[0].suffix == ".xz":
            data = lzma.decompress(data)
        depends_on = re.search(rb"\0depends=([^\0]*)\0", data)
        if depends_on and depends_on[1]:
            found |= needed(modules, depends_on[1].decode().split(","))
        found[name] = data
    return found


def with_libraries(tools: Iterable[str], folder: str) -> dict[str, bytes]:
    """Programs of this host in a folder of the archive, and the libraries that they load."""
    files: dict[str, bytes] = {}
    for tool in tools:
        path = Path(shutil.which(tool) or tool).resolve()
        files[f"{folder}/{tool}"] = path.read_bytes()
        for library in libraries(path):
            files[library.lstrip("/")] = Path(library).read_bytes()
    return files


def libraries(program: Path) -> list[str]:
    """Those that a program loads, as the loader finds them."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def pack(files: Mapping[str, bytes], archive: Path) -> None:
    """An initramfs: a cpio archive in the "newc" format (kernel: driver-api/early-userspace/buffer-format)."""
    folders = {str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}
    folders |= {"proc", "sys", "dev", "run", "tmp", "etc", "bin"}
    entries = [(name, 0o040755, b"") for name in sorted(folders)]
    entries += [(name, 0o100755, data) for name, data in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    plain = archive.with_suffix("")
    with plain.open("wb") as out:
        for inode, (name, mode, data) in enumerate(entries, 1):
            fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
            head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
            out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
    run("gzip", "-1", "-f", "-k", plain)
    plain.with_name(plain.name + ".gz").replace(archive)
