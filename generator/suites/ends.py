"""Who takes part, and the lab that they are in, as the data of a scenario's `lab:` and names for its steps. Pure.

In: parameters; elsewhere than in a dumbbell, a description and its pairs. Out: `Ends`. In a dumbbell the first M pairs
send, then comes the pair of the background traffic if there is any, then the N_r pairs that send the other way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.suites.parameters import MIX, Parameters
from labs.compile.checks import LEAST_IPV6_MTU
from labs.units import Rate


@dataclass(frozen=True, slots=True)
class Ends:
    """Patterns of nodes: sources and sinks of the load, `ranks` in the order of their numbers, the others' or None.

    `notes`: what a reader of the scenario should know of its lab, a sentence each.
    """

    lab: Mapping[str, Any]
    pairs: int
    sources: str
    sinks: str
    ranks: str
    reverse: tuple[str, str] | None
    background: tuple[str, str] | None
    notes: tuple[str, ...] = ()


def dumbbell(parameters: Parameters) -> Ends:
    """M + N_r pairs on routers r1 and r2, the bottleneck `core` between them."""
    m = parameters.m or 1
    extra = int(parameters.background != "0")
    pairs, reverse = m + extra, parameters.reverse
    count = pairs + reverse
    mixed = [MIX[number % len(MIX)] for number in range(count)]
    loss = {"loss": parameters.loss} if parameters.loss else {}
    rate, notes = str(parameters.rate), []
    lab: dict[str, Any] = {
        "topology": {"dumbbell": {"pairs": pairs, "reverse_pairs": reverse}},
        "rtt": mixed if parameters.rtt == "Mix" else parameters.rtt,
        "wan": {"rate": rate, "buffer": parameters.buffer, **loss},
        "access": {"rate": str(parameters.access)},
    }
    if extra:
        lab["links"] = {f"access-{side}{pairs}": {"rate": rate} for side in ("left", "right")}
        notes.append("The background's access links are as fast as the bottleneck, so that its bursts are its own.")
    if parameters.mtu is not None:
        lab["mtu"] = parameters.mtu
        if parameters.mtu < LEAST_IPV6_MTU:
            lab["ip"] = 4
            notes.append(f"The lab has IPv4 alone, since IPv6 needs an MTU of {LEAST_IPV6_MTU} (RFC 8200).")
    ranks = ",".join(f"left{number},right{number}" for number in range(1, m + 1))
    return Ends(
        lab,
        m,
        _some("left", 1, m),
        _some("right", 1, m),
        ranks,
        (_some("right", pairs + 1, pairs + reverse), _some("left", pairs + 1, pairs + reverse)) if reverse else None,
        (f"left{pairs}", f"right{pairs}") if extra else None,
        tuple(notes),
    )


def elsewhere(raw: Mapping[str, Any], pairs: Sequence[tuple[str, str]], background: bool) -> Ends:
    """A description's data; each of its pairs sends, and the background goes between the same nodes."""
    sources, sinks = [source for source, _ in pairs], [sink for _, sink in pairs]
    ranks = list(dict.fromkeys(name for pair in pairs for name in pair))
    patterns = ",".join(compact(sources)), ",".join(compact(sinks))
    between = (f"{sources[0]}", f"{sinks[0]}") if background else None
    return Ends(_plain(raw), len(pairs), *patterns, ",".join(ranks), None, between)


def one(ends: Ends) -> Ends:
    """The first source and the first sink alone."""
    first = ends.ranks.split(",")[:2]
    return Ends(ends.lab, 1, first[0], first[1], ",".join(first), ends.reverse, ends.background, ends.notes)


def bottleneck(rates: Sequence[int]) -> Rate:
    """The slowest of the pairs' bottlenecks, which sizes go by."""
    return Rate(min(rates))


def compact(names: Sequence[str]) -> list[str]:
    """`left1, left2, left3` as `left[1-3]`; order and repetitions stay."""
    runs: list[tuple[str, int, int] | str] = []
    for name in names:
        match = re.fullmatch(r"(.*?)([1-9][0-9]*)", name)
        last = runs[-1] if runs else None
        if match is None:
            runs.append(name)
        elif isinstance(last, tuple) and last[0] == match[1] and last[2] + 1 == int(match[2]):
            runs[-1] = (last[0], last[1], last[2] + 1)
        else:
            runs.append((match[1], int(match[2]), int(match[2])))
    return [run if isinstance(run, str) else _some(*run) for run in runs]


def _some(prefix: str, first: int, last: int) -> str:
    return f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]"


def _plain(value: Any) -> Any:
    """The same data of dicts and lists alone."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
