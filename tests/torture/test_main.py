"""How many trials `python -m tests.torture` makes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tests.torture import __main__ as command
from tests.torture import harness


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ([], {"usual": 3, "by_hand": 0}),
        (["--long"], {"usual": 5, "by_hand": 4}),
        (["by_hand"], {"usual": 0, "by_hand": 1}),
        (["by_hand", "--trials", "2"], {"usual": 0, "by_hand": 2}),
        (["by_hand", "--long"], {"usual": 0, "by_hand": 4}),
    ],
)
def test_what_is_named_is_tried(monkeypatch: pytest.MonkeyPatch, words: list[str], made: dict[str, int]) -> None:
    tried = {"usual": 0, "by_hand": 0}

    def torture(name: str, quick: int, long: int) -> SimpleNamespace:
        def trial(seed: int, place: Path) -> None:
            tried[name] += 1

        return SimpleNamespace(__name__=name, __doc__="A torture.", QUICK=quick, LONG=long, trial=trial)

    known = {"usual": torture("usual", 3, 5), "by_hand": torture("by_hand", 0, 4)}
    monkeypatch.setattr(harness, "tortures", lambda: known)
    done = CliRunner().invoke(command.main, words)
    assert done.exit_code == 0, done.output
    assert tried == made
