from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan, digest, from_json, to_json
from ewan.labs.spec import Spec, from_template, load

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden"
LIBRARY = Path(__file__).resolve().parents[1] / "library"
HOST = HostFacts(cpus=(0, 1), networks=("10.64.0.0/16", "fd65:7761:6e00::/48"))


def specs() -> list[tuple[str, Spec, HostFacts]]:
    dumbbell, stages = from_template("dumbbell", {"rtt": "100ms", "pairs": "2"}), load(GOLDEN / "stages.lab.yaml")
    return [
        ("dumbbell", dumbbell, HOST),
        ("stages", stages, HOST),
        ("cards", load(GOLDEN / "cards.lab.yaml"), HOST),
        ("gaps", load(GOLDEN / "gaps.lab.yaml"), HOST),
        ("dumbbell-virtual", dumbbell, host.virtual_facts()),
        ("stages-virtual", stages, host.virtual_facts()),
        ("campus", load(LIBRARY / "campus.lab.yaml"), HOST),
    ]


@pytest.mark.parametrize(("name", "spec", "facts"), specs(), ids=[name for name, _, _ in specs()])
def test_the_golden_plan(name: str, spec: Spec, facts: HostFacts) -> None:
    """ewan-node reads the same files; `python -m ewan.labs.tests.test_plan` writes them anew."""
    plan = compile(spec, facts)
    text = (GOLDEN / f"{name}.plan.json").read_bytes()
    assert to_json(plan) == text
    assert from_json(text) == plan
    assert digest(from_json(text)) == digest(plan)


def test_a_plan_without_cards_has_no_key_of_theirs() -> None:
    """So that its hash is what it was."""
    plan = from_json((GOLDEN / "cards.plan.json").read_bytes())
    assert b'"cards": [' in to_json(plan)
    assert b'"cards"' not in to_json(replace(plan, cards=(), lab="bare"))


def refusal_of(change: dict[str, Any]) -> str:
    data = json.loads((GOLDEN / "dumbbell.plan.json").read_text())
    data.update(change)
    with pytest.raises(ValueError) as refusal:
        from_json(orjson.dumps(data))
    return str(refusal.value)


def test_what_another_version_wrote_is_refused() -> None:
    assert refusal_of({"format": "ewan-plan/2"}) == "format is 'ewan-plan/2', this version reads 'ewan-plan/3'"
    assert refusal_of({"colour": 1}) == "plan has an unknown key 'colour'"
    assert refusal_of({"lab": 1}) == "plan.lab is 1, not a string"
    assert refusal_of({"seed": True}) == "plan.seed is True, not an integer"
    assert refusal_of({"spinners": [{"cpu": 1}]}) == "plan.spinners[0] has no key 'links'"
    assert refusal_of({"host_cpus": 3}) == "plan.host_cpus is 3, not a list"
    with pytest.raises(ValueError):
        from_json(b"[]")
    with pytest.raises(ValueError):
        from_json(b"{")


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("loss",), {"kind": "nonsense"}, "loss.kind is 'nonsense'"),
        (("loss",), {"kind": ["none"]}, "loss.kind is ['none'], not a string"),
        (("loss",), {"loss_ppb": 1}, "loss has no key 'kind'"),
        (("loss",), "none", "loss is 'none', not an object"),
        (("loss",), {"kind": "bernoulli", "loss_ppb": "1"}, "loss.loss_ppb is '1', not an integer"),
        (("loss",), {"kind": "none", "loss_ppb": 1}, "loss has an unknown key 'loss_ppb'"),
        (("delay", "delay_ns"), 1.5, "delay.delay_ns is 1.5, not an integer"),
        (("delay",), {"kind": "table", "delays_ns": [1, None]}, "delay.delays_ns[1] is None, not an integer"),
        (("queue", "discipline"), {"kind": "codel", "ecn": False}, "queue.discipline has no key 'interval_ns'"),
        (("queue", "limit_bytes"), True, "queue.limit_bytes is True, not an integer or null"),
    ],
)
def test_what_is_no_stage_is_refused_with_its_place(path: tuple[str, ...], value: object, says: str) -> None:
    data = json.loads((GOLDEN / "dumbbell.plan.json").read_text())
    place = data["links"][0]["forward"]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    with pytest.raises(ValueError) as refusal:
        from_json(orjson.dumps(data))
    assert str(refusal.value).startswith(f"plan.links[0].forward.{says}")


def test_what_is_no_egress_is_refused_with_its_place() -> None:
    data = json.loads((GOLDEN / "dumbbell.plan.json").read_text())
    data["nodes"][1]["interfaces"][0]["egress"] = {"kind": "hfsc"}
    with pytest.raises(ValueError) as refusal:
        from_json(orjson.dumps(data))
    where = "plan.nodes[1].interfaces[0].egress.kind"
    assert str(refusal.value) == f"{where} is 'hfsc'"


def _plans() -> dict[str, Plan]:
    return {name: compile(spec, facts) for name, spec, facts in specs()}


if __name__ == "__main__":
    for name, plan in _plans().items():
        (GOLDEN / f"{name}.plan.json").write_bytes(to_json(plan))
