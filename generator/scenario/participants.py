"""The participants of a step: its members, each with a source and a sink, a node for a command, or ranks.

In: a step, and a function that finds the nodes that its words mean. Out: members in the order in which they start;
errors point to the key that is wrong."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ewan.generator.scenario.fields import ScenarioStep
from ewan.generator.scenario.flows import Error
from ewan.labs.forwarding import node_of

Member = tuple[str, str, str, tuple[str, ...]]
"""Name, source, sink and ranks."""

Nodes = Callable[[str, Any], list[str]]
"""The nodes that are written at a key."""


def participants(step: ScenarioStep, nodes: Nodes, error: Error) -> list[Member]:
    """Name, source, sink and ranks of each member."""
    if step.kind == "run":
        where = nodes("on", step.on)
        return [(f"{step.name} on {node}", node, "", ()) for node in where]
    if step.kind == "messages":
        ranks = nodes("ranks", step.ranks)
        if ranks and len(ranks) < 2:
            raise error(("ranks",), "is a single node: write at least two")
        if len(set(ranks)) < len(ranks):
            raise error(("ranks",), "names a node twice: write each once")
        if step.work.pattern == "ping-pong" and len(ranks) % 2:
            raise error(("ranks",), f"are {len(ranks)}, and ping-pong goes in twos: write an even number")
        return [(step.name, ranks[0], ranks[1], tuple(ranks))] if ranks else []
    sources, sinks = nodes("from", step.from_), nodes("to", step.to)
    count = max(len(sources), len(sinks)) if sources and sinks else 0
    if (not sources) != (not sinks) or len({1, count, len(sources), len(sinks)} - {0}) > (2 if count > 1 else 1):
        message = f"{len(sources)} send to {len(sinks)}: write as many as send, or one of either"
        raise error(("to",), message)
    ends = list(zip(_stretched(sources, count), _stretched(sinks, count), strict=True))
    times = Counter(ends)
    for source, sink in ends:
        if node_of(source) == node_of(sink):
            raise error(("to",), f"{source} sends to itself: write another node")
        if times[source, sink] > 1:
            raise error(("to",), f'{source} sends to {sink} twice: write "streams: 2", or a step for each')
    return [(f"{step.name} {source} to {sink}", source, sink, ()) for source, sink in ends]


def _stretched(names: Sequence[str], count: int) -> list[str]:
    return list(itertools.islice(itertools.cycle(names), count)) if len(names) == 1 else list(names[:count])
