"""The Debian packages of an image: the lists, the lock with exact versions, and the .deb files themselves.

In: `packages/<image>.list` (the wanted packages, a name per line) and `packages/lock` (the packages that follow from
them: name, version, archive, path, size and SHA-256 of each, and the images it is in). Out: the files, verified, below
a cache. A version that the mirror no longer has comes from Debian's snapshot of the locked date.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.parse import unquote, urlsplit

HERE = Path(__file__).resolve().parent.parent
LISTS = HERE / "packages"
LOCK = LISTS / "lock"
RELEASE = "bookworm"
MIRROR = "http://deb.debian.org"
SNAPSHOT = "http://snapshot.debian.org/archive"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ARCHIVES = {"debian": (RELEASE, f"{RELEASE}-updates"), "debian-security": (f"{RELEASE}-security",)}
RELOCK = "RELOCK=1 make images writes a new lock"
# apt counts itself among the essential packages; an image does without it.
ESSENTIAL = "?and(?essential,?not(?name(^apt$)))"
# /bin is a link to /usr/bin from the start; without this apt takes usrmerge, and with it 50 MB of Perl.
MERGED = "usr-is-merged"
BASE = "base"
CONNECTIONS = 8
TIMEOUT_S = 60
# Names are not resolved, and mirrors do not answer, at times.
PAUSES_S = (0.5, 2.0, 5.0)


class ImagesError(Exception):
    """An error in one line, with its remedy."""


@dataclass(frozen=True)
class Package:
    """One Debian package, exactly."""

    name: str
    version: str
    archive: str  # "debian" or "debian-security"
    path: str  # below the archive
    size: int  # bytes
    sha256: str
    images: tuple[str, ...]

    @property
    def file(self) -> str:
        """The name of the package's file, without folders."""
        return self.path.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Lock:
    """All packages of all images, as of a date."""

    release: str
    date: str  # of the snapshot, "20261121T150000Z"
    architecture: str
    packages: tuple[Package, ...]

    def of(self, image: str) -> list[Package]:
        """The packages of one image, the base's included."""
        return [package for package in self.packages if image in package.images]

    def key(self, image: str) -> str:
        """The hash of an image's packages."""
        parts = [self.release, self.architecture, *(package.sha256 for package in self.of(image))]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def epoch(self) -> int:
        """The date as seconds since 1970: the time of every file that an image's build makes."""
        import calendar

        return calendar.timegm(time.strptime(self.date, "%Y%m%dT%H%M%SZ"))

    def write(self) -> str:
        """The text of the lock's file, as `read_lock` reads it."""
        lines = [
            f"# Debian packages of the container images. Written by {RELOCK.split(' writes')[0]}; not edited by hand.",
            f"release {self.release}",
            f"date {self.date}",
            f"architecture {self.architecture}",
        ]
        for package in sorted(self.packages, key=lambda package: package.name):
            facts = (package.name, package.version, package.archive, package.path, package.size, package.sha256)
            lines.append(" ".join([*map(str, facts), ",".join(package.images)]))
        return "\n".join(lines) + "\n"


def read_lock(text: str, where: str = "images/packages/lock") -> Lock:
    """A lock from its text. Raises ImagesError, which names the line."""
    head: dict[str, str] = {}
    packages = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) == 2:
            head[words[0]] = words[1]
        elif len(words) == 7 and words[4].isdigit() and len(words[5]) == 64:
            name, version, archive, path, size, sha256, images = words
            packages.append(Package(name, version, archive, path, int(size), sha256, tuple(images.split(","))))
        else:
            raise ImagesError(f"{where}:{number}: not a package: {RELOCK}")
    if lacking := [name for name in ("release", "date", "architecture") if name not in head]:
        raise ImagesError(f"{where}: {lacking[0]} is missing: {RELOCK}")
    return Lock(head["release"], head["date"], head["architecture"], tuple(packages))


def wanted(image: str) -> list[str]:
    """The names in an image's list, without those of the base that every image is built upon."""
    lines = (line.split("#")[0].strip() for line in (LISTS / f"{image}.list").read_text().splitlines())
    return [line for line in lines if line]


def images() -> list[str]:
    """The base, then the others: each has all of the base."""
    return [BASE, *sorted(path.stem for path in LISTS.glob("*.list") if path.stem != BASE)]


def architecture() -> str:
    """Debian's name of this machine's architecture."""
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return names.get(os.uname().machine, os.uname().machine)


def mirror() -> str:
    """The address from which packages are downloaded: EWAN_MIRROR, or Debian's mirror; without a slash at its end."""
    return os.environ.get("EWAN_MIRROR", MIRROR).rstrip("/")


def resolve(work: Path) -> Lock:
    """Resolve the lists to exact packages on today's mirror. Raises ImagesError."""
    if not KEYRING.exists():
        raise ImagesError(f"{KEYRING} is missing: apt install debian-archive-keyring")
    apt = work / "apt"
    for name in ("lists/partial", "cache/archives/partial", "etc"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "status").write_text("")
    sources = [
        f"deb [signed-by={KEYRING} arch={architecture()}] {mirror()}/{archive} {suite} main\n"
        for archive, suites in ARCHIVES.items()
        for suite in suites
    ]
    (apt / "sources.list").write_text("".join(sources))
    (apt / "apt.conf").write_text(
        f'Dir::Etc "{apt}/etc"; Dir::Etc::SourceList "{apt}/sources.list"; Dir::State::Lists "{apt}/lists";\n'
        f'Dir::State "{apt}"; Dir::State::status "{apt}/status"; Dir::Cache "{apt}/cache";\n'
        f'Dir::Etc::Trusted "{KEYRING}"; APT::Architecture "{architecture()}"; APT::Architectures "{architecture()}";\n'
        'APT::Install-Recommends "false"; Acquire::Languages "none"; APT::Sandbox::User "root";\n'
    )
    date = time.strftime("%Y%m%dT%H0000Z", time.gmtime())
    run_apt(apt, "update", "-qq")
    found: dict[str, Package] = {}
    for image in images():
        # Essential packages are what a Debian system consists of; everything else is on the list, or needed by it.
        names = dict.fromkeys([ESSENTIAL, MERGED, *wanted(BASE), *wanted(image)])
        listed = run_apt(apt, "install", "--print-uris", "-qq", "-y", *names)
        for line in listed.splitlines():
            address, file, size = line.split()[:3]
            name, version, _ = file.removesuffix(".deb").split("_")
            place = urlsplit(address.strip("'")).path
            archive = "debian-security" if "/debian-security/" in place else "debian"
            path = unquote(place.split(f"/{archive}/", 1)[1])
            before = found[name].images if name in found else ()
            found[name] = Package(
                name, unquote(version), archive, path, int(size), hash_of(apt, name, unquote(version)), (*before, image)
            )
    return Lock(RELEASE, date, architecture(), tuple(found.values()))


def hash_of(apt: Path, name: str, version: str) -> str:
    """SHA-256 of a package, as the signed index of the mirror has it."""
    command = ["apt-cache", "show", f"{name}={version}"]
    shown = subprocess.run(command, env=apt_environment(apt), capture_output=True, text=True).stdout
    for line in shown.splitlines():
        if line.startswith("SHA256: "):
            return line.split()[1]
    raise ImagesError(f"the mirror gives no SHA-256 of {name} {version}: set EWAN_MIRROR to another mirror")


def apt_environment(apt: Path) -> dict[str, str]:
    """The environment in which apt reads the configuration in `apt` and nothing of this system."""
    return os.environ | {"APT_CONFIG": str(apt / "apt.conf"), "LC_ALL": "C"}


def run_apt(apt: Path, *arguments: str) -> str:
    """Runs apt-get with the configuration in `apt`; its output. Raises ImagesError."""
    done = subprocess.run(
        ["apt-get", "-o", "Acquire::Retries=3", *arguments], env=apt_environment(apt), capture_output=True, text=True
    )
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if line.startswith("E:")), "E: unknown reason")
        raise ImagesError(
            f"apt-get {arguments[0]} failed ({reason[2:].strip()}): check the network, or set EWAN_MIRROR"
        )
    return done.stdout


def fetch(lock: Lock, packages: list[Package], cache: Path) -> int:
    """Downloads what the cache lacks, each file verified; returns how many. Raises ImagesError."""
    cache.mkdir(parents=True, exist_ok=True)
    lacking = [package for package in packages if not _is_there(package, cache)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(lambda package: fetch_one(lock, package, cache), lacking))
    return len(lacking)


def _is_there(package: Package, cache: Path) -> bool:
    """Return whether the cache has the package as it was locked; a damaged file counts as absent and is downloaded
    again."""
    path = cache / package.file
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return path.stat().st_size == package.size and found == package.sha256
    except FileNotFoundError:
        return False


def download(place: str) -> bytes:
    """Download the content of an address; try again after a pause if the server did not answer. Raises OSError."""
    for pause_s in PAUSES_S:
        try:
            with urllib.request.urlopen(place, timeout=TIMEOUT_S) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:  # it is not there, and will not be
                raise
        except (OSError, HTTPException):
            pass
        time.sleep(pause_s)
    with urllib.request.urlopen(place, timeout=TIMEOUT_S) as answer:
        return bytes(answer.read())


def fetch_one(lock: Lock, package: Package, cache: Path) -> None:
    """Downloads one package into the cache, verified; from snapshot.debian.org where the mirror has it no more.

    Raises ImagesError.
    """
    places = [
        f"{mirror()}/{package.archive}/{package.path}",
        f"{SNAPSHOT}/{package.archive}/{lock.date}/{package.path}",
    ]
    reason = ""
    for place in places:
        try:
            content = download(place)
        except (OSError, HTTPException) as error:
            reason = reason or str(getattr(error, "reason", error))
            continue
        if hashlib.sha256(content).hexdigest() == package.sha256:
            new = cache / f"{package.file}.new"
            new.write_bytes(content)
            new.rename(cache / package.file)
            return
        reason = reason or "another content than the locked one"
    raise ImagesError(
        f"{package.name} {package.version} is neither on the mirror nor on snapshot.debian.org ({reason}): "
        f"check the network, or {RELOCK}"
    )
