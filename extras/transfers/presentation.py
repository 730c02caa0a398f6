"""Plans of a transfer service for a terminal of 80 columns, and as data.

In: plans, the best that is possible, what was seen. Out: tables of text, and one document. Times are written in s,
rates as the links of the path count them, with headers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import UNSET, UnsetType

from ewan.extras.transfers.optimum import Optimum
from ewan.extras.transfers.outcomes import TransferOutcome, longest_s
from ewan.extras.transfers.plan import Problem, Transfer, TransferPlan
from ewan.extras.transfers.strategies import TITLES, Strategy
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import NONE, written

MOST_ROWS = 120
YES, NO, LATE = "yes", "no", "late"


class RateSpan(Struct):
    """The rate of a transfer for a time."""

    from_ns: int | None
    to_ns: int | None
    rate_bps: float


class TransferEntry(Struct):
    """A request in a plan. A request that is not accepted has `why`; an accepted one has the keys after it, of which
    `after` names the transfers that it waits for."""

    name: str
    accepted: bool
    satisfied: bool
    deadline_ns: int | None
    why: str | UnsetType = UNSET
    start_ns: int | UnsetType | None = UNSET
    end_ns: int | UnsetType | None = UNSET
    rate_bps: float | UnsetType = UNSET
    most_rate_bps: float | UnsetType = UNSET
    after: tuple[str, ...] | UnsetType = UNSET
    rates: tuple[RateSpan, ...] | UnsetType = UNSET


class TransferComparison(Struct):
    """The promised and the measured times of a transfer."""

    name: str
    promised_start_ns: int | None
    start_ns: int | None
    promised_end_ns: int | None
    end_ns: int | None
    late_ns: int | None
    satisfied: bool


class TransfersRun(Struct):
    """A run of a plan."""

    directory: str
    seen: tuple[TransferComparison, ...]


class PlanEntry(Struct):
    """A plan with its objectives and its transfers."""

    f1_ns: int | None
    least_f1_ns: int | None
    f2: float | None
    utilisation: float | None
    transfers: tuple[TransferEntry, ...]
    run: TransfersRun | None = None


class BestEntry(Struct):
    """The bound that no plan can exceed."""

    most_satisfied: int
    exact: bool
    f1_ns: int | None
    least_f1_ns: int | None
    f2: float | None
    utilisation: float | None
    transfers: tuple[TransferEntry, ...]


class PlanBottleneck(Struct):
    """The link that the objectives are of."""

    link: str
    rate_bps: float


class TransfersDocument(Document, tag="ewan-transfers/1"):
    """The document that `--json` prints."""

    bottleneck: PlanBottleneck | None
    plans: dict[Strategy, PlanEntry]
    best: BestEntry


def plan_sheet(plan: TransferPlan, strategy: Strategy) -> Sheet:
    """A row for each request."""
    rows = [[each.request.name, *_row(each)] for each in plan.transfers]
    columns = ["request", "accepted", "start", "rate", "end", "takes", "after"]
    return grid(TITLES[strategy], columns, rows, most=MOST_ROWS)


def _row(transfer: Transfer) -> list[str]:
    if not transfer.accepted:
        return [NO, NONE, NONE, NONE, NONE, transfer.why]
    rate = written(transfer.mean_bps * transfer.request.headers, "bit/s")
    rate += "" if transfer.steady else f", at most {written(transfer.most_bps * transfer.request.headers, 'bit/s')}"
    times = (transfer.start_s, transfer.end_s, transfer.end_s - transfer.start_s)
    start, end, takes = (seconds(each) for each in times)
    return [YES if transfer.satisfied else LATE, start, rate, end, takes, ", ".join(transfer.after) or NONE]


def seconds(value: float | None) -> str:
    """`4.249 s`."""
    return "0 s" if value == 0 else written(None if value is None else value * NS_PER_SECOND, "ns")


def objectives_sheet(plans: Mapping[Strategy, TransferPlan], best: Optimum) -> Sheet:
    """f1 and f2 of each plan, and beside them the bounds of any plan."""
    rows = [
        [
            strategy.upper(),
            _accepted(plan),
            seconds(plan.f1_s),
            NONE if plan.f2 is None else f"{plan.f2:.3f}",
            _share(plan.utilisation),
        ]
        for strategy, plan in plans.items()
    ]
    whole = len(best.plan.transfers)
    least, most = best.plan.least_f1_s, best.plan.utilisation
    rows.append(
        [
            "best possible",
            f"{'' if best.exact else '≤ '}{best.most} of {whole}",
            NONE if least is None else f"≥ {seconds(least)}",
            NONE,
            NONE if most is None else f"≤ {_share(most)}",
        ]
    )
    columns = ["", "satisfied", "f1: longest transfer", "f2: Σ rates / B", "bottleneck used"]
    return grid("Objectives", columns, rows)


def _accepted(plan: TransferPlan) -> str:
    satisfied = sum(each.satisfied for each in plan.transfers)
    late = f", {len(plan.late)} late" if plan.late else ""
    return f"{satisfied} of {len(plan.transfers)}{late}"


def _share(value: float | None) -> str:
    return written(value, "share", 4)


def seen_sheet(seen: Sequence[TransferOutcome], strategy: Strategy) -> Sheet:
    """A table of the promised and the measured times, a row for each accepted transfer."""
    rows = [
        [
            each.transfer.request.name,
            seconds(each.transfer.start_s),
            seconds(each.start_s),
            seconds(each.transfer.end_s),
            seconds(each.end_s),
            NONE if each.late_s is None else f"{each.late_s:+.3f} s",
            YES if each.satisfied else NO,
        ]
        for each in seen
    ]
    columns = ["request", "start promised", "start seen", "end promised", "end seen", "later by", "in its window"]
    longest = longest_s(list(seen))
    title = f"{TITLES[strategy]}: promised and seen"
    sheet = grid(title, columns, rows, most=MOST_ROWS)
    return sheet if longest is None else Sheet(title, columns, rows, f"longest transfer seen: {seconds(longest)}")


def document(
    problem: Problem,
    plans: Mapping[Strategy, TransferPlan],
    best: Optimum,
    runs: Mapping[Strategy, TransfersRun],
) -> TransfersDocument:
    """All results as data; times in ns, rates in bit/s as the path counts them, None for absent values."""
    link = problem.bottleneck
    return TransfersDocument(
        None if link is None else PlanBottleneck(link, problem.capacity[link]),
        {strategy: PlanEntry(*_objectives(plan), run=runs.get(strategy)) for strategy, plan in plans.items()},
        BestEntry(best.most, best.exact, *_objectives(best.plan)),
    )


def _objectives(
    plan: TransferPlan,
) -> tuple[int | None, int | None, float | None, float | None, tuple[TransferEntry, ...]]:
    entries = tuple(_entry(each) for each in plan.transfers)
    return _ns(plan.f1_s), _ns(plan.least_f1_s), plan.f2, plan.utilisation, entries


def _entry(transfer: Transfer) -> TransferEntry:
    request = transfer.request
    deadline_ns = None if math.isinf(request.deadline_s) else _ns(request.deadline_s)
    said = request.name, transfer.accepted, transfer.satisfied, deadline_ns
    if not transfer.accepted:
        return TransferEntry(*said, transfer.why)
    return TransferEntry(
        *said,
        start_ns=_ns(transfer.start_s),
        end_ns=_ns(transfer.end_s),
        rate_bps=transfer.mean_bps * request.headers,
        most_rate_bps=transfer.most_bps * request.headers,
        after=tuple(transfer.after),
        rates=tuple(
            RateSpan(_ns(each.begin_s), _ns(each.end_s), each.bps * request.headers) for each in transfer.spans
        ),
    )


def run_entry(directory: Path, seen: Sequence[TransferOutcome]) -> TransfersRun:
    """The promised and the measured times of each accepted transfer."""
    return TransfersRun(
        str(directory),
        tuple(
            TransferComparison(
                name=each.transfer.request.name,
                promised_start_ns=_ns(each.transfer.start_s),
                start_ns=_ns(each.start_s),
                promised_end_ns=_ns(each.transfer.end_s),
                end_ns=_ns(each.end_s),
                late_ns=_ns(each.late_s),
                satisfied=each.satisfied,
            )
            for each in seen
        ),
    )


def _ns(value: float | None) -> int | None:
    return None if value is None else round(value * NS_PER_SECOND)
