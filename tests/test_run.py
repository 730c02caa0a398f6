"""Which tests run where, and what becomes of those that fail."""

from __future__ import annotations

import os
import subprocess
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from tests import run, tiers
from tests.idle_group import idle_group, inside


def every(what: str, idle: Path | None = None) -> list[run.TestingStage]:
    """The stages, in the order in which their durations are printed."""
    return [stage for lanes in run.stages(what, idle) for lane in lanes for stage in lane]


def test_a_test_belongs_to_the_first_of_its_tiers() -> None:
    assert tiers.tier_of(["test_x", "virtual", "live"]) == "live"
    assert tiers.tier_of(["test_x", "timeout"]) == tiers.PURE


GROUPS = (None, Path("/sys/fs/cgroup/cpu/idle"))


@pytest.mark.parametrize("idle", GROUPS)
@pytest.mark.parametrize("what", ["check", "all"])
def test_every_stage_is_run(what: str, idle: Path | None, capsys: pytest.CaptureFixture[str]) -> None:
    commands: list[list[str]] = []

    def passes(command: list[str], output: IO[str] | None) -> int:
        commands.append(command)
        if output:
            output.write("what it printed")
        return 0

    assert run.main([what], passes, idle) == 0
    assert sorted(commands) == sorted(stage.command for stage in every(what, idle))
    told = capsys.readouterr().out
    assert "second try" not in told
    assert told.count("what it printed") == (0 if what == "check" else 2 if idle is None else 3)


def test_what_fails_twice_fails_and_the_other_stages_are_run(capsys: pytest.CaptureFixture[str]) -> None:
    first, compiling, second, beside, third, alone = every("all")
    outcomes = {
        tuple(first.command): 101,
        tuple(first.again): 0,
        tuple(compiling.command): 0,
        tuple(second.command): 1,
        tuple(second.again): 1,
        tuple(beside.command): 1,
        tuple(beside.again): 0,
        tuple(third.command): 0,
        tuple(alone.command): 0,
    }
    asked: list[tuple[str, ...]] = []

    def outcome(command: list[str], output: IO[str] | None) -> int:
        asked.append(tuple(command))
        return outcomes[tuple(command)]

    assert run.main(["all"], outcome) == 1
    assert sorted(asked) == sorted(outcomes)
    assert asked.index(tuple(second.again)) > asked.index(tuple(beside.command)), "when the others have ended"
    told = capsys.readouterr().out.splitlines()[-6:]
    assert [line.split(" s  ", 1)[1] for line in told] == [
        "passed; at the second try",
        "passed",
        "failed; at the second try",
        "passed; at the second try",
        "passed",
        "passed",
    ]


@pytest.mark.parametrize("idle", GROUPS)
def test_an_error_of_pytest_itself_ends_the_run(idle: Path | None) -> None:
    asked: list[list[str]] = []

    def interrupted(command: list[str], output: IO[str] | None) -> int:
        asked.append(command)
        return 2 if "pytest" in command else 0

    assert run.main(["all"], interrupted, idle) == 1
    assert len(asked) == 4, "what comes after it, in its lane or later, is not run"


@pytest.mark.parametrize("what, idle", [("check", None), *(("all", idle) for idle in GROUPS)])
@pytest.mark.parametrize("marks", [(), *combinations(tiers.TIERS, 1), *combinations(tiers.TIERS, 2)], ids=str)
def test_every_test_is_in_one_stage_whatever_its_marks(what: str, idle: Path | None, marks: tuple[str, ...]) -> None:
    stages = [stage for stage in every(what, idle) if "pytest" in stage.command]
    chosen = [stage.command[stage.command.index("pytest") + 2] for stage in stages]
    held = dict.fromkeys(tiers.TIERS, False) | dict.fromkeys(marks, True)
    assert sum(eval(expression, {}, held) for expression in chosen) == (1 if what == "all" or not marks else 0)


def test_a_stage_imports_the_files_that_have_its_tests(tmp_path: Path) -> None:
    (tmp_path / "labs/tests").mkdir(parents=True)
    (tmp_path / "labs/tests/test_one.py").write_text("pytestmark = pytest.mark.live")
    (tmp_path / "labs/tests/test_other.py").write_text("pytestmark = pytest.mark.virtual")
    assert tiers.files_with(["live", "containers"], tmp_path) == ["labs/tests/test_one.py"]
    for stage in every("all"):
        assert [word for word in stage.command if "tests/" in word] == {
            "beside": tiers.files_with(tiers.BESIDE),
            "one by one": tiers.files_with(tiers.TIMED),
            "alone": tiers.files_with(["alone"]),
        }.get(stage.name, [])


def test_a_command_and_what_it_starts_have_the_time_that_nobody_else_wants(tmp_path: Path) -> None:
    with idle_group() as group:
        if group is None:
            assert os.geteuid() != 0 or not os.access("/sys/fs/cgroup/cpu/cpu.idle", os.W_OK)
            return
        assert (group / "cpu.idle").read_text() == "1\n"
        started = subprocess.run(inside(group, ["sh", "-c", "cat /proc/self/cgroup"]), capture_output=True, text=True)
        assert group.name in started.stdout
    assert not group.exists()


def test_where_there_are_no_groups_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    with idle_group(tmp_path) as group:
        assert group is None
    assert [path.name for path in tmp_path.iterdir()] == ["cgroup.subtree_control"]


def test_a_mark_that_no_stage_would_find_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "test_hidden.py"
    file.write_text("pytestmark = getattr(pytest.mark, NAME)")
    marks = [SimpleNamespace(name="live")]
    item = SimpleNamespace(path=file, nodeid="test_hidden.py::test", iter_markers=lambda: marks, user_properties=[])
    with pytest.raises(pytest.UsageError, match=r"test_hidden\.py::test: write mark\.live in its own file"):
        tiers.Durations().pytest_itemcollected(item)  # type: ignore[arg-type]
    file.write_text("pytestmark = pytest.mark.live")
    tiers.Durations().pytest_itemcollected(item)  # type: ignore[arg-type]
    assert item.user_properties == [(tiers.TIER, "live")]


@pytest.mark.parametrize(
    ("test", "scope"),
    [
        ("tests/test_words.py::test_one[a::b]", "tests/test_words.py"),
        ("tests/containers/test_own.py::test_one", "a container engine and interfaces of the host"),
        ("tests/test_one_model.py::test_one[a::b]", "tests/test_one_model.py::test_one[a::b]"),
        ("tests/extras/course/test_labs.py::test_one[mathis]", "tests/extras/course/test_labs.py[mathis]"),
    ],
)
def test_tests_that_share_something_run_in_one_process(test: str, scope: str) -> None:
    assert tiers.scope_of(test) == scope
