"""Tiers of tests: what a test starts decides whether it may run beside others. Hooks for pytest (tests/conftest.py).

In: the marks of the tests, which pyproject.toml lists. Out: at the end of a run, how many tests each tier had and how
long they took together.
"""

from __future__ import annotations

import functools
import signal
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent.parent
TIERS = ("alone", "untimed", "containers", "live", "machines", "virtual", "torture", "slow")
"""The marks. A test with several belongs to the first one; a test without any is pure: no lab, and quick."""
PURE = "pure"
TIER = "tier"
"""The property by which a test's report tells its tier, also from another process."""
BESIDE = ("untimed", "machines")
"""Live labs and containers of which nothing is timed, and machines that are emulated in real time: two at once, beside
tests that wait for no clock, and before them when it comes to CPU time."""
TIMED = ("containers", "live")
"""Their timing is this machine's: such tests run one after the other, beside what has the CPU time that they leave."""


def has_mark(file: Path, mark: str) -> bool:
    """Whether the text of a file gives a mark to tests."""
    return f"mark.{mark}" in file.read_text()


def files_with(marks: Iterable[str], root: Path = ROOT) -> list[str]:
    """The files that give one of these marks to a test, below the directories of tests."""
    return [file for file in all_files(root) if any(has_mark(root / file, mark) for mark in marks)]


def all_files(root: Path = ROOT) -> list[str]:
    """The files below the directories of tests that hold tests."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    files = sorted(file for directory in settings["testpaths"] for file in (root / directory).rglob("test_*.py"))
    return [str(file.relative_to(root)) for file in files]


def tier_of(marks: Iterable[str]) -> str:
    """The tier of a test with these marks."""
    own = set(marks)
    return next((tier for tier in TIERS if tier in own), PURE)


class Durations:
    """Seconds and tests by tier; with xdist, those of all workers."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.tests: dict[str, set[str]] = defaultdict(set)
        self.mark_is_written = functools.cache(has_mark)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        tier = tier_of(_marks(item))
        if tier in ("alone", *TIMED, *BESIDE) and not self.mark_is_written(item.path, tier):
            raise pytest.UsageError(f"{item.nodeid}: write mark.{tier} in its own file, by which its stage finds it")
        item.user_properties.append((TIER, tier))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        tier = str(dict(report.user_properties)[TIER])
        self.seconds[tier] += report.duration
        self.tests[tier].add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        told = [
            f"{tier}: {len(self.tests[tier])} in {self.seconds[tier]:.0f} s"
            for tier in (PURE, *reversed(TIERS))
            if tier in self.tests
        ]
        if told:
            terminalreporter.write_line(f"tests by tier, set-up included: {', '.join(told)}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # What takes long and came last would have one worker alone, so it goes first. The others keep their order.
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (not item.nodeid.startswith(LONGEST), tier_of(_marks(item)) == PURE))


def _marks(item: pytest.Item) -> Iterator[str]:
    return (mark.name for mark in item.iter_markers())


def pytest_configure(config: pytest.Config) -> None:
    # Who runs the tests in the background has SIGINT ignored, and so would have every program that they send one.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Durations(), "ewan-durations")


TOGETHER = {
    "a container engine and interfaces of the host": (
        *("tests/containers/", "tests/container_engine/", "labs/runtime/tests/test_containerlab.py"),
        *("tests/extras/test_hstts_containers.py", "tests/extras/test_hardware.py"),
        *("tests/extras/test_box_vm.py", "labs/runtime/tests/test_cards.py"),
        "calibration/tests/test_surroundings.py::test_trials_leave_nothing",
    ),
}
"""What there is once on a machine, and the tests that use it or look whether it is as before: one after the other."""


APART = (
    *("tests/torture/test_torture.py", "tests/test_engine_interrupted.py", "tests/test_own_nodes.py"),
    *("tests/test_one_model.py", "tests/test_paths.py", "tests/test_queueing.py", "tests/test_routing.py"),
)
"""Modules whose tests share nothing, and that take long one after the other."""
OF_PARAMETER = ("tests/extras/course/test_labs.py",)
"""Modules that share what a fixture makes for each of its parameters."""
LONGEST = (*OF_PARAMETER, "tests/vm/test_modules_vm.py", *APART[:2], "tests/test_openmpi.py", "tests/test_study.py")
"""These have a scope that takes a minute and more."""


def scope_of(test: str) -> str:
    """The tests with the same scope run one after the other, in the same process: those of a module, or of TOGETHER."""
    if test.startswith(APART):
        return test
    for scope, places in TOGETHER.items():
        if test.startswith(places):
            return scope
    module, _, name = test.partition("::")
    return f"{module}[{name.partition('[')[2]}" if module in OF_PARAMETER else module


class ScopeScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Distributes scopes over processes."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ScopeScheduling | None:
    """Takes the place of `--dist loadscope`."""
    return ScopeScheduling(config, log) if config.getvalue("dist") == "loadscope" else None
