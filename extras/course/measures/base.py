"""Measures and the view that they have of a run: the vocabulary that modules beside this one add to truths.

In: a function of a run, or of several. Out: `MEASURES`, by name, of all modules of this package. All values are in SI
base units: seconds, bit/s, bytes, ratios; counts, segments and packets are as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.labs.base.modules import modules_of

Value = float | str | bool
"""A value of a parameter or of an expression: a number in SI base units, a word, or whether something holds."""


class NoValueError(ValueError):
    """A run does not have what is asked for; one line."""


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Values over time, in order. `times` in seconds from the common start of all flows."""

    times: NDArray[np.float64]
    values: NDArray[np.float64]


class MeasuredRun(Protocol):
    """One run of the virtual clock."""

    @property
    def number(self) -> int:
        """Its place in the scenario, from 1."""

    @property
    def name(self) -> str:
        """Its parameters that vary and its seed, in words."""

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""

    @property
    def parameters(self) -> Mapping[str, Value]:
        """The scenario's parameters at this run."""

    def metric(self, words: str) -> float:
        """A metric of docs/reference/metrics.md, perhaps of whom: `rtt p95 of probe`; NoValueError where it has
        none."""

    def series(self, name: str, *, step: str = "", flow: str = "", link: str = "", window: float = 0.0) -> TimeSeries:
        """A series of docs/reference/metrics.md: of the load's flows, of a step's, of one flow, of a link (`core`,
        `core forward`; the bottleneck if none is named). `window`: means over so many seconds, 100 ms where several
        flows are put together; 0: every sample, of a single flow. NoValueError where it has none, or several lines."""

    def table(self, name: str) -> pl.DataFrame:
        """A table of docs/reference/metrics.md, in the units that its columns name (ns); without rows where it has
        none."""

    def text(self, name: str) -> str:
        """A file that the run left, by its path in the run's directory; NoValueError where there is none."""


Function = TypeVar("Function", bound=Callable[..., Value])


@dataclass(frozen=True, slots=True)
class Measure:
    """A function that truths may call. `several`: it takes all runs that are chosen, not one."""

    name: str
    function: Callable[..., Value]
    several: bool
    keywords: frozenset[str]
    """The arguments that it takes beside runs; every other word of a call chooses runs."""


MEASURES: dict[str, Measure] = {}
RESERVED = frozenset({"of", "run", "seed"})
"""Words of a call that choose runs, whatever parameters a scenario has."""


def measure(function: Function) -> Function:
    """Makes a function one that truths may call by its name. Its first parameter is `run`, one run, or `runs`, several;
    the others are its own. TypeError for another signature, and for a name that is taken."""
    first, *others = inspect.signature(function).parameters
    name = function.__name__
    if first not in ("run", "runs"):
        raise TypeError(f"measure {name}: its first parameter is run or runs, not {first}")
    if taken := RESERVED & set(others):
        raise TypeError(f"measure {name}: {', '.join(sorted(taken))} choose runs: call the parameter something else")
    if name in MEASURES:
        raise TypeError(f"measure {name}: there is one of this name in {MEASURES[name].function.__module__}")
    MEASURES[name] = Measure(name, function, first == "runs", frozenset(others))
    return function


def every() -> Mapping[str, Measure]:
    """All measures: each module of this package registers its own."""
    for _ in modules_of(__name__.rpartition(".")[0]):
        pass
    return MEASURES
