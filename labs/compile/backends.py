"""What emulates a link: our own process, or the kernel's netem with psp (or tbf) and a queue below it.

Comes in: both directions of a link as compiled, and what the description and the clock ask for. Goes out: the back
end's name, or a DescriptionError that says which setting the kernel cannot express.
"""

from __future__ import annotations

from typing import Literal

from labs.compile.egress import UINT32, Clock
from labs.compile.settings import LinkSettings, Settings
from labs.plan import Direction
from labs.spec import Spec

Backend = Literal["user", "kernel", "tbf"]

INT32 = 2**31 - 1
# PIE's gains in the kernel are sixteenths of a hertz, at most two hertz (net/sched/sch_pie.c).
PIE_GAIN_MHZ, PIE_MOST_STEPS = 62.5, 32
RED_BITS = 32  # of max_bytes and the weight together (red_check_params in include/net/red.h)
CODEL_STEP_NS = 1000


def choose(
    spec: Spec, clock: Clock, name: str, settings: LinkSettings, forward: Direction, backward: Direction
) -> Backend:
    """`auto` takes user in the live clock; in the virtual clock kernel where it expresses both directions."""
    wanted = spec.description.emulator
    if wanted == "user" or (wanted == "auto" and clock == "live"):
        return "user"
    for way, direction in ((settings.forward, forward), (settings.backward, backward)):
        found = obstacle(way, direction)
        if found is not None:
            if wanted == "auto":
                return "user"
            key, why = found
            message = f"on {name}, {why}, or emulator: user"
            raise spec.error(way.path(key), message, None if key in way.values else way.get(key))
    return "kernel" if wanted == "auto" else wanted


def obstacle(way: Settings, direction: Direction) -> tuple[str, str] | None:
    """The setting that netem and the kernel's queues cannot express, and what to write; None if they express all."""
    match direction.loss["kind"]:
        case "every_nth" | "pattern":
            return "loss", "netem loses at random only: write a fraction, gilbert-elliott or markov"
    match direction.delay["kind"]:
        case "table":
            return "delay", 'netem has no table of delays: write a delay like "50ms"'
        case "normal" | "pareto" as kind:
            key = "distribution" if "distribution" in way.values else "jitter"
            return key, f'netem has no {kind} distribution of its own: write "distribution: uniform", "reorder: true"'
        case "uniform" if not direction.reorder:
            return "jitter", 'netem lets packets overtake under jitter: write "reorder: true"'
        case "uniform" if direction.delay["jitter_ns"] > INT32:
            return "jitter", 'netem holds 31 bits of ns: write at most "2s"'
    queue, discipline = direction.queue, direction.queue.discipline
    if max(queue.limit_bytes or 0, queue.limit_packets or 0) > UINT32:
        return "buffer", 'a queue of the kernel holds 32 bits of bytes: write at most "4GB"'
    match discipline["kind"]:
        case "red" if discipline["max_bytes"].bit_length() + discipline["weight_log2"] >= RED_BITS:
            most = (1 << (RED_BITS - 1 - discipline["weight_log2"])) - 1
            return "queue", f'RED with weight {discipline["weight_log2"]} takes at most "max: {most}B": write that'
        case "codel" if discipline["target_ns"] < CODEL_STEP_NS:
            return "queue", 'CoDel\'s target is at least 1us: write "target: 5ms"'
        case "pie" if not (_is_step(discipline["alpha_mhz"]) and _is_step(discipline["beta_mhz"])):
            return "queue", 'PIE\'s gains are multiples of 0.0625Hz up to 2Hz: write "alpha: 0.125Hz"'
    return None


def _is_step(mhz: int) -> bool:
    return mhz % PIE_GAIN_MHZ == 0 and mhz <= PIE_GAIN_MHZ * PIE_MOST_STEPS
