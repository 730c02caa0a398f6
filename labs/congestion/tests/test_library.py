"""The library of added congestion controls where there is no home, as in a service."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.labs.congestion import library
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.virtual import VirtualRuntime


def test_without_a_home_nothing_was_added() -> None:
    assert library.added({}) == {} and library.names({}) == set()


def test_without_a_home_nothing_can_be_added(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="set XDG_DATA_HOME"):
        library.add(tmp_path / "tcp_mine.c", VirtualRuntime(), Path(), {})
    with pytest.raises(LabError, match="none was added"):
        library.remove("mine", {})
