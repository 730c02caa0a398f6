"""Samples of the links of a lab over several machines, for a page of metrics (emulator/node/src/metrics/joint.rs).

In: a function that asks a machine for its samples, the plan, the machine of each link. Out: the samples that have come
by now. A machine that does not answer in time delays no other: its links are shown as silent, and it is asked again
when its answer is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.multi_machine import LinkSamplesNow

ANSWER_S = 1.0
"""A scrape waits for it."""

Ask = Callable[[str], dict[str, str]]
"""The samples of a machine, by family; LabError."""


class JointSamples:
    """`machine_of`: link → machine. `asking` makes it."""

    def __init__(self, pool: ThreadPoolExecutor, plan: Plan, machine_of: Mapping[str, str], ask: Ask) -> None:
        self._pool, self._ask = pool, ask
        self._links: dict[str, list[dict[str, str]]] = {}
        for link in plan.links:
            labels = {"machine": machine_of[link.name], "lab": plan.lab, "link": link.name, "backend": link.backend}
            self._links.setdefault(labels["machine"], []).append(labels)
        self._asked: dict[str, Future[dict[str, str]]] = {}

    def now(self) -> LinkSamplesNow:
        """All samples until now."""
        for machine in self._links:
            if machine not in self._asked or self._asked[machine].done():
                self._asked[machine] = self._pool.submit(self._ask, machine)
        wait(self._asked.values(), ANSWER_S)
        told: list[dict[str, str]] = []
        silent: list[dict[str, str]] = []
        for machine, labels in self._links.items():
            future = self._asked[machine]
            error = future.exception() if future.done() else LabError("no answer yet")
            if error is None:
                told.append(future.result())
            elif isinstance(error, LabError):
                silent += labels
            else:
                raise error
        return LinkSamplesNow(tuple(told), tuple(silent))


@contextmanager
def asking(plan: Plan, machine_of: Mapping[str, str], ask: Ask) -> Iterator[JointSamples]:
    """Meanwhile machines can be asked. One that does not answer at the end is not waited for."""
    pool = ThreadPoolExecutor(max(len(set(machine_of.values())), 1), "ewan-samples")
    try:
        yield JointSamples(pool, plan, machine_of, ask)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
