"""What the cache of kernels keeps is what was downloaded or built whole, and is looked at before it is used."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ewan.labs.runtime import whole
from ewan.labs.runtime.base import LabError
from images.kernel import adopt, build, recall

DEB = f"{build.PACKAGE}_{build.VERSION}_all.deb"
CONTENT = b"a package" * 1000

Apt = Callable[[bytes], None]


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    """An apt whose index names CONTENT, and which delivers what it is given."""
    programs, delivered = tmp_path / "bin", tmp_path / "delivered"
    programs.mkdir()
    index = f"Package: x\nVersion: {build.VERSION}\nSHA256: {hashlib.sha256(CONTENT).hexdigest()}"
    scripts = {
        "apt-cache": f"cat <<'E'\n{index}\nE",
        "apt-get": f'cp "{delivered}" ./{DEB}',
        "dpkg-deb": "exit 0",
    }
    for name, text in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (tmp_path / "cache").mkdir()
    return lambda content: void(delivered.write_bytes(content))


def void(_: object) -> None:
    pass


def test_a_package_that_was_cut_short_is_not_kept(apt: Apt, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apt(CONTENT[:4096])
    with pytest.raises(SystemExit):
        build.Source(tmp_path / "cache").identity()
    assert "not what the archive's index says" in capsys.readouterr().err
    assert list((tmp_path / "cache").iterdir()) == []
    apt(CONTENT)
    assert build.Source(tmp_path / "cache").identity().endswith(hashlib.sha256(CONTENT).hexdigest())


def test_a_package_that_was_damaged_in_the_cache_is_fetched_again(apt: Apt, tmp_path: Path) -> None:
    apt(CONTENT)
    cache = tmp_path / "cache"
    build.Source(cache).fetch()
    (cache / DEB).write_bytes(CONTENT[:-1] + b"x")
    found, _ = build.Source(cache).fetch()
    assert found == cache / DEB and found.read_bytes() == CONTENT


def test_a_kernel_that_is_there_is_known_without_its_source(apt: Apt, tmp_path: Path) -> None:
    """Where the note of the source is missing, apt's index tells it: nothing is downloaded."""
    target = tmp_path / "kernel"
    source = f"{build.VERSION} {build.VERSION} {hashlib.sha256(CONTENT).hexdigest()}"
    place = target / adopt.key_of(source)
    assert not recall.recall(target) and not (target / "cache/source").exists()
    place.mkdir(parents=True)
    kernel_of(place)
    assert recall.recall(target)
    assert (target / "cache/source").read_text().strip() == source
    fragments = [build.HERE / "fragment.config"]
    assert build.Build.finished(target, build.HERE / "patches", fragments, "used") == place / "linux"
    assert not list(target.glob("cache/*.deb"))


def kernel_of(place: Path) -> Path:
    path = place / "linux"
    path.write_bytes(CONTENT)
    build.write_sum(path)
    return path


@pytest.mark.parametrize("content", [b"", CONTENT[:100], b"b" + CONTENT[1:]])
def test_a_kernel_with_other_bytes_is_not_used(tmp_path: Path, content: bytes) -> None:
    path = kernel_of(tmp_path)
    assert build.whole(path)
    whole.check(path, "build it")
    path.write_bytes(content)
    whole.check.cache_clear()
    assert not build.whole(path)
    with pytest.raises(LabError, match="is damaged: its bytes are not those that were built: build it"):
        whole.check(path, "build it")


def test_a_copy_of_a_cache_is_believed_after_a_look_at_its_bytes(tmp_path: Path) -> None:
    path = kernel_of(tmp_path)
    before = (tmp_path / "linux.sum").read_text()
    path.unlink()
    path.write_bytes(CONTENT)
    whole.check.cache_clear()
    whole.check(path, "build it")
    after = (tmp_path / "linux.sum").read_text()
    assert after != before and after == whole.line(path, whole.sha256(path))


def test_a_developers_build_in_its_place_is_his(tmp_path: Path) -> None:
    path = kernel_of(tmp_path)
    (tmp_path / "new").write_bytes(b"another")
    (tmp_path / "new").replace(path)
    whole.check.cache_clear()
    whole.check(path, "build it", replaceable=True)
    with pytest.raises(LabError):
        whole.check(path, "build it")


def test_an_empty_kernel_without_a_note_is_none(tmp_path: Path) -> None:
    (tmp_path / "linux").touch()
    assert not build.whole(tmp_path / "linux")


def test_a_tree_is_built_on_where_it_was_unpacked_and_no_copy_of_it(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".ewan-source").write_text("a source")
    (tree / ".ewan-unpacked").write_text(build.unpacked_at(tree / ".ewan-source"))

    def unpacked(place: Path, source: str = "a source") -> bool:
        return build.Build(place, tmp_path, [], None).is_unpacked(source)

    assert unpacked(tmp_path) and not unpacked(tmp_path, "another source")
    (tree / "vmlinux").touch()
    assert unpacked(tmp_path)
    shutil.copytree(tree, tmp_path / "copy/tree")  # times of change as they were, as in a cache that was restored
    assert not unpacked(tmp_path / "copy")
    os.utime(tree / "vmlinux", times=(time.time() + 3600,) * 2)
    assert not unpacked(tmp_path)


@pytest.mark.parametrize(
    ("console", "why"),
    [
        ("Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000", ""),
        (
            "true[1]: segfault at 4\nKernel panic: exitcode=0x0000000b",
            "true[1]: segfault at 4; Kernel panic: exitcode=0x0000000b",
        ),
        ("no room for its memory", ""),  # this says nothing about the kernel
    ],
)
def test_a_kernel_that_cannot_start_a_program_is_noticed(tmp_path: Path, console: str, why: str) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text(f"#!/bin/sh\ncat <<'E'\n{console}\nE\nexit 134\n")
    kernel.chmod(0o755)
    assert build.panic(kernel) == why
