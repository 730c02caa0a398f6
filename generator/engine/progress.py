"""How far an experiment is, for people: runs that have ended of how many, and about how much time is left.

In: runs as they begin, move on and end. Out: a status line on a terminal, a line every few seconds in a log.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from labs.reporter import Reporter
from labs.runtime.progress import RunProgress
from labs.units import NS_PER_SECOND, about

TICK_S = 0.5


@dataclass(slots=True)
class _Work:
    """A run at work: what it is expected to take of its own clock, how much of that has passed, since when; and what
    it was forecast to take of wall time, 0 where nobody knows."""

    expected_ns: int
    passed_ns: int
    begun_ns: int
    forecast_ns: int = 0

    def left_ns(self, now: int, usual: float) -> float:
        """Of wall time, by its own pace; it has the usual one until about a second of its own clock says otherwise."""
        return self._left_ns(now, usual, NS_PER_SECOND)

    def left_by_forecast_ns(self, now: int, off: float) -> float:
        """The same; it has the forecast's pace, so many times `off` as others were, until an eighth of it has passed:
        connections that begin tell little of what they take later."""
        return self._left_ns(now, self.forecast_ns * off / max(self.expected_ns, 1), self.expected_ns / 8)

    def _left_ns(self, now: int, pace: float, weight_ns: float) -> float:
        wall_ns = now - self.begun_ns
        pace = (wall_ns + pace * weight_ns) / max(self.passed_ns + weight_ns, 1)
        return max(self.expected_ns - self.passed_ns, 0) * pace


class Board:
    """Counts runs. The time left is guessed from the wall time that a second of the runs' own clock took so far: of a
    run at work its own pace, as one may be held up that others are not, of those that wait the pace of all.

    `forecast_ns`: what each run is forecast to take of wall time, by its number. It is the first guess, and of runs
    that wait it is what counts, as many times as those that have ended took it.
    """

    def __init__(
        self, what: str, total: int, expected_ns: int, workers: int = 1, forecast_ns: Mapping[int, int] | None = None
    ) -> None:
        self._what, self._total, self._workers = what, total, max(workers, 1)
        self._expected_ns = expected_ns
        self._ended, self._ended_own_ns, self._ended_wall_ns = 0, 0, 0
        self._ended_expected_ns = 0
        self._forecast_ns = dict(forecast_ns or {})
        self._ended_forecast_ns = 0
        self._at_work: dict[int, _Work] = {}
        self._lock = threading.Lock()

    def begin(self, number: int, expected_ns: int) -> None:
        """A run begins, which is expected to take `expected_ns` of its own clock."""
        with self._lock:
            self._at_work[number] = _Work(expected_ns, 0, time.monotonic_ns(), self._forecast_ns.get(number, 0))

    def move(self, number: int, progress: RunProgress) -> None:
        """From a run of the virtual clock."""
        with self._lock:
            if number in self._at_work:
                self._at_work[number].passed_ns = progress.virtual_ns or 0

    def end(self, number: int) -> None:
        """A run has ended, whatever became of it."""
        with self._lock:
            work = self._at_work.pop(number)
            self._ended += 1
            self._ended_expected_ns += work.expected_ns
            self._ended_forecast_ns += work.forecast_ns
            self._ended_own_ns += max(work.passed_ns, 1)
            self._ended_wall_ns += time.monotonic_ns() - work.begun_ns

    def words(self) -> str:
        """How many runs have ended, and about how much wall time is left."""
        with self._lock:
            text = f"{self._what}: {self._ended} of {self._total} runs have ended"
            left_ns = self._left_ns()
        return text if not left_ns else f"{text}, about {about(left_ns, 'time', 2)} left"

    def _left_ns(self) -> float | None:
        now, at_work = time.monotonic_ns(), self._at_work.values()
        at_once = min(self._workers, max(self._total - self._ended, 1))
        if self._forecast_ns and all(self._forecast_ns.values()):
            off = self._ended_wall_ns / self._ended_forecast_ns if self._ended_forecast_ns else 1.0
            left = [work.left_by_forecast_ns(now, off) for work in at_work]
            waiting = sum(self._forecast_ns.values()) - self._ended_forecast_ns - sum(w.forecast_ns for w in at_work)
            return max([(sum(left) + max(waiting, 0) * off) / at_once, *left])
        own = self._ended_own_ns + sum(work.passed_ns for work in at_work)
        wall = self._ended_wall_ns + sum(now - work.begun_ns for work in at_work)
        if own < NS_PER_SECOND or not self._expected_ns:
            return None
        # What has ended tells best of those that wait, where something has.
        pace = self._ended_wall_ns / self._ended_own_ns if self._ended_own_ns > NS_PER_SECOND else wall / own
        left = [work.left_ns(now, pace) for work in at_work]
        waiting_ns = self._expected_ns - self._ended_expected_ns - sum(work.expected_ns for work in at_work)
        return max([(sum(left) + max(waiting_ns, 0) * pace) / at_once, *left])

    def live(self) -> None:
        """The live clock's runs move on with this machine's time."""
        now = time.monotonic_ns()
        with self._lock:
            for work in self._at_work.values():
                work.passed_ns = now - work.begun_ns

    @contextlib.contextmanager
    def shown(self, reporter: Reporter, live: bool = False) -> Iterator[None]:
        """Shows it on standard error meanwhile."""
        over = threading.Event()
        with reporter.progress(self.words()) as progress:

            def follow() -> None:
                while not over.wait(TICK_S):
                    if live:
                        self.live()
                    progress.tick(self.words())

            thread = threading.Thread(target=follow, daemon=True)
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()
