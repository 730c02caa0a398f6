"""The participants and their lab, as the data of a scenario's `lab:` and names for its steps. Pure.

In: parameters; elsewhere than in a dumbbell, a description and its pairs. Out: `SuiteEndpoints`. In a dumbbell the
first M pairs send, then comes the pair of the background traffic if there is any, then the N_r pairs that send the
other way."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction as Exact

from ewan.extras.suites.background import NONE as NO_BACKGROUND
from ewan.extras.suites.background import share
from ewan.extras.suites.parameters import MIX, Parameters
from ewan.generator.scenario.data import ScenarioMapping, ScenarioValue
from ewan.labs.base.units import Rate
from ewan.labs.compile.checks import LEAST_IPV6_MTU

BACKBONE = 10
"""The factor between the bottleneck's rate and that of the link between two switched sites, up to the fastest link
there is."""

BACKGROUND_CARD = Exact(1, 2)
"""The largest share of a card behind a switch that background traffic fills."""


@dataclass(frozen=True, slots=True)
class SuiteEndpoints:
    """Patterns of nodes: sources and sinks of the load, `ranks` in the order of their numbers, the others' or None.

    `notes`: what a reader of the scenario should know of its lab, a sentence each.
    """

    lab: ScenarioMapping
    pairs: int
    sources: str
    sinks: str
    ranks: str
    reverse: tuple[str, str] | None
    background: tuple[str, str] | None
    notes: tuple[str, ...] = ()
    background_pairs: int = 1
    """The number of pairs that share the background traffic."""


@dataclass(frozen=True, slots=True)
class LabSize:
    """The size of a sweep's lab: the most sources, reverse pairs and pairs with background traffic of all
    combinations."""

    sources: int
    reverse: int
    background: int

    @classmethod
    def of(cls, every: Sequence[Parameters], switched: bool = False) -> LabSize:
        """The size for all combinations."""
        most = max(each.m or 1 for each in every)
        return cls(most, max(each.reverse for each in every), max(_background_pairs(each, switched) for each in every))


def _background_pairs(parameters: Parameters, switched: bool) -> int:
    """The number of background pairs: in a dumbbell one, whose card is as fast as the bottleneck; behind a switch,
    where cards are equal, so many that each uses at most half of its card."""
    if parameters.background == NO_BACKGROUND:
        return 0
    return max(math.ceil(share(parameters.background) * (parameters.k or 1) / BACKGROUND_CARD), 1) if switched else 1


def dumbbell(parameters: Parameters, switched: bool = False, room: LabSize | None = None) -> SuiteEndpoints:
    """M + N_r pairs on routers r1 and r2. The bottleneck is the link `core` between them; `switched`: the port to the
    router of the switch that each side's hosts are behind. In `room`, patterns have numbers even where there is only
    one."""
    m = parameters.m or 1
    size = room or LabSize.of([parameters], switched)
    pairs = size.sources + size.background
    count = pairs + size.reverse
    mixed = [MIX[number % len(MIX)] for number in range(count)]
    lab: dict[str, ScenarioValue] = {
        "topology": {"dumbbell": {"pairs": pairs, "reverse_pairs": size.reverse}},
        "rtt": mixed if parameters.rtt == "Mix" else parameters.rtt,
        **_links(parameters, switched),
    }
    rate, notes = str(parameters.rate), []
    if size.background and not switched:
        lab["links"] = {f"access-{side}{pairs}": {"rate": rate} for side in ("left", "right")}
        notes.append("The background's access links are as fast as the bottleneck, so that its bursts are its own.")
    if switched:
        notes.append(
            "The bottleneck is the output port to the router of a layer-2 switch, as on the poster; the backbone is "
            f"{BACKBONE} times as fast."
        )
    if size.background and switched:
        notes.append(
            "The background comes from as many pairs as use at most half of their cards, which are the sources' kind."
        )
    if parameters.mtu is not None:
        lab["mtu"] = parameters.mtu
        if parameters.mtu < LEAST_IPV6_MTU:
            lab["ip"] = 4
            notes.append(f"The lab has only IPv4, since IPv6 needs an MTU of {LEAST_IPV6_MTU} (RFC 8200).")
    some = _some if room is None else _numbered
    back = (
        (f"right[{pairs + 1}+{parameters.reverse}]", f"left[{pairs + 1}+{parameters.reverse}]")
        if room is not None
        else (_some("right", pairs + 1, pairs + size.reverse), _some("left", pairs + 1, pairs + size.reverse))
    )
    own, first = _background_pairs(parameters, switched), size.sources + 1
    behind = (
        (f"left[{first}+{own}]", f"right[{first}+{own}]")
        if room is not None and size.background > 1
        else (_some("left", first, first + own - 1), _some("right", first, first + own - 1))
    )
    return SuiteEndpoints(
        lab,
        m,
        some("left", 1, m),
        some("right", 1, m),
        ",".join(f"left{number},right{number}" for number in range(1, m + 1)),
        back if size.reverse else None,
        behind if own else None,
        tuple(notes),
        max(own, 1),
    )


def _links(parameters: Parameters, switched: bool) -> ScenarioMapping:
    """The bottleneck and the access links."""
    loss = {"loss": parameters.loss} if parameters.loss else {}
    slow = {"rate": str(parameters.rate), "buffer": parameters.buffer}
    access = {"rate": str(parameters.access)}
    if not switched:
        return {"wan": {**slow, **loss}, "access": access}
    fast = Rate(min(BACKBONE * parameters.rate.bps, Rate.HIGHEST))
    return {"wan": {"rate": str(fast), **loss}, "access": {**access, "switch": {"ovs": slow}}}


def elsewhere(raw: ScenarioMapping, pairs: Sequence[tuple[str, str]], background: bool) -> SuiteEndpoints:
    """A description's data; each of its pairs sends, and the background goes between the same nodes."""
    sources, sinks = [source for source, _ in pairs], [sink for _, sink in pairs]
    ranks = list(dict.fromkeys(name for pair in pairs for name in pair))
    patterns = ",".join(compact(sources)), ",".join(compact(sinks))
    between = (f"{sources[0]}", f"{sinks[0]}") if background else None
    return SuiteEndpoints(raw, len(pairs), *patterns, ",".join(ranks), None, between)


def one(ends: SuiteEndpoints) -> SuiteEndpoints:
    """Only the first source and the first sink."""
    first = ends.ranks.split(",")[:2]
    return SuiteEndpoints(ends.lab, 1, first[0], first[1], ",".join(first), ends.reverse, ends.background, ends.notes)


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


def _numbered(prefix: str, first: int, last: int) -> str:
    return f"{prefix}[{first}-{last}]"


def _some(prefix: str, first: int, last: int) -> str:
    return f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]"
