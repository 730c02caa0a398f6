"""Makes an image's file system from Debian packages with mmdebstrap: locked .deb files in, one tar file out.

mmdebstrap gets a local repository of exactly the locked packages, so nothing else can get in. Documentation (licences
stay), translations, package lists and caches are left out; every time stamp is the lock's date, so that the same lock
gives the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from images.container.packages import MERGED, RELOCK, ImagesError, Lock, Package, wanted

LEFT_OUT = (
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/doc/*",
    "/usr/share/doc-base/*",
    "/usr/share/lintian/*",
    "/usr/share/bash-completion/*",
    "/usr/share/javascript/*",
    "/usr/share/sphinx_rtd_theme/*",
    "/usr/share/zoneinfo/*",
    "/usr/lib/x86_64-linux-gnu/gconv/*",
    "/usr/lib/aarch64-linux-gnu/gconv/*",
)
HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"  # /bin a link to /usr/bin, before anything is unpacked
KEPT = ("/usr/share/doc/*/copyright",)
# What belongs to the machine that builds, and what only an installation needs.
REMOVED = """
rm -f "$1"/etc/resolv.conf "$1"/etc/hostname "$1"/etc/machine-id "$1"/var/lib/dpkg/*-old "$1"/etc/passwd- \
  "$1"/etc/group- "$1"/etc/shadow- "$1"/etc/gshadow- "$1"/etc/ssl/private/*.key "$1"/etc/apt/sources.list \
  "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap
rm -rf "$1"/var/log/* "$1"/var/cache/debconf "$1"/var/cache/ldconfig "$1"/usr/share/doc-base
find "$1"/usr -name __pycache__ -type d -prune -exec rm -rf {} +
"""


def need_mmdebstrap() -> None:
    for command, package in (("mmdebstrap", "mmdebstrap"), ("dpkg-deb", "dpkg")):
        if not shutil.which(command):
            raise ImagesError(f"{command} is missing: apt install {package} (or use images/Dockerfile)")


def index(lock: Lock, packages: list[Package], cache: Path) -> str:
    """The text of a repository's Packages file."""
    stanzas = []
    for package in packages:
        shown = subprocess.run(["dpkg-deb", "-f", str(cache / package.file)], capture_output=True, text=True)
        if shown.returncode:
            raise ImagesError(f"{package.file} cannot be read: remove {cache / package.file} and try again")
        place = [f"Filename: ./{package.file}", f"Size: {package.size}", f"SHA256: {package.sha256}"]
        stanzas.append("\n".join([shown.stdout.rstrip(), *place]) + "\n")
    return "\n".join(stanzas)


def release(lock: Lock, packages: Path) -> str:
    """The text of a repository's Release file: mmdebstrap takes essential packages from a named suite only."""
    content = packages.read_bytes()
    return (
        f"Suite: {lock.release}\nCodename: {lock.release}\nArchitectures: {lock.architecture} all\n"
        f"SHA256:\n {hashlib.sha256(content).hexdigest()} {len(content)} Packages\n"
    )


def build(image: str, lock: Lock, cache: Path, target: Path, base: Path | None) -> None:
    """Writes the tar file of an image's file system, upon the base's where one is given. Raises ImagesError."""
    need_mmdebstrap()
    packages = lock.of(image)
    new = target.with_suffix(".new.tar")
    # Of its own and readable by all: without root mmdebstrap works as another user.
    with tempfile.TemporaryDirectory(prefix="ewan-image-") as scratch:
        repository = Path(scratch)
        repository.chmod(0o755)
        for package in packages:
            link_or_copy(cache / package.file, repository / package.file)
        (repository / "Packages").write_text(index(lock, packages, cache))
        (repository / "Release").write_text(release(lock, repository / "Packages"))
        left_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
        kept = [f"--dpkgopt=path-include={pattern}" for pattern in KEPT]
        command = [
            "mmdebstrap",
            "--verbose",
            *(start(base) if base else ["--variant=essential", f"--hook-dir={HOOKS}"]),
            f"--architectures={lock.architecture}",
            f"--include={','.join(wanted(image) if base else [MERGED, *wanted(image)])}",
            *left_out,
            *kept,
            "--dpkgopt=force-unsafe-io",  # a system that is thrown away when the machine stops
            '--aptopt=APT::Install-Recommends "false"',
            '--aptopt=Acquire::Languages "none"',
            "--skip=output/dev",
            f"--customize-hook={REMOVED}",
            lock.release,
            str(new),
            f"deb [trusted=yes] copy:{repository} ./",
        ]
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(lock.epoch), "LC_ALL": "C"}
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        new.unlink(missing_ok=True)
        log = target.with_suffix(".log")
        log.write_text(done.stdout + done.stderr)
        reasons = [line[2:].strip() for line in done.stderr.splitlines() if line.startswith("E:")]
        raise ImagesError(f"mmdebstrap failed for {image} ({(reasons or ['unknown reason'])[0]}): see {log}")
    check(image, lock, new)
    new.rename(target)


def start(base: Path) -> list[str]:
    """The options with which mmdebstrap goes on from a system that is there."""
    return ["--variant=custom", f'--setup-hook=tar --extract --directory "$1" --file {shlex.quote(str(base))}']


def link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def installed(rootfs: Path) -> dict[str, str]:
    """Name and version of every package that is installed in a tar file's system."""
    with tarfile.open(rootfs) as tar:
        file = tar.extractfile("./var/lib/dpkg/status")
        assert file is not None
        status = file.read().decode()
    found = {}
    for stanza in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields["Version"]
    return found


def check(image: str, lock: Lock, rootfs: Path) -> None:
    """Raises ImagesError unless exactly the locked packages are installed."""
    have = installed(rootfs)
    locked = {package.name: package.version for package in lock.of(image)}
    if have != locked:
        different = ", ".join(sorted({name for name, _ in have.items() ^ locked.items()})[:5])
        rootfs.unlink()
        raise ImagesError(f"{image} has other packages than the lock says ({different}): {RELOCK}")
