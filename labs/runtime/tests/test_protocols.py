"""Each runtime is what it says it is: mypy checks the assignments, and this test that none is forgotten."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ewan.labs.runtime import base
from ewan.labs.runtime.containerlab import ContainerlabRuntime
from ewan.labs.runtime.live import LiveRuntime
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.virtual import VirtualRuntime

if TYPE_CHECKING:
    _NETNS: base.LiveClockRuntime = NetnsRuntime()
    _CONTAINERS: base.LiveClockRuntime = ContainerlabRuntime()
    _LIVE: base.LiveClockRuntime = LiveRuntime()
    _VIRTUAL: base.BatchRuns = VirtualRuntime()

LIVE = (NetnsRuntime, ContainerlabRuntime, LiveRuntime)


def methods(protocol: type) -> set[str]:
    return {name for name, member in inspect.getmembers(protocol, inspect.isfunction) if not name.startswith("_")}


def test_the_runtimes_have_every_method_with_its_parameters() -> None:
    for runtime in LIVE:
        for name in methods(base.LiveClockRuntime):
            own, asked = (inspect.signature(getattr(each, name)) for each in (runtime, base.LiveClockRuntime))
            assert list(own.parameters) == list(asked.parameters), f"{runtime.__name__}.{name}"
    assert methods(base.BatchRuns) <= methods(VirtualRuntime)


def test_a_lab_that_does_not_stay_up_is_not_said_to() -> None:
    assert not methods(base.LabLifecycle) & methods(VirtualRuntime)


def test_every_name_has_a_runtime(tmp_path: Path) -> None:
    for name in get_args(base.LiveName):
        live = LiveRuntime(choice=name, state=tmp_path)
        assert live.names() == []
        assert isinstance(live._runtimes[name], LIVE)
    assert {*get_args(base.LiveName), "auto", "virtual"} == set(base.NAMES)
