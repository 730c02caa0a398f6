"""Who takes part, and the lab that they are in, as the text of a scenario's `lab:` and names for its steps. Pure.

In: parameters; elsewhere than in a dumbbell, a description and its pairs. Out: `Ends`. In a dumbbell the first M pairs
send, then comes the pair of the background traffic if there is any, then the N_r pairs that send the other way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from generator.suites.parameters import MIX, Parameters
from labs.compile.checks import LEAST_IPV6_MTU
from labs.units import Rate


@dataclass(frozen=True, slots=True)
class Ends:
    """Patterns of nodes: sources and sinks of the load, `ranks` in the order of their numbers, the others' or None."""

    lab: str
    pairs: int
    sources: str
    sinks: str
    ranks: str
    reverse: tuple[str, str] | None
    background: tuple[str, str] | None


def dumbbell(parameters: Parameters) -> Ends:
    """M + N_r pairs on routers r1 and r2, the bottleneck `core` between them."""
    m = parameters.m or 1
    extra = int(parameters.background != "0")
    pairs, reverse = m + extra, parameters.reverse
    lines = [f"topology: {{dumbbell: {{pairs: {pairs}, reverse_pairs: {reverse}}}}}"]
    if parameters.rtt == "Mix":
        mixed = [MIX[number % len(MIX)] for number in range(pairs + reverse)]
        lines.append(f"rtt: [{', '.join(mixed)}]")
    else:
        lines.append(f"rtt: {parameters.rtt}")
    loss = f", loss: {parameters.loss}" if parameters.loss else ""
    lines.append(f"wan: {{rate: {parameters.rate}, buffer: {parameters.buffer}{loss}}}")
    lines.append(f"access: {{rate: {parameters.access}}}")
    if extra:
        lines.append("links:  # the background's bursts are its own, not its access links'")
        lines += [f"  access-{side}{pairs}: {{rate: {parameters.rate}}}" for side in ("left", "right")]
    if parameters.mtu is not None:
        lines.append(f"mtu: {parameters.mtu}")
        if parameters.mtu < LEAST_IPV6_MTU:
            lines.append("ip: 4  # IPv6 needs an MTU of 1280 (RFC 8200)")
    ranks = ",".join(f"left{number},right{number}" for number in range(1, m + 1))
    return Ends(
        "\n".join(lines),
        m,
        _some("left", 1, m),
        _some("right", 1, m),
        ranks,
        (_some("right", pairs + 1, pairs + reverse), _some("left", pairs + 1, pairs + reverse)) if reverse else None,
        (f"left{pairs}", f"right{pairs}") if extra else None,
    )


def elsewhere(raw: Mapping[str, Any], pairs: Sequence[tuple[str, str]], background: bool) -> Ends:
    """A description's data as YAML; each of its pairs sends, and the background goes between the same nodes."""
    text = yaml.safe_dump(_plain(raw), default_flow_style=None, sort_keys=False, allow_unicode=True, width=110)
    sources, sinks = [source for source, _ in pairs], [sink for _, sink in pairs]
    ranks = list(dict.fromkeys(name for pair in pairs for name in pair))
    ways = ",".join(compact(sources)), ",".join(compact(sinks))
    between = (f"{sources[0]}", f"{sinks[0]}") if background else None
    return Ends(text.rstrip("\n"), len(pairs), *ways, ",".join(ranks), None, between)


def one(ends: Ends) -> Ends:
    """The first source and the first sink alone."""
    first = ends.ranks.split(",")[:2]
    return Ends(ends.lab, 1, first[0], first[1], ",".join(first), ends.reverse, ends.background)


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
    """Data as `yaml.safe_dump` takes it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
