"""Losses and duplicates of a link against what it is to lose: proportions, judged by their intervals. Pure.

In: an expectation and the probes' results. Out: rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ewan.calibration import hints, statistic
from ewan.calibration.expectation import LinkExpectation
from ewan.calibration.judge import Judge, ProbeResults, why_not
from ewan.calibration.tolerances import Tolerances
from ewan.calibration.uncertainty import proportion, proportion_samples
from ewan.labs.base.codec import replace
from ewan.labs.base.units import PPB
from ewan.labs.record import COVERAGE_FACTOR, Row, Uncertainty


def loss_rows(
    link: LinkExpectation, judge: Judge, results: ProbeResults, bounds: Tolerances, count: int
) -> Iterator[Row]:
    """Rows of one direction, of `count` that are judged together; of duplicates where there are some, or should be."""
    configured = link.loss.probability
    kind = "loss" if ("loss", link.key) in results.streams else "delay"
    stream = results.streams.get((kind, link.key))
    why = link.untold("loss") or why_not(results, kind, link.key)
    if why or stream is None:
        yield judge.missing("loss", "ppb", configured * PPB, why or "not probed")
        return
    sent, lost = stream.sent_packets, stream.lost_packets
    own = stream.socket_drops_packets
    lost = max(lost - own, 0)
    note = f"{lost} of {sent}"
    share = lost / sent
    z = statistic.quantile(bounds.confidence, 2 * count)
    if configured == 0:
        row = judge.row("loss", "ppb", 0, share * PPB, 0.0, note)
        yield replace(row, uncertainty=proportion_known(lost, sent, 1.0))
    elif link.loss.dispersion == 0:
        slack = (link.loss.slack_packets + 1) / sent * PPB
        yield judge.row("loss", "ppb", configured * PPB, share * PPB, slack, note, hint=hints.loss(configured, lost))
    else:
        yield _binomial(judge, "loss", configured, lost, sent, z, link.loss.dispersion, bounds)
    copies, arrived = stream.duplicated_packets, stream.received_packets
    if link.duplicates > 0 and arrived > 0:
        yield _binomial(judge, "duplicates", link.duplicates_of_arrived, copies, arrived, z, 1.0, bounds)
    elif copies > 0:
        yield judge.row("duplicates", "ppb", 0, copies / arrived * PPB, 0.0, f"{copies} of {arrived}")


def _binomial(
    judge: Judge,
    quantity: str,
    configured: float,
    found: int,
    total: int,
    z: float,
    dispersion: float,
    bounds: Tolerances,
) -> Row:
    """Is the configured probability in the interval of the measured one, and is that narrow enough to tell?"""
    share = found / total
    low, high = statistic.wilson(round(found / dispersion), total / dispersion, z)
    note = f"{found} of {total}; interval {low:.4%} to {high:.4%}"
    # As limits of (measured − configured): how far below and above the interval reaches.
    limits = (high - share) * PPB, (share - low) * PPB
    most = bounds.probability_share * configured
    needs = proportion_samples(max(configured, share), most, dispersion)
    known = proportion_known(found, total, dispersion)
    hint = hints.loss(configured, found) if quantity == "loss" else ""
    return judge.drawn(quantity, "ppb", configured * PPB, share * PPB, limits, known, most * PPB, needs, note, hint)


def proportion_known(found: int, total: int, dispersion: float) -> Uncertainty:
    """The uncertainty, in ppb, of a share of `total` packets."""
    half = proportion(found / total, total, dispersion) * PPB
    return Uncertainty({"finite sample": half / COVERAGE_FACTOR}, half)
