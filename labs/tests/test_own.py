"""What a description says that nodes are made of, in the plan; and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.compile import HostFacts, compile
from labs.plan import Plan, from_json, to_json
from labs.spec import DescriptionError, parse


def planned(text: str, clock: str = "live", folder: Path = Path()) -> Plan:
    facts = HostFacts((0, 1), (), "virtual" if clock == "virtual" else "live")
    return compile(parse(text, folder / "own.lab.yaml"), facts)


def refused(text: str, clock: str = "live", folder: Path = Path()) -> str:
    with pytest.raises(DescriptionError) as error:
        planned(text, clock, folder)
    return str(error.value)


def test_a_plan_that_says_nothing_of_its_nodes_is_what_it_was() -> None:
    plan = planned("topology: star\nnodes: {host1: {}}\nkinds: {router: {}}")
    assert plan == planned("topology: star") and b'"own":' not in to_json(plan)
    assert from_json(to_json(plan)) == plan


def test_names_are_checked_and_near_ones_told() -> None:
    assert "hots1" in refused("topology: star\nnodes: {hots1: {}}") and '"host1"' in refused(
        "topology: star\nnodes: {hots1: {}}"
    )
    assert 'write "router"' in refused("topology: star\nkinds: {ruoter: {}}")
    assert 'unknown key of a node, write "image"' in refused("topology: star\nnodes: {host1: {imgae: x}}")
    twice = refused('topology: star\nnodes: {host1: {}, "host[1-2]": {}}')
    assert 'says of host1 what "host1" says too: write it once' in twice
