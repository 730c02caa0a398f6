"""The computation of each metric of the vocabulary (labs/record/metrics.py). Pure.

In: one run (`RunData`). Out: values by name, in the unit that the vocabulary says; a metric that a run cannot have is
absent. A function registers itself with `@computes("name")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from statistics import fmean, median

import polars as pl

from ewan.analysis import devices, emodel, flows, media, network, payload, slowdowns
from ewan.analysis.arrivals import FLOW
from ewan.analysis.rundata import RunData
from ewan.extra import installed
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.quantities import Quantity, Selection, parse

Computation = Callable[[RunData], float | None]
_RANKS = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
"""The percentiles that metrics have, with the part of the values that do not exceed each."""
COMPUTATIONS: dict[str, Computation] = {}
"""By the metric's name."""


def computes(name: str) -> Callable[[Computation], Computation]:
    """Registers a function as the computation of a metric; ValueError for a second one of the same metric."""

    def register(function: Computation) -> Computation:
        if name in COMPUTATIONS:
            raise ValueError(f"metric {name!r} is computed twice")
        COMPUTATIONS[name] = function
        return function

    return register


def computation(name: str) -> Computation:
    """The function that computes a metric, the product's or an extra's."""
    return COMPUTATIONS[name] if name in COMPUTATIONS else installed().metrics[name]()[1]


def of_run(run: RunData, also: Iterable[Quantity] = ()) -> dict[str, float]:
    """Every metric that the run's load has, in the order of the vocabulary; then the quantities that it has of `also`.

    Where the load's bottleneck is a plain link, which counts nothing, those of the bottleneck are left out.
    """
    return dict(computed([*(Quantity(metric) for metric in METRICS.values()), *also], run))


def beyond(run: RunData, values: Mapping[str, float]) -> list[str]:
    """The quantities of a run that are above the capacity of the links on the flows' ways.

    They count payload when it is delivered in order: much of it may have waited for a retransmission before."""
    found = []
    for words, value in values.items():
        quantity = parse(words)
        if quantity.metric.unit == "bit/s":
            role = _ROLES.get(quantity.metric.name)
            most = run.of(quantity.selection if role is None else Selection("role", role)).most_bps
            if most is not None and value > most:
                found.append(words)
    return found


_ROLES = {"reverse goodput": "reverse", "background goodput": "background"}
"""Metrics that say themselves whose they are."""


Views = dict[Selection | None, RunData]
"""A run as it is seen from the flows that are selected, each made once."""


def views(run: RunData) -> Views:
    """The views of a run to begin with: the run itself."""
    return {run.selection: run}


def computed(wanted: Iterable[Quantity], run: RunData, seen: Views | None = None) -> Iterator[tuple[str, float]]:
    """The quantities that the run has, by their words; `of each step` and the like as one for each. `seen`: the views
    that several calls for the same run share."""
    seen = views(run) if seen is None else seen
    for quantity in (each for words in wanted for each in run.each(words)):
        chosen = seen.setdefault(quantity.selection, run.of(quantity.selection))
        if quantity.metric.emulated and chosen.plain_bottleneck is not None:
            continue
        value = computation(quantity.metric.name)(chosen)
        if value is not None:
            yield str(quantity), float(value)


@computes("mean completion time")
def _mean_completion(run: RunData) -> float | None:
    times, _ = run.completion
    return fmean(times) if times else None


@computes("max completion time")
def _max_completion(run: RunData) -> float | None:
    return max(run.completion[0], default=None)


@computes("min completion time")
def _min_completion(run: RunData) -> float | None:
    return min(run.completion[0], default=None)


@computes("deviation of completion time")
def _deviation_of_completion(run: RunData) -> float | None:
    times, _ = run.completion
    return flows.deviation(times) if len(times) > 1 else None


@computes("coefficient of variation")
def _coefficient_of_variation(run: RunData) -> float | None:
    times, _ = run.completion
    return flows.deviation(times) / fmean(times) if len(times) > 1 and any(times) else None


@computes("incomplete transfers")
def _incomplete(run: RunData) -> float | None:
    times, missing = run.completion
    return missing if times or missing else None


for _size in ("short", "medium", "long"):

    @computes(f"{_size} completion time")
    def _completion_of(run: RunData, size: str = _size) -> float | None:
        times = slowdowns.bins(run.transfers)[size]
        return fmean(times) if times else None


@computes("mean slowdown")
def _mean_slowdown(run: RunData) -> float | None:
    return fmean(run.slowdowns) if run.slowdowns else None


@computes("p99 slowdown")
def _p99_slowdown(run: RunData) -> float | None:
    return flows.percentile(run.slowdowns, 0.99) if run.slowdowns else None


@computes("transfer throughput")
def _transfer_throughput(run: RunData) -> float | None:
    time = sum(each.time_ns for each in run.transfers)
    return sum(each.volume_bytes for each in run.transfers) * network.BYTE_NS / time if time else None


@computes("mean goodput")
def _mean_goodput(run: RunData) -> float | None:
    return fmean(run.goodputs) if run.goodputs else None


@computes("aggregate goodput")
def _aggregate_goodput(run: RunData) -> float | None:
    return flows.aggregate_goodput(run.load)


@computes("deficiency")
def _deficiency(run: RunData) -> float | None:
    if run.bottleneck is None:
        return None
    over = run.crossing(run.bottleneck)
    own = run.load.filter(pl.Series([key in over for key in run.load[FLOW].iter_rows()], dtype=pl.Boolean))
    # Ranks send in all directions; how much of it goes over the bottleneck is not counted, nor is it of several paths.
    if run.has_parallel_paths or (own["kind"] == "messages").any():
        return None
    carried, rate_bps = flows.aggregate_goodput(own), run.mean_bps(run.bottleneck, flows.active(own))
    return None if carried is None or not rate_bps else 1 - carried / rate_bps


@computes("steady goodput")
def _steady_goodput(run: RunData) -> float | None:
    return None if run.together is None else payload.steady_goodput(run.together)


@computes("arrived goodput")
def _arrived_goodput(run: RunData) -> float | None:
    if run.load.is_empty() or not run.arrivals_told:
        return None
    own = [run.came[key] for key in run.load[FLOW].iter_rows() if key in run.came]
    time = sum(end - start for start, end in run.active)
    return sum(each.total for each in own) * network.BYTE_NS / time if time else None


@computes("share")
def _share(run: RunData) -> float | None:
    if run.bottleneck is None:
        return None
    own, over = set(run.load[FLOW].iter_rows()), run.crossing(run.bottleneck)
    if over & set(run.all_flows.filter(flows.UNTOLD)[FLOW].iter_rows()):
        return None
    ours, others = ([run.came[key] for key in run.came if key in over & each] for each in (own, over - own))
    return payload.share(ours, others, run.active)


@computes("convergence time")
def _convergence(run: RunData) -> float | None:
    return None if run.together is None else payload.convergence_ns(run.together)


@computes("smoothness")
def _smoothness(run: RunData) -> float | None:
    return None if run.together is None else payload.smoothness(run.together)


@computes("warm-up")
def _warmup(run: RunData) -> float | None:
    return None if run.together is None else payload.warmup_ns(run.together)


@computes("fairness per flow")
def _flow_fairness(run: RunData) -> float | None:
    return flows.jain(run.goodputs) if len(run.goodputs) > 1 else None


@computes("fairness per source")
def _source_fairness(run: RunData) -> float | None:
    return flows.source_fairness(run.load)


@computes("utilisation")
def _utilisation(run: RunData) -> float | None:
    return None if run.slowest is None else run.slowest.utilisation


@computes("mean queueing delay")
def _queueing_delay(run: RunData) -> float | None:
    return None if run.slowest is None else run.slowest.queueing_ns


for _name, _part in _RANKS:

    @computes(f"queueing delay {_name}")
    def _queueing_percentile(run: RunData, part: float = _part) -> float | None:
        if run.slowest is None:
            return None
        return network.weighted_percentile(*run.queue_delays_ns, part)

    @computes(f"rtt {_name}")
    def _rtt_percentile(run: RunData, part: float = _part) -> float | None:
        return flows.percentile(run.rtts_ns, part) if run.rtts_ns else None


@computes("mean rtt")
def _mean_rtt(run: RunData) -> float | None:
    return fmean(run.rtts_ns) if run.rtts_ns else None


@computes("marks")
def _marks(run: RunData) -> float | None:
    if run.slowest is None:
        return None
    return network.marked_share(run.watched[run.slowest.link, run.slowest.direction], run.active)


@computes("timeouts")
def _timeouts(run: RunData) -> float | None:
    # Tables of a version that did not count them have no such column.
    known = run.load["timeouts"] if "timeouts" in run.load.columns else None
    return None if known is None or known.null_count() == len(known) else int(known.sum())


@computes("device difference")
def _device_difference(run: RunData) -> float | None:
    device = run.table("device")
    return None if device.is_empty() else devices.difference(run.table("links"), device)


@computes("queue loss")
def _queue_loss(run: RunData) -> float | None:
    return None if run.losses is None else run.losses.queue


@computes("link loss")
def _link_loss(run: RunData) -> float | None:
    return None if run.losses is None else run.losses.link


@computes("total loss")
def _total_loss(run: RunData) -> float | None:
    return None if run.losses is None else run.losses.total


@computes("packet queueing delay")
def _packet_queueing_delay(run: RunData) -> float | None:
    found = run.counted
    return found.waited_ns / found.served_packets if found is not None and found.served_packets else None


for _name, _part in _RANKS:

    @computes(f"packet queueing delay {_name}")
    def _packet_delay_percentile(run: RunData, part: float = _part) -> float | None:
        return None if run.counted is None else run.counted.waited_percentile_ns(part)


@computes("packet loss")
def _packet_loss(run: RunData) -> float | None:
    found = run.counted
    return found.lost_packets / found.in_packets if found is not None and found.in_packets else None


@computes("packet marks")
def _packet_marks(run: RunData) -> float | None:
    found = run.counted
    return found.marked_packets / found.sent_packets if found is not None and found.sent_packets else None


@computes("packet throughput")
def _packet_throughput(run: RunData) -> float | None:
    time = sum(end - start for start, end in run.active)
    return run.counted.sent_bytes * network.BYTE_NS / time if run.counted is not None and time else None


@computes("retransmissions")
def _retransmissions(run: RunData) -> float | None:
    return flows.retransmissions(run.load)


@computes("mean response time")
def _mean_response(run: RunData) -> float | None:
    return fmean(run.responses) if run.responses else None


@computes("p95 response time")
def _p95_response(run: RunData) -> float | None:
    return flows.percentile(run.responses, 0.95) if run.responses else None


@computes("mean iteration time")
def _mean_iteration(run: RunData) -> float | None:
    return fmean(run.iterations) if run.iterations else None


@computes("start lateness p99")
def _start_lateness(run: RunData) -> float | None:
    late = run.flows["started_ns"] - run.flows["scheduled_ns"]
    known = [each for each in late.to_list() if each is not None]
    return flows.percentile(known, 0.99) if known else None


@computes("udp loss")
def _udp_loss(run: RunData) -> float | None:
    if flows.untold(run.datagrams):
        return None
    sent, lost = int(run.datagrams["sent_packets"].sum()), int(run.datagrams["lost_packets"].sum())
    return lost / sent if sent else None


@computes("udp jitter")
def _udp_jitter(run: RunData) -> float | None:
    return _mean(run.datagrams["jitter_ns"])


@computes("udp delay p50")
def _udp_delay_p50(run: RunData) -> float | None:
    return _mean(run.datagrams["delay_p50_ns"])


@computes("udp delay p99")
def _udp_delay_p99(run: RunData) -> float | None:
    return _mean(run.datagrams["delay_p99_ns"])


_SPEECH_MS = 20.0
"""The speech in a packet."""
_WAITED_FOR = 0.99
"""The share of a call's packets that its listener waits for."""


@computes("voice mos")
def _voice_mos(run: RunData) -> float | None:
    columns = run.datagrams.select("delay_p99_ns", "sent_packets", "lost_packets")
    calls = [(delay, sent, lost) for delay, sent, lost in columns.iter_rows() if sent and lost is not None]
    if not calls or flows.untold(run.datagrams) or any(delay is None and lost < sent for delay, sent, lost in calls):
        return None
    return fmean(_opinion(*call) for call in calls)


def _opinion(delay_ns: int | None, sent: int, lost: int) -> float:
    """Return the opinion score of one call. `delay_ns` is None where nothing arrived."""
    heard = (1 - lost / sent) * _WAITED_FOR
    return emodel.opinion(0 if delay_ns is None else emodel.rating(delay_ns / NS_PER_MS + _SPEECH_MS, 1 - heard))


for _name, _part in _RANKS:

    @computes(f"frame delay {_name}")
    def _frame_delay(run: RunData, part: float = _part) -> float | None:
        delays = media.delays_ns(run.frames).drop_nulls().to_list()
        return flows.percentile(delays, part) if delays else None


@computes("frames lost")
def _frames_lost(run: RunData) -> float | None:
    return None if run.frames.is_empty() else run.frames["completed_ns"].null_count() / run.frames.height


@computes("frames not shown")
def _frames_not_shown(run: RunData) -> float | None:
    return None if run.frames.is_empty() else run.frames["shown_ns"].null_count() / run.frames.height


@computes("freezes")
def _freezes(run: RunData) -> float | None:
    return sum(each.number for each, _ in _frozen(run)) if run.frames.height else None


@computes("freeze share")
def _freeze_share(run: RunData) -> float | None:
    frozen = _frozen(run)
    time = sum(lasted for _, lasted in frozen)
    return sum(each.total_ns for each, _ in frozen) / time if time else None


def _frozen(run: RunData) -> list[tuple[media.Freezes, int]]:
    """The freezes of each media flow between its pauses, and the time (ns) from the first frame's capture to the last
    one's."""
    return [part for _, own in run.frames.group_by("flow", maintain_order=True) for part in media.watched(own)]


@computes("media rate")
def _media_rate(run: RunData) -> float | None:
    rates = [_per_second(own, int(own["size_bytes"].sum())) * BITS_PER_BYTE for own in _of_each_call(run)]
    return fmean(rates) if rates else None


@computes("picture mos")
def _picture_mos(run: RunData) -> float | None:
    lost = {
        flow: missing / sent if sent else 0.0
        for flow, sent, missing in run.calls[["flow", "sent_packets", "lost_packets"]].iter_rows()
    }
    scores = []
    for own in _of_each_call(run):
        shown = own.filter(pl.col("shown_ns").is_not_null())
        kbps = _per_second(own, int(shown["size_bytes"].sum())) * BITS_PER_BYTE / 1000
        scores.append(media.picture_score(kbps, _per_second(own, shown.height), lost[own.item(0, "flow")]))
    return fmean(scores) if scores else None


def _of_each_call(run: RunData) -> list[pl.DataFrame]:
    """The frames of each media flow that has at least two."""
    return [own for _, own in run.frames.group_by("flow", maintain_order=True) if own.height > 1]


def _per_second(frames: pl.DataFrame, amount: float) -> float:
    """An amount by the time that the frames of a flow take; the last lasts as long as the others on average."""
    captured = frames["captured_ns"]
    first, last = captured.min(), captured.max()
    assert isinstance(first, int) and isinstance(last, int), "each frame was captured"
    return amount * NS_PER_SECOND * (frames.height - 1) / frames.height / (last - first)


@computes("ping rtt mean")
def _ping_mean(run: RunData) -> float | None:
    if run.round_trips:
        return fmean(run.round_trips)
    readings = run.of_commands("readings")
    if readings.is_empty():
        return None
    told = readings.filter(pl.col("rtt_mean_ns").is_not_null() & (pl.col("received_packets") > 0))
    answers = int(told["received_packets"].sum())
    return float((told["rtt_mean_ns"] * told["received_packets"]).sum()) / answers if answers else None


@computes("ping rtt p50")
def _ping_p50(run: RunData) -> float | None:
    return flows.percentile(run.round_trips, 0.50) if run.round_trips else None


@computes("ping rtt p95")
def _ping_p95(run: RunData) -> float | None:
    return flows.percentile(run.round_trips, 0.95) if run.round_trips else None


@computes("ping rtt p99")
def _ping_p99(run: RunData) -> float | None:
    return flows.percentile(run.round_trips, 0.99) if run.round_trips else None


@computes("ping rtt max")
def _ping_max(run: RunData) -> float | None:
    return max(run.round_trips, default=None)


@computes("ping loss")
def _ping_loss(run: RunData) -> float | None:
    readings = run.of_commands("readings")
    if readings.is_empty():
        return None
    told = readings.filter(pl.col("tool") == "ping")
    sent = int(told["sent_packets"].sum())
    return 1 - int(told["received_packets"].sum()) / sent if sent else None


@computes("longest ping outage")
def _longest_outage(run: RunData) -> float | None:
    requests = run.of_commands("pings")
    if requests.is_empty():
        return None
    known = requests.filter(~pl.col("duplicate") & pl.col("time_ns").is_not_null())
    keys = ["step", "node", "target"]
    return max((_outage_ns(own) for _, own in known.group_by(keys)), default=None)


def _outage_ns(requests: pl.DataFrame) -> float:
    """Return the longest time (ns) from a request without an answer to the next one with an answer. After the last
    request the time of one more interval counts."""
    own = requests.sort("time_ns")
    times, answered = own["time_ns"].to_list(), own["answered"].to_list()
    steps = [later - earlier for earlier, later in pairwise(times)]
    times.append(times[-1] + (int(median(steps)) if steps else 0))
    longest, since = 0, None
    for time_ns, came in zip(times, [*answered, True], strict=True):
        if came and since is not None:
            longest, since = max(longest, time_ns - since), None
        elif not came and since is None:
            since = time_ns
    return float(longest)


for _bound_ms in (50, 100):

    @computes(f"answers within {_bound_ms}ms")
    def _answers_within(run: RunData, bound_ns: int = _bound_ms * NS_PER_MS) -> float | None:
        requests = run.of_commands("pings").filter(~pl.col("duplicate"))
        known = requests.filter(~pl.col("answered") | pl.col("rtt_ns").is_not_null())
        return None if known.is_empty() else int((known["rtt_ns"] <= bound_ns).sum()) / known.height


@computes("mean one-way delay")
def _mean_one_way_delay(run: RunData) -> float | None:
    return None if run.wire is None else _mean(run.wire.delays["delay_ns"])


for _name, _part in _RANKS:

    @computes(f"one-way delay {_name}")
    def _one_way_delay(run: RunData, part: float = _part) -> float | None:
        delays = [] if run.wire is None else run.wire.delays["delay_ns"].to_list()
        return flows.percentile(delays, part) if delays else None


@computes("matched packets")
def _matched_packets(run: RunData) -> float | None:
    return None if run.wire is None else run.wire.matched


@computes("reordering")
def _reordering(run: RunData) -> float | None:
    return None if run.wire is None else run.wire.reordering


@computes("wire retransmissions")
def _wire_retransmissions(run: RunData) -> float | None:
    return None if run.wire is None else run.wire.retransmissions


@computes("packet gap p99")
def _packet_gap(run: RunData) -> float | None:
    gaps = [] if run.wire is None else run.wire.gaps_ns.to_list()
    return flows.percentile(gaps, 0.99) if gaps else None


@computes("largest burst")
def _largest_burst(run: RunData) -> float | None:
    return None if run.wire is None else run.wire.largest_burst_ns(run.bottleneck_bps)


@computes("reverse goodput")
def _reverse_goodput(run: RunData) -> float | None:
    return _of_role(run, "reverse")


@computes("background goodput")
def _background_goodput(run: RunData) -> float | None:
    return _of_role(run, "background")


def _of_role(run: RunData, role: str) -> float | None:
    if not (run.all_flows["role"] == role).any():
        return None
    return flows.aggregate_goodput(run.all_flows.filter(pl.col("role") == role)) or None


def _mean(column: pl.Series) -> float | None:
    value = column.mean()
    return float(value) if isinstance(value, int | float) else None
