"""What commands left: modes that others could use are set back, files with holes are gone. Needs root."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from ewan.labs.base.reading import MOST_HOLLOW
from ewan.labs.runtime import run_leftovers

ALICE, BOB = 61002, 61003


def test_others_may_no_longer_write_and_links_are_gone(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "this test gives files to another user: run it as root"
    run, outside = tmp_path / "run", tmp_path / "outside"
    (run / "deep/er").mkdir(parents=True)
    for name in ("deep/er/file", "program", "given"):
        (run / name).write_text("x")
    outside.write_text("x")
    for path, mode in ((run, 0o777), (run / "deep", 0o2777), (run / "deep/er/file", 0o666), (run / "program", 0o6755)):
        path.chmod(mode)
    outside.chmod(0o666)
    (run / "link").symlink_to(outside)
    (run / "own").symlink_to(tmp_path)
    os.mkfifo(run / "pipe")
    for path in (run / "given", run / "deep"):
        os.chown(path, ALICE, ALICE)
    assert run_leftovers.settle(run) is None
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (run, *run.rglob("*"))}
    assert modes == {
        **{"run": 0o755, "deep": 0o2755, "er": 0o755, "file": 0o644},
        **{"program": 0o755, "given": 0o644},
    }
    assert outside.stat().st_mode & 0o7777 == 0o666
    assert not (run / "pipe").exists()
    assert {path.lstat().st_uid for path in run.rglob("*")} == {0}


def test_a_file_of_holes_is_removed_and_named(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with (tmp_path / "out/x").open("wb") as file:
        file.truncate(10 << 40)
    with (tmp_path / "short").open("wb") as file:
        file.truncate(MOST_HOLLOW)
    (tmp_path / "dense").write_bytes(b"\0" * (MOST_HOLLOW + 1))
    wrong = run_leftovers.settle(tmp_path)
    assert wrong is not None and wrong.startswith(f"{tmp_path}/out/x: was removed: of its 11") and "\n" not in wrong
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dense", "out", "short"]
    assert run_leftovers.settle(tmp_path) is None


def nested(place: Path, deep: int) -> None:
    """Directories one in the other, more than functions may be."""
    folder = os.open(place, os.O_RDONLY)
    for _ in range(deep):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.close(folder)


def test_what_is_deeper_than_any_result_is_removed(tmp_path: Path) -> None:
    nested(tmp_path, 1100)
    (tmp_path / "z").write_text("")
    (tmp_path / "z").chmod(0o666)
    wrong = run_leftovers.settle(tmp_path)
    assert wrong is not None and wrong.endswith(": was removed: it is too deep")
    assert (tmp_path / "z").stat().st_mode & 0o777 == 0o644
    assert sum(path.is_dir() for path in tmp_path.rglob("*")) == run_leftovers.MOST_DEEP - 1
    nested(tmp_path / "d", 0)
    run_leftovers.remove_tree(tmp_path / "d")
    assert [path.name for path in tmp_path.iterdir()] == ["z"]
    assert run_leftovers.settle(tmp_path) is None


def test_what_is_more_than_any_result_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_leftovers, "MOST_ENTRIES", 3)
    for number in range(5):
        (tmp_path / str(number)).mkdir()
    wrong = run_leftovers.settle(tmp_path)
    assert wrong is not None and wrong.endswith(": was removed: too much was left there")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"a\x1b[2J", "a\u2028b".encode()])
def test_a_name_that_is_no_text_is_no_result(tmp_path: Path, name: bytes) -> None:
    for inside in (b"", b"/x"):
        (tmp_path / os.fsdecode(name + inside)).parent.mkdir(exist_ok=True)
        (tmp_path / os.fsdecode(name + inside)).write_text("") if inside else None
    (tmp_path / "größe").write_text("")
    wrong = run_leftovers.settle(tmp_path)
    assert wrong is not None and wrong.endswith(": was removed: its name is no text in one line")
    assert wrong.isprintable() and [path.name for path in tmp_path.iterdir()] == ["größe"]


def as_alice(place: Path) -> str:
    """What an ordinary user's `settle` says."""
    child = os.fork()
    if child == 0:  # modules are imported by now, which she may be unable to read
        with contextlib.suppress(BaseException):
            os.setresgid(ALICE, ALICE, ALICE)
            os.setresuid(ALICE, ALICE, ALICE)
            os.chdir(place)
            said = run_leftovers.settle(Path())
            Path("said").write_text(str(said))
        os._exit(0)
    os.waitpid(child, 0)
    return (place / "said").read_text()


def test_who_took_his_own_rights_gets_them_back() -> None:
    with tempfile.TemporaryDirectory(dir="/run", prefix="ewan-test-") as top:
        place = Path(top)
        (place / "out").mkdir()
        (place / "out/file").write_text("x")
        for path in (place / "out/file", place / "out", place):
            os.chown(path, ALICE, ALICE)
            path.chmod(0o700 if path == place else 0)
        assert as_alice(place) == "None"
        assert [(place / name).stat().st_mode & 0o777 for name in ("out", "out/file")] == [0o700, 0o400]


def test_what_another_user_put_there_is_gone() -> None:
    with tempfile.TemporaryDirectory(dir="/run", prefix="ewan-test-") as top:
        place = Path(top)
        (place / "evil/deep").mkdir(parents=True)
        for path in (place / "evil/deep/file", place / "his"):
            path.write_text("x")
        os.mkfifo(place / "pipe")
        for path in (place / "evil", place / "evil/deep", place / "evil/deep/file", place / "his", place / "pipe"):
            os.chown(path, BOB, BOB)
            path.chmod(0o777)
        (place / "own").write_text("x")
        for path in (place, place / "own"):
            os.chown(path, ALICE, ALICE)
        place.chmod(0o777)
        assert as_alice(place).endswith(": was removed: it is another user's")
        assert sorted(path.name for path in place.iterdir()) == ["own", "said"]
        assert place.stat().st_mode & 0o777 == 0o775


def test_roots_results_keep_nothing_that_others_can_change(tmp_path: Path) -> None:
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil/file").write_text("x")
    (tmp_path / "linked").hardlink_to(tmp_path / "evil/file")
    os.mkfifo(tmp_path / "evil/pipe")
    for path in (tmp_path / "evil", tmp_path / "evil/pipe", tmp_path / "linked"):
        os.chown(path, BOB, BOB)
        path.chmod(0o777)
    assert run_leftovers.settle(tmp_path) is not None
    found = {path.name: (path.stat().st_uid, path.stat().st_mode & 0o777) for path in tmp_path.rglob("*")}
    assert found.pop("evil") == (0, 0o755) and set(found.values()) <= {(0, 0o755)} and "pipe" not in found
