"""Estimates of a path from arrivals: RTT, capacity, buffer, loss, cross traffic, each with its uncertainty. Pure.

In: packets with the times of their sending and their delays, and the uncertainty of the instrument (None: none, as in
the virtual clock). Out: values with standard uncertainties by source. The bottleneck is one queue that serves packets
in their order; where it is not, the notes describe the observation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from ewan.calibration.expectation import BYTE_NS
from ewan.calibration.uncertainty import (
    Components,
    Instrument,
    Source,
    enough_for,
    proportion,
    quantile,
    quantile_uncertainty,
    rectangular,
)
from ewan.labs.base.units import PPB
from ewan.labs.base.units.shown import written
from ewan.labs.record import COVERAGE_FACTOR
from ewan.labs.runtime.probe_documents import StreamResult

ODDS, ODDS_OF_TWO = 19.0, 38.5
"""The interval of a least value is this many times its distance to the next one, and holds with 1 − α = 95 %. It is
r/(1 − r) with r = 1 − α, and with r = √(1 − α) where two independent waits make the value later, so that its density
begins at 0."""
LEAST_TRAINS = 8
"""So many whole trains are enough to leave those out that lost a packet."""
LEAST_BATCHES = 10
"""So many counts of losses tell how much such counts wander."""
CLOCK_NS = 1.0
"""The last digit of a time."""
FIRST_PACKETS = 2
"""First packets of a train sent back to back that may find the queue empty, where hosts hold packets back."""
FULL_SHARE = 0.9
"""The quantile of the wait in a full queue that says how long the queue is: a sender pauses now and then."""
FILLING_PACKETS = 6
"""First packets of a train that comes faster than it is served that may find the queue empty."""
LOSSY_SHARE = 0.1
"""Trains that lose more found the queue full."""
FITTING_SHARE = 0.2
"""The relative difference between the goodput of a full queue and the prediction of capacity and cross traffic."""
BURST_SHARE = 0.02
"""A load that lasts may get this share less than trains before the difference counts as bursts."""
STEADY_SHARE = 0.1
"""A queue that stays full varies by less, between the median and that quantile of its wait."""


@dataclass(frozen=True, slots=True)
class Packet:
    """One that arrived: when it was sent, from any instant on, and how long it was under way (ns)."""

    sent_ns: float
    delay_ns: float

    @property
    def arrived_ns(self) -> float:
        """The arrival on the clock of `sent_ns`."""
        return self.sent_ns + self.delay_ns


@dataclass(frozen=True, slots=True)
class PathEstimate:
    """An estimate with its standard uncertainties by source, in its unit; `value` None: the note has the reason."""

    value: float | None
    components: Components
    note: str = ""


@dataclass(frozen=True, slots=True)
class Train:
    """Packets of one size that were sent in a row; those that arrived, in order of arrival."""

    sent: int
    packets: tuple[Packet, ...]

    @property
    def whole(self) -> bool:
        """Return whether none of its packets was lost."""
        return len(self.packets) == self.sent


def packets_of(stream: StreamResult) -> tuple[Packet, ...]:
    """The packets of a stream that answered with raw delays and spacings, in order of arrival; times count from the
    first arrival."""
    delays, spacings = stream.delays_ns or (), stream.spacings_ns or ()
    arrived = itertools.accumulate(spacings, initial=0)
    return tuple(Packet(float(at - delay), float(delay)) for at, delay in zip(arrived, delays, strict=False))


def least(delays_ns: Sequence[float], stacks: int, instrument: Instrument | None) -> PathEstimate:
    """The least delay there is, through so many network stacks (of a round trip 2, and a program that answers): that of
    a packet that nowhere waited.

    The least of a sample is above it, by no more than (x₂ − x₁)(1 − α)/α with probability 1 − α (Robson and Whitlock,
    Biometrika 51, 1964): a bias that is not corrected.
    """
    ordered = sorted(delays_ns)
    if len(ordered) < 2:
        return PathEstimate(None, {}, f"{len(ordered)} packets came back: too few")
    above = min((ODDS_OF_TWO if stacks > 1 else ODDS) * (ordered[1] - ordered[0]), quantile(ordered, 0.5) - ordered[0])
    parts: dict[Source, float] = {"finite sample": rectangular(above), "resolution": rectangular(CLOCK_NS)}
    if instrument is not None:
        parts["clock"] = rectangular(instrument.clock_ppb / PPB * ordered[0])
        awake = instrument.wake_up_ns if stacks > 1 else 0.0
        parts["stack path"] = math.hypot(rectangular(stacks * instrument.stack_ns), rectangular(awake))
    return PathEstimate(ordered[0], parts, f"the least of {len(ordered)}")


def capacity(
    trains: Sequence[Train], packet_bytes: int, instrument: Instrument | None, enough: int = LEAST_TRAINS
) -> PathEstimate:
    """The capacity of the bottleneck, in bit/s of IP packets of this size, from the dispersion of packets sent back to
    back.

    Cross traffic between the packets of a train makes it longer, and cross traffic before it makes it late. The
    dispersion is that of the quarter of the trains with the least sum of their first and last packet's delay (CapProbe:
    Kapoor et al., SIGCOMM 2004, there of pairs), by its median."""
    known = [_queued(train) for train in trains if len(train.packets) >= 3]
    whole = [train for train in known if train.whole]
    chosen = whole if len(whole) >= enough else known
    if len(chosen) < enough:
        return PathEstimate(None, {}, f"{len(chosen)} of {len(trains)} trains arrived: too few")
    first = sorted(chosen, key=lambda train: train.packets[0].delay_ns + train.packets[-1].delay_ns)
    first = first[: max(len(first) // 4, enough_for(0.5))]
    spacings = sorted(_span_ns(train) / (len(train.packets) - 1) for train in first)
    middle, window = median(spacings), median(_span_ns(train) for train in first)
    if middle <= 0 or window <= 0:
        return PathEstimate(
            None, {}, "the packets of a train arrived at once: the path is faster than this clock tells"
        )
    value = packet_bytes * BYTE_NS / middle
    relative: dict[Source, float] = {
        "finite sample": (quantile_uncertainty(spacings, 0.5) or 0.0) / middle,
        "resolution": math.sqrt(2) * rectangular(CLOCK_NS) / window,
    }
    if instrument is not None:
        relative["clock"] = rectangular(instrument.clock_ppb / PPB)
        relative["stack path"] = math.sqrt(2) * rectangular(instrument.instant_ns) / window
    lossy = "" if chosen is whole else "; of trains that lost packets"
    return PathEstimate(value, _times(relative, value), f"{len(first)} of {len(trains)} trains{lossy}")


@dataclass(frozen=True, slots=True)
class Burst:
    """A bottleneck that passes a burst faster than its rate: the goodput of a lasting load is its capacity."""

    capacity: PathEstimate
    packets: int
    """It passes at most this number of a load's first packets at once."""
    doubt: str


def burst(load: Sequence[Packet], packet_bytes: int, offered_bps: float, rate: PathEstimate) -> Burst | None:
    """Finds the capacity behind a token bucket. `load`: packets of a load that lasts, in the order of sending; `rate`:
    the capacity by trains. None: the path passes no bursts.

    In a queue that stays full, packets of the load that nothing of others comes between are one packet's time at the
    capacity apart, which is their median; with all of others' packets they are no farther apart than the mean.
    """
    arrivals = sorted(packet.arrived_ns for packet in load[len(load) // 2 :])
    gaps = sorted(two - one for one, two in itertools.pairwise(arrivals))
    if len(gaps) < enough_for(0.5) or arrivals[-1] <= arrivals[0]:
        return None
    mean = (arrivals[-1] - arrivals[0]) / len(gaps)
    own = min(median(gaps), mean)
    if own <= 0 or (rate.value is not None and packet_bytes * BYTE_NS / own > (1 - BURST_SHARE) * rate.value):
        return None
    least_ns = min(packet.delay_ns for packet in load)
    passed = next((n for n, packet in enumerate(load) if packet.delay_ns > least_ns + 2 * own), len(load))
    value = packet_bytes * BYTE_NS / own
    # A queue that comes at `OVERLOAD` × its rate has two packets more after four.
    if passed <= FILLING_PACKETS or offered_bps <= value:
        return None
    parts: dict[Source, float] = {
        "finite sample": value * (quantile_uncertainty(gaps, 0.5) or 0.0) / own,
        "resolution": value * math.sqrt(2) * rectangular(CLOCK_NS) / (arrivals[-1] - arrivals[0]),
        "probe load": value * rectangular(1 - own / mean),
    }
    size = math.ceil(passed * (1 - value / offered_bps))
    told = (
        f"bursts of about {written(size * packet_bytes, 'bytes', 2)} pass faster than the capacity, which is a load's"
    )
    return Burst(PathEstimate(value, parts, "of a load that lasts"), size, told)


@dataclass(frozen=True, slots=True)
class BufferEstimate:
    """The size of a queue, in bytes of IP packets and as the time that its last packet waits (ns)."""

    size: PathEstimate
    wait: PathEstimate
    doubt: str = ""
    """The reason why it may not be one full queue."""


def buffer(
    full: Sequence[Packet], base: PathEstimate, rate: PathEstimate, packet_bytes: int, instrument: Instrument | None
) -> BufferEstimate:
    """The buffer of the bottleneck, from the longest wait while more arrives than it carries; `full`: packets from then
    on.

    A packet that finds the last place of a drop-tail queue waits for all others and for the rest of the packet
    that is being sent, and some senders add up to a packet's time themselves: the limit is half a packet below that
    quantile of the wait, within ± 1 packet."""
    if rate.value is None or base.value is None or len(full) < 2 * enough_for(FULL_SHARE):
        few = PathEstimate(None, {}, rate.note if rate.value is None else f"{len(full)} packets arrived: too few")
        return BufferEstimate(few, few)
    waits = sorted(packet.delay_ns - base.value for packet in full)
    longest, own = quantile(waits, FULL_SHARE), packet_bytes * BYTE_NS / rate.value
    value = longest - own / 2
    parts: dict[Source, float] = {
        "resolution": rectangular(own),
        "finite sample": quantile_uncertainty(waits, FULL_SHARE) or 0.0,
        "base delay": _together(base),
    }
    if instrument is not None:
        parts["stack path"] = rectangular(instrument.stack_ns)
    middle = quantile(waits, 0.5)
    varies = longest - middle > max(STEADY_SHARE * longest, 3 * own)
    doubt = ""
    if varies:
        doubt = f"the wait under load varies, its median is {middle / longest:.0%} of that: no full drop-tail queue"
    size = value * rate.value / BYTE_NS
    of_size = {**_times(parts, rate.value / BYTE_NS), "capacity": _together(rate) * value / BYTE_NS}
    return BufferEstimate(PathEstimate(max(size, 0.0), of_size), PathEstimate(max(value, 0.0), parts), doubt)


def growing(full: Sequence[Packet], packet_ns: float) -> bool:
    """Return whether the wait still grew at the end of a load: its last quarter is later than the one before it, by
    more than two packets' time and a twentieth of the delay that the whole load added."""
    quarter = len(full) // 4
    if quarter < 4:
        return True
    delays = [packet.delay_ns for packet in full]
    last, before = median(delays[-quarter:]), median(delays[-2 * quarter : -quarter])
    return last - before > max(2 * packet_ns, 0.05 * (max(delays) - min(delays)))


def loss(batches: Sequence[tuple[int, int]]) -> PathEstimate:
    """A share in ppb, of packets that were sent in a row: (lost, sent) of each batch of them. Wilson's interval with k
    = 2, whose further end is U; where losses come in bursts, the number of packets is reduced by the batches'
    dispersion."""
    lost, sent = sum(each for each, _ in batches), sum(each for _, each in batches)
    if sent <= 0:
        return PathEstimate(None, {}, "nothing was sent")
    half = proportion(lost / sent, sent, _dispersion(batches, lost, sent)) * PPB
    return PathEstimate(lost / sent * PPB, {"finite sample": half / COVERAGE_FACTOR}, f"{lost} of {sent}")


def _dispersion(batches: Sequence[tuple[int, int]], lost: int, sent: int) -> float:
    """The variance of a mean of correlated losses against that of independent ones, at least 1: by batch means (Law and
    Kelton, Simulation Modeling and Analysis), with a deviation of the estimate added, as it rests on a few bursts.

    Batches are put together by two and by four too, since long bursts go over the ends of short batches."""
    share = lost / sent
    found = [1.0]
    for together in (1, 2, 4) if 0 < share < 1 else ():
        groups = [batches[k : k + together] for k in range(0, len(batches) - together + 1, together)]
        shares = [sum(each for each, _ in group) / max(sum(each for _, each in group), 1) for group in groups]
        if len(shares) >= LEAST_BATCHES:
            squares = [(each - share) ** 2 for each in shares]
            variance, more = math.fsum(squares) / (len(squares) - 1), stdev(squares) / math.sqrt(len(squares))
            independent = share * (1 - share) * len(squares) / sent
            # Independent losses have so much by chance (the index of dispersion, Fisher).
            if variance > independent * (1 + 2 * math.sqrt(2 / (len(squares) - 1))):
                found.append((variance + more) / independent)
    return max(found)


def cross(
    trains: Sequence[Train],
    packet_bytes: int,
    base: PathEstimate,
    rate: PathEstimate,
    instrument: Instrument | None,
    lead: int = 0,
) -> PathEstimate:
    """The cross traffic at the bottleneck, in bit/s, from the dispersion of trains that come at more than its capacity.

    From the first to the last packet of such a train the queue is never empty: the other packets that it served, which
    are capacity × time of arrivals − the train, came while the train was sent (Melander, Björkman, Gunningberg,
    GLOBECOM 2000). A train of which a packet hardly waited is left out: its sender paused, and the queue was empty.
    `lead`: the number of first packets of a train that pass as a burst."""
    sent, arrived = sum(train.sent for train in trains), sum(len(train.packets) for train in trains)
    cut = (Train(train.sent, train.packets[FILLING_PACKETS + lead :]) for train in trains)
    long = [train for train in cut if len(train.packets) >= 3 and _sending_ns(train) > 0]
    if rate.value is None or base.value is None:
        return PathEstimate(None, {}, rate.note or base.note)
    least_ns = base.value + packet_bytes * BYTE_NS / rate.value
    known = [train for train in long if min(packet.delay_ns for packet in train.packets) > least_ns]
    if len(known) < LEAST_TRAINS:
        return PathEstimate(None, {}, f"{len(known)} of {len(trains)} trains kept the queue busy: too few")
    each, stretched = [], []
    for train in known:
        served = (len(train.packets) - 1) * packet_bytes * BYTE_NS
        each.append((rate.value * _span_ns(train) - served) / _sending_ns(train))
        stretched.append(_span_ns(train) / _sending_ns(train))
    mean = fmean(each)
    parts: dict[Source, float] = {
        "finite sample": stdev(each) / math.sqrt(len(each)),
        # Of a train, one packet of others more or less at its ends.
        "resolution": rectangular(packet_bytes * BYTE_NS / fmean(_sending_ns(train) for train in known) / len(known)),
        "capacity": _together(rate) * fmean(stretched),
    }
    if instrument is not None:
        window = fmean(_sending_ns(train) for train in known)
        parts["stack path"] = rate.value * math.sqrt(2) * rectangular(instrument.instant_ns) / window
        parts["stack path"] /= math.sqrt(len(known))
    lossy = arrived < (1 - LOSSY_SHARE) * sent
    note = f"{len(known)} trains" + ("; the queue was full: it may be more" if lossy else "")
    return PathEstimate(max(mean, 0.0), parts, note)


def doubt(full: Sequence[Packet], packet_bytes: int, offered_bps: float, rate: float, others: float) -> str:
    """The reason why the estimates of capacity and cross traffic may be wrong; empty where a load that filled the queue
    got its share through: a queue that serves all alike gives it capacity × load / (load + others)."""
    arrivals = sorted(packet.arrived_ns for packet in full)
    if len(arrivals) < 2 or arrivals[-1] <= arrivals[0]:
        return ""
    got = (len(arrivals) - 1) * packet_bytes * BYTE_NS / (arrivals[-1] - arrivals[0])
    share = rate * offered_bps / (offered_bps + others)
    if abs(got - share) <= FITTING_SHARE * share:
        return ""
    through = written(got, "bit/s", 3)
    return f"a load got {through} through, not {written(share, 'bit/s', 3)}: the rate varies, or bursts have another"


def _queued(train: Train) -> Train:
    """The same without its first packets, where enough are left."""
    if len(train.packets) < 3 * FIRST_PACKETS:
        return train
    return Train(train.sent - FIRST_PACKETS, train.packets[FIRST_PACKETS:])


def _span_ns(train: Train) -> float:
    """First to last arrival."""
    return train.packets[-1].arrived_ns - train.packets[0].arrived_ns


def _sending_ns(train: Train) -> float:
    """First to last sending of those that arrived."""
    return train.packets[-1].sent_ns - train.packets[0].sent_ns


def _times(parts: Mapping[Source, float], factor: float) -> dict[Source, float]:
    return {source: value * factor for source, value in parts.items()}


def _together(found: PathEstimate) -> float:
    """The standard uncertainty of independent sources."""
    return math.hypot(*found.components.values())
