"""Places the bytes that a device counts in each period on our own clock. Pure: answers and time are passed in.

In: answers to `series`, with when each was asked for and when it came. Out: rows with a number of our own, which goes
on where the device counts anew (it was reset), and stretches of them with their time on our clock.

A device counts its periods from an instant of its own. An answer that ends with period N came after the end of N, and
was asked for before the end of N + 1, which it does not have: both bound that instant. The closest bounds of the last
answers tell it; half of what is between them is the uncertainty. A driver that is quick makes it small.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ewan.labs.base.codec import Struct
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.hardware.driver import HEADINGS, SeriesRows

KEPT_ROWS = 120_000
"""Periods of the device, of each direction."""
ANSWERS = 40
"""So many last answers bound the instant: a clock that runs apart from ours by 50 ppm goes 0.5 ms in their 10 s."""
BEHIND_NS = 200 * NS_PER_MS
"""A device whose numbers fall back by more began to count anew; less may be an answer that comes late."""
MOST_EPOCHS = 64


@dataclass(slots=True)
class Epoch:
    """The time in which a device counts on. `begin`: our number of the row that it numbers 0.

    `least_ns`, `most_ns`: when that row began, at least and at most, by each of the last answers.
    """

    begin: int
    first: int
    """Our number of the first row that is of it."""
    least_ns: deque[int] = field(default_factory=lambda: deque(maxlen=ANSWERS))
    most_ns: deque[int] = field(default_factory=lambda: deque(maxlen=ANSWERS))

    def begun(self, period_ns: int) -> tuple[int, int]:
        """The time at which row 0 began, and its uncertainty (ns): the true instant is at most that far away."""
        most = min(self.most_ns)
        # A row cannot be reported before its end, so `most` always holds. A device that tells its rows late breaks the
        # other bound: bounds beyond `most` are ignored.
        prompt = [each for each in self.least_ns if each <= most]
        least = max(prompt, default=most - 2 * period_ns)
        late = len(prompt) < len(self.least_ns)
        return (most + least) // 2, (most - least + 1) // 2 + (period_ns if late else 0)


class RowStretch(Struct):
    """Rows that follow one another from our number `first` on, each the bytes that left. `begin_ns`: when the first one
    began on our clock. `restarted`: the device counted anew before it."""

    first: int
    restarted: bool
    begin_ns: int
    uncertainty_ns: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]


class Readout:
    """The rows of one device; None is one that it had forgotten before it was asked."""

    def __init__(self, period_ns: int, most_rows: int) -> None:
        """`most_rows`: of one answer. It has more to tell where it gives so many."""
        self._period_ns, self._most_rows = period_ns, most_rows
        self._rows: dict[str, deque[int | None]] = {heading: deque(maxlen=KEPT_ROWS) for heading in HEADINGS}
        self._epochs = [Epoch(0, 0)]
        self.next = 0
        """Our number of the row that comes next."""

    def forget(self) -> None:
        """Discard the rows until now; their numbers continue."""
        for each in self._rows.values():
            each.clear()

    def fetch(self, series: Callable[[int], SeriesRows], now_ns: Callable[[], int]) -> None:
        """Asks for all that is new. `series` asks the device for its periods from a number on; `now_ns`: our clock."""
        epoch = self._epochs[-1]
        stands = self.next - epoch.begin
        answers = list(_answers(series, now_ns, stands, self._most_rows))
        last = answers[-1]
        fallen_ns = last.asked_ns - (last.end + 1) * self._period_ns - min(epoch.most_ns, default=last.came_ns)
        if epoch.most_ns and fallen_ns > BEHIND_NS:
            if last.end == stands:
                # A device that counts anew has nothing yet from that number on; or it stands still.
                answers = list(_answers(series, now_ns, 0, self._most_rows))
                if answers[-1].end >= stands:
                    return
                self._count_anew(self.next)
            else:  # it has come further than it was: what it counted anew before that number was not asked for
                self._count_anew(self.next - answers[0].rows.first)
        for each in answers:
            self._add(each, last=each is answers[-1])

    def stretches(self, since: int) -> Iterator[RowStretch]:
        """Rows from a number on."""
        first = self.next - len(self._rows["forward"])
        columns = [list(self._rows[heading]) for heading in HEADINGS]
        for number, epoch in enumerate(self._epochs):
            until = self._epochs[number + 1].first if number + 1 < len(self._epochs) else self.next
            at = max(since, first, epoch.first)
            restarted = number > 0 and at == epoch.first
            while at < until and epoch.most_ns:
                end = at
                while end < until and columns[0][end - first] is not None:
                    end += 1
                if end == at:
                    at += 1
                    continue
                begun, uncertainty = epoch.begun(self._period_ns)
                begin_ns = begun + (at - epoch.begin) * self._period_ns
                rows = (tuple(each or 0 for each in column[at - first : end - first]) for column in columns)
                yield RowStretch(at, restarted, begin_ns, uncertainty, *rows)
                at, restarted = end, False

    def known(self, since: int) -> tuple[int, dict[str, list[int]]]:
        """The number of the first row from `since` on that is kept, and bytes by direction: 0 for unknown ones."""
        first = self.next - len(self._rows["forward"])
        begin = max(since, first)
        return begin, {
            heading: [each or 0 for each in list(rows)[begin - first :]] for heading, rows in self._rows.items()
        }

    def _count_anew(self, begin: int) -> None:
        self._epochs = [*self._epochs[-MOST_EPOCHS + 1 :], Epoch(begin, self.next)]

    def _add(self, answer: Answer, *, last: bool) -> None:
        epoch, rows = self._epochs[-1], answer.rows
        if not rows.forward:
            return
        lacking = rows.first + epoch.begin - self.next
        for heading, each in self._rows.items():
            each.extend([None] * min(lacking, KEPT_ROWS))
            each.extend(rows.of(heading))
        self.next = epoch.begin + answer.end
        epoch.most_ns.append(answer.came_ns - answer.end * self._period_ns)
        if last:
            epoch.least_ns.append(answer.asked_ns - (answer.end + 1) * self._period_ns)


@dataclass(frozen=True, slots=True)
class Answer:
    """`end`: the number of the period that comes after it. Times are of our clock."""

    rows: SeriesRows
    end: int
    asked_ns: int
    came_ns: int


def _answers(
    series: Callable[[int], SeriesRows], now_ns: Callable[[], int], since: int, most_rows: int
) -> Iterator[Answer]:
    """From a number on, one at least, until nothing is left but what comes while we ask."""
    whole = True
    while whole:
        asked = now_ns()
        rows = series(since)
        since = rows.first + len(rows.forward) if rows.forward else since
        yield Answer(rows, since, asked, now_ns())
        whole = len(rows.forward) >= most_rows
