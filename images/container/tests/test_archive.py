"""An image's archive is what engines take, says what is inside, and is the same bytes each time."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from ewan.labs import images
from images.container import archive, rootfs
from images.container.archive import Layer
from images.container.packages import ImagesError, Lock, Package

EPOCH = 1767322800


def tar_of(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


@pytest.fixture
def layers(tmp_path: Path) -> list[Layer]:
    binary = tmp_path / "ewan-node"
    binary.write_bytes(b"\x7fELF and so on")
    base = tar_of(tmp_path / "base.tar", {"./etc/debian_version": b"12.12\n"})
    return [
        Layer(base, archive.digest(base), "Debian"),
        archive.node_layer(binary, tmp_path / "node.tar", EPOCH),
    ]


def test_the_archive_holds_what_its_manifest_names(layers: list[Layer], tmp_path: Path) -> None:
    labels = archive.labels("ab" * 32, "cd" * 32)
    config = archive.configuration("host", layers, labels, "amd64", EPOCH)
    archive.write(tmp_path / "host.tar", images.IMAGES["host"], config, layers, EPOCH)
    with tarfile.open(tmp_path / "host.tar") as tar:
        members = {entry.name: tar.extractfile(entry) for entry in tar.getmembers()}
        content = {name: file.read() for name, file in members.items() if file}
    manifest = json.loads(content["manifest.json"])
    assert len(manifest) == 1
    assert manifest[0]["RepoTags"] == [f"docker.io/ewan/host:{images.TAG}"]
    assert hashlib.sha256(content[manifest[0]["Config"]]).hexdigest() + ".json" == manifest[0]["Config"]
    described = json.loads(content[manifest[0]["Config"]])
    assert described["rootfs"]["diff_ids"] == [
        "sha256:" + hashlib.sha256(content[name]).hexdigest() for name in manifest[0]["Layers"]
    ]
    assert len(described["history"]) == len(manifest[0]["Layers"]) == 2
    assert described["config"]["Labels"] == {
        "ewan.node": "ab" * 32,
        "ewan.version": images.TAG,
        "ewan.packages": "cd" * 32,
    }
    assert described["created"] == "2026-01-02T03:00:00Z"
    assert (described["architecture"], described["os"]) == ("amd64", "linux")


def test_the_node_layer_is_the_binary_and_nothing_else(layers: list[Layer]) -> None:
    with tarfile.open(layers[1].file) as tar:
        (entry,) = tar.getmembers()
        file = tar.extractfile(entry)
        assert file and file.read() == b"\x7fELF and so on"
    assert (entry.name, entry.mode, entry.uid, entry.mtime) == ("usr/local/bin/ewan-node", 0o755, 0, EPOCH)


def test_the_same_layers_give_the_same_bytes(layers: list[Layer], tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        config = archive.configuration("host", layers, archive.labels("00", "11"), "amd64", EPOCH)
        archive.write(tmp_path / name, "ewan/host:t", config, layers, EPOCH)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


STATUS = """Package: hello
Status: install ok installed
Version: 2.10-3
Description: a greeting
 Status: install ok installed

Package: gone
Status: deinstall ok config-files
Version: 1
"""


def test_what_is_installed_must_be_what_is_locked(tmp_path: Path) -> None:
    system = tar_of(tmp_path / "system.tar", {"./var/lib/dpkg/status": STATUS.encode()})
    assert rootfs.installed(system) == {"hello": "2.10-3"}
    package = Package("hello", "2.10-3", "debian", "pool/hello.deb", 1, "0" * 64, ("host",))
    rootfs.check("host", Lock("bookworm", "20260102T030000Z", "amd64", (package,)), system)
    missing = Package("world", "1", "debian", "pool/world.deb", 1, "0" * 64, ("host",))
    with pytest.raises(ImagesError, match=r"host has other packages than the lock says \(world\)"):
        rootfs.check("host", Lock("bookworm", "20260102T030000Z", "amd64", (package, missing)), system)
    assert not system.exists()
