"""Finds the tortures of this package, runs trials, counts those that failed."""

from __future__ import annotations

import importlib
import pkgutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol, cast

NOT_TORTURES = {"__main__", "harness"}


class Torture(Protocol):
    """What a module of this package has."""

    __name__: str
    __doc__: str | None
    TIER: str
    """The mark of its test, which says what a trial starts (tests/tiers.py)."""
    QUICK: int
    """Trials in `make test`; 0 where it is run by hand only: then one, if it is named."""
    LONG: int

    def trial(self, seed: int, place: Path) -> None:
        """One trial; an exception says that the product failed."""


@dataclass(slots=True)
class Tally:
    """How many trials were made, and what became of those that failed."""

    tried: int = 0
    failures: dict[int, str] = field(default_factory=dict)
    """The seed of a failed trial → the error, with its traceback."""

    @property
    def failed(self) -> int:
        return len(self.failures)


def tortures() -> dict[str, Torture]:
    """All tortures by name, in alphabetical order."""
    names = sorted(each.name for each in pkgutil.iter_modules([str(Path(__file__).parent)]))
    names = [name for name in names if name not in NOT_TORTURES and not name.startswith("test_")]
    modules = ((name, importlib.import_module(f"tests.torture.{name}")) for name in names)
    return {name: cast(Torture, module) for name, module in modules if hasattr(module, "trial")}


LONGEST_S, WAITS_S = 5, 30
"""Of what is tried in this process: processor time, and wall time on a machine that others load. More is a hang."""


@contextmanager
def within_time() -> Iterator[None]:
    """AssertionError where it takes longer, also where it waits."""

    def hangs(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"a hang: more than {LONGEST_S} s of processor time, or {WAITS_S} s")

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, LONGEST_S), (signal.ITIMER_REAL, signal.SIGALRM, WAITS_S))
    before = [(timer, number, signal.signal(number, hangs)) for timer, number, _ in timers]
    for timer, _, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, number, handler in before:
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def one_line(said: str) -> None:
    """What a person may be told of a file: one line that can be shown."""
    assert said and said.isprintable() and len(said) <= 2000, repr(said[:300])


def run(torture: Torture, seeds: Iterator[int], tell: Callable[[Tally], None] = lambda tally: None) -> Tally:
    """Makes a trial for each seed; `tell` is called after each."""
    tally = Tally()
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="ewan-torture-") as place:
            try:
                torture.trial(seed, Path(place))
            except Exception:
                tally.failures[seed] = traceback.format_exc()
        tally.tried += 1
        tell(tally)
    return tally
