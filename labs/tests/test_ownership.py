"""Another user leads nothing that root writes elsewhere. Needs root, which makes and gives away directories."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ewan.labs import rundir
from ewan.labs.base import ownership, writing
from ewan.labs.commands.metrics import metrics_command
from ewan.labs.commands.trace import trace_command
from ewan.labs.context import Context
from ewan.labs.runtime.base import LabError

ALICE = pwd.getpwnam("nobody").pw_uid
UNDER_SUDO = {"SUDO_UID": str(ALICE), "SUDO_GID": str(ALICE)}


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of alice's."""
    assert os.geteuid() == 0, "these tests give files to another user: run them as root"
    with tempfile.TemporaryDirectory(prefix="ewan-owner-") as directory:
        os.chown(directory, ALICE, ALICE)
        yield Path(directory)


def test_a_file_that_is_written_leads_nowhere(place: Path, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("root's")
    (place / "x").symlink_to(tmp_path / "root")
    writing.write(place / "x", "new")
    with writing.anew(place / "y") as file:
        file.write(b"new")
    assert not (place / "x").is_symlink() and (place / "x").read_text() == "new"
    (place / "y").unlink()
    (place / "y").symlink_to(tmp_path / "root")
    with writing.anew(place / "y") as file:
        file.write(b"new")
    assert (tmp_path / "root").read_text() == "root's"


def test_a_path_that_is_said_leads_where_root_and_nobody_else_says(place: Path, tmp_path: Path) -> None:
    kept, own, others, folder = (tmp_path / name for name in ("kept", "own", "others", "folder"))
    kept.write_text("root's")
    for link in (own, others):
        link.symlink_to(kept)
    folder.symlink_to(tmp_path)
    for link in (others, folder):
        os.chown(link, ALICE, ALICE, follow_symlinks=False)
    with pytest.raises(OSError, match="symbolic links"):
        writing.opened(others)
    with pytest.raises(OSError, match="link of another user"):
        writing.make_folder(tmp_path, "folder/below")
    writing.write_named(others, b"new")
    assert kept.read_text() == "root's" and others.read_text() == "new" and not others.is_symlink()
    writing.write_named(own, b"new")
    with writing.opened(own) as file:
        file.write(b"newer")
    assert kept.read_text() == "newer" and own.is_symlink()
    writing.make_folder(tmp_path, "a/b")
    assert (tmp_path / "a/b").is_dir()


@pytest.mark.parametrize("link", ["prometheus.yml", "grafana", "x.csv.source.yaml"])
def test_root_follows_no_link_into_which_another_user_leads_it(
    link: str, place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a directory where everybody may make files."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    shared, kept = tmp_path / "shared", tmp_path / "kept"
    shared.mkdir()
    shared.chmod(0o1777)
    kept.mkdir()
    (kept / "file").write_text("root's")
    (shared / link).symlink_to(kept if link == "grafana" else kept / "file")
    os.chown(shared / link, ALICE, ALICE, follow_symlinks=False)
    (tmp_path / "x.csv").write_text("time,rate\n0s,1Mbit/s\n1s,2Mbit/s\n")
    context = Context.of({})
    CliRunner().invoke(metrics_command, ["--files", str(shared)], obj=context)
    CliRunner().invoke(trace_command, ["import", str(tmp_path / "x.csv"), "--into", str(shared)], obj=context)
    assert (shared / "x.csv").exists()
    assert [each.name for each in kept.iterdir()] == ["file"] and (kept / "file").read_text() == "root's"
    for command in (["--files", str(place / "dash")], ["import", str(tmp_path / "x.csv"), "--into", str(place)]):
        ended = CliRunner().invoke(trace_command if "import" in command else metrics_command, command, obj=context)
        assert ended.exit_code == 2 and "other users can write there" in ended.output


def test_root_writes_no_results_where_another_user_can(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.delenv("SUDO_UID", raising=False)
    with pytest.raises(LabError) as refused:
        rundir.make("dumbbell")
    assert str(refused.value).startswith(f"{place}: other users can write there") and list(place.iterdir()) == []
    for name, value in UNDER_SUDO.items():
        monkeypatch.setenv(name, value)
    assert rundir.make("dumbbell").is_dir()


def test_a_directory_is_roots_alone_with_all_that_its_path_goes_through(place: Path, tmp_path: Path) -> None:
    own = place / "own"
    own.mkdir()
    link, turn, loop = tmp_path / "link", tmp_path / "turn", tmp_path / "loop"
    link.symlink_to(place)
    turn.symlink_to(f"{place}/../{tmp_path.name}")
    loop.symlink_to(loop)
    shared, sticky = tmp_path / "shared", tmp_path / "sticky"
    for path, mode in ((shared, 0o777), (sticky, 0o1777)):
        path.mkdir()
        path.chmod(mode)
    for path in (own, own / "none" / "there", link, turn / "x", shared, shared / "x"):
        with pytest.raises(PermissionError):
            ownership.check_alone(path, {})
    with pytest.raises(OSError, match="symbolic links"):
        ownership.check_alone(loop, {})
    for path in (tmp_path, tmp_path / "none" / "there", sticky / "x"):
        ownership.check_alone(path, {})
    for path in (own, link):
        ownership.check_alone(path, UNDER_SUDO)


def test_an_owner_who_is_no_user_here_keeps_root_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, a directory of the host belongs to a number of there."""
    assert os.geteuid() == 0, "this test gives a directory to another user: run it as root"
    os.chown(tmp_path, 61002, 61002)
    ownership.check_alone(tmp_path, {})
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: None)
    with pytest.raises(PermissionError):
        ownership.check_alone(tmp_path, {})


def test_files_of_who_called_sudo_are_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sudo = {"SUDO_UID": "1234", "SUDO_GID": "1234"}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert ownership.own_users(sudo) == {0, 1234}
    assert ownership.own_users({}) == {0}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert ownership.own_users(sudo) == {0, 1000}  # anybody can set the variable
