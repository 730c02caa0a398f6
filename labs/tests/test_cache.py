"""The cache is in the same place for scripts and for Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ewan.labs.base import cache
from ewan.labs.base.errors import UserError

ROOT = Path(__file__).resolve().parent.parent.parent


def named_by_scripts(environment: dict[str, str]) -> tuple[int, str]:
    script = f'. "{ROOT}/images/cache.sh"; cache_directory'
    asked = subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    return asked.returncode, asked.stdout.rstrip("\n")


@pytest.mark.parametrize(
    "environment",
    [
        {"EWAN_CACHE": "/somewhere", "HOME": "/home/a"},
        {"XDG_CACHE_HOME": "/xdg", "HOME": "/home/a"},
        {"XDG_CACHE_HOME": "relative", "HOME": "/home/a"},
        {"HOME": "/home/a"},
        {"EWAN_CACHE": "off", "HOME": "/home/a"},
        {"EWAN_CACHE": "", "HOME": ""},
        {},
    ],
)
def test_scripts_and_python_name_the_same_cache(environment: dict[str, str]) -> None:
    place = cache.root(environment)
    assert named_by_scripts(environment) == (0, "" if place is None else str(place))


def test_both_refuse_a_relative_cache() -> None:
    environment = {"EWAN_CACHE": "here", "HOME": "/home/a"}
    with pytest.raises(UserError, match="write an absolute path, or off"):
        cache.root(environment)
    assert named_by_scripts(environment)[0] == 2


def made(by: str, environment: dict[str, str], project: Path) -> None:
    environment |= {"PATH": "/usr/bin:/bin"}
    if by == "python":
        cache.kept(environment, "things", project)
    else:
        script = f'root="{project}"; . "{ROOT}/images/cache.sh"; kept things'
        subprocess.run(["/bin/sh", "-c", script], env=environment, check=True, capture_output=True)


def test_where_nothing_can_be_kept_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").touch()
    for environment in ({"HOME": "/dev/null"}, {"EWAN_CACHE": str(tmp_path / "fifo")}, {"EWAN_CACHE": "off"}):
        with pytest.raises(UserError, match=r"Not a directory, and there is no cache: let EWAN_CACHE be"):
            cache.kept(environment, "things", tmp_path / "file")


def test_both_mark_the_cache_alike(tmp_path: Path) -> None:
    for name in ("scripts", "python"):
        made(name, {"EWAN_CACHE": str(tmp_path / name), "HOME": ""}, tmp_path)
    tags = {(tmp_path / name / cache.TAG).read_text() for name in ("scripts", "python")}
    assert tags == {cache.SIGNATURE}


@pytest.mark.parametrize("by", ["scripts", "python"])
def test_a_users_own_cache_is_nobody_elses_and_one_for_all_stays_open(tmp_path: Path, by: str) -> None:
    own, common = tmp_path / "ewan", tmp_path / "common"
    own.mkdir(mode=0o755)  # as earlier versions made it
    made(by, {"XDG_CACHE_HOME": str(tmp_path)}, tmp_path)
    made(by, {"EWAN_CACHE": str(common), "HOME": ""}, tmp_path)
    assert (own.stat().st_mode & 0o777, common.stat().st_mode & 0o777) == (0o700, 0o755)
