"""Takes what a release bundle has for this clone into the cache: `python3 -m images.bundle.use FILE`.

The file's SHA-256 must be given: by BUNDLE_SHA256, by FILE.sha256 beside it (as sha256sum writes it),
or by images/bundle/SHA256SUMS of this clone. Each member is checked against the manifest before it takes its place.
Uses the standard library only. Exit status 0: what it has is in the cache; 1: it is of other sources, and a line says
so; 2: it cannot be trusted, or not be read, and a line says why.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from images.bundle import manifest
from images.bundle.manifest import CONFIG, HEADERS, KERNEL, NODE, ROOT, BundleError, File, Manifest, OtherSourcesError
from images.kernel import adopt as kernel
from images.kernel.build import write_sum

SUMS = ROOT / "images/bundle/SHA256SUMS"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20


def main(file: Path, environment: Mapping[str, str]) -> str:
    """Unpack a bundle and return one line on the result. BundleError with the reason if it cannot be used."""
    if not file.is_file():
        raise BundleError("there is no such file")
    try:
        wanted = given(file, environment)
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
            if found != wanted:
                raise BundleError(f"its SHA-256 is {found}, not {wanted}: fetch it again, from whom you trust")
            # The bytes that were checked are those that are read, whatever becomes of the name.
            opened.seek(0)
            with tarfile.open(fileobj=opened, mode="r:xz") as archive:
                said = manifest.read(_manifest(archive))
                _check_clone(said)
                return _unpacked(archive, said)
    except OSError as error:
        raise BundleError(error.strerror or str(error)) from None
    except (tarfile.TarError, lzma.LZMAError, EOFError):
        raise BundleError("it is no bundle, or it is damaged") from None


def given(file: Path, environment: Mapping[str, str]) -> str:
    """The SHA-256 that the file must have; BundleError if it is given nowhere."""
    if said := environment.get("BUNDLE_SHA256", "").strip().lower():
        if not _DIGEST.fullmatch(said):
            raise BundleError(f'BUNDLE_SHA256 "{said}": write the 64 hexadecimal digits that sha256sum prints')
        return said
    beside = file.with_name(f"{file.name}.sha256")
    for place in (beside, SUMS):
        lines = place.read_text(errors="replace").splitlines() if place.is_file() else []
        for digest, name in (line.split(maxsplit=1) for line in lines if len(line.split()) > 1):
            if Path(name.lstrip("*")).name == file.name and _DIGEST.fullmatch(digest):
                return digest
    raise BundleError(f"its SHA-256 is not known: put {beside.name} beside it, or give BUNDLE_SHA256=…")


def owned(file: Path) -> None:
    """Raise BundleError for a file that was not named and that another user may have put there."""
    for path in (file, file.with_name(f"{file.name}.sha256")):
        if path.exists() and (path.stat().st_uid not in (0, os.getuid()) or path.stat().st_mode & 0o022):
            raise BundleError(
                f"{path.name} belongs to another user, or others may write it: name the bundle by BUNDLE="
            )


def _manifest(archive: tarfile.TarFile) -> bytes:
    first = archive.next()
    opened = archive.extractfile(first) if first and first.name == manifest.MANIFEST and first.isreg() else None
    if first is None or opened is None or first.size > manifest.MOST_MANIFEST_BYTES:
        raise BundleError("it has no manifest")
    return opened.read()


def _check_clone(said: Manifest) -> None:
    here = platform.machine()
    if said.machine != here:
        raise OtherSourcesError(f"it is for {said.machine}, and this machine is {here}")
    if said.node != manifest.node_sources():
        raise OtherSourcesError("its node binary was made of other sources than this clone's")
    if said.kernel and said.kernel != kernel.key_of(said.source):
        raise OtherSourcesError("its kernel was made of other sources than this clone's")
    if set(said.files) != set(manifest.expected(bool(said.kernel))):
        raise BundleError("its manifest names other files than a bundle has")


def _unpacked(archive: tarfile.TarFile, said: Manifest) -> str:
    """Each file into a directory of the cache's file system first, and from there into its place by renaming."""
    node_place = _kept("node")
    kernel_place = _kept("kernel") if said.kernel else None
    done = []
    with tempfile.TemporaryDirectory(dir=node_place, prefix=".bundle-") as name:
        scratch = Path(name)
        while member := archive.next():
            if member.name not in said.files or not member.isreg():
                raise BundleError(f"it holds {member.name!r}, which its manifest does not name")
            _extract(archive, member, said.files[member.name], scratch / member.name)
        lacking = [each for each in said.files if not (scratch / each).exists()]
        if lacking:
            raise BundleError(f"it lacks {lacking[0]}, which its manifest names")
        if kernel_place is not None:
            (scratch / CONFIG).rename(scratch / "config")
            (scratch / HEADERS).rename(scratch / "headers.tar.xz")
            files = [scratch / name for name in (KERNEL, "config", "headers.tar.xz")]
            if kernel.adopt(kernel_place, said.kernel, said.source, files):
                done.append("the virtual kernel")
        (scratch / NODE).chmod(0o755)
        (scratch / NODE).replace(node_place / f"prebuilt-{said.node}")
        write_sum(node_place / f"prebuilt-{said.node}")
        done.append("the node binary")
    return " and ".join(done)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, wanted: File, place: Path) -> None:
    if member.size != wanted.size or member.size > manifest.MOST_BYTES:
        raise BundleError(f"{member.name} has another size than its manifest says")
    source, digest = archive.extractfile(member), hashlib.sha256()
    assert source is not None
    with place.open("wb") as target:
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            target.write(chunk)
    if digest.hexdigest() != wanted.sha256:
        raise BundleError(f"{member.name} has another SHA-256 than its manifest says")


def _kept(name: str) -> Path:
    """The cache's directory for things of this kind, as scripts find it."""
    script = f'root=$1; . "$root/images/cache.sh"; kept {name}'
    done = subprocess.run(["sh", "-c", script, "sh", str(ROOT)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise BundleError("there is no cache to put it into")
    return Path(done.stdout.strip())


if __name__ == "__main__":
    named = Path(sys.argv[1])
    try:
        if not os.environ.get("BUNDLE"):
            owned(named)
        print(f"setup: {named.name} has {main(named, os.environ)}: nothing is to be compiled", file=sys.stderr)
    except BundleError as refusal:
        other = isinstance(refusal, OtherSourcesError)
        rest = "; what is missing is built here" if other or not os.environ.get("BUNDLE") else ""
        print(f"setup: {named}: {refusal}{rest}", file=sys.stderr)
        sys.exit(1 if other else 2)
    except KeyboardInterrupt:
        sys.exit(130)
