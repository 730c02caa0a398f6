"""When the application that limits a transfer writes, and how much.

In: laws as the request of our own generator has them (emulator/traffic/src/flows/law.rs), and a seed. Out: times and
sizes. The draws are Python's: with the same seed they are others than those of our own generator."""

import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

Draw = Callable[[], float]


def law(data: dict[str, Any], stream: random.Random) -> Draw:
    """Return a function that draws values of a law."""
    given = {key: value for key, value in data.items() if key not in ("law", "most")}
    draws: dict[str, Callable[..., float]] = {
        "constant": lambda value: value,
        "uniform": lambda low, high: stream.uniform(low, high),
        "exponential": lambda mean: stream.expovariate(1 / mean),
        "pareto": lambda mean, shape: mean * (shape - 1) / shape * stream.paretovariate(shape),
        "weibull": lambda mean, shape: stream.weibullvariate(mean / math.gamma(1 + 1 / shape), shape),
        "gamma": lambda mean, shape: stream.gammavariate(shape, mean / shape),
        "normal": lambda mean, deviation: max(stream.normalvariate(mean, deviation), 0.0),
    }
    draw, most = draws[data["law"]], data.get("most")
    draw(**given)  # a wrong key is an error at once
    return lambda: draw(**given) if most is None else min(draw(**given), most)


def sizes(data: dict[str, Any], seed: int) -> Iterator[int]:
    """Whole sizes of at least a byte, without end."""
    draw = law(data, random.Random(f"{seed} sizes"))
    return (max(1, round(draw())) for _ in itertools.count())


def schedule(data: dict[str, Any], seed: int, start_ns: int) -> Iterator[tuple[int, int]]:
    """The writes: when each is due, in ns from T0, and its bytes. Intervals run in on periods only."""
    interval = law(data["interval_ns"], random.Random(f"{seed} intervals"))
    at, on_until, off_before = 0.0, math.inf, 0.0
    on = off = None
    if data.get("on_ns"):
        on, off = law(data["on_ns"], random.Random(f"{seed} on")), law(data["off_ns"], random.Random(f"{seed} off"))
        on_until = on()
    for size in sizes(data["size_bytes"], seed):
        while on is not None and off is not None and at >= on_until:
            off_before += off()
            on_until += on()
        yield start_ns + round(at + off_before), size
        at += interval()
