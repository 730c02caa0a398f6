"""PP, peer to peer: both ends of each pair send a volume over one connection."""

from __future__ import annotations

from ewan.extras.suites.application import COMPLETION, Application, ApplicationCase, ApplicationTraffic
from ewan.extras.suites.steps import drain_ns, reverse_volume, staggered_ns, transfer


def _traffic(case: ApplicationCase) -> ApplicationTraffic:
    steps = (transfer(case, "bidirectional"), *reverse_volume(case))
    return ApplicationTraffic(case.sizes, steps, drain_ns(case, case.ends.pairs) + staggered_ns(case))


APPLICATION = Application(
    word="PP",
    title="peer to peer",
    about="Big bidirectional transfers: both ends of each pair send the volume at the same time over one connection. "
    "Volume and time between starts are ours. R adds pairs that send one way, from right to left.",
    sizes={"quick": {"volume": "90Mbit", "apart": "30ms"}, "paper": {"volume": "30Gbit", "apart": "1s"}},
    traffic=_traffic,
    metrics=COMPLETION,
    overview=("mean completion time", "deviation of completion time"),
)
