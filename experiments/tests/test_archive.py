"""Archives: equal contents give equal bytes; those from others leave neither their place nor a full disk or memory."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from ewan.experiments.engine import archive, compare, sums, unit
from ewan.labs.record import experiment
from ewan.labs.runtime.base import LabError

ROOM = 8 << 20


def member(name: str, content: bytes = b"{}", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    result = tarfile.TarInfo(name)
    result.size = len(content)
    for key, value in fields.items():
        setattr(result, key, value)
    return result, content


def packed(place: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return squeezed(place, plain.getvalue())


def squeezed(place: Path, plain: bytes) -> Path:
    path = place / "x.tar.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(plain))
    return path


def header_that_promises(size: int, kind: bytes) -> bytes:
    info = tarfile.TarInfo("x")
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def zipped(place: Path, *members: tuple[str, bytes], mode: int = 0) -> Path:
    path = place / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, mode << 16
            packed.writestr(info, content)
    return path


def halved(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def changed(path: Path, old: bytes, new: bytes) -> Path:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    return path


HOSTILE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a bomb": (lambda place: packed(place, member("x/a", b"\0" * (ROOM + 1))), "is larger than 8 MiB unpacked"),
    "a bomb of empty files": (
        lambda place: packed(place, *(member(f"x/{number}", b"") for number in range(60))),
        "holds more than 50 files",
    ),
    "zeros behind the end": (
        lambda place: squeezed(place, b"\0" * 1024 + b"\0" * 2 * ROOM),
        "holds no experiment",
    ),
    "a header of a gigabyte": (
        lambda place: squeezed(place, header_that_promises(1 << 30, tarfile.XHDTYPE) + b"\0" * ROOM),
        "a header says that it has 1073741824 bytes",
    ),
    "a name of a gigabyte": (
        lambda place: squeezed(place, header_that_promises(1 << 30, tarfile.GNUTYPE_LONGNAME) + b"\0" * ROOM),
        "a header says that it has 1073741824 bytes",
    ),
    "headers of headers": (
        lambda place: squeezed(place, header_that_promises(0, tarfile.XHDTYPE) * 5000),
        "is no archive of an experiment",
    ),
    "a path that leaves": (lambda place: packed(place, member("x/../../a")), "would leave its place"),
    "an absolute path": (lambda place: packed(place, member("/tmp/a")), "would leave its place"),
    "a link": (
        lambda place: packed(place, member("x/a", b"", type=tarfile.SYMTYPE, linkname="/etc")),
        "would leave its place",
    ),
    "a FIFO": (lambda place: packed(place, member("x/a", b"", type=tarfile.FIFOTYPE)), "would leave its place"),
    "a sparse file": (
        lambda place: packed(
            place,
            member("x/a", pax_headers={"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 50)}),
        ),
        "would leave its place",
    ),
    "a name with NUL": (
        lambda place: packed(place, member("x/a", pax_headers={"path": "x/a\0b"})),
        "is no archive of an experiment",
    ),
    "the place itself": (lambda place: packed(place, member(".")), "Is a directory"),
    "half of one": (
        lambda place: squeezed(place, header_that_promises(4096, tarfile.REGTYPE) + b"\0" * 512),
        "is no archive of an experiment",
    ),
    "a .zip that is a bomb": (
        lambda place: zipped(place, ("a", b"\0" * (ROOM // 2)), ("b", b"\0" * (ROOM // 2 + 1))),
        "is larger than 8 MiB unpacked",
    ),
    "a .zip of empty files": (
        lambda place: zipped(place, *((f"{number}", b"") for number in range(60))),
        "holds more than 50 files",
    ),
    "a .zip with a long list": (
        lambda place: zipped(place, *((f"{number}" * 100, b"") for number in range(100, 150))),
        "its list of members has",
    ),
    "a .zip that leaves": (lambda place: zipped(place, ("../a", b"x")), "would leave its place"),
    "a .zip with a link": (lambda place: zipped(place, ("a", b"/etc"), mode=0o120777), "would leave its place"),
    "a .zip with a wrong checksum": (
        lambda place: changed(zipped(place, ("a", b"")), b"\0\0\0\0\x02\0\0\0", b"\1\1\1\1\x02\0\0\0"),
        "is no archive of an experiment",
    ),
    "a .zip that is encrypted": (
        lambda place: changed(zipped(place, ("a", b"x")), b"PK\1\2\x14\x03\x14\0\0\0", b"PK\1\2\x14\x03\x14\0\1\0"),
        "is no archive of an experiment",
    ),
    "half of a .zip": (lambda place: halved(zipped(place, ("a", b"x" * 1000))), "is no archive of an experiment"),
    "a .zip of something else": (lambda place: zipped(place, ("a", b"x")), "holds no experiment"),
    "no archive": (lambda place: Path("/etc/passwd"), "is no archive of an experiment"),
    "a device": (lambda place: Path("/dev/zero"), "is not a regular file"),
}


@pytest.mark.parametrize(("make", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_archive_is_refused(
    make: Callable[[Path], Path], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_UNPACKED", ROOM)
    monkeypatch.setattr(archive, "MOST_MEMBERS", 50)
    monkeypatch.setattr(archive, "MOST_DIRECTORY", 8 << 10)
    path, place = make(tmp_path), tmp_path / "place"
    place.mkdir()
    with pytest.raises(LabError) as refusal:
        archive.unpack(path, place)
    assert message in str(refusal.value)
    assert set(tmp_path.iterdir()) <= {path, place}
    assert sum(result.stat().st_size for result in place.rglob("*") if result.is_file()) <= ROOM


def test_an_archive_is_the_same_bytes_whoever_packs_it_when(tmp_path: Path) -> None:
    packed = []
    for name, age in (("a", 1), ("b", 10**9)):
        place = tmp_path / name
        (place / "runs/001/traffic").mkdir(parents=True)
        for file in ("experiment.json", "runs/001/flows.parquet", "runs/001/traffic/series.csv", ".reserve"):
            (place / file).write_text(file)
            os.utime(place / file, (age, age))
        archive.clean(place)
        packed.append(archive.pack(place, "x").read_bytes())
    assert packed[0] == packed[1]
    unpacked = archive.unpack(tmp_path / "a/x.tar.zst", tmp_path / "out")
    assert sorted(path.name for path in unpacked.rglob("*") if path.is_file()) == ["experiment.json", "flows.parquet"]


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.tar.zst")
    with pytest.raises(LabError, match="is not a regular file"):
        archive.unpack(tmp_path / "x.tar.zst", tmp_path)


@pytest.mark.parametrize("what", ["members", "zeros"])
def test_members_and_zeros_without_end_are_refused_before_anything_is_written(tmp_path: Path, what: str) -> None:
    empty = ((f"x/{each}", b"") for each in range(2 * archive.FEW_MEMBERS))
    members = empty if what == "members" else [("x/zeros", bytes(archive.SMALL_BYTES + (20 << 20)))]
    path, place = tmp_path / "x.tar.zst", tmp_path / "place"
    with (
        path.open("wb") as file,
        zstandard.ZstdCompressor(level=3).stream_writer(file) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w|") as tar,
    ):
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    with pytest.raises(LabError, match=r"too many for its size|is larger than .* MiB unpacked"):
        archive.unpack(path, place)
    assert not list(place.iterdir())


def test_a_member_that_leads_out_at_the_end_leaves_nothing_written(tmp_path: Path) -> None:
    path, place = tmp_path / "x.zip", tmp_path / "place"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("x/experiment.json", "{}")
        packed.writestr("../out", "x")
    with pytest.raises(LabError, match="would leave its place"):
        archive.unpack(path, place)
    assert not list(place.iterdir())


def test_an_archive_has_what_the_record_lists_of_a_run(tmp_path: Path) -> None:
    place = tmp_path / "runs/001"
    kept = {"links.parquet", "commands/1-a/x.tar.zst"}
    for name in (*kept, ".hidden", ".deep/file", "commands/1-a/.x"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    (tmp_path / "x.tar.zst").write_text("")
    assert {name for name, _ in unit.results(place)} == {name for name, _ in compare.results(place)} == kept
    assert {path.relative_to(place).as_posix() for path in archive.contents(tmp_path)} == kept


def test_checksums_of_any_name_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    names = ["a\nb", "a\\nb", "a\r\\b", "a\u2028b", "\\x", "plain"]
    for name in names:
        (tmp_path / name).write_text(name)
    text = sums.text({name: experiment.checksum(tmp_path / name) for name in names})
    (tmp_path / sums.SUMS).write_bytes(text.encode())
    sums.check(tmp_path)
    subprocess.run(["sha256sum", "-c", "--quiet", "--strict", sums.SUMS], cwd=tmp_path, check=True)
    for name in names:
        (tmp_path / name).write_text("")
        with pytest.raises(LabError, match="is changed or damaged"):
            sums.check(tmp_path)
        (tmp_path / name).write_text(name)
