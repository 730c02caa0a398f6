"""Lists, lock and downloads: what an image is made of is decided to the byte before anything is built."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ewan.labs import images
from images.container import packages
from images.container.packages import ImagesError, Lock, Package

pytestmark = pytest.mark.slow

CONTENT = b"a Debian package"
PACKAGE = Package(
    "hello", "1:2.10-3", "debian", "pool/h/hello_2.10-3_amd64.deb", 16, hashlib.sha256(CONTENT).hexdigest(), ("host",)
)
LOCK = Lock("bookworm", "20260102T030000Z", "amd64", (PACKAGE,))


@pytest.fixture(scope="module")
def lock() -> Lock:
    return packages.read_lock(packages.LOCK.read_text())


class Mirror(http.server.BaseHTTPRequestHandler):
    """Serves what `files` has, by path; counts what was asked for."""

    files: dict[str, bytes] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012
    busy = 0
    """How many answers are 503 before the others."""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if len(self.asked) <= self.busy:
            self.send_error(503)
            return
        content = self.files.get(self.path)
        self.send_response(200 if content is not None else 404)
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Mirror]]:
    """A mirror and a snapshot archive on this machine, empty at first."""
    Mirror.files, Mirror.asked, Mirror.busy = {}, [], 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("EWAN_MIRROR", f"{address}/mirror/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(packages, "SNAPSHOT", f"{address}/snapshot")
    yield Mirror
    server.shutdown()
    server.server_close()


ON_MIRROR = f"/mirror/debian/{PACKAGE.path}"
ON_SNAPSHOT = f"/snapshot/debian/20260102T030000Z/{PACKAGE.path}"


def test_every_kind_of_node_has_a_list() -> None:
    assert set(packages.images()) == {packages.BASE, *images.KINDS, *images.EXTRAS}


@pytest.mark.parametrize("image", packages.images())
def test_the_lock_has_all_that_the_lists_want(lock: Lock, image: str) -> None:
    locked = {package.name for package in lock.of(image)}
    assert set(packages.wanted(image)) <= locked, "RELOCK=1 make images"
    assert {package.name for package in lock.of(packages.BASE)} <= locked
    assert {"base-files", "libc6", "dash", "dpkg"} <= locked
    assert "apt" not in locked


def test_the_lock_is_exact(lock: Lock) -> None:
    names = [package.name for package in lock.packages]
    assert names == sorted(set(names))
    for package in lock.packages:
        # The epoch of a version is not in the file's name.
        version = package.version.split(":")[-1]
        assert package.file.startswith(f"{package.name}_{version}_")
        assert package.file.endswith((f"_{lock.architecture}.deb", "_all.deb"))
        assert package.path.startswith("pool/")
        assert set(package.images) <= set(packages.images())


def test_the_lock_is_read_as_it_was_written(lock: Lock) -> None:
    assert packages.read_lock(lock.write()) == lock


def test_a_damaged_lock_is_refused_with_its_line() -> None:
    damaged = LOCK.write().replace(" 16 ", " sixteen ")
    with pytest.raises(ImagesError, match=r"lock:5: not a package: RELOCK=1 make images"):
        packages.read_lock(damaged)
    with pytest.raises(ImagesError, match="date is missing"):
        packages.read_lock(LOCK.write().replace("date 2026", "# 2026"))


def test_the_key_changes_with_a_package_and_not_with_another_image() -> None:
    other = replace(PACKAGE, name="other", sha256="0" * 64, images=("router",))
    assert replace(LOCK, packages=(PACKAGE, other)).key("host") == LOCK.key("host")
    newer = replace(LOCK, packages=(replace(PACKAGE, sha256="1" * 64),))
    assert newer.key("host") != LOCK.key("host")


def test_the_epoch_is_the_lock_s_date() -> None:
    assert LOCK.epoch == 1767322800  # date -u -d 2026-01-02T03:00:00Z +%s


def test_a_package_comes_from_the_mirror_once(mirror: type[Mirror], tmp_path: Path) -> None:
    mirror.files = {ON_MIRROR: CONTENT}
    assert packages.fetch(LOCK, [PACKAGE], tmp_path) == 1
    assert (tmp_path / PACKAGE.file).read_bytes() == CONTENT
    assert packages.fetch(LOCK, [PACKAGE], tmp_path) == 0
    assert mirror.asked == [ON_MIRROR]


def test_a_mirror_that_is_busy_is_asked_again(
    mirror: type[Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "PAUSES_S", (0.0, 0.0))
    mirror.files, mirror.busy = {ON_MIRROR: CONTENT}, 2
    assert packages.fetch(LOCK, [PACKAGE], tmp_path) == 1
    assert mirror.asked == [ON_MIRROR] * 3


def test_a_version_that_the_mirror_dropped_comes_from_the_snapshot(mirror: type[Mirror], tmp_path: Path) -> None:
    mirror.files = {ON_SNAPSHOT: CONTENT}
    assert packages.fetch(LOCK, [PACKAGE], tmp_path) == 1
    assert (tmp_path / PACKAGE.file).read_bytes() == CONTENT


def test_another_content_is_not_taken(mirror: type[Mirror], tmp_path: Path) -> None:
    mirror.files = {ON_MIRROR: b"something else", ON_SNAPSHOT: CONTENT}
    packages.fetch(LOCK, [PACKAGE], tmp_path)
    assert (tmp_path / PACKAGE.file).read_bytes() == CONTENT
    mirror.files = {ON_MIRROR: b"something else"}
    with pytest.raises(ImagesError, match="another content"):
        packages.fetch(LOCK, [PACKAGE], tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_version_that_nobody_has_is_refused_with_the_remedy(mirror: type[Mirror], tmp_path: Path) -> None:
    with pytest.raises(ImagesError) as refused:
        packages.fetch(LOCK, [PACKAGE], tmp_path)
    words = str(refused.value)
    assert words.startswith("hello 1:2.10-3 is neither on the mirror nor on snapshot.debian.org")
    assert "RELOCK=1 make images" in words
    assert "\n" not in words
