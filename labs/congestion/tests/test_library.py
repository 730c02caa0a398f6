"""The library of added congestion controls: where there is no home, as in a service, and names that are taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.labs.congestion import library
from ewan.labs.runtime import kernel_modules
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.virtual import VirtualRuntime


def test_without_a_home_nothing_was_added() -> None:
    assert library.added({}) == {} and library.names({}) == set()


def test_without_a_home_nothing_can_be_added(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="set XDG_DATA_HOME"):
        library.add(tmp_path / "tcp_mine.c", VirtualRuntime(), Path(), (), {})
    with pytest.raises(LabError, match="none was added"):
        library.remove("mine", {})


def test_a_name_of_the_kernel_is_refused_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_modules, "built", pytest.fail)
    source = tmp_path / "tcp_mine.c"
    source.write_text('/* .name = "reno" */ static struct tcp_congestion_ops mine = {\n\t.name = "cubic",\n};\n')
    with pytest.raises(LabError, match=r"tcp_mine\.c: the virtual kernel has a congestion control cubic already"):
        library.add(source, VirtualRuntime(), Path(), ("cubic", "reno"), {"XDG_DATA_HOME": str(tmp_path)})
