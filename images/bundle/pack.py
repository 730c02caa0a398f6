"""Makes a release bundle of this clone: `make bundle`, or `python3 -m images.bundle.pack [--for aarch64]`.

Out: in target/bundle, `ewan-bundle-MACHINE-KEY.tar.xz` and beside it `….sha256`, which `sha256sum -c` and
images/bundle/use.py read. The same sources, compilers and archive of Debian's give the same bytes in any directory. For
another machine than this one it has only the node binary: the virtual kernel is for x86-64.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
import os
import platform
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from images.bundle.manifest import (
    CONFIG,
    HEADERS,
    KERNEL,
    KERNEL_MACHINE,
    LICENCES,
    MANIFEST,
    NODE,
    ROOT,
    File,
    Manifest,
    expected,
    node_sources,
)

TARGET = ROOT / "target/bundle"
TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
EPOCH_S = 1_735_689_600
"""The time of all members: 2025-01-01, as in the virtual kernel."""
_TERMS = """ewan-node is under the Apache License 2.0, as ewan is; the Rust crates in it are those of Cargo.lock.
"""
_KERNEL_TERMS = """
linux is a Linux kernel, under the GNU General Public License, version 2. Its source is Debian's package
linux-source-6.12 in the version and with the SHA-256
    {source}
with the patches, the options and the sources of images/kernel, emulator/kernel and emulator/model of the ewan of which
this bundle was made, by images/kernel/build.py. Whoever hands it on hands these on too, or says where they are.
"""


def main(machine: str) -> Path:
    """The bundle's path."""
    here = machine == platform.machine()
    node = _built("images/node/build.sh", *(() if here else ("--for", TRIPLES[machine])))
    contents = {NODE: node.read_bytes()}
    key = source = ""
    compilers = {"rustc": _within(contents[NODE], rb"rustc version [0-9][^\0]*")}
    terms = _TERMS
    if machine == KERNEL_MACHINE:
        kernel = _built("images/kernel/build.sh")
        key = kernel.parent.name
        source = (kernel.parents[1] / "cache/source").read_text().strip()
        beside = {CONFIG: "config", HEADERS: "headers.tar.xz"}
        contents |= {KERNEL: kernel.read_bytes()}
        contents |= {name: (kernel.parent / file).read_bytes() for name, file in beside.items()}
        compilers |= {"gcc": _within(contents[KERNEL], rb"gcc \([^\0]*?\) [0-9.]+")}
        terms += _KERNEL_TERMS.format(source=source)
    contents[LICENCES] = terms.encode()
    names = expected(bool(key))
    files = {name: File(hashlib.sha256(contents[name]).hexdigest(), len(contents[name])) for name in names}
    manifest = Manifest(machine, node_sources(), key, source, compilers, files)
    packed = archive(manifest, contents)
    TARGET.mkdir(parents=True, exist_ok=True)
    place = TARGET / manifest.name()
    _replace(place, packed)
    digest = hashlib.sha256(packed).hexdigest()
    _replace(place.with_name(f"{place.name}.sha256"), f"{digest}  {place.name}\n".encode())
    print(f"{place.relative_to(ROOT)}  {len(packed) / 1e6:.1f} MB\nSHA-256 {digest}")
    return place


def archive(manifest: Manifest, contents: dict[str, bytes]) -> bytes:
    """The compressed archive: nothing of the day, the user or the directory is in it."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in [(MANIFEST, manifest.to_json()), *((name, contents[name]) for name in manifest.files)]:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), EPOCH_S
            member.mode = 0o755 if name in (NODE, KERNEL) else 0o644
            tar.addfile(member, io.BytesIO(content))
    return lzma.compress(plain.getvalue(), check=lzma.CHECK_CRC64, preset=6)


def _built(script: str, *words: str) -> Path:
    # What a bundle brought here is not handed on: its compilers are not known.
    environment = {**os.environ, "BUNDLE": "off"}
    done = subprocess.run([ROOT / script, *words], stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(2)
    return Path(done.stdout.splitlines()[-1]).resolve()


def _within(program: bytes, pattern: bytes) -> str:
    """The version that a compiler wrote into a program; "unknown" if there is none."""
    found = re.search(pattern, program)
    return found[0].decode(errors="replace") if found else "unknown"


def _replace(place: Path, content: bytes) -> None:
    new = place.with_name(f"{place.name}.new")
    new.write_bytes(content)
    new.replace(place)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make bundle", description="Makes a release bundle of this clone.")
    parser.add_argument("--for", dest="machine", choices=sorted(TRIPLES), default=platform.machine())
    main(parser.parse_args().machine)
