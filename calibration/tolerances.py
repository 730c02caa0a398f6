"""The permitted difference between a measured and a configured value in the live clock, and the reasons for it. Pure.

`exact` has the tolerances of the virtual clock.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ewan.labs.base.units import NS_PER_MS
from ewan.labs.plan import Plan
from ewan.labs.record import Policy
from ewan.labs.record.bounds import RELEASE_P99_NS


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The permitted difference between a measured and a configured value. `REASONS` has the reasons."""

    delay_ns: int = 100_000
    delay_share: float = 0.001
    delay_p99_ns: int = 2_000_000
    rtt_ns: int = 300_000
    rate_share: float = 0.001
    instant_ns: int = 50_000
    queue_share: float = 0.02
    queue_packets: float = 1.5
    confidence: float = 0.99
    goodput_above: float = 0.01
    goodput_below: float = 0.1
    switch_ns: int = 300_000
    release_p50_ns: int = 20_000
    release_p99_ns: int = RELEASE_P99_NS
    probability_share: float = 0.5
    other_bytes: int = 0
    other_bps: int = 0
    other_times: int = 1


POLICIES: dict[Policy, Tolerances] = {
    "strict": Tolerances(rtt_ns=200_000, release_p50_ns=10_000, probability_share=0.2),
    "default": Tolerances(),
    "teaching": Tolerances(
        delay_ns=NS_PER_MS,
        delay_share=0.01,
        delay_p99_ns=20 * NS_PER_MS,
        rtt_ns=2 * NS_PER_MS,
        rate_share=0.01,
        queue_share=0.1,
        queue_packets=4.0,
        goodput_below=0.2,
        switch_ns=3 * NS_PER_MS,
        release_p50_ns=200_000,
        release_p99_ns=10 * NS_PER_MS,
        probability_share=1.0,
    ),
}
"""Tolerances of the live clock. By the strict policy a value must be inside its tolerance for sure."""

# Framed, one way: hellos of OSPFv2 and OSPFv3 each second, 106 and 118 bytes; of IS-IS, 134; BGP's keepalives and what
# acknowledges them, in both families every 3 s, 438.
ROUTING_BYTES, ROUTING_BPS = 450, 2_000
# A queue that a probe has filled drops what routers tell each other too. BGP's TCP sends it again after 0.2 s or more,
# and after twice that: so often while a rate is measured.
BGP_TIMES = 4

REASONS = {
    "delay": "p50: 100 µs, or 0.1 % of the delay if that is more, for the two network stacks around the link (4 to "
    "20 µs on a quiet machine) and CPUs that are shared; p99: 2 ms more, the time a CPU may be taken away; the "
    "largest is shown only, since one such event decides it",
    "rate": "0.1 %",
    "loss": "the configured probability must lie in the Wilson interval of the count; 99 % for all comparisons of "
    "a certificate together (Bonferroni), widened by the correlation of the configured model; it is decided when its "
    "uncertainty is no more than half of it (a fifth by the strict policy)",
    "queue": "2 % of the limit, 1.5 packets (the one in service)",
    "rtt": "300 µs (200 µs by the strict policy) and 0.1 % for every link of the path: two stacks for each way, and "
    "the program that answers; in the live clock a plain access link adds nothing to a lone packet, which its token "
    "bucket lets pass at once",
    "switch": "0.3 ms more delay each time a packet crosses a switch in user space, which wakes up for it",
    "goodput": "never more than 1 % above what headers leave of the rate (acknowledgements come in "
    "bunches); not more than 10 % below it by a "
    "sender whose window filled the pipe, where the queue holds the BDP and nothing is lost on purpose",
    "routing": "what routers tell each other: 450 bytes at once at most, for which a probe's packet may "
    "have to wait (p99, largest) and which fill the queue, and 2 kbit/s of the rate; of BGP's, which TCP sends "
    "again where a full queue drops them, four times as much while a rate is measured",
    "release": "the link's own error, due against actual, free of any network stack: p50 20 µs (10 µs by the strict "
    "policy), which one system call takes in a virtual machine; p99 500 µs; on a CPU of its own it is below 1 µs and "
    "10 µs",
    "uncertainty": "a value is ok when it is inside its tolerance with all of its uncertainty (k = 2), outside when it "
    "is beyond it with all of it, and else not decidable",
}
"""By kind of quantity."""


def beside_routing(bounds: Tolerances, plan: Plan) -> Tolerances:
    """The same where routers talk on the links that are measured; see "routing" in `REASONS`."""
    if plan.routing == "static":
        return bounds
    times = BGP_TIMES if plan.routing == "bgp" else 1
    return dataclasses.replace(bounds, other_bytes=ROUTING_BYTES, other_bps=ROUTING_BPS, other_times=times)
