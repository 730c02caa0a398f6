"""One run as metrics see it: its tables, and the derived values that several metrics use, each computed once.

In: a way to read the run's tables, the paths of its payload; perhaps a selection of flows. Out: those flows, completion
times, the use of links, the bottleneck, losses. Nothing is derived before a metric asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.analysis import counted_packets, flows, network, payload, slowdowns, wire
from ewan.analysis.arrivals import FLOW
from ewan.analysis.counted_packets import CountedPackets
from ewan.analysis.load import Link, RunResults
from ewan.analysis.network import Ends, LinkSeries, LossShares, Ways
from ewan.analysis.payload import Binned, CommonInterval, FlowBytes, Key
from ewan.analysis.queries import collected
from ewan.analysis.slowdowns import TransferTime
from ewan.analysis.wire import WirePackets
from ewan.labs.record.quantities import Kind, Quantity, Selection
from ewan.labs.record.schedule import CrossedPath
from ewan.labs.record.summary import LinkUse

_COLUMNS: Mapping[Kind, str] = {"step": "step", "role": "role", "source": "source", "flow": "name"}
"""The column of the table `flows` for each kind of selection."""
_COLUMNS_OF_COMMANDS: Mapping[Kind, str] = {"step": "step", "source": "node"}
"""The same of tables that commands left, which have no role and are no flow."""


class DerivedTables(NamedTuple):
    """The tables that are derived for the load of a run; see the properties of `RunData` of the same names."""

    load: pl.DataFrame
    bins: Mapping[Key, Binned]
    came: Mapping[Key, FlowBytes]
    watched: Mapping[Link, LinkSeries]
    rtts_ns: Sequence[int]


@dataclass(frozen=True)
class RunData:
    """`table` gives a table of labs/record/columns.py by its name.

    `addresses` gives those of each node. `paths` are all of `RunResults`, as far as they are known.

    `selection` None: the load.
    """

    table: Callable[[str], pl.DataFrame]
    paths: Sequence[CrossedPath] = ()
    addresses: Callable[[], Mapping[str, frozenset[str]]] = dict
    selection: Selection | None = None
    whole: RunData | None = None
    """The same run, which keeps what does not depend on whose flows are asked for; None: itself."""
    ready: DerivedTables | None = None
    """Tables that were derived for it together with other runs."""

    @classmethod
    def read(cls, run: RunResults, ready: DerivedTables | None = None) -> RunData:
        """A run of an experiment, with all its flows; its tables are read when they are asked for."""
        return cls(run.table, run.paths, lambda: run.addresses, ready=ready)

    def of(self, selection: Selection | None) -> RunData:
        """The same run, seen from other flows."""
        if selection == self.selection:
            return self
        return replace(self, selection=selection, whole=self.whole or self)

    def each(self, quantity: Quantity) -> Iterator[Quantity]:
        """The quantities that `of each step` and the like stand for in this run; any other quantity itself."""
        if quantity.selection is None:
            yield quantity
        else:
            members = self.members(quantity.selection, quantity.metric.commands)
            yield from (Quantity(quantity.metric, member) for member in members)

    def members(self, chosen: Selection, commands: bool = False) -> Iterator[Selection]:
        """The selections that `each step` and the like stand for among this run's flows, or commands; any other
        selection itself."""
        if chosen.name is not None or chosen.kind is None:
            yield chosen
            return
        if commands:
            column = self.table("readings")[_COLUMNS_OF_COMMANDS[chosen.kind]]
        else:
            column = self.all_flows[_COLUMNS[chosen.kind]]
        yield from (Selection(chosen.kind, name) for name in dict.fromkeys(column.to_list()) if name is not None)

    @cached_property
    def all_flows(self) -> pl.DataFrame:
        """All flows of the run, whatever is selected."""
        if self.whole is not None:
            return self.whole.all_flows
        return self.table("flows")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """The selected flows; for the load those of any role."""
        return self.all_flows if self.selection is None else self._selected(self.selection)

    def _selected(self, chosen: Selection) -> pl.DataFrame:
        kinds: tuple[Kind, ...] = (chosen.kind,) if chosen.kind is not None else ("step", "role")
        found = self.all_flows.clear()
        for kind in kinds:
            found = self.all_flows.filter(pl.col(_COLUMNS[kind]) == chosen.name)
            if found.height:
                break
        return found

    @cached_property
    def load(self) -> pl.DataFrame:
        """The flows that most metrics are about: those selected, else those of role load."""
        if self.selection is not None:
            return self.flows
        return flows.loaded(self.all_flows) if self.ready is None else self.ready.load

    def of_commands(self, table: str) -> pl.DataFrame:
        """The rows of a table that commands of steps left: of the step or node that is selected, else all."""
        there, chosen = self.table(table), self.selection
        if chosen is None:
            return there
        column = _COLUMNS_OF_COMMANDS.get(chosen.kind or "step")
        return there.clear() if column is None else there.filter(pl.col(column) == chosen.name)

    @cached_property
    def round_trips(self) -> list[int]:
        """RTTs (ns) of echo requests, by their first replies."""
        pings = self.of_commands("pings")
        if pings.is_empty():
            return []
        return pings.filter(~pl.col("duplicate"))["rtt_ns"].drop_nulls().to_list()

    @cached_property
    def _paths(self) -> tuple[CrossedPath, ...]:
        """The paths of the flows that metrics are about."""
        if self.selection is None:
            return tuple(path for path in self.paths if path.role == "load")
        wanted = {
            (role, *((None, None) if kind == "messages" else network.ends_of_payload(kind, source, sink)))
            for role, kind, source, sink in set(self.load[["role", "kind", "source", "sink"]].iter_rows())
        }
        return tuple(path for path in self.paths if (path.role, path.source, path.sink) in wanted)

    @property
    def has_parallel_paths(self) -> bool:
        """Return whether any of these flows has several paths, so that no single link bounds it."""
        return any(path.parallel for path in self._paths)

    @cached_property
    def ways(self) -> Ways:
        """The link directions that these flows' payload crosses, in order, by source and sink.

        Those of messages between ranks are together, without source and sink.
        """
        return {(path.source, path.sink): tuple((hop.link, hop.direction) for hop in path.hops) for path in self._paths}

    @cached_property
    def rates_bps(self) -> Mapping[Link, int]:
        """The rates at the start of the links that `ways` names; without those that have none."""
        hops = (hop for path in self._paths for hop in path.hops)
        return {(hop.link, hop.direction): hop.rate_bps for hop in hops if hop.rate_bps}

    @cached_property
    def datagrams(self) -> pl.DataFrame:
        """UDP flows: those selected, else of any role."""
        if not (self.flows["kind"] == "udp").any():
            return self.flows.clear()
        return self.flows.filter(pl.col("kind") == "udp")

    @cached_property
    def calls(self) -> pl.DataFrame:
        """Media flows: those selected, else of any role."""
        return self.flows.filter(pl.col("kind") == "media")

    @cached_property
    def frames(self) -> pl.DataFrame:
        """The frames of these, in their order."""
        if self.calls.is_empty():
            return self.table("frames").clear()
        return self.table("frames").join(self.calls.select(FLOW).unique(), on=FLOW, how="semi").sort("flow", "number")

    @cached_property
    def active(self) -> list[tuple[int, int]]:
        """Times (ns from T0) in which any of these flows was under way."""
        return flows.active(self.load)

    @cached_property
    def completion(self) -> tuple[list[int], int]:
        """Completion times (ns) of the transfers, and how many did not complete."""
        return flows.completion_times(self.load)

    @cached_property
    def goodputs(self) -> list[float]:
        """bit/s of each flow that has one."""
        return [each for each in self.load["goodput_bps"].to_list() if each is not None]

    @cached_property
    def responses(self) -> list[int]:
        """Response times (ns) of requests, and of objects over HTTP/3."""
        return flows.durations(self.load, self.table("exchanges"), ("requests", "quic"))

    @cached_property
    def iterations(self) -> list[int]:
        """Iteration times (ns) of ranks."""
        return flows.durations(self.load, self.table("exchanges"), ("messages",))

    @cached_property
    def uses(self) -> list[LinkUse]:
        """The use of each direction of each emulated link while these flows were active."""
        return network.link_use(self.watched, self.active)

    @cached_property
    def watched(self) -> Mapping[Link, LinkSeries]:
        """The samples of each direction of each emulated link."""
        if self.whole is not None:
            return self.whole.watched
        return network.watched(self.table("links")) if self.ready is None else self.ready.watched

    @cached_property
    def slowest(self) -> LinkUse | None:
        """The busiest emulated link that these flows cross."""
        return network.bottleneck(self.uses, network.crossed(self.ways))

    @cached_property
    def plain_bottleneck(self) -> Link | None:
        """A plain link that is busier than any emulated one; None: there is none."""
        time_ns = sum(end - start for start, end in self.active)
        return network.uncounted_bottleneck(self.load, time_ns, self.uses, self.ways, self.rates_bps)

    @property
    def bottleneck(self) -> Link | None:
        """The bottleneck of these flows, emulated or plain; None where no link was watched."""
        if self.plain_bottleneck is not None:
            return self.plain_bottleneck
        return None if self.slowest is None else (self.slowest.link, self.slowest.direction)

    @property
    def bottleneck_bps(self) -> float | None:
        """The rate of that, mean over the time in which these flows were active."""
        return None if self.bottleneck is None else self.mean_bps(self.bottleneck, self.active)

    def mean_bps(self, link: Link, times: Sequence[tuple[int, int]]) -> float | None:
        """The rate of a direction of a link, mean over some times; of a plain one as it is. None: it is not known."""
        if link in self.watched:
            return network.mean_rate_bps(self.watched[link], times)
        return self.rates_bps.get(link)

    @cached_property
    def slowest_bps(self) -> dict[Ends, tuple[Link, int]] | None:
        """The slowest link on each way, with the highest rate that it had; None where a way has none that is known, and
        of flows over several paths."""
        if self.has_parallel_paths:
            return None
        known = dict(self.rates_bps) | self.highest_bps
        found: dict[Ends, tuple[Link, int]] = {}
        for ends, way in self.ways.items():
            rated = [(known[link], link) for link in way if known.get(link)]
            if not rated:
                return None
            rate, link = min(rated)
            found[ends] = link, rate
        return found or None

    @cached_property
    def highest_bps(self) -> dict[Link, int]:
        """The highest rate that each direction of each emulated link had."""
        return {link: int(samples.rates_bps.max()) for link, samples in self.watched.items()}

    @property
    def most_bps(self) -> int | None:
        """No more payload than that comes to these flows together; None: unknown. The rates of the slowest links on
        their ways, each once."""
        return None if self.slowest_bps is None else sum(dict(self.slowest_bps.values()).values())

    @cached_property
    def arrivals_told(self) -> bool:
        """Return whether the receivers of all these flows record arrivals."""
        own = [self.bins.get(key) for key in self.load[FLOW].iter_rows()]
        return bool(own) and all(each is not None and each.told for each in own)

    @cached_property
    def queue_delays_ns(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The delays that a packet would have had in the queue of `slowest`, and the time for which each held; both in
        ns."""
        assert self.slowest is not None
        return network.queue_delays_ns(self.watched[self.slowest.link, self.slowest.direction], self.active)

    @cached_property
    def bins(self) -> Mapping[Key, Binned]:
        """The properties of the bins of all flows of the run."""
        if self.whole is not None:
            return self.whole.bins
        return self.ready.bins if self.ready is not None else payload.bins(self.table("goodput"))

    @cached_property
    def came(self) -> Mapping[Key, FlowBytes]:
        """The payload that came to each flow of the run over time."""
        if self.whole is not None:
            return self.whole.came
        if self.ready is not None:
            return self.ready.came
        return payload.came(self.all_flows, self.table("goodput"))

    @cached_property
    def together(self) -> CommonInterval | None:
        """The time in which all of these flows that last were active."""
        return None if flows.untold(self.load) else payload.together(self.load, self.bins, self.came)

    def crossing(self, link: Link) -> set[Key]:
        """The flows, of all, whose payload goes over a direction of a link."""
        over = {(path.role, path.source, path.sink) for path in self.paths if _crosses(path, link)}
        return {
            (flow, part)
            for flow, part, role, kind, source, sink in self.all_flows[
                [*FLOW, "role", "kind", "source", "sink"]
            ].iter_rows()
            if (role, *((None, None) if kind == "messages" else network.ends_of_payload(kind, source, sink))) in over
        }

    @cached_property
    def transfers(self) -> list[TransferTime]:
        """The transfers that completed and had a volume."""
        return slowdowns.completed(self.load)

    @cached_property
    def slowdowns(self) -> list[float]:
        """Completion times by those of an empty path."""
        rates = {ends: rate for ends, (_, rate) in (self.slowest_bps or {}).items()}
        return slowdowns.slowdowns(self.transfers, rates, slowdowns.base_rtts_ns(self.all_flows))

    @cached_property
    def rtts_ns(self) -> Sequence[int]:
        """Samples of the senders' smoothed RTT."""
        if self.ready is not None and self.selection is None:
            return self.ready.rtts_ns
        own = self.table("series").lazy().join(self.load.lazy().select(FLOW), on=FLOW, how="semi")
        return collected(own.filter(pl.col("srtt_ns") > 0).select("srtt_ns"))["srtt_ns"].to_list()

    @cached_property
    def counted(self) -> CountedPackets | None:
        """The counters of these flows' packets at the bottleneck; None: it counted no flows."""
        table = self.table("link_flows")
        if table.is_empty() or self.slowest is None:
            return None
        link = self.slowest.link, self.slowest.direction
        return counted_packets.at(link, set(self.load["flow"].to_list()), table, self.table("link_waits"))

    @cached_property
    def wire(self) -> WirePackets | None:
        """The captured packets with payload of these flows; None: there are none."""
        packets = self.table("packets")
        return None if packets.is_empty() else wire.of(packets, self.load, self.addresses())

    @cached_property
    def losses(self) -> LossShares | None:
        """The probability that a packet of these flows was lost on its way."""
        return None if self.slowest is None else network.losses(self.load, self.uses, self.ways)


def _crosses(path: CrossedPath, link: Link) -> bool:
    return any((hop.link, hop.direction) == link for hop in path.hops)
