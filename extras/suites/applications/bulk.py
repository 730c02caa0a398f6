"""BU, bulk data transfer: each source sends one volume; the reverse pairs do the same the other way."""

from __future__ import annotations

from ewan.extras.suites.application import COMPLETION, NXE, POSTER, Application, ApplicationCase, ApplicationTraffic
from ewan.extras.suites.steps import drain_ns, reverse_volume, staggered_ns, transfer


def _traffic(case: ApplicationCase) -> ApplicationTraffic:
    steps = (transfer(case, "bulk"), *reverse_volume(case))
    return ApplicationTraffic(case.sizes, steps, drain_ns(case, case.ends.pairs) + staggered_ns(case))


APPLICATION = Application(
    word="BU",
    title="bulk data transfer",
    about="Unidirectional and big transfers, as in data centres and grids: each source sends one volume of uniform "
    "size; starts are a constant time apart. N_r further pairs do the same the other way (R). The papers' volume is "
    "30 Gbit, and 1 s their time between starts.",
    sizes={
        "quick": {"volume": "180Mbit", "apart": "60ms"},
        "paper": {"volume": "30Gbit", "apart": "1s"},  # NXE, section 4.2
    },
    traffic=_traffic,
    metrics=COMPLETION,
    overview=("mean completion time", "deviation of completion time"),
    source=f"{POSTER}; {NXE}",
    defaults={"r": "1.0"},  # of the poster's examples
)
