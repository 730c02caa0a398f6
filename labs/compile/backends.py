"""Selects the back end that emulates a link: our own model, or the kernel's netem with psp (or tbf) and a queue below
it.

Comes in: both directions of a link as compiled, and what the description and the host ask for. Goes out: the back
end's name, or a DescriptionError that says which setting the kernel cannot express.
"""

from __future__ import annotations

from typing import Literal

from ewan.labs.compile.facts import HostFacts
from ewan.labs.compile.settings import LinkSettings
from ewan.labs.link import Direction
from ewan.labs.link.direction import obstacle
from ewan.labs.spec import Spec

Backend = Literal["user", "ewan", "kernel", "tbf", "hardware"]


def choose(
    spec: Spec, host: HostFacts, name: str, settings: LinkSettings, forward: Direction, backward: Direction
) -> Backend:
    """`user` takes our model: a process in the live clock, a queueing discipline in the virtual one. So does `auto`,
    but for live links that the kernel can express on a host whose calibration found the kernel's links better."""
    wanted = spec.description.emulator
    both = ((settings.forward, forward), (settings.backward, backward))
    if wanted == "auto" and host.clock == "live" and host.preferred == "kernel":
        return "user" if any(obstacle(direction, way) for way, direction in both) else "kernel"
    if wanted == "auto" or wanted == "user":
        return "user" if host.clock == "live" else "ewan"
    for way, direction in both:
        found = obstacle(direction, way)
        if found is not None:
            key, why = found
            raise spec.error(way.path(key), f"on {name}, {why}, or emulator: user")
    return wanted
