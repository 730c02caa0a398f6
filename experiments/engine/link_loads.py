"""The load that the flows of a run may put on each emulated link, for comparison with the host's envelope. Pure.

In: the paths of a run's schedule. Out: bits per second by link and direction. A path carries as much as its slowest
link; several that cross a link carry no more than its rate together. Acknowledgements are not counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ewan.labs.link.direction import Heading
from ewan.labs.record.schedule import CrossedPath

Loads = Mapping[tuple[str, Heading], int]
"""bit/s by link and direction."""


def loads(paths: Iterable[CrossedPath], links: Iterable[str]) -> Loads:
    """`links`: the names of those that are emulated; others are left out."""
    emulated = set(links)
    found: dict[tuple[str, Heading], int] = {}
    for path in paths:
        rates = [hop.rate_bps for hop in path.hops if hop.rate_bps]
        if not rates:
            continue
        for hop in path.hops:
            if hop.link in emulated and hop.rate_bps:
                key = hop.link, hop.direction
                found[key] = min(found.get(key, 0) + min(rates), hop.rate_bps)
    return found
