"""Measures of who gets how much of a link that is shared. Pure."""

from __future__ import annotations

from math import log

from ewan.extras.course.measures.base import MeasuredRun, NoValueError, measure


@measure
def rtt_exponent(run: MeasuredRun, one: str, other: str) -> float:
    """The exponent a of `goodput ~ 1 / RTT^a` that the steady goodputs of two steps and the medians of their RTTs give,
    queueing included: log(x1/x2) / log(RTT2/RTT1). Lakshman and Madhow (1997): 1 to 2 for Reno."""
    goodputs = [run.metric(f"steady goodput of {step}") for step in (one, other)]
    rtts = [run.metric(f"rtt p50 of {step}") for step in (one, other)]
    if min(*goodputs, *rtts) <= 0 or rtts[0] == rtts[1]:
        raise NoValueError(f"{one}, {other}: have no exponent: equal RTTs, or one of them got nothing")
    return log(goodputs[0] / goodputs[1]) / log(rtts[1] / rtts[0])
