"""The list of calls that the weekly check of the Makefile makes."""

from __future__ import annotations

import re

import pytest

from tests.targets import CALLS, PLACE, ROOT, chosen, main


def test_every_target_that_make_help_lists_is_called() -> None:
    listed = re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
    assert sorted(listed) == sorted({call.target for call in CALLS})


def test_a_target_comes_after_what_it_needs() -> None:
    calls = [call.target for call in chosen(["rerun"])]
    assert calls == ["run", "archive", "rerun"]


def test_an_unknown_target_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["labb"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "tests.targets: labb: the Makefile has no such target: make help lists them"
    ]


def test_the_clone_is_where_the_virtual_kernel_may_be_started() -> None:
    assert not re.search(r"\s", PLACE)


def test_the_archive_of_the_list_is_trusted_before_it_is_run_again() -> None:
    (call,) = (call for call in CALLS if call.target == "rerun")
    assert "--trust" in call.command
