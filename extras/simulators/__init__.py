"""A run of a scenario as input of the network simulators ns-2 and ns-3."""

from __future__ import annotations

from collections.abc import Callable

from ewan.extra import Export, Extra


def _ns2() -> Callable[..., str]:
    from ewan.extras.simulators.scripts import script_of_ns2

    return script_of_ns2


def _ns3() -> Callable[..., str]:
    from ewan.extras.simulators.scripts import program_of_ns3

    return program_of_ns3


EXTRA = Extra(
    exports={
        "ns2": Export(".tcl", "the experiment for the simulator ns-2", _ns2),
        "ns3": Export(".cc", "the experiment for the simulator ns-3", _ns3),
    }
)
