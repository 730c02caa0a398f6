"""Release bundles: what is taken into the cache, and what is refused."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import platform
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from images.bundle import manifest, pack, use
from images.bundle.manifest import (
    CONFIG,
    HEADERS,
    KERNEL,
    LICENCES,
    NODE,
    ROOT,
    BundleError,
    File,
    Manifest,
    OtherSourcesError,
)
from images.kernel import adopt
from images.kernel.build import VERSION

SOURCE = f"{VERSION} {VERSION} {'5' * 64}"
CONTENTS = {NODE: b"#!/bin/sh\necho a node\n", KERNEL: b"#!/bin/sh\n", CONFIG: b"CONFIG_UML=y\n", LICENCES: b"terms\n"}
CONTENTS |= {HEADERS: b"headers"}


def file_of(content: bytes) -> File:
    return File(hashlib.sha256(content).hexdigest(), len(content))


@pytest.fixture(scope="module")
def ours() -> Manifest:
    """Of this clone and this machine."""
    files = {name: file_of(CONTENTS[name]) for name in manifest.expected(True)}
    return Manifest(platform.machine(), manifest.node_sources(), adopt.key_of(SOURCE), SOURCE, {}, files)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EWAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EWAN_SHARED_CACHE", "off")
    monkeypatch.delenv("BUNDLE", raising=False)
    monkeypatch.delenv("RUSTFLAGS", raising=False)
    return tmp_path / "cache"


def put(content: bytes, place: Path, digest: str | None = None) -> Path:
    """A bundle's file, with what is said of it beside it."""
    place.write_bytes(content)
    digest = digest or hashlib.sha256(content).hexdigest()
    place.with_name(f"{place.name}.sha256").write_text(f"{digest}  {place.name}\n")
    return place


def script(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / words[0], *words[1:]], capture_output=True, text=True, check=False)


def kept_files(cache: Path) -> list[str]:
    names = (path.name for path in cache.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(name for name in names if name not in (".lock", "CACHEDIR.TAG"))


def test_what_a_bundle_has_is_found_as_if_it_had_been_built_here(ours: Manifest, cache: Path, tmp_path: Path) -> None:
    bundle = put(pack.archive(ours, CONTENTS), tmp_path / ours.name())
    for _ in range(2):
        assert use.main(bundle, {}) == "the virtual kernel and the node binary"
        kernel = script("images/kernel/build.sh", "--path")
        assert kernel.stdout == f"{cache}/kernel/{ours.kernel}/linux\n"
        node = script("images/node/build.sh", "--prebuilt")
        assert subprocess.run([node.stdout.strip()], capture_output=True, check=True).stdout == b"a node\n"
    node_files = [f"prebuilt-{ours.node}", f"prebuilt-{ours.node}.sum"]
    assert kept_files(cache) == sorted(["linux", "linux.sum", "config", "headers.tar.xz", "source", *node_files])
    # Whoever sets flags for the compiler wants a binary of his own.
    assert subprocess.run([ROOT / "images/node/build.sh", "--prebuilt"], env={**os.environ, "BUNDLE": "off"}).returncode


def test_a_kernel_of_another_archive_stays(
    ours: Manifest, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = cache / "kernel/cache/source"
    note.parent.mkdir(parents=True)
    note.write_text(f"{VERSION} installed {'6' * 64}\n")
    (cache / "kernel/tree").mkdir()
    bundle = put(pack.archive(ours, CONTENTS), tmp_path / ours.name())
    assert use.main(bundle, {}) == "the node binary"
    assert "another archive" in capsys.readouterr().err and "installed" in note.read_text()


def test_the_same_contents_give_the_same_bytes(ours: Manifest) -> None:
    one, two = pack.archive(ours, CONTENTS), pack.archive(ours, dict(reversed(CONTENTS.items())))
    assert one == two
    with tarfile.open(fileobj=io.BytesIO(one)) as archive:
        members = archive.getmembers()
    assert [each.name for each in members] == [manifest.MANIFEST, *manifest.expected(True)]
    assert {(each.uid, each.uname, each.mtime) for each in members} == {(0, "", pack.EPOCH_S)}
    assert manifest.read(ours.to_json()) == ours


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"machine": "m68k"}, "it is for m68k"),
        ({"node": "0" * 16}, "its node binary was made of other sources"),
        ({"kernel": "0" * 16}, "its kernel was made of other sources"),
        ({"source": "1.0 1.0 00"}, "its kernel was made of other sources"),
    ],
)
def test_a_bundle_of_other_sources_is_told_from_a_bad_one(
    ours: Manifest, cache: Path, tmp_path: Path, change: Mapping[str, str], said: str
) -> None:
    other = replace(ours, **change)  # type: ignore[arg-type]
    bundle = put(pack.archive(other, CONTENTS), tmp_path / "bundle.tar.xz")
    with pytest.raises(OtherSourcesError, match=said):
        use.main(bundle, {})
    assert kept_files(cache) == []


def changed(ours: Manifest, how: str) -> bytes:
    """A bundle that somebody spoilt."""
    good = pack.archive(ours, CONTENTS)
    if how == "cut off":
        return good[: len(good) // 2]
    if how == "no archive":
        return b"<html>not found</html>"
    if how == "a file changed":
        return pack.archive(ours, {**CONTENTS, KERNEL: b"#!/bin/ah\n"})
    if how == "a file grown":
        return pack.archive(ours, {**CONTENTS, KERNEL: b"#!/bin/sh\n" * 9})
    if how == "a file lacks":
        few = replace(ours, files={name: each for name, each in ours.files.items() if name != CONFIG})
        return pack.archive(few, CONTENTS)
    if how == "another format":
        return repacked({manifest.MANIFEST: ours.to_json().replace(b"bundle/1", b"bundle/2")})
    if how == "no manifest":
        return repacked({NODE: CONTENTS[NODE]})
    if how == "a file too few":
        return repacked({manifest.MANIFEST: ours.to_json(), NODE: CONTENTS[NODE]})
    member = tarfile.TarInfo("../../evil" if how == "a path outside" else NODE)
    member.type, member.linkname = (tarfile.SYMTYPE, "/etc/passwd") if how == "a link" else (tarfile.REGTYPE, "")
    return repacked({manifest.MANIFEST: ours.to_json()}, member)


def repacked(contents: Mapping[str, bytes], *more: tarfile.TarInfo) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in more:
            tar.addfile(member, io.BytesIO())
    return lzma.compress(plain.getvalue())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("cut off", "damaged"),
        ("no archive", "no bundle"),
        ("a file changed", "linux has another SHA-256"),
        ("a file grown", "linux has another size"),
        ("a file lacks", "other files than a bundle has"),
        ("a file too few", "it lacks LICENCES"),
        ("another format", "another version of ewan"),
        ("no manifest", "no manifest"),
        ("a path outside", "'../../evil', which its manifest does not name"),
        ("a link", "which its manifest does not name"),
    ],
)
def test_what_is_no_whole_bundle_leaves_nothing(
    ours: Manifest, cache: Path, tmp_path: Path, how: str, said: str
) -> None:
    bundle = put(changed(ours, how), tmp_path / "bundle.tar.xz")
    with pytest.raises(BundleError, match=said) as refused:
        use.main(bundle, {})
    assert not isinstance(refused.value, OtherSourcesError)
    assert kept_files(cache) == []


def test_the_hash_is_the_one_that_is_given(
    ours: Manifest, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = pack.archive(ours, CONTENTS)
    digest = hashlib.sha256(content).hexdigest()
    bundle = put(content, tmp_path / "bundle.tar.xz", digest="0" * 64)
    with pytest.raises(BundleError, match=f"its SHA-256 is {digest}, not 0000"):
        use.main(bundle, {})
    assert use.given(bundle, {"BUNDLE_SHA256": f" {digest.upper()} "}) == digest
    with pytest.raises(BundleError, match="there is no such file"):
        use.main(tmp_path / "nothing.tar.xz", {})
    with pytest.raises(BundleError, match="64 hexadecimal digits"):
        use.main(bundle, {"BUNDLE_SHA256": "12"})
    # What beside the file is of another file says nothing of this one; the clone's own list may.
    bundle.with_name("bundle.tar.xz.sha256").write_text(f"{digest}  other.tar.xz\n")
    with pytest.raises(BundleError, match="its SHA-256 is not known"):
        use.main(bundle, {})
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(f"# Releases.\n{digest}  {bundle.name}\n")
    monkeypatch.setattr(use, "SUMS", sums)
    assert use.given(bundle, {}) == digest


def test_a_bundle_that_nobody_named_is_nobody_elses(ours: Manifest, tmp_path: Path) -> None:
    bundle = put(b"", tmp_path / "bundle.tar.xz")
    use.owned(bundle)
    bundle.chmod(0o666)
    with pytest.raises(BundleError, match="name the bundle by BUNDLE="):
        use.owned(bundle)


def shared(place: Path) -> subprocess.CompletedProcess[str]:
    words = ["sh", "-c", f'. "{ROOT}/images/cache.sh"; shared kernel']
    return subprocess.run(
        words, env={**os.environ, "EWAN_SHARED_CACHE": str(place)}, capture_output=True, text=True, check=False
    )


def test_a_cache_for_all_users_serves_where_others_cannot_write_it(
    ours: Manifest, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = put(pack.archive(ours, CONTENTS), tmp_path / ours.name())
    use.main(bundle, {})
    common = tmp_path / "common"
    cache.rename(common)
    monkeypatch.setenv("EWAN_SHARED_CACHE", str(common))
    for words in (("images/kernel/build.sh", "--path"), ("images/kernel/build.sh",)):
        assert script(*words).stdout == f"{common}/kernel/{ours.kernel}/linux\n"
    assert script("images/node/build.sh", "--prebuilt").stdout == f"{common}/node/prebuilt-{ours.node}\n"
    assert kept_files(cache) == []
    (common / "kernel" / ours.kernel / "linux").chmod(0o777)
    refused = shared(common)
    assert refused.stdout == "" and "can be written by others" in refused.stderr
    assert shared(Path("relative")).returncode == 2
