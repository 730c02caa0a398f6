"""What emulates a link: our own model, or the kernel's netem with psp (or tbf) and a queue below it.

Comes in: both directions of a link as compiled, and what the description and the clock ask for. Goes out: the back
end's name, or a DescriptionError that says which setting the kernel cannot express.
"""

from __future__ import annotations

from typing import Literal

from labs.compile.egress import Clock
from labs.compile.settings import LinkSettings
from labs.compile.stages.direction import obstacle
from labs.spec import Spec
from labs.stages import Direction

Backend = Literal["user", "ewan", "kernel", "tbf"]


def choose(
    spec: Spec, clock: Clock, name: str, settings: LinkSettings, forward: Direction, backward: Direction
) -> Backend:
    """`auto` and `user` take our model: a process in the live clock, a queueing discipline in the virtual one."""
    wanted = spec.description.emulator
    if wanted == "auto" or wanted == "user":
        return "user" if clock == "live" else "ewan"
    for way, direction in ((settings.forward, forward), (settings.backward, backward)):
        found = obstacle(direction, way)
        if found is not None:
            key, why = found
            raise spec.error(way.path(key), f"on {name}, {why}, or emulator: user")
    return wanted
