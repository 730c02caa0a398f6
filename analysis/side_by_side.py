"""Work on an experiment of many runs, shared out over the CPUs that this process may use.

In: a function of a module, and what each call is given. Out: what the calls give, in order. Of few runs all is done in
this process: another one takes a second to import the analysis.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache, lru_cache
from typing import Any, Generic, TypeVar

from ewan.labs.base import interrupt
from ewan.labs.base.processes import cpus, workers

Given = TypeVar("Given")
Found = TypeVar("Found")
Item = TypeVar("Item")

Value = TypeVar("Value")

FEWEST_RUNS = 48
PARTS = 4
"""For each CPU: the last of them are done while others have still to do."""


class SharedArgument(Generic[Value]):
    """Something large that many calls are given: it is pickled once, and each process has it once."""

    def __init__(self, value: Value) -> None:
        self.value = value
        self._pickled = b""

    def __reduce__(self) -> tuple[Any, ...]:
        self._pickled = self._pickled or pickle.dumps(self.value)
        return _opened, (self._pickled,)


@lru_cache(maxsize=1)
def _opened(pickled: bytes) -> SharedArgument[Any]:
    return SharedArgument(pickle.loads(pickled))


def each(function: Callable[[Given], Found], given: Sequence[Given], runs: int) -> list[Found]:
    """The results of `function` for each, in order; its errors are raised. Arguments and results must be picklable.

    This process takes part: from the end of the list on, it does the work that no other process has begun."""
    if not shared(runs) or len(given) < 2:
        return [function(one) for one in given]
    found: dict[int, Found] = {}
    todo, others = deque(range(len(given))), dict[Future[Found], int]()
    try:
        while todo or others:
            while todo and len(others) < cpus():  # one waits, so that no process does
                index = todo.popleft()
                with interrupt.blocked():  # it may start a process
                    others[_workers().submit(function, given[index])] = index
            if todo:
                index = todo.pop()
                found[index] = function(given[index])
            ended, _ = wait(others, 0 if todo else None, FIRST_COMPLETED)
            found |= {others.pop(one): one.result() for one in ended}
    except BrokenProcessPool:
        _workers.cache_clear()  # one was killed, perhaps for want of memory: one process needs less
        found |= {index: function(one) for index, one in enumerate(given) if index not in found}
    return [found[index] for index in range(len(given))]


def shares(items: Sequence[Item], runs: int) -> list[Sequence[Item]]:
    """The items in parts for `each`, each part from all over them; in one part where it would not be shared out."""
    parts = PARTS * cpus() if shared(runs) else 1
    return [items[first::parts] for first in range(parts)]


def shared(runs: int) -> bool:
    """Return whether work on so many runs is shared out over processes."""
    return runs >= FEWEST_RUNS and cpus() > 1


@cache
def _workers() -> ProcessPoolExecutor:
    """Kept until this process ends."""
    return workers(cpus() - 1)
