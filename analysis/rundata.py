"""One run as metrics see it: its tables, and what several metrics derive from them, each derived once.

In: a way to read the run's tables, the paths of its load. Out: load flows, completion times, the use of links, the
bottleneck, losses. Nothing is derived before a metric asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from analysis import flows, network
from analysis.load import Link
from analysis.network import LinkUse, Losses, Ways


@dataclass(frozen=True)
class RunData:
    """`table` gives a table of labs/record/columns.py by its name.

    `ways` and `rates_bps` are those of `load.RunResults`, as far as they are known.
    """

    table: Callable[[str], pl.DataFrame]
    ways: Ways = field(default_factory=dict)
    rates_bps: Mapping[Link, int] = field(default_factory=dict)

    @cached_property
    def flows(self) -> pl.DataFrame:
        """All flows, whatever their role."""
        return self.table("flows")

    @cached_property
    def load(self) -> pl.DataFrame:
        """The flows that most metrics are about."""
        return flows.loaded(self.flows)

    @cached_property
    def datagrams(self) -> pl.DataFrame:
        """UDP flows of any role."""
        return self.flows.filter(pl.col("kind") == "udp")

    @cached_property
    def active(self) -> list[tuple[int, int]]:
        """Times (ns from T0) in which any load flow was under way."""
        return flows.active(self.load)

    @cached_property
    def completion(self) -> tuple[list[int], int]:
        """Completion times (ns) of the load's transfers, and how many did not complete."""
        return flows.completion_times(self.load)

    @cached_property
    def goodputs(self) -> list[float]:
        """bit/s of each load flow that has one."""
        return self.load["goodput_bps"].drop_nulls().to_list()

    @cached_property
    def responses(self) -> list[int]:
        """Response times (ns) of the load's requests."""
        return flows.durations(self.load, self.table("exchanges"), "requests")

    @cached_property
    def iterations(self) -> list[int]:
        """Iteration times (ns) of the load's ranks."""
        return flows.durations(self.load, self.table("exchanges"), "messages")

    @cached_property
    def uses(self) -> list[LinkUse]:
        """What each direction of each emulated link did while load flows were active."""
        return network.link_use(self.table("links"), self.active)

    @cached_property
    def slowest(self) -> LinkUse | None:
        """The busiest emulated link that the load crosses."""
        return network.bottleneck(self.uses, network.crossed(self.ways))

    @cached_property
    def plain_bottleneck(self) -> Link | None:
        """A plain link that is busier than any emulated one; None: there is none."""
        time_ns = sum(end - start for start, end in self.active)
        return network.uncounted_bottleneck(self.load, time_ns, self.uses, self.ways, self.rates_bps)

    @property
    def bottleneck(self) -> Link | None:
        """The load's bottleneck, emulated or plain; None where no link was watched."""
        if self.plain_bottleneck is not None:
            return self.plain_bottleneck
        return None if self.slowest is None else (self.slowest.link, self.slowest.direction)

    @cached_property
    def losses(self) -> Losses | None:
        """How likely a packet of the load was to be lost on its way."""
        return None if self.slowest is None else network.losses(self.load, self.uses, self.ways)
