"""The build as a user calls it: names, refusals in one line, what happens without an engine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ewan.labs import images
from images.container import build, container_engine, packages
from images.container.packages import ImagesError

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "images/build-images.sh"
CONTAINERLAB = ROOT / "images/containerlab/build.sh"


def tools(folder: Path, *names: str, **scripts: str) -> str:
    """A PATH on which are only these commands, and these scripts by their name."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(next(p for p in (Path("/usr/bin") / name, Path("/bin") / name) if p.exists()))
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder)


def refused(command: list[str | Path], **environment: str) -> str:
    """The one line on stderr with which a command refuses."""
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=60)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines), done.stdout) == (2, 1, ""), done.stderr
    return lines[0]


def test_without_a_cache_all_is_kept_and_built_in_one_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def come_so_far(kept: Path) -> None:
        raise ImagesError(f"the lists are read in {kept}")

    monkeypatch.setattr(build, "node_binary", lambda: tmp_path / "ewan-node")
    monkeypatch.setattr(build, "current_lock", come_so_far)
    assert build.main(["host", "--archives", "--kept", str(tmp_path), "--target", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"images: the lists are read in {tmp_path}\n", "and nobody was waited for"


def test_the_dockerfile_has_a_target_for_each_image() -> None:
    targets = re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "images/Dockerfile").read_text(), re.MULTILINE)
    assert set(images.IMAGES) <= set(targets)


def test_an_image_that_cannot_be_used_is_told_with_its_remedy() -> None:
    name, binary = images.image("host"), "ab" * 32
    assert images.complaint(name, {images.NODE_LABEL: binary}, binary) == ""
    for labels in (None, {}, {images.NODE_LABEL: "cd" * 32}):
        complaint = images.complaint(name, labels, binary)
        assert name in complaint and complaint.endswith(": make images")
    assert "another version" in images.complaint(name, {images.NODE_LABEL: "cd" * 32}, binary)


def test_an_unknown_image_is_refused() -> None:
    words = refused([SCRIPT, "hots"])
    assert words == 'images: there is no image "hots": write one of host, router, switch, emulator, prometheus'


def test_a_missing_binary_is_refused(tmp_path: Path) -> None:
    words = refused(
        [SCRIPT, "--target", tmp_path], EWAN_NODE=str(tmp_path / "none"), EWAN_CACHE=str(tmp_path / "cache")
    )
    assert words == f"images: {tmp_path}/none is not there: make setup"


def test_a_missing_mmdebstrap_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "ewan-node"
    binary.write_bytes(b"x")
    path = tools(tmp_path / "bin", "sh", "dirname", "mkdir", "python3")
    environment = {"EWAN_NODE": str(binary), "EWAN_CACHE": str(tmp_path / "cache"), "PATH": path}
    words = refused([SCRIPT, "--target", tmp_path / "images"], **environment)
    assert words == "images: mmdebstrap is missing: apt install mmdebstrap (or use images/Dockerfile)"


def test_other_clones_file_systems_stay_until_there_are_many(tmp_path: Path) -> None:
    for number in range(build.NEWEST + 2):
        for ending in ("tar", "sha256"):
            path = tmp_path / f"host-{number}.rootfs.{ending}"
            path.touch()
            os.utime(path, (number, number))
    (tmp_path / "router-0.rootfs.tar").touch()
    build.remove_oldest("host", tmp_path)
    left = sorted(path.name for path in tmp_path.glob("*.tar"))
    assert left == [*(f"host-{number}.rootfs.tar" for number in range(2, build.NEWEST + 2)), "router-0.rootfs.tar"]
    assert len(list(tmp_path.glob("*.sha256"))) == build.NEWEST


def test_a_lock_of_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "architecture", lambda: "riscv64")
    with pytest.raises(ImagesError, match="the lock is for amd64, this is riscv64: RELOCK=1 make images"):
        build.current_lock(tmp_path)


def test_without_an_engine_the_archives_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(container_engine, "find", lambda: None)
    build.deliver({"host": (Path("/somewhere/host.tar"), {})}, to_engine=True)
    written = capsys.readouterr()
    assert written.out == "/somewhere/host.tar\n"
    assert "no container engine answers" in written.err
    assert "docker load -i /somewhere/host.tar" in written.err


def test_containerlab_without_go_is_refused(tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", "sh", "dirname", "mkdir", "cat", "sha256sum", "cut")
    words = refused([CONTAINERLAB], PATH=path, EWAN_CACHE=str(tmp_path / "cache"))
    assert words.startswith("containerlab: go is missing: install Go 1.22.1 or newer")


def test_containerlab_with_an_old_go_is_refused(tmp_path: Path) -> None:
    needed = ("sh", "dirname", "mkdir", "cat", "sha256sum", "cut", "sed", "sort", "head")
    path = tools(tmp_path / "bin", *needed, go="echo go1.19.8")
    words = refused([CONTAINERLAB], PATH=path, EWAN_CACHE=str(tmp_path / "cache"))
    assert words.startswith("containerlab: go 1.19.8 is too old: install Go 1.22.1 or newer")


def test_containerlab_of_another_content_is_refused(tmp_path: Path) -> None:
    needed = ("sh", "dirname", "mkdir", "cat", "sha256sum", "cut", "sed", "sort", "head", "patch", "date")
    go = 'if [ "$1" = env ]; then echo go1.26.0; else echo \'	"Sum": "h1:other=",\'; fi'
    path = tools(tmp_path / "bin", *needed, go=go)
    cache = tmp_path / "cache"
    environment = os.environ | {"PATH": path, "EWAN_CACHE": str(cache)}
    done = subprocess.run([CONTAINERLAB], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "has another content than expected (h1:other=)" in done.stderr.splitlines()[-1]
    assert list(cache.glob("containerlab/*/containerlab")) == []


def test_nothing_names_where_modules_come_from() -> None:
    for path in (ROOT / "images/containerlab").iterdir():
        assert "proxy." not in path.read_text(), path
