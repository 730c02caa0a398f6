"""The path between two hosts in characters."""

from __future__ import annotations

from ewan.labs import host
from ewan.labs.compile import compile
from ewan.labs.render import path_line
from ewan.labs.spec import from_template


def lines(topology: str, **options: str) -> list[str]:
    return path_line.lines(compile(from_template(topology, options), host.virtual_facts()))


def test_a_dumbbell_is_one_line_and_one_of_its_link() -> None:
    assert lines("dumbbell", rtt="100ms", rate="1G") == [
        "left1 ─── r1 ══ core ══ r2 ─── right1",
        "core r1 ↔ r2: 1Gbit/s, 50ms one way, buffer 12.5MB, drop-tail",
    ]


def test_the_pair_with_most_emulated_links_is_drawn() -> None:
    first, *links, count = lines("parking-lot", rtt="60ms")
    assert first == "left1 ─── r1 ══ hop1 ══ r2 ══ hop2 ══ r3 ══ hop3 ══ r4 ─── right1"
    assert len(links) == 3
    assert count == "This is one of 4 pairs of hosts; the lab has 3 emulated links."


def test_many_links_are_counted_and_not_listed() -> None:
    path, *links, more = lines("chain", hops="8")
    assert path.count("══") == 2 * 8 and len(links) == 4
    assert more == "and 4 more rows in `ewan ps chain`"


def test_switches_are_on_the_path() -> None:
    first, *_ = lines("dumbbell", switch="ovs")
    assert first == "left1 ─── sw-r1 ─── r1 ══ core ══ r2 ─── sw-r2 ─── right1"
