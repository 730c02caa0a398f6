"""The outcomes of a plan's transfers in a run, beside the promised ones.

In: a plan, and the directory of a run of its scenario, whose steps have the names of the requests. Out: the times when
each transfer started and ended, and its lateness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ewan.extras.transfers.plan import Transfer, TransferPlan, in_time
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import tables


@dataclass(frozen=True, slots=True)
class TransferOutcome:
    """A transfer as it was promised and as it went; `end_s` is None where not all of its volume came."""

    transfer: Transfer
    start_s: float | None
    end_s: float | None

    @property
    def late_s(self) -> float | None:
        """The lateness (s) of its end relative to the promised one."""
        return None if self.end_s is None else self.end_s - self.transfer.end_s

    @property
    def took_s(self) -> float | None:
        """The time (s) from its start to its last byte."""
        return None if self.end_s is None or self.start_s is None else self.end_s - self.start_s

    @property
    def satisfied(self) -> bool:
        """Return whether all came in its time window."""
        return self.end_s is not None and in_time(self.end_s, self.transfer.request.deadline_s)


def compared(plan: TransferPlan, run: Path) -> list[TransferOutcome]:
    """Each accepted transfer, in the order of the requests. ValueError for tables that are damaged."""
    flows = tables.read(run, "flows")
    whole = pl.col("completion_ns").is_not_null().all()
    end = (pl.col("scheduled_ns") + pl.col("completion_ns")).max()
    rows = flows.group_by("step").agg(pl.col("started_ns").min(), pl.when(whole).then(end).alias("end_ns"))
    times: Mapping[str, tuple[int | None, int | None]] = {name: (start, last) for name, start, last in rows.iter_rows()}
    return [_seen(each, *times.get(each.request.name, (None, None))) for each in plan.accepted]


def _seen(transfer: Transfer, start_ns: int | None, end_ns: int | None) -> TransferOutcome:
    start_s, end_s = (None if ns is None else ns / NS_PER_SECOND for ns in (start_ns, end_ns))
    return TransferOutcome(transfer, start_s, end_s)


def longest_s(seen: list[TransferOutcome]) -> float | None:
    """f1 as it was measured: the longest transfer; None where one did not end."""
    took = [each.took_s for each in seen]
    return max((s for s in took if s is not None), default=None) if None not in took else None
