from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from labs import host
from labs.compile import HostFacts, compile
from labs.plan import Plan, digest, from_json, to_json
from labs.spec import Spec, from_template, load

GOLDEN = Path(__file__).parents[2] / "tests/golden"
HOST = HostFacts(cpus=(0, 1), networks=("10.64.0.0/16", "fd65:7761:6e00::/48"))


def specs() -> list[tuple[str, Spec, HostFacts]]:
    dumbbell, stages = from_template("dumbbell", {"rtt": "100ms", "pairs": "2"}), load(GOLDEN / "stages.lab.yaml")
    return [
        ("dumbbell", dumbbell, HOST),
        ("stages", stages, HOST),
        ("dumbbell-virtual", dumbbell, host.virtual_facts()),
        ("stages-virtual", stages, host.virtual_facts()),
    ]


@pytest.mark.parametrize(("name", "spec", "facts"), specs(), ids=[name for name, _, _ in specs()])
def test_the_golden_plan(name: str, spec: Spec, facts: HostFacts) -> None:
    """ewan-node reads the same files; `python -m labs.tests.test_plan` writes them anew."""
    plan = compile(spec, facts)
    text = (GOLDEN / f"{name}.plan.json").read_bytes()
    assert to_json(plan) == text
    assert from_json(text) == plan
    assert digest(from_json(text)) == digest(plan)


def refusal_of(change: dict[str, Any]) -> str:
    data = json.loads((GOLDEN / "dumbbell.plan.json").read_text())
    data.update(change)
    with pytest.raises(ValueError) as refusal:
        from_json(orjson.dumps(data))
    return str(refusal.value)


def test_what_another_version_wrote_is_refused() -> None:
    assert refusal_of({"format": "ewan-plan/2"}) == "format is 'ewan-plan/2', this version reads 'ewan-plan/3'"
    assert refusal_of({"colour": 1}) == "plan has an unknown key 'colour'"
    assert refusal_of({"lab": 1}) == "plan.lab is 1"
    assert refusal_of({"seed": True}) == "plan.seed is True"
    assert refusal_of({"spinners": [{"cpu": 1}]}) == "plan.spinners[0] has no key 'links'"
    assert refusal_of({"host_cpus": 3}) == "plan.host_cpus is no list"
    with pytest.raises(ValueError):
        from_json(b"[]")
    with pytest.raises(ValueError):
        from_json(b"{")


def _plans() -> dict[str, Plan]:
    return {name: compile(spec, facts) for name, spec, facts in specs()}


if __name__ == "__main__":
    for name, plan in _plans().items():
        (GOLDEN / f"{name}.plan.json").write_bytes(to_json(plan))
