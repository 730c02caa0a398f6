"""Lab 8 as a good student does it: the sawtooth by its formula, goodputs off the tables, crossings by a line."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log, sqrt

from tests.extras.course.desk import Desk, written

BUFFERS = {4: ("0.12BDP", "0.25BDP", "0.5BDP", "1BDP"), 16: ("0.06BDP", "0.12BDP", "0.25BDP", "0.5BDP")}


def crossing(points: list[tuple[float, float]], reach: float) -> float:
    """Where the last line between two points crosses a goodput, the buffer on a logarithmic axis."""
    for (below, low), (above, high) in reversed(list(pairwise(points))):
        if low < reach <= high:
            return exp(log(below) + (log(above) - log(below)) * (reach - low) / (high - low))
    raise AssertionError(f"{points} do not cross {reach}")


def solve(desk: Desk) -> dict[str, str | dict[str, str]]:
    """The answers to all questions."""
    single, many = (desk.run(command) for command in desk.commands)
    rate, rtt, depth = desk.number("rate"), desk.number("rtt"), float(desk.values["depth"].removesuffix("BDP"))
    carried, bdp = rate * 1448 / 1538, rate * rtt / 8
    enough = {}
    for flows, buffers in BUFFERS.items():
        goodputs = [desk.read(many, "steady goodput", flows=flows, buffer=buffer) for buffer in buffers]
        sizes = [float(buffer.removesuffix("BDP")) for buffer in buffers]
        enough[flows] = crossing(list(zip(sizes, goodputs, strict=True)), 0.96 * carried)
    reno, cubic = (desk.read(single, "steady goodput", buffer="0.43BDP", congestion=each) for each in ("reno", "cubic"))
    return {
        "pipe": f"{bdp / 1538:.1f}packets",
        "sawtooth": written(0.75 * (1 + depth) ** 2 / (1 + depth + depth**2), "share", 4),
        "measured": written(desk.read(single, "steady goodput", buffer=desk.values["depth"]) / carried, "share", 4),
        "whole": written(desk.read(single, "steady goodput", buffer="1BDP") / carried, "share", 4),
        "beta": f"{1 / desk.number('kept') - 1:.4f}",
        "cubic": written((cubic - reno) / carried, "share", 3),
        "root": written(bdp / sqrt(16), "size"),
        "four": f"{enough[4]:.3f}",
        "sixteen": f"{enough[16]:.3f}",
        "exponent": f"{log(enough[16] / enough[4]) / log(16 / 4):.2f}",
        "reason": "their windows fall at different times, and the sum of many that are independent varies less",
        "price": written(desk.read(many, "queue loss", flows=16, buffer="0.06BDP"), "share", 4),
        "when": "when they begin, as slow start overshoots",
        "backbone": written(100e9 * 0.1 / 8 / sqrt(desk.number("backbone")), "size", 4),
        "chip": "Megabytes fit on the chip. Few or synchronised flows need more. Very small buffers lose more packets.",
    }
