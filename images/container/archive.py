"""Writes container images as archives that `docker load` and `podman load` take: layers in, one tar file out.

The format is the one of `docker save`: `manifest.json`, the image's configuration, and one tar file per layer. Two
layers: the file system of Debian packages, and ewan-node by itself, so that a new binary costs no more than a copy. The
same layers give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ewan.labs import images

NODE_PATH = "usr/local/bin/ewan-node"
# FRRouting's daemons are in a folder of their own.
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/frr"


@dataclass(frozen=True)
class Layer:
    """One layer: its tar file (uncompressed), that file's SHA-256, and what it is, in words."""

    file: Path
    sha256: str
    what: str


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def node_layer(binary: Path, target: Path, epoch: int) -> Layer:
    """Writes the layer with ewan-node; every time stamp is `epoch`, in seconds since 1970."""
    new = target.with_suffix(".new")
    with tarfile.open(new, "w", format=tarfile.GNU_FORMAT) as tar, binary.open("rb") as content:
        entry = tarfile.TarInfo(NODE_PATH)
        entry.size, entry.mode, entry.mtime = binary.stat().st_size, 0o755, epoch
        tar.addfile(entry, content)
    new.rename(target)
    return Layer(target, digest(target), "ewan-node")


def configuration(
    kind: str,
    layers: list[Layer],
    labels: dict[str, str],
    architecture: str,
    epoch: int,
    settings: Mapping[str, object] | None = None,
) -> bytes:
    """An image's configuration; its SHA-256 is the image's id. `settings`: of its containers; those of nodes if
    absent."""
    settings = settings or {"Env": [f"PATH={SEARCHED}", "LC_ALL=C.UTF-8"], "Cmd": ["/bin/bash"]}
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    content = {
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {**settings, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.sha256}" for layer in layers]},
        "history": [{"created": created, "created_by": f"ewan {kind}: {layer.what}"} for layer in layers],
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def write(target: Path, name: str, config: bytes, layers: list[Layer], epoch: int) -> None:
    """Writes the archive of one image; it takes its place only when it is complete."""
    identity = hashlib.sha256(config).hexdigest()
    manifest = {
        "Config": f"{identity}.json",
        # In full: Docker takes the domain off again, Podman would put "localhost" before a short name.
        "RepoTags": [f"docker.io/{name}"],
        "Layers": [f"{layer.sha256}/layer.tar" for layer in layers],
    }
    new = target.with_suffix(".new")
    with tarfile.open(new, "w", format=tarfile.GNU_FORMAT) as tar:
        for layer in layers:
            entry = tarfile.TarInfo(f"{layer.sha256}/layer.tar")
            entry.size, entry.mode, entry.mtime = layer.file.stat().st_size, 0o644, epoch
            with layer.file.open("rb") as content:
                tar.addfile(entry, content)
        add(tar, f"{identity}.json", config, epoch)
        add(tar, "manifest.json", json.dumps([manifest]).encode(), epoch)
    new.rename(target)


def add(tar: tarfile.TarFile, path: str, content: bytes, epoch: int, mode: int = 0o644) -> None:
    """Adds a file of root with this content and time stamp."""
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode, entry.mtime = len(content), mode, epoch
    tar.addfile(entry, io.BytesIO(content))


def labels(binary_digest: str, packages: str) -> dict[str, str]:
    """An image's labels: what is inside."""
    return {
        images.NODE_LABEL: binary_digest,
        images.VERSION_LABEL: images.TAG,
        images.PACKAGES_LABEL: packages,
    }
