"""Which tests run where, and what becomes of those that fail."""

from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from tests import run, tiers


def test_a_test_belongs_to_the_first_of_its_tiers() -> None:
    assert tiers.tier_of(["test_x", "virtual", "live"]) == "live"
    assert tiers.tier_of(["test_x", "timeout"]) == tiers.PURE


@pytest.mark.parametrize("what", ["check", "all"])
def test_every_stage_is_run(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands: list[list[str]] = []

    def passes(command: list[str], output: IO[str] | None) -> int:
        commands.append(command)
        if output:
            output.write("what it printed")
        return 0

    assert run.main([what], passes) == 0
    assert sorted(commands) == sorted(stage.command for stage in chain(*run.stages(what)))
    told = capsys.readouterr().out
    assert "second try" not in told
    assert told.count("what it printed") == (2 if what == "all" else 0)


def test_what_fails_twice_fails_and_the_other_stages_are_run(capsys: pytest.CaptureFixture[str]) -> None:
    first, compiling, second, beside, third = chain(*run.stages("all"))
    outcomes = {
        tuple(first.command): 101,
        tuple(first.again): 0,
        tuple(compiling.command): 0,
        tuple(second.command): 1,
        tuple(second.again): 1,
        tuple(beside.command): 1,
        tuple(beside.again): 0,
        tuple(third.command): 0,
    }
    asked: list[tuple[str, ...]] = []

    def outcome(command: list[str], output: IO[str] | None) -> int:
        asked.append(tuple(command))
        return outcomes[tuple(command)]

    assert run.main(["all"], outcome) == 1
    assert sorted(asked) == sorted(outcomes)
    assert asked.index(tuple(second.again)) > asked.index(tuple(beside.command)), "alone, when the others have ended"
    told = capsys.readouterr().out.splitlines()[-5:]
    assert [line.split(" s  ", 1)[1] for line in told] == [
        "passed; at the second try",
        "passed",
        "failed; at the second try",
        "passed; at the second try",
        "passed",
    ]


def test_an_error_of_pytest_itself_ends_the_run() -> None:
    asked: list[list[str]] = []

    def interrupted(command: list[str], output: IO[str] | None) -> int:
        asked.append(command)
        return 2 if "pytest" in command else 0

    assert run.main(["all"], interrupted) == 1
    assert len(asked) == 4


@pytest.mark.parametrize("what", ["check", "all"])
@pytest.mark.parametrize("marks", [(), *combinations(tiers.TIERS, 1), *combinations(tiers.TIERS, 2)], ids=str)
def test_every_test_is_in_one_stage_whatever_its_marks(what: str, marks: tuple[str, ...]) -> None:
    stages = [stage for stage in chain(*run.stages(what)) if "pytest" in stage.command]
    chosen = [stage.command[stage.command.index("pytest") + 2] for stage in stages]
    held = dict.fromkeys(tiers.TIERS, False) | dict.fromkeys(marks, True)
    assert sum(eval(expression, {}, held) for expression in chosen) == (1 if what == "all" or not marks else 0)


def test_a_stage_imports_the_files_that_have_its_tests(tmp_path: Path) -> None:
    (tmp_path / "labs/tests").mkdir(parents=True)
    (tmp_path / "labs/tests/test_one.py").write_text("pytestmark = pytest.mark.live")
    (tmp_path / "labs/tests/test_other.py").write_text("pytestmark = pytest.mark.virtual")
    assert tiers.files_with(["live", "containers"], tmp_path) == ["labs/tests/test_one.py"]
    for stage in chain(*run.stages("all")):
        assert [word for word in stage.command if "tests/" in word] == {
            "beside": tiers.files_with(tiers.BESIDE),
            "alone": tiers.files_with(tiers.ALONE),
        }.get(stage.name, [])


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
