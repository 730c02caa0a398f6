"""Which tests run where, and what becomes of those that fail."""

from __future__ import annotations

import pytest

from tests import run, tiers


def test_a_test_belongs_to_the_first_of_its_tiers() -> None:
    assert tiers.tier_of(["test_x", "virtual", "live"]) == "live"
    assert tiers.tier_of(["test_x", "timeout"]) == tiers.PURE


@pytest.mark.parametrize("what", ["check", "all"])
def test_every_stage_is_run(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands: list[list[str]] = []

    def passes(command: list[str]) -> int:
        commands.append(command)
        return 0

    assert run.main([what], passes) == 0
    assert commands == [stage.command for stage in run.stages(what)]
    assert "second try" not in capsys.readouterr().out


def test_what_fails_twice_fails_and_the_other_stages_are_run(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = run.stages("all")
    outcomes = {
        tuple(first.command): 101,
        tuple(first.again): 0,
        tuple(second.command): 1,
        tuple(second.again): 1,
        tuple(third.command): 0,
    }
    asked: list[tuple[str, ...]] = []

    def outcome(command: list[str]) -> int:
        asked.append(tuple(command))
        return outcomes[tuple(command)]

    assert run.main(["all"], outcome) == 1
    assert asked == list(outcomes)
    told = capsys.readouterr().out.splitlines()[-3:]
    assert [line.split("s  ", 1)[1] for line in told] == [
        "passed; at the second try",
        "failed; at the second try",
        "passed",
    ]


def test_an_error_of_pytest_itself_ends_the_run() -> None:
    asked: list[list[str]] = []

    def interrupted(command: list[str]) -> int:
        asked.append(command)
        return 2 if "pytest" in command else 0

    assert run.main(["all"], interrupted) == 1
    assert len(asked) == 2


def test_all_stages_together_have_every_test() -> None:
    """The last stage runs the marks that the one before it leaves out; neither names tests."""
    _, beside, alone = run.stages("all")
    marks = [stage.command[stage.command.index("-m", 3) + 1] for stage in (beside, alone)]
    assert marks[0] == f"not ({marks[1]})"
    assert not [word for stage in (beside, alone) for word in stage.command if "tests/" in word]
