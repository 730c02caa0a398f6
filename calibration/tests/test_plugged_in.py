"""What a certificate says of machines that are plugged into a lab's card: who answers the router, without a verdict."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ewan.calibration import plugged_in
from ewan.labs.base.codec import replace
from ewan.labs.link import Bare
from ewan.labs.plan import Card, End
from ewan.labs.runtime.tests.bench import bench
from ewan.labs.runtime.tests.lab import interface, small

pytestmark = pytest.mark.untimed

LAB = f"cp{os.getpid()}"


def test_each_machine_that_the_router_knows_has_a_row(tmp_path: Path) -> None:
    bare = small(LAB)
    left, router, right = bare.nodes
    port = interface("eth2", 9, 9, 9, 1, Bare())
    nodes = (left, replace(router, interfaces=(*router.interfaces, port)), right)
    plan = replace(bare, nodes=nodes, cards=(Card("c1", End("router", "eth2"), own_mac=True),))
    assert plugged_in.rows(bare) == ()
    with bench(f"ewan-{LAB}-router", tmp_path) as router_, bench(f"{LAB}-real", tmp_path) as real:
        router_.ip(f"link add eth2 type veth peer name c2 netns {real.name}")
        router_.ip("address add 192.0.2.1/24 dev eth2")
        router_.ip("link set eth2 up")
        (nobody,) = plugged_in.rows(plan)
        assert (nobody.link, nobody.verdict) == ("router:eth2", "not measured")
        assert nobody.note == "card c1: no machine answers"
        real.ip("address add 192.0.2.7/24 dev c2")
        real.ip("link set c2 up")
        real.out("ping", "-c", "1", "-W", "3", "192.0.2.1")
        (found,) = plugged_in.rows(plan)
    assert (found.link, found.quantity, found.verdict) == ("router to 192.0.2.7", "RTT from router", "shown")
    assert found.measured is not None and found.measured > 0
    assert found.note.endswith("no pair of it is measured")
