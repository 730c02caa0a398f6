"""Progress of an experiment, for people: the number of runs that have ended of all, and about how much time is left.

In: runs as they begin, move on and end. Out: a status line on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ewan.labs.base.reporter import Reporter
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.runtime.progress import RunProgress

TICK_S = 0.5
LOOK_S = 2.0
"""The interval in seconds at which the cause of a wait is asked for."""
FADES = 3.0
"""By how much less a run's pace counts than that of one that ended a round of all workers later."""
LATELY = 2 / 3
"""The share of the pace of the last round, beside that of runs that have ended: a machine that becomes ten times slower
is seen within about a usual run's time."""
SLOWEST = 10_000.0
"""Whatever is more than so much slower than runs that have ended stands still, which tells no pace."""
HOPED = 1 / 8
"""The weight of the usual pace for a run at work, as a share of the run: connections that begin say little about their
later speed."""


@dataclass(slots=True)
class _Work:
    """A run at work: its expected time by its own clock, the part that has passed, and the moment it began.

    `size_ns`: its forecast wall time; without a forecast, its time by its own clock."""

    size_ns: int
    expected_ns: int
    passed_ns: int
    begun_ns: int

    def share(self, usual: float) -> float:
        """The share of the run that is done, where runs end after a share `usual` of the time that they may take."""
        return min(self.passed_ns / max(self.expected_ns * usual, 1), 1.0)

    def left_ns(self, now: int, pace: float, usual: float) -> float:
        """The wall time left, by the run's own pace and, the less of it is done the more, by the pace of others."""
        done = self.share(usual)
        took_ns = now - self.begun_ns + pace * self.size_ns * HOPED
        return (1 - done) * took_ns / (done + HOPED)


@dataclass(slots=True)
class _RunSums:
    """Sums over runs that have ended, of which the recent ones weigh more."""

    runs: float = 0.0
    wall_ns: float = 0.0
    size_ns: float = 0.0
    passed_ns: float = 0.0
    expected_ns: float = 0.0

    def add(self, work: _Work, now: int, weight: float) -> None:
        """`weight`: of those before."""
        self.runs = self.runs * weight + 1
        self.wall_ns = self.wall_ns * weight + now - work.begun_ns
        self.size_ns = self.size_ns * weight + work.size_ns
        self.passed_ns = self.passed_ns * weight + min(work.passed_ns, work.expected_ns)
        self.expected_ns = self.expected_ns * weight + work.expected_ns

    @property
    def mean_wall_ns(self) -> float:
        """The mean wall time of a run."""
        return self.wall_ns / max(self.runs, 1.0)

    @property
    def share(self) -> float:
        """The share of the time that runs may take by their own clock that they took."""
        return self.passed_ns / self.expected_ns if self.passed_ns and self.expected_ns else 1.0


class Board:
    """Counts runs, and guesses the time left from the times of those that ended relative to their expected times, the
    recent ones weighing more, and from the progress of those at work: one of them may be slower than the others.

    `forecast_ns`: the forecast wall time of each run, by its number; it is the first guess. Without it, there is a
    guess as soon as a second of the runs' own clock has passed."""

    def __init__(
        self, what: str, total: int, expected_ns: int, workers: int = 1, forecast_ns: Mapping[int, int] | None = None
    ) -> None:
        self._what, self._total, self._workers = what, total, max(workers, 1)
        forecast = dict(forecast_ns or {})
        self._forecast_ns = forecast if all(forecast.values()) else {}
        self._size_ns = sum(self._forecast_ns.values()) or expected_ns
        self._ended_number, self._ended_size_ns, self._ended_wall_ns, self._ended = 0, 0, 0, _RunSums()
        self._seen: collections.deque[tuple[float, float]] = collections.deque()
        self._at_work: dict[int, _Work] = {}
        self._lock = threading.Lock()

    def begin(self, number: int, expected_ns: int, ago_ns: int = 0) -> None:
        """A run begins, which is expected to take `expected_ns` of its own clock; or it began `ago_ns` ago."""
        with self._lock:
            size_ns = self._forecast_ns.get(number, expected_ns)
            self._at_work[number] = _Work(size_ns, expected_ns, 0, time.monotonic_ns() - ago_ns)

    def move(self, number: int, progress: RunProgress) -> None:
        """Records the progress of a run of the virtual clock."""
        with self._lock:
            if number in self._at_work:
                self._at_work[number].passed_ns = progress.virtual_ns or 0

    def end(self, number: int) -> None:
        """Records that a run has ended, with any status."""
        with self._lock:
            work = self._at_work.pop(number)
            self._ended_number += 1
            now = time.monotonic_ns()
            self._ended_size_ns += work.size_ns
            self._ended_wall_ns += now - work.begun_ns
            self._ended.add(work, now, FADES ** (-1 / min(self._workers, self._total)))

    def words(self) -> str:
        """The number of runs that have ended, and about how much wall time is left, in words."""
        with self._lock:
            text = f"{self._what}: {self._ended_number} of {self._total} runs have ended"
            left_ns = self._left_ns()
        return text if not left_ns else f"{text}, about {about(left_ns, 'time', 2)} left"

    def _left_ns(self) -> float | None:
        now, at_work, usual = time.monotonic_ns(), list(self._at_work.values()), self._ended.share
        pace = self._pace(now, at_work, usual)
        if pace is None:
            return None
        left = [work.left_ns(now, pace, usual) for work in at_work]
        waiting_ns = max(self._size_ns - self._ended_size_ns - sum(work.size_ns for work in at_work), 0)
        at_once = min(self._workers, max(self._total - self._ended_number, 1))
        return max([(sum(left) + waiting_ns * pace) / at_once, *left])

    def _pace(self, now: int, at_work: Sequence[_Work], usual: float) -> float | None:
        """The wall time for each ns of a run's size; None while it is unknown."""
        wall_ns = float(sum(now - work.begun_ns for work in at_work))
        done_ns = sum(work.share(usual) * work.size_ns for work in at_work)
        if self._ended.size_ns:
            ended = self._ended.wall_ns / self._ended.size_ns
            lately = self._lately(self._ended_wall_ns + wall_ns, self._ended_size_ns + done_ns)
            if lately is None or lately > SLOWEST * ended:
                return ended
            return LATELY * lately + (1 - LATELY) * ended
        if self._forecast_ns:
            hoped_ns = HOPED * sum(work.size_ns for work in at_work) or 1.0
            return (wall_ns + hoped_ns) / (done_ns + hoped_ns)
        return wall_ns / done_ns if done_ns >= NS_PER_SECOND else None

    def _lately(self, wall_ns: float, done_ns: float) -> float | None:
        """The pace of all workers together while they worked for as long as a usual run each; None until then."""
        window_ns = self._ended.mean_wall_ns * min(self._workers, self._total)
        self._seen.append((wall_ns, done_ns))
        while len(self._seen) > 1 and wall_ns - self._seen[1][0] >= window_ns:
            self._seen.popleft()
        begun_ns, before_ns = self._seen[0]
        if wall_ns - begun_ns < window_ns:
            return None
        return (wall_ns - begun_ns) / max(done_ns - before_ns, 1.0)

    def live(self) -> None:
        """The live clock's runs move on with this machine's time."""
        now = time.monotonic_ns()
        with self._lock:
            for work in self._at_work.values():
                work.passed_ns = now - work.begun_ns

    @contextlib.contextmanager
    def shown(self, reporter: Reporter, live: bool = False, held_up: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Shows it on standard error meanwhile; `held_up`: words on what runs wait for, asked every few seconds."""
        over = threading.Event()
        with reporter.progress(self.words()) as progress:

            def follow() -> None:
                why, look_s = "", time.monotonic()
                while not over.wait(TICK_S):
                    if live:
                        self.live()
                    if time.monotonic() > look_s:
                        why, look_s = held_up(), time.monotonic() + LOOK_S
                    progress.tick(f"{self.words()}; {why}" if why else self.words())

            thread = threading.Thread(target=follow, daemon=True)
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()
