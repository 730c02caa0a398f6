"""TU, tuning: one source sends one volume to one sink."""

from __future__ import annotations

from ewan.extras.suites.application import COMPLETION, Application, ApplicationCase, ApplicationTraffic
from ewan.extras.suites.steps import drain_ns, reverse_volume, transfer


def _traffic(case: ApplicationCase) -> ApplicationTraffic:
    steps = (transfer(case, "bulk", apart=False), *reverse_volume(case, apart=False))
    return ApplicationTraffic({"volume": case.size("volume")}, steps, drain_ns(case, 1))


APPLICATION = Application(
    word="TU",
    title="tuning",
    about="A full speed, simple, unicast and unidirectional transfer from one source to one sink, to benchmark the "
    "whole chain of communication. Its volume, {volume}, is ours.",
    sizes={"quick": {"volume": "3Gbit"}, "paper": {"volume": "300Gbit"}},
    traffic=_traffic,
    metrics=COMPLETION,
    overview=("mean completion time",),
    defaults={"k": "1"},  # one source at full speed
    one_source=True,
)
