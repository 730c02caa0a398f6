"""`ewan test` and `ewan bisect` as users call them."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.conftest import ROOT, Ewan
from tests.documents import yaml_blocks

(PAGE,) = (text for _, text in yaml_blocks(ROOT / "docs/how-to/testing/files.md"))
FAILS = """
  - name: fails
    lab: dumbbell
    seeds: 2
    steps: [{name: a, on: left1, run: sleep 1; exit 3}, {name: b, from: left1, to: right1, bulk: 1MB}]
    expect: [{ended: a, most: 500ms}, {metric: aggregate goodput, least: 1Gbit/s}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "network.test.yaml"
    path.write_text(PAGE.rstrip() + FAILS)
    return path


@pytest.mark.virtual
def test_each_test_has_a_line_and_a_case_of_junit(ewan: Ewan, file: Path) -> None:
    ended = ewan("test", str(file), "--junit", "out.xml", cwd=file.parent)
    assert ended.returncode == 1
    assert "recovers-from-a-burst: passed" in ended.stderr
    for line in ("end of a: 1s, expected at most 500ms", "expected at least 1Gbit/s", "a: status 3", "1 of 3 passed"):
        assert line in ended.stderr
    suite = ElementTree.parse(file.parent / "out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    assert {case.get("name"): case.find("failure") is not None for case in suite} == {
        "recovers-from-a-burst": False,
        "fails[seed=1]": True,
        "fails[seed=2]": True,
    }
    assert ewan("test", str(file), "recovers-from-a-burst", cwd=file.parent).returncode == 0


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("ended: client", "ended: clint", 'network.test.yaml:14: tests[0].expect[0]: clint is no step: write "client"'),
        ("most: 4.2s", "most: 4.2", 'write a duration as "4.2ms"'),
        ("by: link", "by: lin", 'write "link", "queue" or "outage"'),
        ("packet loss", "packt loss", 'unknown metric, write "packet loss"'),
        ("packet loss of client", "packet loss of clint", 'no such step or role, write "client"'),
        ("{ended: a, most: 500ms}", "{lost: b, most: 0}", 'links do not count b: write "count_flows: true" too'),
        ("steps:", "stps:", 'tests[0].stps: unknown key, write "steps"'),
        ("tests:", "test:", 'write "tests:" with a list of at least one test'),
        ("least: 1}", "least: 1, has: x}", 'write "is:", "least:" or "most:" with a value'),
        ("name: fails", "name: recovers-from-a-burst", "is the name of another test"),
    ],
)
def test_a_mistake_is_one_line(ewan: Ewan, file: Path, written: str, instead: str, message: str) -> None:
    file.write_text(file.read_text().replace(written, instead, 1))
    ended = ewan("test", str(file), cwd=file.parent)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True).stdout


@pytest.mark.virtual
def test_the_commit_that_made_a_program_slower_is_found(ewan: Ewan, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "n.test.yaml").write_text(
        "tests: [{name: t, lab: dumbbell, steps: [{name: a, on: left1, run: ./a.sh}]}]\n"
    )
    program = tmp_path / "a.sh"
    for number in range(8):
        program.write_text(f"#!/bin/sh\n# {number}\nsleep {'0.5' if number < 5 else '0.7'}\n")
        program.chmod(0o755)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "--quiet", "-m", f"commit {number}")
    ended = ewan("bisect", "n.test.yaml", "--good", "HEAD~7", "--bad", "HEAD~1", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "commit 5" in ended.stderr.splitlines()[-1]
    assert "0.7 s" in ended.stderr.splitlines()[-1]
    assert git(tmp_path, "worktree", "list").count("\n") == 1
    assert git(tmp_path, "status", "--short", "--untracked-files=no") == ""
    ended = ewan("bisect", "n.test.yaml", "--good", "HEAD~1", cwd=tmp_path)
    assert ended.returncode == 2
    assert "ends at the same time at both commits" in ended.stderr
