"""What commands left: modes that others could use are set back, files with holes are gone. Needs root."""

from __future__ import annotations

import os
from pathlib import Path

from labs.runtime import left

ALICE = 61002


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
    assert left.settle(run) is None
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (run, *run.rglob("*")) if path.name != "pipe"}
    assert modes == {
        **{"run": 0o755, "deep": 0o2755, "er": 0o755, "file": 0o644},
        **{"program": 0o755, "given": 0o644},
    }
    assert outside.stat().st_mode & 0o7777 == 0o666
    assert {path.lstat().st_uid for path in run.rglob("*")} == {0}


def test_a_file_of_holes_is_removed_and_named(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with (tmp_path / "out/x").open("wb") as file:
        file.truncate(10 << 40)
    with (tmp_path / "short").open("wb") as file:
        file.truncate(left.MOST_HOLLOW)
    (tmp_path / "dense").write_bytes(b"\0" * (left.MOST_HOLLOW + 1))
    wrong = left.settle(tmp_path)
    assert wrong is not None and wrong.startswith(f"{tmp_path}/out/x: was removed: of its 11") and "\n" not in wrong
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dense", "out", "short"]
    assert left.settle(tmp_path) is None
